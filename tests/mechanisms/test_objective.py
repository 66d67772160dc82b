"""Objective perturbation: exact densities against the claimed curve, the certificate, and the whole program."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit

from privsolve.data.patterns import PatternTable
from privsolve.engines import regression as engine
from privsolve.engines.regression import Logistic, Objective, Rows, gradient_bound, minimise
from privsolve.errors import OracleNotCertified
from privsolve.mechanisms import objective as mechanism
from privsolve.mechanisms.card_points import Options, whole_points
from privsolve.mechanisms.objective import Plan, perturbed_card
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.gaussian_curve import GaussianCurve, gaussian_delta, largest_shift, vertex_shifts
from privsolve.privacy.profiles import profile_from_dict


def slope(u: np.ndarray, cap: float) -> np.ndarray:
    """Minus the derivative of the loss at margin u."""
    return np.minimum(expit(-u), cap)


def curvature(u: np.ndarray, cap: float) -> np.ndarray:
    p = expit(-u)
    return np.where(p <= cap, p * (1 - p), 0.0)


class Density:
    """The exact density of the minimiser in one dimension, on a grid: records are (x, s)."""

    def __init__(self, records, clip: float, penalty: float, sigma: float) -> None:
        self.records, self.clip, self.penalty, self.sigma = records, clip, penalty, sigma

    def log(self, w: np.ndarray) -> np.ndarray:
        gradient, second = self.penalty * w, np.full_like(w, self.penalty)
        for x, s in self.records:
            cap = min(1.0, self.clip / abs(x))
            gradient = gradient - s * x * slope(s * x * w, cap)
            second = second + x * x * curvature(s * x * w, cap)
        return -(gradient**2) / (2 * self.sigma**2) + np.log(second) - math.log(self.sigma * math.sqrt(2 * math.pi))


def largest_delta(p: Density, q: Density, epsilon: float, w: np.ndarray) -> float:
    lp, lq = p.log(w), q.log(w)
    gap = np.exp(lp) * np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon + lq - lp)))
    return float(np.trapezoid(gap, w)) if hasattr(np, "trapezoid") else float(np.trapz(gap, w))


def smoothness(clip: float, radius: float) -> float:
    return clip * (radius - clip) if radius >= 2 * clip else radius**2 / 4


def random_pair(rng: np.random.Generator, adjacency: str):
    radius = float(rng.choice([0.3, 1.0, 2.0, 5.0, 20.0]))
    clip = float(rng.choice([0.05, 0.5, 1.0, 3.0]))
    common = [(float(rng.uniform(0.05, 1)) * radius, int(rng.choice([-1, 1]))) for _ in range(int(rng.integers(0, 4)))]
    size = [1.0, float(rng.uniform(0.05, 1))]
    one, other = ((radius * size[k], int(rng.choice([-1, 1]))) for k in (0, int(rng.integers(0, 2))))
    if adjacency == "add-remove":
        return radius, clip, common, [*common, one]
    return radius, clip, [*common, other], [*common, one]


def worst_ratio(
    adjacency: str, pairs: int, *, sigma_factor: float = 1.0, beta_factor: float = 1.0, offset: bool = True
):
    """The largest (exact delta - claimed delta) / claimed delta over random pairs of neighbours."""
    rng = np.random.default_rng(5)
    worst = -1.0
    for _ in range(pairs):
        radius, clip, first, second = random_pair(rng, adjacency)
        penalty = float(rng.choice([0.02, 0.3, 3.0])) * smoothness(clip, radius)
        sigma = clip / float(rng.choice([0.2, 0.7, 2.0]))
        shift = clip / sigma
        moved = math.log1p(beta_factor * smoothness(clip, radius) / penalty) if offset else 0.0
        shifts = (shift,) if adjacency == "add-remove" else (2 * shift, shift, shift)
        lo, hi = -60 * sigma / penalty, 60 * sigma / penalty
        w = np.unique(
            np.concatenate(
                [np.linspace(lo, hi, 4001), np.linspace(lo, hi, 4001) / 50, np.linspace(-30, 30, 6001) / radius]
            )
        )
        densities = [Density(records, clip, penalty, sigma * sigma_factor) for records in (first, second)]
        for epsilon in (moved, moved + 0.3, moved + 1.0, moved + 2.5):
            claimed = sum(gaussian_delta(s, epsilon - moved) for s in shifts)
            for p, q in (densities, densities[::-1]):
                exact = largest_delta(p, q, epsilon, w)
                if claimed > 1e-9:
                    worst = max(worst, (exact - claimed) / claimed)
        if worst > 0.01:  # noticed
            break
    return worst


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_exact_densities_stay_below_the_curve(adjacency: str) -> None:
    assert worst_ratio(adjacency, 400) <= 2e-3  # what is left is the error of the trapezoid rule


@pytest.mark.parametrize(
    "wrong", [{"sigma_factor": 0.9}, {"beta_factor": 0.5}, {"offset": False}], ids=["sigma", "beta", "offset"]
)
def test_the_test_of_densities_notices_what_is_wrong(wrong: dict[str, float]) -> None:
    assert worst_ratio("add-remove", 700, **wrong) > 0.01


def test_densities_in_two_dimensions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        radius, clip = float(rng.choice([1.0, 3.0])), 1.0
        penalty, sigma = 0.4 * smoothness(clip, radius), clip / float(rng.choice([0.5, 1.5]))
        vectors = [
            (v / np.linalg.norm(v) * radius * float(rng.uniform(0.3, 1)), int(rng.choice([-1, 1])))
            for v in rng.normal(size=(3, 2))
        ]
        reach = 8 * sigma / penalty + 6
        side = np.linspace(-reach, reach, 700)
        grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)

        def log_density(records) -> np.ndarray:
            gradient = penalty * grid  # noqa: B023
            second = np.zeros((len(grid), 2, 2)) + penalty * np.eye(2)  # noqa: B023
            for x, s in records:
                cap, margin = min(1.0, clip / float(np.linalg.norm(x))), s * grid @ x  # noqa: B023
                gradient = gradient - s * slope(margin, cap)[:, None] * x
                second = second + curvature(margin, cap)[:, None, None] * np.outer(x, x)
            determinant = second[:, 0, 0] * second[:, 1, 1] - second[:, 0, 1] ** 2
            return -(gradient**2).sum(axis=1) / (2 * sigma**2) + np.log(determinant) - math.log(2 * math.pi * sigma**2)  # noqa: B023

        area, moved = (side[1] - side[0]) ** 2, math.log1p(smoothness(clip, radius) / penalty)
        for pair, shifts in (
            ((vectors[:2], vectors), (clip / sigma,)),
            ((vectors[:2], [vectors[0], vectors[2]]), (2 * clip / sigma, clip / sigma, clip / sigma)),
        ):
            logs = [log_density(records) for records in pair]
            assert np.exp(logs[0]).sum() * area == pytest.approx(1, abs=0.02)
            for (p, q), above in product((logs, logs[::-1]), (0.0, 0.7, 1.5)):
                gap = np.exp(p) * np.maximum(0.0, -np.expm1(np.minimum(0.0, moved + above + q - p)))
                assert gap.sum() * area <= sum(gaussian_delta(s, above) for s in shifts) * 1.02 + 1e-6


def small_rows(rng: np.random.Generator, rows: int = 40, dim: int = 5) -> Rows:
    features = np.unique(rng.integers(0, 2, (rows, dim)), axis=0).astype(np.int8)
    counts = rng.integers(0, 9, (2, len(features)))
    centre = np.round(rng.random(dim) * 1024) / 1024
    return Rows(features, Logistic(*counts), centre, 1.0, 1.4, 1.0, float(rng.normal()))


def reference(objective: Objective) -> np.ndarray:
    """The minimiser by SciPy, from the definition of the loss."""
    rows = objective.rows
    vectors = np.hstack([rows.features - rows.centre, np.ones((len(rows.features), 1))])
    vectors = vectors * np.minimum(1, rows.radius / np.linalg.norm(vectors, axis=1))[:, None]
    caps = np.minimum(1, rows.clip / np.linalg.norm(vectors, axis=1))

    def loss(u: np.ndarray) -> np.ndarray:
        kink = np.where(caps < 1, np.log(1 / np.where(caps < 1, caps, 0.5) - 1), -np.inf)
        inside = np.maximum(u, kink)
        return np.logaddexp(0, -inside) + caps * (inside - u)

    def value(w: np.ndarray) -> float:
        scores = vectors @ w + rows.offset
        total = rows.losses.positives @ loss(scores) + rows.losses.negatives @ loss(-scores)
        return float(total + objective.penalty / 2 * w @ w + objective.linear @ w)

    return minimize(value, np.zeros(rows.dim), method="BFGS", options={"gtol": 1e-9}).x


def test_the_minimiser_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = small_rows(rng)
        objective = Objective(rows, float(rng.uniform(0.1, 3)), rng.normal(0, 3, rows.dim))
        weights, bound = minimise(objective, 1e-9)
        assert bound <= 1e-9
        assert weights == pytest.approx(reference(objective), abs=2e-4)


def test_second_derivatives_of_some_rows_lead_to_the_same_minimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where most records have a row that is not among them."""
    rng = np.random.default_rng(6)
    for heavy in (0, 500):
        rows = small_rows(rng, 400, 7)
        counts = rows.losses.positives.copy()
        counts[1] += heavy
        rows = replace(rows, losses=Logistic(counts, rows.losses.negatives))
        for signs in (None, rng.integers(-1, 2, rows.dim - 1)):
            objective = Objective(rows, 0.5, rng.normal(0, 3, rows.dim), signs=signs)
            whole, _ = minimise(objective, 1e-9)
            monkeypatch.setattr(engine, "CURVED", 12)
            some, bound = minimise(objective, 1e-9)
            monkeypatch.undo()
            assert bound <= 1e-9
            assert some == pytest.approx(whole, abs=1e-8)


