"""The example that makes OpenDP measurements of mechanisms: totals, groups, and no claim that a run does not keep."""

import math
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib", "honest-but-curious")

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "opendp_measurement.py")
as_measurement = runpy.run_path(EXAMPLE)["as_measurement"]
TABLE = ps.PatternTable(np.eye(3, dtype=int), [3, 1, 0], [0, 1, 2])


def exponential(table: ps.PatternTable, epsilon: float = 0.5, **options: Any) -> ps.Run:
    return ps.exponential(ps.Problem(table, ps.SignCube(3)), epsilon, method="enumeration", **options)


def gaussian(table: ps.PatternTable, **options: Any) -> ps.Run:
    problem = ps.Problem(table, ps.SignCube(3))
    return ps.opdisc(problem, 0.25, delta=1e-7, noise="gaussian", oracle="enumeration", **options)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_distances_are_in_the_units_of_the_adjacency(adjacency: str) -> None:
    stated = ps.promised(exponential, TABLE, adjacency=adjacency)
    measurement = as_measurement(lambda table: exponential(table, adjacency=adjacency), stated)
    expected = dp.change_one_distance() if adjacency == "replace" else dp.symmetric_distance()
    assert str(measurement.input_metric) == str(expected)
    assert [measurement.map(k) for k in (1, 2)] == [0.5, 1.0]
    assert isinstance(measurement(TABLE), ps.Release)


def test_the_delta_of_groups() -> None:
    epsilon, delta = as_measurement(gaussian, ps.promised(gaussian, TABLE)).map(3)
    assert epsilon == 0.75
    assert delta == pytest.approx(1e-7 * (1 + math.exp(0.25) + math.exp(0.5)), rel=1e-9)


def test_a_run_that_promises_something_else_releases_nothing() -> None:
    for mechanism in (lambda table: exponential(table, 0.6), gaussian):
        with pytest.raises(dp.OpenDPException, match="promises something else"):
            as_measurement(mechanism, ps.promised(exponential, TABLE))(TABLE)


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["opendp_measurement.py", "--seed", "1"])
    runpy.run_path(EXAMPLE, run_name="__main__")
    shown = capsys.readouterr().out
    assert "One changed record: epsilon 0.75. A household of three: epsilon 2.25." in shown
    assert shown.count("Guarantee: Changing one record") == 2
