"""OPSamp's calibration (theory, section 5): every formula against a direct evaluation, and the lemma against chance."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import privsolve as ps
from privsolve.arrays import Floats
from privsolve.continuous import stability as sb
from privsolve.continuous.problem import pinball
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness

rates = st.floats(1e-6, 10.0)
sides = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5)


@given(rates, sides, st.floats(1e-3, 1e3), st.floats(0, 1e3))
def test_stability_is_the_best_choice_of_shifts(sigma: float, widths: list[float], change: float, error: float) -> None:
    """`s` minimises `(a u² + 3b)/(u - 1)` over u > 1, which the proof gives for shifts `c_i = uHR/sqrt(w_i)`."""
    s = sb.stability(sigma, widths, change, error)
    a, b = change * sigma * sum(map(sqrt, widths)) ** 2, error / change
    u = 1 + np.logspace(-3, 6, 4000)
    direct = float(np.min((a * u**2 + 3 * b) / (u - 1)))
    assert s <= direct * (1 + 1e-9)
    if 3 * b / a < 1e10:
        assert s >= direct * (1 - 1e-3)


def test_stability_for_a_cube_is_four_h_sigma_d_squared() -> None:
    assert sb.stability(0.01, [2.0] * 3, 5.0) == pytest.approx(4 * 5 * 0.01 * 9 * 2)


@given(st.floats(1e-8, 1 - 1e-8), st.floats(0, 20))
def test_kl_inverse(p: float, x: float) -> None:
    q = sb.kl_inverse(p, x)
    assert p <= q <= 1
    if q < 1:
        assert sb.kl(q, p) >= x  # never below the true inverse
        assert sb.kl(p + (q - p) * (1 - 1e-4), p) <= x + 1e-13
    else:
        assert sb.kl(1.0, p) <= x * (1 + 1e-8) + 1e-14


def test_kl_inverse_at_the_ends() -> None:
    assert sb.kl_inverse(0.0, 1.0) == 0.0
    assert sb.kl_inverse(1.0, 0.0) == 1.0
    with pytest.raises(ValueError, match="p must"):
        sb.kl_inverse(1.5, 1.0)
    with pytest.raises(ValueError, match="x must"):
        sb.kl_inverse(0.5, float("nan"))


@pytest.mark.parametrize(("p", "draws", "delta"), [(0.001, 2000, 1e-6), (0.02, 300, 1e-4), (0.4, 50, 1e-3)])
def test_sensitivity_covers_the_worst_average(p: float, draws: int, delta: float) -> None:
    """Among variables in [0, 1] of mean p the coin has the heaviest tail; it must exceed λ with at most δ."""
    lam = sb.sensitivity(p * 3, 3.0, draws, delta) / 3
    tail = stats.binom.sf(np.ceil(lam * draws) - 1, draws, p)
    assert tail <= delta
    assert lam < 1
    loose = stats.binom.isf(delta, draws, p) / draws
    assert lam <= 1.6 * loose  # and it is not far from what is needed


def test_sensitivity_never_exceeds_the_diameter() -> None:
    assert sb.sensitivity(7.0, 5.0, 10, 1e-6) == 5.0
    assert sb.sensitivity(4.9, 5.0, 1, 1e-6) == 5.0


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    ("n", "widths", "draws", "error"), [(10**5, (1.0,), 20_000, 0.0), (3000, (2.0, 0.3), 500, 0.2)]
)
def test_plan_against_direct_evaluation(
    adjacency: str, centred: bool, n: int, widths: tuple[float, ...], draws: int, error: float
) -> None:
    """λ from bare formulas on a fine mesh of σ: the plan's σ is as good as the best of the mesh."""
    lipschitz, epsilon, delta = 0.7, 0.8, 1e-7
    change = lipschitz * (2 if adjacency == "replace" else 1)
    total, root = sum(widths), sum(map(sqrt, widths))

    def bare(sigma: float) -> tuple[float, float]:
        a, b = change * sigma * root**2, error / change
        s = 2 * a + 2 * sqrt(a * (a + 3 * b))
        lam = total
        if (p := s / total) < 1:
            q = np.geomspace(p, 1, 20_001)[:-1]
            kl = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
            lam *= q[kl <= log(1 / delta) / draws][-1]
        bias = total / (n * sigma) / (exp(1) if centred else 1)
        return lam, lipschitz * len(widths) * lam / epsilon + bias + error / n

    options = {"error": error, "adjacency": adjacency, "noise": sb.SamplingNoise(centred=centred)}
    plan = sb.plan_opsamp(n, widths, lipschitz, epsilon, delta, draws, **options)
    lam, excess = bare(plan.sigma)
    assert plan.sensitivity == pytest.approx(lam, rel=1e-3)
    best = min(bare(sigma)[1] for sigma in np.logspace(-6, 0, 300))
    assert excess <= best * 1.001
    assert excess <= plan.excess <= 1.03 * excess  # the grid costs at most about one part in 128, twice
    assert plan.draws == draws