def test_the_certificate_is_above_the_gradient_in_many_digits() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(1)
    for _ in range(10):
        rows = small_rows(rng, 12, 3)
        objective = Objective(rows, 0.7, rng.normal(0, 2, rows.dim))
        weights = minimise(objective, 1e-9)[0] + rng.normal(0, 1e-12, rows.dim)
        total = [Fraction(0)] * rows.dim
        for z, p, n in zip(rows.features, rows.losses.positives, rows.losses.negatives, strict=True):
            x = [Fraction(int(a)) - Fraction(float(b)) for a, b in zip(z, rows.centre, strict=True)] + [Fraction(1)]
            length = Fraction(math.isqrt(int(sum(a * a for a in x) * 4**80))) / 2**80
            factor = min(Fraction(1), Fraction(rows.radius) / length)
            score = sum(a * Fraction(float(w)) for a, w in zip(x, weights, strict=True)) * factor + Fraction(
                rows.offset
            )
            cap = min(Fraction(1), Fraction(rows.clip) / min(length, Fraction(rows.radius)))
            pull = int(n) * min(_expit(score), cap) - int(p) * min(_expit(-score), cap)
            total = [t + pull * factor * a for t, a in zip(total, x, strict=True)]
        exact = [
            t + Fraction(objective.penalty) * Fraction(float(w)) + Fraction(float(b))
            for t, w, b in zip(total, weights, objective.linear, strict=True)
        ]
        assert math.sqrt(sum(float(g) ** 2 for g in exact)) <= gradient_bound(objective, weights)


