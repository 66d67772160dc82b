"""Oracles over a box and the objectives they minimise: every answer against a dense search, every gap held to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsolve.arrays import Floats
from privsolve.continuous.oracles import LipschitzOracle, PiecewiseLinearOracle
from privsolve.continuous.problem import (
    Box,
    Objective,
    PiecewiseLinear,
    absolute_deviation,
    as_box,
    pinball,
    posted_price,
    threshold_cost,
    truncated_deviation,
)
from privsolve.errors import OracleNotCertified, WorkLimitReached


def column(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64)[:, None]


# --- objectives -----------------------------------------------------------------------------------


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12), st.floats(-1.5, 1.9))
def test_losses_are_the_sums_they_say(data: list[float], x: float) -> None:
    box, a, at = [(-2.0, 2.0)], np.array(data), column([x])
    assert absolute_deviation(a, box).values(at)[0] == pytest.approx(np.abs(x - a).sum(), abs=1e-9)
    check = 0.3 * np.maximum(a - x, 0) + 0.7 * np.maximum(x - a, 0)
    assert pinball(a, box, 0.3).values(at)[0] == pytest.approx(check.sum(), abs=1e-9)
    cut = np.minimum(np.abs(x - a), 0.5).sum()
    assert truncated_deviation(a, box, 0.5).values(at)[0] == pytest.approx(cut, abs=1e-9)


@given(st.lists(st.floats(0, 12), min_size=1, max_size=12), st.floats(1, 9))
def test_posted_price_is_below_the_revenue_and_equal_a_ramp_away(data: list[float], price: float) -> None:
    v = np.clip(data, 0.5, 10)
    smooth = -posted_price(data, [(1.0, 9.0)], 0.5, highest=10.0).values(column([price]))[0]
    ramp = np.clip((v - price) / 0.5, 0, 1)
    assert smooth == pytest.approx(np.where(price <= v - 0.5, price, ramp * (v - 0.5)).sum(), abs=1e-9)
    assert smooth <= price * np.sum(v >= price) + 1e-9
    assert smooth >= price * np.sum(v >= price + 0.5) - 1e-9


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=12), st.floats(0.1, 0.9))
def test_threshold_cost_is_the_cost_away_from_the_ramps(records: list[tuple[float, bool]], t: float) -> None:
    scores, positive = (np.array(c) for c in zip(*records, strict=True))
    loss = threshold_cost(scores, positive, [(0.1, 0.9)], 0.2, miss=3.0, false_alarm=2.0)
    share = np.clip((t - scores) / 0.2 + 0.5, 0, 1)
    expected = np.where(positive, 3 * share, 2 * (1 - share)).sum()
    assert loss.values(column([t]))[0] == pytest.approx(expected, abs=1e-9)
    assert loss.lipschitz == pytest.approx(15.0)


def test_losses_are_as_lipschitz_as_they_say() -> None:
    rng = np.random.default_rng(0)
    box = [(0.0, 1.0)]
    for a in rng.random(40):
        for loss in (
            absolute_deviation([a], box),
            pinball([a], box, 0.8),
            truncated_deviation([a], box, 0.1),
            posted_price([a], box, 0.05, highest=0.7),
            threshold_cost([a], [a < 0.5], box, 0.1, miss=2.0),
        ):
            slopes = np.diff(loss.heights[0]) / np.maximum(np.diff(loss.knots[0]), 1e-12)
            assert np.abs(slopes).max() <= loss.lipschitz * (1 + 1e-6)


def test_rounding_of_a_large_sum_is_within_its_bound() -> None:
    """Two million terms that nearly cancel, against exact sums of fractions of 2^-20."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**20, 500_000) / 2**20
    loss = absolute_deviation(a, [(0.0, 1.0)])
    at = rng.integers(0, 2**20, 5)
    exact = [int(np.abs((a * 2**20).astype(np.int64) - k).sum()) for k in at]
    error = np.abs(loss.values(column(at / 2**20)) - np.array(exact) / 2**20)
    assert error.max() <= loss.rounding + 1e-9
    assert loss.rounding < 1e-7