def test_many_draws_reach_the_closed_form() -> None:
    """`σ* = sqrt(ε/(4GHd²n))` and excess `4d²D∞ sqrt(GH/(εn))` for large m, A = 0, uncentred (section 5)."""
    n, d, side, g, eps = 10**6, 2, 3.0, 0.5, 2.0
    plan = sb.plan_opsamp(n, [side] * d, g, eps, 1e-6, 10**13, noise=sb.SamplingNoise(centred=False, grid=1e-9))
    h = 2 * g
    assert plan.sigma == pytest.approx(sqrt(eps / (4 * g * h * d**2 * n)), rel=1e-2)
    assert plan.excess == pytest.approx(4 * d**2 * side * sqrt(g * h / (eps * n)), rel=1e-3)


def test_noise_of_a_plan_is_lambda_and_the_grid_over_epsilon() -> None:
    plan = sb.plan_opsamp(10**4, [1.0, 2.0], 1.0, 0.5, 1e-6, 5000, noise=sb.SamplingNoise(grid=0.001))
    assert plan.sensitivity_steps == int(plan.sensitivity / 0.001) + 2
    assert plan.scale_steps == Fraction(plan.sensitivity_steps) / Fraction(0.5)
    assert plan.noise_scale >= plan.sensitivity / 0.5
    assert "5,000 oracle calls" in str(plan)


def test_draws_needed_are_enough_and_hardly_fewer_are() -> None:
    args = (10**5, [1.0, 1.0], 1.0, 1.0, 1e-8)
    m = sb.draws_needed(*args, slack=0.2)
    best = sb.plan_opsamp(*args, 10**12).excess
    assert sb.plan_opsamp(*args, m).excess <= 1.2 * best
    assert sb.plan_opsamp(*args, int(0.97 * m)).excess > 1.2 * best


def test_published_constants() -> None:
    n, d, g, eps, delta, beta = 10**5, 2, 1.5, 0.7, 1e-6, 0.05
    widths = (3.0, 4.0)
    d2, dinf = 5.0, 4.0
    gamma = sqrt(eps) / sqrt(n) * d ** (5 / 4) * sqrt(d2)
    sigma = sqrt(d2 * sqrt(2 * d) * eps / (250 * g**2 * d**2 * dinf**2 * (1 + log(2 / beta)) * n))
    lam = 4 * dinf * gamma + 250 * sigma * g * d**2 * dinf**2 + (30.0 / n) / (10 * g)
    plan = sb.plan_opsamp(n, widths, g, eps, delta, None, error=30.0, noise=sb.SamplingNoise("published"))
    assert plan.draws == int(np.ceil(log(2 * d / delta) / (2 * gamma**2)))
    assert plan.sigma == pytest.approx(sigma)
    assert plan.sensitivity == pytest.approx(lam)
    assert not plan.proved
    assert not plan.centred
    assert "NOT PROVED" in str(plan)


def test_published_stability_is_too_small_for_small_boxes() -> None:
    """`250σGd²D∞²` against `4Hσd²D∞`: below it, and even below what a pair of data sets attains, from D∞ < 1/125 on."""
    g, sigma, side = 1.0, 0.01, 1e-3
    published = 250 * sigma * g * side**2
    attained = (1 - exp(-2 * g * sigma)) * side  # L(x) = 2Gx and L'(x) = 0
    assert published < attained < sb.stability(sigma, [side], 2 * g)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"n": 0}, "n must"),
        ({"n": 2.5}, "n must"),
        ({"widths": []}, "widths"),
        ({"widths": [0.0]}, "widths"),
        ({"lipschitz": -1.0}, "lipschitz"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"draws": 0}, "draws"),
        ({"draws": None}, "draws"),
        ({"error": -0.1}, "error"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"calibration": "guess"}, "calibration"),
        ({"sigma": 0.0}, "sigma"),
        ({"grid": 2.0}, "grid"),
        ({"grid": 1e-18}, "grid"),
        ({"centred": 1}, "centred"),
        ({"calibration": "published", "draws": 5}, "draws must be at least"),
        ({"calibration": "published", "draws": None, "adjacency": "add-remove"}, "adjacency"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, object], name: str) -> None:
    arguments = {"n": 1000, "widths": [1.0], "lipschitz": 1.0, "epsilon": 1.0, "delta": 1e-6, "draws": 100}
    noise = {key: change[key] for key in ("calibration", "sigma", "grid", "centred") if key in change}
    rest = {key: value for key, value in change.items() if key not in noise}
    with pytest.raises(ValueError, match=name):
        sb.plan_opsamp(**(arguments | rest), noise=sb.SamplingNoise(**noise))  # type: ignore[arg-type]


# --- the stability lemma against random functions -------------------------------------------------


def lattice(counts: tuple[int, ...], widths: Floats) -> Floats:
    axes = [np.linspace(0.0, w, k) for w, k in zip(widths, counts, strict=True)]
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def near_optimum(objective: Floats, error: float, preference: Floats) -> NDArray[np.intp]:
    """Per column, the preferred one of all rows within `error` of the smallest: an adversarial oracle."""
    allowed = objective <= objective.min(axis=0) + error
    return np.argmin(np.where(allowed, preference[:, None], np.inf), axis=0)