def _expit(score):
    """The logistic function to 40 digits."""
    from decimal import Decimal, localcontext
    from fractions import Fraction

    with localcontext() as context:
        context.prec = 45
        value = 1 / (1 + (-(Decimal(score.numerator) / Decimal(score.denominator))).exp())
        return Fraction(value)


def test_a_gradient_that_is_too_long_is_no_answer() -> None:
    rows = small_rows(np.random.default_rng(2))
    with pytest.raises(OracleNotCertified, match="nothing is released"):
        minimise(Objective(rows, 1.0, np.ones(rows.dim)), 1e-16)


def test_signs_and_sparsity_keep_the_conditions_of_the_minimiser() -> None:
    rng = np.random.default_rng(4)
    zeros = 0
    for _ in range(20):
        rows = small_rows(rng)
        signs = rng.integers(-1, 2, rows.dim - 1)
        objective = Objective(rows, 0.5, rng.normal(0, 4, rows.dim), float(rng.choice([0.0, 3.0])), signs)
        weights, _ = minimise(objective, 1e-8)
        assert (weights[:-1] * signs >= 0).all()
        zeros += int((weights[:-1] == 0).sum())
        _, gradient = objective.value_gradient(weights)
        for step in np.eye(rows.dim):
            for way in (1e-4, -1e-4):
                moved = weights + way * step
                if (moved[:-1] * signs >= 0).all():
                    assert objective.value_gradient(moved)[0] >= objective.value_gradient(weights)[0] - 1e-9
        assert np.isfinite(gradient).all()
    assert zeros > 10


