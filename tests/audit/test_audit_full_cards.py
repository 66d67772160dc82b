"""Full scorecards attacked: the whole program stands, broken copies of it are caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from privsolve import audit
from privsolve.audit.cases import FEATURES, points_bin
from privsolve.data.weights import UNITS, Weight
from privsolve.mechanisms import objective
from privsolve.mechanisms.objective import OUTPUT_DEVIATION, Plan
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

POINTS, BITS = audit.FULL_CARD_CASES[::2], audit.FULL_CARD_CASES[1::2]
SCHEMA = ps.Schema([ps.Bins("q", range(FEATURES))], ps.Label("y", ["yes"], ["no"]))


def attack(case: audit.FullCardCase, runs: int, confidence: float = 0.99) -> audit.Finding:
    rng = Randomness.seeded(1)
    return audit.lower_bound(
        lambda table: case.draw(table, rng), case.data, case.neighbour, runs, case.plan.delta, confidence
    )


def less_noise(monkeypatch: pytest.MonkeyPatch, divisor: int) -> None:
    whole = Plan.deviation
    monkeypatch.setattr(Plan, "deviation", lambda self, *given: whole(self, *given) / divisor)


@pytest.fixture
def no_output_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    step = OUTPUT_DEVIATION * 2.0**-objective.NOISE_BITS
    monkeypatch.setattr(objective, "_blurred", lambda found, *_: np.round(found / step) * step)


@pytest.mark.parametrize(("case", "divisor"), list(zip(POINTS, (3, 2), strict=True)), ids=["replace", "add-remove"])
def test_too_little_noise_is_caught(case: audit.FullCardCase, divisor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `replace` the bound adds up three Gaussian losses, so that half of the noise needs more runs than these."""
    less_noise(monkeypatch, divisor)
    assert attack(case, 1200 // divisor).refutes(case.plan.epsilon)


@pytest.mark.parametrize("case", BITS, ids=lambda case: case.name)
def test_output_noise_that_is_left_out_is_caught(case: audit.FullCardCase, no_output_noise: None) -> None:
    assert attack(case, 160).refutes(case.plan.epsilon)


def frames(adjacency: str) -> list[pd.DataFrame]:
    """Two neighbouring tables of records that lie above all cuts, and so have all features."""
    labels = {"replace": (["yes", "no"], ["no", "no"]), "add-remove": (["yes", "no"], ["yes"])}[adjacency]
    return [pd.DataFrame({"q": FEATURES, "y": given}) for given in labels]


def black_box(adjacency: str, runs: int, max_weight: float | None = None) -> audit.Finding:
    """The points of a card fitted to a table, as anybody would fit it; with weights each record has one of 16."""
    rng = Randomness.seeded(2)
    epsilon, delta = POINTS[0].plan.epsilon, POINTS[0].plan.delta
    plan = Plan(epsilon, delta, Adjacency.of(adjacency), FEATURES, FEATURES)

    stated: Any = {"delta": delta, "schema": SCHEMA, "adjacency": adjacency, "max_weight": max_weight}

    def points(table: pd.DataFrame) -> int:
        card = ps.PrivateScorecard(epsilon, **stated, random_state=rng)
        weights = None if max_weight is None else np.full(len(table), 16.0)
        model = card.fit(table, sample_weight=weights).release_.model
        return points_bin(plan, float(model.weights[:-1].sum()) * model.log_odds)

    return audit.lower_bound(points, *frames(adjacency), runs, delta, 0.99)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_neighbouring_tables_are_hidden(adjacency: str) -> None:
    assert not black_box(adjacency, 100).refutes(POINTS[0].plan.epsilon)


def test_neighbouring_tables_show_a_quarter_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(monkeypatch, 4)
    assert black_box("add-remove", 120).refutes(POINTS[0].plan.epsilon)


def test_large_weights_are_hidden_because_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not black_box("add-remove", 100, max_weight=1).refutes(POINTS[0].plan.epsilon)
    uncut = property(lambda self: ps.Number(self.column, 0, 16 * self.largest, self.largest / UNITS))
    monkeypatch.setattr(Weight, "coded", uncut)
    assert black_box("add-remove", 100, max_weight=1).refutes(POINTS[0].plan.epsilon)