def random_pair(rng: np.random.Generator, points: Floats, change: float) -> tuple[Floats, Floats]:
    """A loss without any structure, or the worst that is known; and how it changes, `change`-Lipschitz in ℓ1."""
    size = len(points)
    loss = [
        rng.normal(size=size) * rng.choice([0.1, 1.0, 20.0]),
        points.sum(axis=1) * change * rng.choice([0.5, 1.0, 2.0]),
        rng.choice([0.0, 50.0], size),
        -20 * rng.random() * np.abs(points - points.mean(axis=0)).sum(axis=1),
    ][rng.integers(4)]
    h = [
        change * points @ rng.choice([-1.0, 1.0], points.shape[1]),
        change * np.abs(points - points[rng.integers(size)]).sum(axis=1),
        -change * points.sum(axis=1),
    ][rng.integers(3)]
    return loss, h


@pytest.mark.parametrize(("counts", "seed"), [((25,), 0), ((7, 7), 1), ((5, 4, 5), 2)])
def test_stability_lemma_on_random_functions(counts: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(60):
        widths = rng.choice([0.2, 1.0, 3.0], len(counts))
        points = lattice(counts, widths)
        change, error = rng.choice([0.5, 2.0]), rng.choice([0.0, 0.0, 0.01, 0.1])
        sigma = 10 ** rng.uniform(-2, -0.3) / widths.sum()
        loss, h = random_pair(rng, points, change)
        tilt = points @ rng.exponential(1 / sigma, (len(counts), 2000))
        size = points.sum(axis=1)
        x = points[near_optimum(loss[:, None] - tilt, error, size)]
        y = points[near_optimum((loss + h)[:, None] - tilt, error, -size)]
        distances = np.abs(x - y).sum(axis=1)
        bound = min(sb.stability(sigma, widths, change, error), widths.sum())
        slack = 5 * distances.std() / sqrt(len(distances))  # of the estimate, not of the lemma
        worst = max(worst, (distances.mean() - slack) / bound)
    assert 0.05 < worst <= 1  # the lemma holds, and the search was not empty


def test_the_pair_that_attains_a_quarter() -> None:
    """`L(x) = Hx`, `L' = 0`: the answers differ exactly when `η < H`, a quarter of the bound as σ goes to 0."""
    change, sigma = 2.0, 1e-4
    attained = 1 - exp(-change * sigma)
    assert attained / sb.stability(sigma, [1.0], change) == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("beta", [0.5, 0.05])
def test_the_excess_is_below_the_bound_with_the_stated_probability(beta: float) -> None:
    """Through the mechanism: 60 runs of a median in two dimensions on a coarse grid."""
    box = [(0.0, 1.0), (0.0, 1.0)]
    data = np.random.default_rng(0).beta(2, 5, size=(4_000, 2))
    problem = ps.BoxProblem(pinball(data, box, level=0.5), box)
    runs = [ps.opsamp(problem, 5.0, 1e-6, 400, noise=sb.SamplingNoise(grid=1 / 64), random_state=k) for k in range(60)]
    best = np.median(data, axis=0)
    least = float(problem.objective.values(best[None, :])[0])
    excess = [(float(problem.objective.values(r.release.model.point[None, :])[0]) - least) / len(data) for r in runs]
    bound = runs[0].diagnostics.plan.utility_bound(beta)
    assert np.mean(np.array(excess) > bound) <= beta
    assert bound < runs[0].diagnostics.plan.lipschitz * 2


@pytest.mark.parametrize(("dim", "beta"), [(1, 0.1), (3, 0.3)])
def test_the_noise_is_below_its_part_of_the_bound(dim: int, beta: float) -> None:
    """The sum of discrete Laplace variables against the gamma quantile of section 5.1."""
    scale = 7.5
    draws = np.abs(DiscreteLaplace(Fraction(scale)).draws(Randomness.seeded(1), 30_000 * dim)).reshape(-1, dim)
    length = stats.gamma.isf(beta, dim, scale=scale) + dim
    share = float(np.mean(draws.sum(axis=1) > length))
    assert beta / 2 < share <= beta


def test_the_bound_shrinks_with_beta_and_never_exceeds_the_trivial_one() -> None:
    plan = sb.plan_opsamp(10**6, [1.0, 1.0], 1.0, 1.0, 1e-6, 50_000)
    bounds = [plan.utility_bound(beta) for beta in (1e-9, 0.05, 0.5)]
    assert bounds == sorted(bounds, reverse=True)
    assert plan.excess < bounds[1] < 4 * plan.excess
    assert sb.plan_opsamp(10, [1.0], 1.0, 0.01, 1e-6, 10).utility_bound(0.05) == 1.0
    with pytest.raises(ValueError, match="beta"):
        plan.utility_bound(0.0)
