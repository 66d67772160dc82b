"""Objective perturbation: exact densities against the claimed curve, the certificate, and the whole program."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from privsolve import Accountant
from privsolve.data.columns.label import TargetTable
from privsolve.data.patterns import PatternTable
from privsolve.engines import regression as engine
from privsolve.engines.regression import Huber, Logistic, Objective, Rows, gradient_bound, minimise
from privsolve.errors import OracleNotCertified
from privsolve.mechanisms import objective as mechanism
from privsolve.mechanisms.card_points import Options, whole_points
from privsolve.mechanisms.number_objective import NumberPlan
from privsolve.mechanisms.objective import Plan, perturbed_card
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.gaussian_curve import GaussianCurve, gaussian_delta, largest_shift, vertex_shifts
from privsolve.privacy.profiles import profile_from_dict

PLANS = {"labels": Plan, "numbers": NumberPlan}


def label_slope(score: np.ndarray, label: float, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative by the score of the loss of a label, -1 or 1."""
    p = expit(-label * score)
    return -label * np.minimum(p, cap), np.where(p <= cap, p * (1 - p), 0.0)


def number_slope(score: np.ndarray, target: float, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """The same of a number."""
    return np.clip(score - target, -cap, cap), (np.abs(score - target) <= cap).astype(float)


SLOPES: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {"labels": label_slope, "numbers": number_slope}


def smoothness(kind: str, clip: float, radius: float) -> float:
    if kind == "numbers":
        return radius**2
    return clip * (radius - clip) if radius >= 2 * clip else radius**2 / 4


def log_density(kind: str, records, w: np.ndarray, clip: float, penalty: float, sigma: float) -> np.ndarray:
    """The exact density of the minimiser in one dimension: records are (x, outcome)."""
    gradient, second = penalty * w, np.full_like(w, penalty)
    for x, outcome in records:
        first, curved = SLOPES[kind](x * w, outcome, min(1.0, clip / abs(x)))
        gradient, second = gradient + x * first, second + x * x * curved
    return -(gradient**2) / (2 * sigma**2) + np.log(second) - math.log(sigma * math.sqrt(2 * math.pi))


def random_pair(kind: str, rng: np.random.Generator, adjacency: Adjacency):
    radius, clip = float(rng.choice([0.3, 1.0, 2.0, 5.0, 20.0])), float(rng.choice([0.05, 0.5, 1.0, 3.0]))

    def record(length: float) -> tuple[float, float]:
        outcome = rng.choice([-1, 1] if kind == "labels" else [0.0, rng.normal(), 100 * rng.normal()])
        return length * radius * float(rng.choice([-1, 1])), float(outcome)

    common = [record(float(rng.uniform(0.05, 1))) for _ in range(int(rng.integers(0, 4)))]
    one, other = record(1.0), record(float(rng.choice([1.0, rng.uniform(0.05, 1)])))
    first = common if adjacency is Adjacency.ADD_REMOVE else [*common, other]
    return radius, clip, first, [*common, one]


def worst_ratio(
    kind: str, adjacency: Adjacency, pairs: int, *, sigma: float = 1.0, beta: float = 1.0, offset: bool = True
) -> float:
    """The largest (exact delta - claimed delta) / claimed delta over random pairs of neighbours."""
    rng = np.random.default_rng(5)
    vertices = [share for share in PLANS[kind](1.0, 1e-6, adjacency, 1, 1).vertices(1.0) if share]
    worst = -1.0
    for _ in range(pairs):
        radius, clip, *neighbours = random_pair(kind, rng, adjacency)
        bend = smoothness(kind, clip, radius)
        penalty = float(rng.choice([0.02, 0.3, 3.0, 100.0])) * bend
        deviation = clip / float(rng.choice([0.2, 0.7, 2.0]))
        moved = math.log1p(beta * bend / penalty) if offset else 0.0
        most = (1 if adjacency is Adjacency.ADD_REMOVE else 2) * clip / deviation
        # the pieces of the densities of numbers end where a residual is the largest that counts
        ends = [(t + way * min(1.0, clip / abs(x))) / x for r in neighbours for x, t in r for way in (-1, 1)]
        reach = np.linspace(-60, 60, 4001) * deviation / penalty
        near = [end + np.array([-1e-9, 1e-9]) for end in ends]
        w = np.unique(np.concatenate([reach, reach / 50, np.linspace(-30, 30, 6001) / radius, *near]))
        logs = [log_density(kind, records, w, clip, penalty, deviation * sigma) for records in neighbours]
        for epsilon in (moved, moved + 0.3, moved + 1.0, moved + 2.5):
            claimed = sum(gaussian_delta(share * most, epsilon - moved) for share in vertices)
            for p, q in (logs, logs[::-1]):
                gap = np.exp(p) * np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon + q - p)))
                exact = float(np.sum((gap[1:] + gap[:-1]) * np.diff(w)) / 2)
                worst = max(worst, (exact - claimed) / claimed if claimed > 1e-9 else -1.0)
        if worst > 0.01:  # noticed
            break
    return worst


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_exact_densities_stay_below_the_curve(kind: str, adjacency: Adjacency) -> None:
    assert worst_ratio(kind, adjacency, 350) <= 2e-3  # what is left is the error of the trapezoid rule


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("wrong", [{"sigma": 0.9}, {"beta": 0.5}, {"offset": False}], ids=["sigma", "beta", "offset"])
def test_the_test_of_densities_notices_what_is_wrong(kind: str, wrong: dict[str, float]) -> None:
    assert worst_ratio(kind, Adjacency.ADD_REMOVE, 700, **wrong) > 0.01