def test_the_curve_of_a_plan_meets_epsilon_and_delta() -> None:
    for adjacency, choosing, epsilon in product(Adjacency, (False, True), (0.05, 1.0, 8.0)):
        plan = Plan(epsilon, 1e-6, adjacency, 30, 12, choosing)
        assert plan.curve.delta_at(epsilon) == pytest.approx(1e-6, rel=1e-6)
        assert plan.curve.delta_at(epsilon) <= 1e-6 * (1 + 1e-8)
        assert plan.curve.delta_at(0.5 * epsilon) > 1e-6
        radius = 3.0
        last = len(plan.offsets) - 1
        assert math.log1p(2.0 / plan.penalty(last, radius)) <= plan.offsets[last] * (1 + 1e-9)


def test_a_curve_goes_to_a_file_and_back_and_refuses_what_it_is_not() -> None:
    curve = Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, 10, 5).curve
    assert profile_from_dict(curve.to_dict()) == curve
    with pytest.raises(ValueError, match="below the curve"):
        GaussianCurve(curve.epsilon, curve.delta / 2, curve.shifts, curve.offset, curve.blur)
    with pytest.raises(ValueError, match="larger epsilon"):
        largest_shift(lambda scale: (scale,), 0.1, 1e-6, 0.2, 0.0)
    assert vertex_shifts((3.0,), (0.0, 4.0)) == (5.0, 3.0)


def table_of(rng: np.random.Generator, n: int = 300, dim: int = 4) -> PatternTable:
    features = rng.integers(0, 2, (n, dim))
    labels = rng.random(n) < expit(features @ np.linspace(-1, 1, dim))
    return PatternTable.from_records(features, labels, ranges=[(0, 1)] * dim)


def plain_options(dim: int, **more) -> Options:
    return Options(np.full(dim, 0.5), np.arange(dim), (False,) * dim, **more)


def test_the_whole_program_has_the_law_of_the_proof() -> None:
    """One dimension: what is released, by draws, against the density of the ideal mechanism by integration."""
    table = PatternTable.from_records([[1]] * 3 + [[0]] * 2, [1, 1, 0, 0, 1], ranges=[(0, 1)])
    plan = Plan(2.0, 1e-3, Adjacency.ADD_REMOVE, 1, 1)
    draws = [perturbed_card(table, plan, plain_options(1), random_state=seed)[0] for seed in range(600)]
    found = np.array([w.points[0] * w.unit for w in draws])
    assert np.abs(found).max() < 60
    assert len({float(value) for value in found}) == len(found)
    # the noise of the linear term alone gives the weights at least this deviation at this penalty
    radius = mechanism.RADIUS * math.sqrt(0.25 + 1)
    assert found.std() > 0.3 * plan.deviation(0) / (plan.penalty(0, radius) + 5)