@pytest.mark.parametrize("wrong", [[(1.0, 0.0)], [(0.0, float("inf"))], [], [(0.0,)], 3.0, [(0.0, "x")]])
def test_wrong_boxes(wrong: object) -> None:
    with pytest.raises(ValueError, match="box"):
        as_box(wrong)  # type: ignore[arg-type]


def test_wrong_records_and_parameters() -> None:
    box = [(0.0, 1.0)]
    for call, name in (
        (lambda: absolute_deviation([[1.0, 2.0]], box), "data"),
        (lambda: absolute_deviation([], box), "data"),
        (lambda: absolute_deviation([float("nan")], box), "data"),
        (lambda: pinball([0.5], box, 1.0), "level"),
        (lambda: truncated_deviation([0.5], box, 0.0), "radius"),
        (lambda: posted_price([0.5], box, -1.0, highest=1.0), "ramp"),
        (lambda: posted_price([0.5], box, 1.0, highest=1.0), "highest"),
        (lambda: posted_price([0.5], [(-1.0, 1.0)], 0.1, highest=1.0), "box"),
        (lambda: threshold_cost([0.5], [2], box, 0.1), "positive"),
        (lambda: threshold_cost([0.5], [1, 0], box, 0.1), "positive"),
        (lambda: PiecewiseLinear((np.array([1.0, 0.0]),), (np.zeros(2),), 1, 1.0), "knots"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


# --- piecewise linear -----------------------------------------------------------------------------

heights = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


@given(heights, st.floats(-50, 50), st.integers(0, 10**6))
@settings(deadline=None)
def test_piecewise_linear_oracle_is_exact(y: list[float], eta: float, seed: int) -> None:
    x = np.sort(np.random.default_rng(seed).random(len(y)))
    x[0], x[-1] = 0.0, 1.0
    objective = PiecewiseLinear((x,), (np.array(y),), 1, 1e9)
    solution = PiecewiseLinearOracle().minimise(objective, Box((0.0,), (1.0,)), np.array([eta]))
    tilted = np.array(y) - eta * x
    value = objective.values(solution.point[None, :])[0] - eta * solution.point[0]
    assert value <= tilted.min() + solution.gap
    assert solution.gap < 1e-12


def test_piecewise_linear_batches_and_coordinates() -> None:
    rng = np.random.default_rng(0)
    box = Box((-1.0, 0.0), (1.0, 3.0))
    objective = truncated_deviation(rng.normal(0.3, 1.0, (200, 2)), box, 0.4)
    oracle = PiecewiseLinearOracle()
    etas = rng.exponential(10, (50, 2)) - 10
    prepared = oracle.prepare(objective, box)
    points, gap = oracle.minimise_many(prepared, box, etas)
    mesh = np.stack(
        [g.ravel() for g in np.meshgrid(*(np.linspace(a, b, 120) for a, b in zip(box.low, box.high, strict=True)))], 1
    )
    losses = objective.values(mesh)
    for point, eta in zip(points, etas, strict=True):
        assert np.array_equal(oracle.minimise(prepared, box, eta).point, point)
        value = objective.values(point[None, :])[0] - eta @ point
        assert value <= (losses - mesh @ eta).min() + gap
    assert gap <= oracle.stated_error(box, 1.0, 200)


def test_piecewise_linear_oracle_certifies_a_million_records() -> None:
    rng = np.random.default_rng(0)
    box = as_box([(0.0, 1.0)])
    loss = posted_price(rng.random(10**6), box, 0.05, highest=1.0)
    oracle = PiecewiseLinearOracle()
    assert oracle.prepare(loss, box).gap <= oracle.stated_error(box, loss.lipschitz, 10**6)


def test_piecewise_linear_oracle_refuses_other_objectives() -> None:
    oracle, box = PiecewiseLinearOracle(), as_box([(0.0, 1.0)])
    with pytest.raises(ValueError, match="PiecewiseLinear"):
        oracle.prepare(Objective(lambda x: x[:, 0], 1, 1.0), box)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="another box"):
        oracle.prepare(absolute_deviation([0.5], [(0.0, 2.0)]), box)


# --- Lipschitz ------------------------------------------------------------------------------------


def wells(rng: np.random.Generator, n: int, dim: int, *, bounded: bool) -> Objective:
    """`Σ min(‖x - a_i‖₁, c_i)`: many local minima."""
    a, c = rng.random((n, dim)), 0.1 + 0.4 * rng.random(n)

    def values(points: Floats) -> Floats:
        return np.minimum(np.abs(points[:, None, :] - a).sum(axis=2), c).sum(axis=1)

    def lower_bounds(low: Floats, high: Floats) -> Floats:
        outside = np.maximum(low[:, None, :] - a, 0) + np.maximum(a - high[:, None, :], 0)
        return np.minimum(outside.sum(axis=2), c).sum(axis=1)

    return Objective(values, n, 1.0, lower_bounds=lower_bounds if bounded else None)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(("dim", "tolerance"), [(1, 1e-4), (2, 0.02), (3, 0.5), (4, 1.2)])
def test_lipschitz_oracle_is_within_its_gap(dim: int, tolerance: float, bounded: bool) -> None:
    rng = np.random.default_rng(dim)
    objective, box = wells(rng, 15, dim, bounded=bounded), as_box([(0.0, 1.0)] * dim)
    oracle = LipschitzOracle(tolerance)
    prepared = oracle.prepare(objective, box)
    mesh = rng.random((20_000, dim))
    losses = objective.values(mesh)
    for eta in rng.exponential(3, (3, dim)) - 3:
        solution = oracle.minimise(prepared, box, eta)
        assert box.contains(solution.point)
        assert solution.gap <= tolerance
        value = objective.values(solution.point[None, :])[0] - eta @ solution.point
        assert value <= (losses - mesh @ eta).min() + solution.gap
        assert np.array_equal(solution.point, oracle.minimise(prepared, box, eta).point)


def test_lipschitz_oracle_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    box = as_box([(0.0, 2.0)])
    objective = truncated_deviation(2 * rng.random(40), box, 0.2)
    for eta in rng.normal(0, 10, (10, 1)):
        certified = LipschitzOracle(1e-3).minimise(objective, box, eta)
        exact = PiecewiseLinearOracle().minimise(objective, box, eta)
        values = objective.values(np.stack([certified.point, exact.point]))
        assert -1e-9 <= (values[0] - eta @ certified.point) - (values[1] - eta @ exact.point) <= 1e-3


def test_own_bounds_spare_work() -> None:
    box, eta = as_box([(0.0, 1.0)] * 2), np.zeros(2)
    work = []
    for bounded in (False, True):
        objective = wells(np.random.default_rng(1), 30, 2, bounded=bounded)
        work.append(LipschitzOracle(0.05).minimise(objective, box, eta).work["evaluations"])
    assert work[1] < work[0]


def test_lipschitz_oracle_raises_rather_than_guess() -> None:
    objective, box = wells(np.random.default_rng(0), 10, 3, bounded=False), as_box([(0.0, 1.0)] * 3)
    with pytest.raises(WorkLimitReached, match="max_cells"):
        LipschitzOracle(1e-3, max_cells=5000).minimise(objective, box, np.zeros(3))
    with pytest.raises(OracleNotCertified, match="rounding"):
        LipschitzOracle(1e-13).minimise(objective, box, np.zeros(3))
    with pytest.raises(ValueError, match=r"objective\.values"):
        LipschitzOracle(1.0).prepare(Objective(lambda x: np.full(len(x), np.nan), 1, 1.0), box)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan"), True])
def test_tolerances_must_be_positive(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        LipschitzOracle(tolerance)