def test_one_sign_would_not_be_enough() -> None:
    """A record whose residual has the sign of the weight, whichever that is: half of the claim is exceeded."""
    w = np.linspace(-400, 400, 200_001)
    with_it, without = (log_density("numbers", records, w, 1.0, 0.05, 1.0) for records in ([(1.0, 0.0)], []))
    gap = np.exp(without) * np.maximum(0.0, -np.expm1(np.minimum(0.0, 1.0 + with_it - without)))
    assert gaussian_delta(1.0, 1.0) * 1.5 < float(gap.sum() * (w[1] - w[0])) <= 2 * gaussian_delta(1.0, 1.0)


def test_densities_in_two_dimensions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        radius, clip = float(rng.choice([1.0, 3.0])), 1.0
        penalty, sigma = 0.4 * smoothness("labels", clip, radius), clip / float(rng.choice([0.5, 1.5]))
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
                cap = min(1.0, clip / float(np.linalg.norm(x)))  # noqa: B023
                first, curved = label_slope(grid @ x, s, cap)  # noqa: B023
                gradient = gradient + first[:, None] * x
                second = second + curved[:, None, None] * np.outer(x, x)
            determinant = second[:, 0, 0] * second[:, 1, 1] - second[:, 0, 1] ** 2
            return -(gradient**2).sum(axis=1) / (2 * sigma**2) + np.log(determinant) - math.log(2 * math.pi * sigma**2)  # noqa: B023

        area, moved = (side[1] - side[0]) ** 2, math.log1p(smoothness("labels", clip, radius) / penalty)
        for pair, shifts in (
            ((vectors[:2], vectors), (clip / sigma,)),
            ((vectors[:2], [vectors[0], vectors[2]]), (2 * clip / sigma, clip / sigma, clip / sigma)),
        ):
            logs = [log_density(records) for records in pair]
            assert np.exp(logs[0]).sum() * area == pytest.approx(1, abs=0.02)
            for (p, q), above in product((logs, logs[::-1]), (0.0, 0.7, 1.5)):
                gap = np.exp(p) * np.maximum(0.0, -np.expm1(np.minimum(0.0, moved + above + q - p)))
                assert gap.sum() * area <= sum(gaussian_delta(s, above) for s in shifts) * 1.02 + 1e-6


def small_rows(rng: np.random.Generator, kind: str = "labels", rows: int = 40, dim: int = 5) -> Rows:
    features = np.unique(rng.integers(0, 2, (rows, dim)), axis=0).astype(np.int8)
    counts = rng.integers(0, 9, (2, len(features)))
    losses = Logistic(*counts) if kind == "labels" else Huber(rng.normal(0, 1.5, len(features)), counts[0])
    centre = np.round(rng.random(dim) * 1024) / 1024
    return Rows(features, losses, centre, 1.4, 1.0 if kind == "labels" else 1.2, float(rng.normal()))


def losses_of(rows: Rows, scores: np.ndarray, caps: np.ndarray) -> float:
    """The total loss, from its definition."""
    losses = rows.losses
    if isinstance(losses, Huber):
        off = np.abs(scores - losses.targets)
        return float(losses.records @ np.where(off <= caps, off**2 / 2, caps * off - caps**2 / 2))
    kink = np.where(caps < 1, np.log(1 / np.where(caps < 1, caps, 0.5) - 1), -np.inf)
    total = 0.0
    for counts, margin in ((losses.positives, scores), (losses.negatives, -scores)):
        inside = np.maximum(margin, kink)
        total += counts @ (np.logaddexp(0, -inside) + caps * (inside - margin))
    return float(total)