def test_features_with_the_same_guess_are_moved_together() -> None:
    """Rare words that are guessed to be common; where the noise is large, or the guess is right, nothing moves."""
    rng = np.random.default_rng(8)
    guess = np.append(np.full(20, 0.5), 0.25)
    shares = np.append(rng.normal(0.06, 0.1, 20), 0.9)
    moved = mechanism._moved_together(guess, shares, 0.01)
    assert moved[:20] == pytest.approx(0.06, abs=0.15)
    assert len(set(moved[:20])) == 1
    assert moved[20] == 0.25
    assert (mechanism._moved_together(guess, shares, 1.0) == guess).all()
    assert (mechanism._moved_together(guess, np.append(rng.normal(0.5, 0.1, 20), 0.9), 0.01) == guess).all()


def test_records_are_counted_by_their_totals() -> None:
    table = table_of(np.random.default_rng(9))
    points = np.array([3, -2, 0, 5])
    scores, yes, no = mechanism.counts_by_total(table, points)
    totals = table.rows @ points
    assert scores.tolist() == sorted(set(totals.tolist()))
    for score, positives, negatives in zip(scores, yes, no, strict=True):
        assert (positives, negatives) == (
            table.positives[totals == score].sum(),
            table.negatives[totals == score].sum(),
        )


def test_refusals_come_before_payment() -> None:
    from privsolve import Accountant

    table = table_of(np.random.default_rng(0))
    account = Accountant(1.0, 1e-5, "add-remove", composition_delta=0.0)
    plan = Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, 4, 2)
    with pytest.raises(ValueError, match="longest=2"):
        perturbed_card(table, plan, plain_options(4), budget=account)
    with pytest.raises(ValueError, match="made for 3"):
        perturbed_card(table, Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, 3, 2), plain_options(3), budget=account)
    undeclared = PatternTable.from_records([[0, 1]], [1])
    with pytest.raises(ValueError, match="0 or 1"):
        perturbed_card(undeclared, Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, 2, 2), plain_options(2), budget=account)
    assert account.history == ()
    full = Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, 4, 4)
    card, guarantee, _ = perturbed_card(table, full, plain_options(4), budget=account)
    assert account.history == (guarantee,)
    assert guarantee.proved
    assert card.points.shape == (4,)


def test_questions_are_limited_and_signs_are_kept() -> None:
    rng = np.random.default_rng(1)
    table = table_of(rng, 3000, 6)
    plan = Plan(4.0, 1e-5, Adjacency.REPLACE, 6, 6, choosing=True)
    signs = np.array([1, 1, 1, 0, 0, 0])
    options = Options(np.full(6, 0.5), np.repeat(np.arange(3), 2), (False,) * 3, 10, 2, frozenset({1}), signs)
    for seed in range(5):
        card, _, _ = perturbed_card(table, plan, options, random_state=seed)
        used = {int(q) for q in options.questions[card.points != 0]}
        assert len(used) <= 2
        assert (card.points[:3] >= 0).all()


def test_points_keep_the_weights_of_answers() -> None:
    weights = np.array([0.21, 0.23, -0.4, 1.0, -0.3])
    options = Options(np.full(5, 0.5), np.array([0, 0, 0, 1, 1]), (True, False), 10)
    points, unit = whole_points(weights, options)
    assert unit == pytest.approx(0.1)
    assert points.tolist() == [2, 2, -4, 10, -3]
    assert np.abs(np.cumsum(points[:3]) * unit - np.cumsum(weights[:3])).max() <= unit / 2
    assert whole_points(np.zeros(5), options)[0].tolist() == [0] * 5


def test_delta_of_the_gaussian_mechanism() -> None:
    for shift in (0.01, 0.3, 2.0):
        assert gaussian_delta(shift, 0.0) == pytest.approx(2 * 0.5 * math.erf(shift / 2 / math.sqrt(2)), rel=1e-9)
        found = brentq(lambda e, s=shift: gaussian_delta(s, e) - 1e-6, 0.0, 60.0)
        assert gaussian_delta(shift, found) == pytest.approx(1e-6, rel=1e-6)
    assert gaussian_delta(0.0, -1.0) == pytest.approx(1 - math.exp(-1))
