"""Mechanisms as OpenDP measurements: totals, group privacy, and no claim that a run does not keep."""

from __future__ import annotations

import math
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import privsolve as ps
from privsolve.interop.opendp import as_measurement
from privsolve.privacy.accounting import promised
from privsolve.privacy.guarantee import Guarantee

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib", "honest-but-curious")

TABLE = ps.PatternTable(np.eye(3, dtype=int), [3, 1, 0], [0, 1, 2])
EXAMPLE = Path(__file__).parents[2] / "examples" / "opendp_measurement.py"


def exponential(table: ps.PatternTable, epsilon: float = 0.5, adjacency: str = "replace", **options: object) -> ps.Run:
    return ps.exponential(
        ps.Problem(table, ps.SignCube(3)), epsilon, adjacency=adjacency, method="enumeration", **options
    )  # type: ignore[arg-type]


def gaussian(table: ps.PatternTable, **options: object) -> ps.Run:
    problem = ps.Problem(table, ps.SignCube(3))
    return ps.opdisc(problem, 0.25, delta=1e-7, noise="gaussian", oracle="enumeration", **options)  # type: ignore[arg-type]


def stated(adjacency: str = "replace") -> Guarantee:
    return promised(exponential, TABLE, adjacency=adjacency)


def test_two_releases_compose_inside_opendp() -> None:
    one = as_measurement(exponential, stated())
    other = as_measurement(lambda table: exponential(table, 0.25), promised(exponential, TABLE, 0.25))
    both = dp.c.make_composition([one, other])
    assert both.map(1) == 0.75
    assert both.map(2) == 1.5
    first, second = both(TABLE)
    assert isinstance(first, ps.Release)
    assert (first.guarantee.epsilon, second.guarantee.epsilon) == (0.5, 0.25)
    assert ps.SignCube(3).contains(first.weights)


def test_opendp_refuses_what_exceeds_its_budget() -> None:
    one = as_measurement(exponential, stated())
    composed = dp.c.make_adaptive_composition(
        one.input_domain, one.input_metric, one.output_measure, d_in=1, d_mids=[0.5, 0.25]
    )
    assert composed.map(1) == 0.75
    queries = composed(TABLE)
    assert isinstance(queries(one), ps.Release)
    with pytest.raises(dp.OpenDPException):
        queries(one)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_distances_are_in_the_units_of_the_adjacency(adjacency: str) -> None:
    measurement = as_measurement(lambda table: exponential(table, adjacency=adjacency), stated(adjacency))
    expected = dp.change_one_distance() if adjacency == "replace" else dp.symmetric_distance()
    assert str(measurement.input_metric) == str(expected)
    assert measurement.map(1) == 0.5
    if adjacency == "add-remove":  # a replaced record is one removed and one added
        assert measurement.map(2) == stated(adjacency).under("replace").epsilon == 1.0


def test_delta_and_zcdp_of_groups() -> None:
    approximate = as_measurement(gaussian, promised(gaussian, TABLE))
    assert approximate.map(1) == (0.25, pytest.approx(1e-7))
    epsilon, delta = approximate.map(3)
    assert epsilon == 0.75
    assert delta == pytest.approx(1e-7 * (1 + math.exp(0.25) + math.exp(0.5)), rel=1e-9)
    concentrated = as_measurement(exponential, stated(), measure="zcdp")
    assert concentrated.map(1) == 0.5**2 / 8
    assert concentrated.map(4) == 16 * 0.5**2 / 8
    assert dp.c.make_composition([concentrated] * 3).map(1) == 3 * 0.5**2 / 8
    assert dp.c.make_composition([approximate] * 2).map(1)[0] == 0.5


def test_a_run_that_promises_less_releases_nothing() -> None:
    for mechanism in (lambda table: exponential(table, 0.6), gaussian):
        with pytest.raises(dp.OpenDPException, match="promises less"):
            as_measurement(mechanism, stated())(TABLE)


def test_a_run_with_a_weaker_claim_releases_nothing() -> None:
    seeded = as_measurement(lambda table: exponential(table, random_state=0), stated())
    with pytest.raises(dp.OpenDPException, match="promises less"):
        seeded(TABLE)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="guarantee"):
        as_measurement(exponential, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measure"):
        as_measurement(exponential, stated(), measure="rdp")
    with pytest.raises(ValueError, match="no zcdp bound"):
        as_measurement(gaussian, promised(gaussian, TABLE), measure="zcdp")
    with pytest.raises(dp.OpenDPException):
        as_measurement(exponential, stated())([1, 2, 3])


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["opendp_measurement.py", "--seed", "1"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert "One changed record: epsilon 0.75. A household of three: epsilon 2.25." in shown
    assert shown.count("Guarantee: Changing one record") == 2