@pytest.mark.parametrize("kind", PLANS)
def test_the_minimiser_is_that_of_the_definition(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        rows = small_rows(rng, kind)
        objective = Objective(rows, float(rng.uniform(0.1, 3)), rng.normal(0, 3, rows.dim))
        vectors = np.hstack([rows.features - rows.centre, np.ones((len(rows.features), 1))])
        vectors = vectors * np.minimum(1, rows.radius / np.linalg.norm(vectors, axis=1))[:, None]
        caps = np.minimum(1, rows.clip / np.linalg.norm(vectors, axis=1))

        def value(w: np.ndarray) -> float:
            total = losses_of(rows, vectors @ w + rows.offset, caps)  # noqa: B023
            return float(total + objective.penalty / 2 * w @ w + objective.linear @ w)  # noqa: B023

        weights, bound = minimise(objective, 1e-9)
        assert bound <= 1e-9
        assert objective.value_gradient(weights)[0] == pytest.approx(value(weights))
        found = minimize(value, np.zeros(rows.dim), method="BFGS", options={"gtol": 1e-9}).x
        assert weights == pytest.approx(found, abs=2e-4)


def test_second_derivatives_of_some_rows_lead_to_the_same_minimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where most records have a row that is not among them."""
    rng = np.random.default_rng(6)
    for heavy in (0, 500):
        rows = small_rows(rng, "labels", 400, 7)
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


@pytest.mark.parametrize("kind", PLANS)
def test_the_certificate_is_above_the_gradient_in_many_digits(kind: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        rows = small_rows(rng, kind, 12, 3)
        objective = Objective(rows, 0.7, rng.normal(0, 2, rows.dim))
        weights = minimise(objective, 1e-9)[0] + rng.normal(0, 1e-12, rows.dim)
        exact = [[Fraction(float(value)) for value in values] for values in (weights, objective.linear)]
        total = [b + Fraction(0.7) * w for w, b in zip(*exact, strict=True)]
        for k, z in enumerate(rows.features):
            x = [Fraction(int(a)) - Fraction(float(b)) for a, b in zip(z, rows.centre, strict=True)] + [Fraction(1)]
            length = Fraction(math.isqrt(int(sum(a * a for a in x) * 4**80))) / 2**80
            factor = min(Fraction(1), Fraction(rows.radius) / length)
            score = factor * sum(a * w for a, w in zip(x, exact[0], strict=True)) + Fraction(rows.offset)
            cap = min(Fraction(1), Fraction(rows.clip) / min(length, Fraction(rows.radius)))
            pull = factor * exact_pull(rows.losses, k, score, cap)
            total = [g + pull * a for g, a in zip(total, x, strict=True)]
        assert math.sqrt(sum(float(g) ** 2 for g in total)) <= gradient_bound(objective, weights)


def test_what_cannot_be_certified_is_refused_before_it_is_paid_for() -> None:
    for dim in (1, 20, 1000):
        with pytest.raises(ValueError, match=f"epsilon=1e-05 is too small for {dim} features"):
            Plan(1e-5, 1e-6, Adjacency.REPLACE, dim, 1)


def test_six_million_records_are_certified_at_epsilon_eight() -> None:
    """Sums of 64 rows in floating point do not show it, sums of single rows do."""
    rng = np.random.default_rng(1)
    features, dim = rng.integers(0, 2, (3000, 20)), 20
    risk = 1 / (1 + np.exp(-(features - 0.5) @ rng.normal(0, 0.5, dim)))
    positives = (2000 * risk).astype(np.int64)
    table = PatternTable(features, positives, 2000 - positives, ranges=[(0, 1)] * dim)
    options = Options(np.full(dim, 0.5), np.arange(dim), (False,) * dim, 10, None)
    plan = Plan(8.0, 1e-6, Adjacency.REPLACE, dim, dim)
    _, _, values = perturbed_card(table, plan, options, random_state=1)
    assert values["gradient_bound"] < 3e-7


def exact_pull(losses: Logistic | Huber, k: int, score: Fraction, cap: Fraction) -> Fraction:
    """The derivative of the losses of a row by its score; of labels to 40 digits."""
    if isinstance(losses, Huber):
        return int(losses.records[k]) * max(-cap, min(cap, score - Fraction(float(losses.targets[k]))))
    with localcontext() as context:
        context.prec = 45
        risk, rest = (
            Fraction(1 / (1 + (-(Decimal(u.numerator) / Decimal(u.denominator))).exp())) for u in (score, -score)
        )
    return int(losses.negatives[k]) * min(risk, cap) - int(losses.positives[k]) * min(rest, cap)


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


@pytest.mark.parametrize("kind", PLANS)
def test_the_curve_of_a_plan_meets_epsilon_and_delta(kind: str) -> None:
    for adjacency, choosing, epsilon in product(Adjacency, (False, True), (0.05, 1.0, 8.0)):
        plan = PLANS[kind](epsilon, 1e-6, adjacency, 30, 12, choosing)
        assert plan.curve.delta_at(epsilon) == pytest.approx(1e-6, rel=1e-6)
        assert plan.curve.delta_at(epsilon) <= 1e-6 * (1 + 1e-8)
        assert plan.curve.delta_at(0.5 * epsilon) > 1e-6
        radius = 3.0
        last = len(plan.offsets) - 1
        assert math.log1p(smoothness(kind, 1.0, radius) / plan.penalty(last, radius)) <= plan.offsets[last] * (1 + 1e-9)


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


def test_releases_of_the_whole_program_spread_as_far_as_its_noise() -> None:
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
        at = totals == score
        assert (positives, negatives) == (table.positives[at].sum(), table.negatives[at].sum())


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
    assert gaussian_delta(0.0, -1.0) == pytest.approx(1 - math.exp(-1))


# --- numbers ---


def numbers_of(rng: np.random.Generator, n: int, weights: np.ndarray, noise: float = 10.0) -> TargetTable:
    rows = rng.integers(0, 2, (n, len(weights))).astype(np.int8)
    levels = np.clip(np.rint(40 + rows @ weights + noise * rng.normal(size=n)), 0, 100).astype(np.int64)
    return TargetTable(rows, levels, np.ones(n, dtype=np.int64))


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


@pytest.mark.parametrize("kind", PLANS)
def test_questions_are_limited_and_signs_are_kept(kind: str) -> None:
    rng, signs = np.random.default_rng(1), np.array([1, 1, 1, 0, 0, 0])
    weights = np.array([20.0, -10.0, 5.0, -3.0, 8.0, 0.0])
    table = table_of(rng, 3000, 6) if kind == "labels" else numbers_of(rng, 3000, weights)
    plan = PLANS[kind](4.0, 1e-5, Adjacency.REPLACE, 6, 6, choosing=True)
    asked = frozenset({1} if kind == "labels" else ())
    options = Options(np.full(6, 0.5), np.repeat(np.arange(3), 2), (False,) * 3, 10, 2, asked, signs)
    for seed in range(5):
        card, *_ = perturbed_card(table, plan, options, random_state=seed)
        assert len({int(q) for q in options.questions[card.points != 0]}) <= 2
        assert (card.points[:3] >= 0).all()


def test_refusals_come_before_payment() -> None:
    account = Accountant(2.0, 1e-5, "add-remove", composition_delta=0.0)
    table, records = (
        table_of(np.random.default_rng(0)),
        numbers_of(np.random.default_rng(7), 50, np.array([20.0, -10.0])),
    )
    labels, numbers = (lambda *dims, of=of: of(1.0, 1e-6, Adjacency.ADD_REMOVE, *dims) for of in PLANS.values())
    for wrong, plan, words in (
        (table, labels(4, 2), "longest=2"),
        (table, labels(3, 2), "made for 3"),
        (PatternTable.from_records([[0, 1]], [1]), labels(2, 2), "0 or 1"),
        (TargetTable(records.rows, records.targets + 100, records.counts), numbers(2, 2), "from 0 to 100"),
        (records, numbers(3, 3), "for 3 features"),
        (records, numbers(2, 1), "longest=1"),
        (TargetTable(2 * records.rows, records.targets, records.counts), numbers(2, 2), "0/1"),
        (records, labels(2, 2), "must be a PatternTable for a Plan, got TargetTable"),
        (table, numbers(4, 4), "must be a TargetTable for a NumberPlan, got PatternTable"),
    ):
        with pytest.raises(ValueError, match=words):
            perturbed_card(wrong, plan, plain_options(plan.dim), budget=account)
    for plan, options, words in (
        (labels(4, 4), plain_options(3), "each of the 4 features"),
        (labels(4, 4), plain_options(4, signs=np.ones(3)), "each of the 4 features"),
        (labels(4, 4), replace(plain_options(4), nested=(False,) * 3), "number the questions"),
        (labels(4, 4, True), plain_options(4), "max_questions"),
    ):
        with pytest.raises(ValueError, match=words):
            perturbed_card(table, plan, options, budget=account)
    with pytest.raises(ValueError, match="units must be 1 for numbers"):
        perturbed_card(records, numbers(2, 2), plain_options(2), units=2, budget=account)
    assert account.history == ()
    for data, plan in ((table, labels(4, 4)), (records, numbers(2, 2))):
        card, guarantee, _ = perturbed_card(data, plan, plain_options(plan.dim), budget=account)
        assert account.history[-1] == guarantee
        assert guarantee.proved
        assert card.points.shape == (plan.dim,)
    assert len(account.history) == 2
