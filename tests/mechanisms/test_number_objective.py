"""Objective perturbation for numbers: exact densities against the claimed curve, the solver, and the whole program."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from privsolve import Accountant
from privsolve.data.columns.label import TargetTable
from privsolve.engines.regression import Huber, Objective, Rows, gradient_bound, minimise
from privsolve.mechanisms.card_points import Options
from privsolve.mechanisms.number_objective import NumberPlan
from privsolve.mechanisms.objective import perturbed_card
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.gaussian_curve import gaussian_delta


def log_density(records, w: np.ndarray, clip: float, penalty: float, sigma: float) -> np.ndarray:
    """The exact density of the minimiser in one dimension: records are (x, target)."""
    gradient, second = penalty * w, np.full_like(w, penalty)
    for x, target in records:
        cap, residual = min(1.0, clip / abs(x)), x * w - target
        gradient = gradient + x * np.clip(residual, -cap, cap)
        second = second + x * x * (np.abs(residual) <= cap)
    return -(gradient**2) / (2 * sigma**2) + np.log(second) - math.log(sigma * math.sqrt(2 * math.pi))


def random_pair(rng: np.random.Generator, adjacency: Adjacency):
    radius, clip = float(rng.choice([0.3, 1.0, 5.0])), float(rng.choice([0.05, 0.5, 3.0]))

    def record(length: float) -> tuple[float, float]:
        return length * radius * float(rng.choice([-1, 1])), float(rng.choice([0.0, rng.normal(), 100 * rng.normal()]))

    common = [record(float(rng.uniform(0.05, 1))) for _ in range(int(rng.integers(0, 4)))]
    one, other = record(1.0), record(float(rng.choice([1.0, rng.uniform(0.05, 1)])))
    first = common if adjacency is Adjacency.ADD_REMOVE else [*common, other]
    return radius, clip, first, [*common, one]


def worst_ratio(
    adjacency: Adjacency, pairs: int, *, sigma: float = 1.0, beta: float = 1.0, offset: bool = True
) -> float:
    """The largest (exact delta - claimed delta) / claimed delta over random pairs of neighbours."""
    rng = np.random.default_rng(5)
    vertices = NumberPlan(1.0, 1e-6, adjacency, 1, 1).vertices(1.0)
    worst = -1.0
    for _ in range(pairs):
        radius, clip, *neighbours = random_pair(rng, adjacency)
        penalty = float(rng.choice([0.02, 0.3, 3.0, 100.0])) * radius**2
        deviation = clip / float(rng.choice([0.2, 0.7, 2.0]))
        moved = math.log1p(beta * radius**2 / penalty) if offset else 0.0
        most = (1 if adjacency is Adjacency.ADD_REMOVE else 2) * clip / deviation
        # the pieces of the densities end where a residual is the largest that counts
        ends = [(t + way * min(1.0, clip / abs(x))) / x for r in neighbours for x, t in r for way in (-1, 1)]
        reach = np.linspace(-60, 60, 4001) * deviation / penalty
        w = np.unique(np.concatenate([reach, reach / 50, *(end + np.array([-1e-9, 1e-9]) for end in ends)]))
        logs = [log_density(records, w, clip, penalty, deviation * sigma) for records in neighbours]
        for epsilon in (moved, moved + 0.3, moved + 1.5, moved + 3.0):
            claimed = sum(gaussian_delta(share * most, epsilon - moved) for share in vertices)
            for p, q in (logs, logs[::-1]):
                gap = np.exp(p) * np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon + q - p)))
                exact = float(np.sum((gap[1:] + gap[:-1]) * np.diff(w)) / 2)
                worst = max(worst, (exact - claimed) / claimed if claimed > 1e-9 else -1.0)
        if worst > 0.01:  # noticed
            break
    return worst


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_exact_densities_stay_below_the_curve(adjacency: Adjacency) -> None:
    assert worst_ratio(adjacency, 300) <= 2e-3  # what is left is the error of the trapezoid rule


@pytest.mark.parametrize("wrong", [{"sigma": 0.9}, {"beta": 0.5}, {"offset": False}], ids=["sigma", "beta", "offset"])
def test_the_test_of_densities_notices_what_is_wrong(wrong: dict[str, float]) -> None:
    assert worst_ratio(Adjacency.ADD_REMOVE, 500, **wrong) > 0.01


def test_one_sign_would_not_be_enough() -> None:
    """A record whose residual has the sign of the weight, whichever that is: half of the claim is exceeded."""
    w = np.linspace(-400, 400, 200_001)
    with_it, without = (log_density(records, w, 1.0, 0.05, 1.0) for records in ([(1.0, 0.0)], []))
    gap = np.exp(without) * np.maximum(0.0, -np.expm1(np.minimum(0.0, 1.0 + with_it - without)))
    assert gaussian_delta(1.0, 1.0) * 1.5 < float(gap.sum() * (w[1] - w[0])) <= 2 * gaussian_delta(1.0, 1.0)


def some_rows(rng: np.random.Generator, rows: int = 40, dim: int = 4) -> Rows:
    losses = Huber(rng.normal(0, 1.5, rows), rng.integers(0, 5, rows))
    centre = np.round(rng.random(dim) * 1024) / 1024
    return Rows(rng.integers(0, 2, (rows, dim)).astype(np.int8), losses, centre, 1.0, 1.4, 1.2)


def vectors_of(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    full = np.hstack([rows.features - rows.centre, np.ones((len(rows.features), 1))])
    full = full * np.minimum(1, rows.radius / np.linalg.norm(full, axis=1))[:, None]
    return full, np.minimum(1, rows.clip / np.linalg.norm(full, axis=1))


def test_the_minimiser_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        rows = some_rows(rng)
        objective = Objective(rows, float(rng.uniform(0.1, 3)), rng.normal(0, 3, rows.dim))
        vectors, caps = vectors_of(rows)

        def value(w: np.ndarray) -> float:
            off = np.abs(vectors @ w - rows.losses.targets)  # noqa: B023
            loss = np.where(off <= caps, off**2 / 2, caps * off - caps**2 / 2)  # noqa: B023
            return float(rows.losses.records @ loss + objective.penalty / 2 * w @ w + objective.linear @ w)  # noqa: B023

        weights, bound = minimise(objective, 1e-9)
        assert bound <= 1e-9
        assert objective.value_gradient(weights)[0] == pytest.approx(value(weights))
        found = minimize(value, np.zeros(rows.dim), method="BFGS", options={"gtol": 1e-9}).x
        assert weights == pytest.approx(found, abs=2e-4)


def test_the_certificate_is_above_the_exact_gradient() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        rows = some_rows(rng, 12, 3)
        objective = Objective(rows, 0.7, rng.normal(0, 2, rows.dim))
        weights = minimise(objective, 1e-9)[0] + rng.normal(0, 1e-12, rows.dim)
        exact = [[Fraction(float(value)) for value in values] for values in (weights, objective.linear)]
        total = [b + Fraction(0.7) * w for w, b in zip(*exact, strict=True)]
        for z, t, n in zip(rows.features, rows.losses.targets, rows.losses.records, strict=True):
            x = [Fraction(int(a)) - Fraction(float(b)) for a, b in zip(z, rows.centre, strict=True)] + [Fraction(1)]
            length = Fraction(math.isqrt(int(sum(a * a for a in x) * 4**80))) / 2**80
            factor = min(Fraction(1), Fraction(rows.radius) / length)
            cap = min(Fraction(1), Fraction(rows.clip) / min(length, Fraction(rows.radius)))
            score = factor * sum(a * w for a, w in zip(x, exact[0], strict=True))
            pull = int(n) * factor * max(-cap, min(cap, score - Fraction(float(t))))
            total = [g + pull * a for g, a in zip(total, x, strict=True)]
        assert math.sqrt(sum(float(g) ** 2 for g in total)) <= gradient_bound(objective, weights)


def numbers_of(rng: np.random.Generator, n: int, weights: np.ndarray, noise: float = 10.0) -> TargetTable:
    rows = rng.integers(0, 2, (n, len(weights))).astype(np.int8)
    levels = np.clip(np.rint(40 + rows @ weights + noise * rng.normal(size=n)), 0, 100).astype(np.int64)
    return TargetTable(rows, levels, np.ones(n, dtype=np.int64))


def plain_options(dim: int, **more) -> Options:
    return Options(np.full(dim, 0.5), np.arange(dim), (False,) * dim, **more)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_card_finds_the_weights(adjacency: Adjacency) -> None:
    weights = np.array([20.0, -10.0, 5.0, 0.0])
    records = numbers_of(np.random.default_rng(2), 20_000, weights)
    card, guarantee, _ = perturbed_card(
        records, NumberPlan(2.0, 1e-6, adjacency, 4, 4), plain_options(4), random_state=1
    )
    assert guarantee.proved
    assert guarantee.epsilon == 2.0
    assert card.points * card.unit * 50 == pytest.approx(weights, abs=1.5)  # 50 steps are 1
    predicted = 50 * (records.rows @ card.points * card.unit + card.intercept + 1)
    assert predicted.mean() == pytest.approx(records.targets.mean(), abs=0.5)


def test_counts_stand_for_records() -> None:
    rng = np.random.default_rng(3)
    single = numbers_of(rng, 500, np.array([20.0, -10.0]))
    both, counts = np.unique(np.column_stack([single.rows, single.targets]), axis=0, return_counts=True)
    merged = TargetTable(both[:, :2].astype(np.int8), both[:, 2], counts)
    assert merged.n == single.n == 500
    plan = NumberPlan(1.0, 1e-6, Adjacency.REPLACE, 2, 2)
    one, two = (perturbed_card(r, plan, plain_options(2), random_state=4)[0] for r in (single, merged))
    assert one.points.tolist() == two.points.tolist()
    assert one.intercept == pytest.approx(two.intercept, abs=1e-6)


def test_predictions_of_a_skewed_outcome_are_right_on_average() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (20_000, 3)).astype(np.int8)
    levels = np.clip(rng.exponential(6 + 10 * rows[:, 0]), 0, 100).astype(np.int64)
    records = TargetTable(rows, levels, np.ones(len(rows), dtype=np.int64))
    card, *_ = perturbed_card(records, NumberPlan(2.0, 1e-6, Adjacency.REPLACE, 3, 3), plain_options(3), random_state=0)
    predicted = 50 * (rows @ card.points * card.unit + card.intercept + 1)
    assert predicted.mean() == pytest.approx(levels.mean(), rel=0.03)


def test_the_curve_meets_epsilon_and_delta() -> None:
    for adjacency in Adjacency:
        for choosing in (False, True):
            plan = NumberPlan(1.0, 1e-6, adjacency, 30, 12, choosing)
            assert plan.curve.delta_at(1.0) == pytest.approx(1e-6, rel=1e-6)
            last = len(plan.offsets) - 1
            assert math.log1p(9.0 / plan.penalty(last, 3.0)) <= plan.offsets[last] * (1 + 1e-9)


def test_signs_and_the_limit_of_questions_are_kept() -> None:
    records = numbers_of(np.random.default_rng(6), 3000, np.array([20.0, -10.0, 5.0, -3.0]))
    options = Options(np.full(4, 0.5), np.arange(4), (False,) * 4, 10, 2, frozenset(), np.array([1, 1, 0, 0]))
    for seed in range(5):
        plan = NumberPlan(4.0, 1e-5, Adjacency.REPLACE, 4, 4, choosing=True)
        card, *_ = perturbed_card(records, plan, options, random_state=seed)
        assert np.count_nonzero(card.points) <= 2
        assert (card.points[:2] >= 0).all()


def test_refusals_come_before_payment() -> None:
    account = Accountant(1.0, 1e-5, "add-remove", composition_delta=0.0)
    records = numbers_of(np.random.default_rng(7), 50, np.array([20.0, -10.0]))
    plan = NumberPlan(1.0, 1e-6, Adjacency.ADD_REMOVE, 2, 2)
    high = TargetTable(records.rows, records.targets + 100, records.counts)
    for wrong, of_plan, words in (
        (high, plan, "from 0 to 100"),
        (records, NumberPlan(1.0, 1e-6, Adjacency.ADD_REMOVE, 3, 3), "for 3 features"),
        (records, NumberPlan(1.0, 1e-6, Adjacency.ADD_REMOVE, 2, 1), "longest=1"),
        (TargetTable(2 * records.rows, records.targets, records.counts), plan, "0/1"),
    ):
        with pytest.raises(ValueError, match=words):
            perturbed_card(wrong, of_plan, plain_options(of_plan.dim), budget=account)
    assert account.history == ()
    _, guarantee, _ = perturbed_card(records, plan, plain_options(2), budget=account)
    assert account.history == (guarantee,)
