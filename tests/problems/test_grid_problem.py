"""Losses of the user's own over grids with bounds on boxes: the exact law, certified optima, every bound, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.audit import exact_exponential, lower_bound, perturbed_draws
from privsolve.engines import boxes as engine
from privsolve.losses import StatedLoss
from privsolve.noise.entropy import Randomness
from privsolve.oracles import BoxOracle
from privsolve.problems.perturbation import UNIT

LossFunction = Callable[[Any, Int64Array], np.ndarray]


def distance(records: np.ndarray, points: Int64Array) -> np.ndarray:
    return np.sqrt(((records[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))


def nearest(records: np.ndarray, low: Int64Array, high: Int64Array) -> np.ndarray:
    """The distance to the box."""
    inside = np.clip(records[:, None, :], low[None, :, :], high[None, :, :])
    return np.sqrt(((records[:, None, :] - inside) ** 2).sum(axis=2))


def far_from_everybody(records: np.ndarray, points: Int64Array) -> np.ndarray:
    """Not convex, and rugged: a public pattern per point, and how near the record is."""
    pattern = (points * [7, 3, 5][: points.shape[1]]).sum(axis=1) % 4
    return pattern[None, :] + np.maximum(0, 6 - np.abs(records[:, None, :] - points[None, :, :]).max(axis=2)).astype(
        int
    )


def problems(seed: int) -> list[ps.GridProblem]:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 4))
    low = rng.integers(-4, 1, size=dim)
    grid = ps.IntegerGrid(low.tolist(), (low + rng.integers(1, 6, size=dim)).tolist())
    records = rng.integers(-5, 6, size=(int(rng.integers(1, 25)), dim))
    zero = lambda some, below, above: np.zeros((len(some), len(below)), dtype=int)  # noqa: E731
    return [
        ps.GridProblem(grid, distance, records, nearest, bound=9, step=0.25),
        ps.GridProblem(grid, distance, records, nearest, lipschitz=1, step=0.25),
        ps.GridProblem(grid, distance, records, lipschitz=1, step=0.1),
        ps.GridProblem(grid, distance, records, lipschitz=1, bound=4, step=1),
        ps.GridProblem(grid, far_from_everybody, records, zero, bound=8),
    ]


def listed(problem: ps.GridProblem) -> Int64Array:
    return problem.losses_of(problem.domain.members())


@pytest.mark.parametrize("seed", range(40))
def test_certified_optima_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    for problem in problems(seed):
        members = problem.domain.members()
        for scale in (0.0, 3.0, 100.0):
            noise = ps.Perturbation.lifted(problem.domain, rng.normal(size=problem.domain.lift_dim) * scale)
            values = listed(problem) * UNIT + noise.of_members(members)
            found = BoxOracle().minimise(problem, noise)
            assert found.value == found.lower == values.min()


def test_a_penalty_on_the_norm_that_is_not_monotone_is_bounded_too() -> None:
    grid = ps.IntegerGrid([-3, -2], [4, 3])
    rng = np.random.default_rng(5)
    for _ in range(30):
        tables = tuple(rng.integers(-UNIT, UNIT, size=len(grid.values(j))) for j in range(2))
        noise = ps.Perturbation(grid, tables, rng.integers(-9 * UNIT, 9 * UNIT, size=len(grid.norms_sq)))
        problem = ps.GridProblem(grid, distance, rng.integers(-3, 4, size=(5, 2)), nearest, bound=9, step=0.5)
        values = listed(problem) * UNIT + noise.of_members(grid.members())
        assert BoxOracle().minimise(problem, noise).value == values.min()


@pytest.mark.parametrize("seed", range(20))
def test_no_loss_in_any_box_is_below_its_bound_and_boxes_partition_the_grid(seed: int) -> None:
    for problem in problems(seed):
        frontier, members = engine.whole(problem), problem.domain.members()
        losses = listed(problem)
        while True:
            inside = (members[:, None, :] >= frontier.low) & (members[:, None, :] <= frontier.high)
            held = inside.all(axis=2)
            assert (held.sum(axis=1) == 1).all()
            assert (np.where(held, losses[:, None], np.iinfo(np.int64).max).min(axis=0) >= frontier.least).all()
            if frontier.single.all():
                break
            frontier = engine.split(problem, frontier, 1)
        assert np.array_equal(np.sort(frontier.least), np.sort(losses))


def statistic(problem: ps.GridProblem, law: np.ndarray, draws: Int64Array) -> float:
    place = {tuple(w): i for i, w in enumerate(problem.domain.members().tolist())}
    counts = np.bincount([place[tuple(w)] for w in draws.tolist()], minlength=len(law)).astype(float)
    expected, order = law * len(draws), np.argsort(law)
    groups = np.minimum(np.cumsum(expected[order]) // 8, 30).astype(int)  # rare points together
    seen, wanted = (np.bincount(groups, weights=x[order]) for x in (counts, expected))
    keep = wanted > 0
    return float(chi2.sf(((seen - wanted)[keep] ** 2 / wanted[keep]).sum(), keep.sum() - 1))


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("seed", range(8))
def test_draws_have_the_exact_law(seed: int, adjacency: str) -> None:
    for problem in problems(seed):
        sampler = ps.ExponentialSampler(problem, 3.0, adjacency=adjacency, random_state=seed)
        law = np.exp(ps.audit.exponential_law(problem, 3.0, adjacency=adjacency))
        assert statistic(problem, law, sampler.draw(400)) > 1e-6
        assert sampler.statistics["method"] == "boxes"
        losses = listed(problem) - sampler.reference
        kappa = (3.0 - 1e-6) / ((2 if adjacency == "replace" else 1) * problem.loss.largest)
        assert sampler.log_partition() == pytest.approx(np.logaddexp.reduce(-kappa * losses))


def test_a_law_at_another_temperature_is_told_apart() -> None:
    records = np.random.default_rng(3).integers(-5, 6, size=(60, 1))
    problem = ps.GridProblem(ps.IntegerGrid([-8], [8]), distance, records, nearest, bound=13, step=0.25)
    draws = ps.ExponentialSampler(problem, 3.0, random_state=1).draw(20_000)
    right, wrong = (np.exp(ps.audit.exponential_law(problem, epsilon)) for epsilon in (3.0, 3.3))
    assert statistic(problem, right, draws) > 1e-4 > 1e-6 > statistic(problem, wrong, draws)


def understated(problem: ps.GridProblem, share: int) -> ps.GridProblem:
    """The same data with noise for a smaller loss than they have: what the constructor does not make."""
    object.__setattr__(problem, "loss", StatedLoss(max(1, problem.loss.largest // share)))
    return problem


def neighbours(seed: int, **options: Any) -> list[ps.GridProblem]:
    """One record at one end of a grid, or at the other; some more in both."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 3))
    grid = ps.IntegerGrid([-4] * dim, [4] * dim)
    same = rng.integers(-4, 5, size=(int(rng.integers(0, 5)), dim))
    ends = [np.concatenate([same, np.full((1, dim), end)]) for end in (-4, 4)]
    return [ps.GridProblem(grid, distance, records, **options) for records in ends]


STATED: list[dict[str, Any]] = [
    {"least": nearest, "bound": 12, "step": 0.5},
    {"least": nearest, "bound": 4, "step": 0.5},  # cut: still true
    {"lipschitz": 1, "step": 0.5},
    {"lipschitz": 1, "bound": 6, "step": 0.5},
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stated", STATED)
def test_neighbours_lose_at_most_epsilon_and_more_if_the_bound_is_understated(
    stated: dict[str, Any], seed: int
) -> None:
    pair = neighbours(seed, **stated)
    assert exact_exponential(*pair, 1.0).epsilon <= 1.0
    assert exact_exponential(*[understated(p, 8) for p in pair], 1.0).refutes(1.0)


def test_draws_from_boxes_pass_an_audit_and_a_third_of_the_noise_is_caught() -> None:
    """By the sampler itself, not by its law. One that sees losses vary by more than was stated releases nothing."""

    def draws(epsilon: float) -> Callable[[ps.GridProblem, int], Int64Array]:
        def some(problem: ps.GridProblem, runs: int) -> Int64Array:
            sampler = ps.ExponentialSampler(problem, epsilon, random_state=int(listed(problem)[0]))
            return np.asarray(sampler.draw(runs)[:, 0])

        return some

    line = ps.IntegerGrid([0], [3])
    pair = [
        ps.GridProblem(line, lambda r, m: r * (m[None, :, 0] > 0) + (3 - r) * (m[None, :, 0] == 0), np.array([[z]]),
                       lambda r, low, high: np.zeros((len(r), len(low))), bound=3)
        for z in (0, 3)
    ]  # fmt: skip
    assert not lower_bound(draws(1.0), *pair, 4000).refutes(1.0)
    assert lower_bound(draws(3.0), *pair, 4000).refutes(1.0)
    with pytest.raises(ps.PrivsolveError, match="nothing is released"):
        draws(1.0)(understated(pair[0], 3), 100)


@pytest.mark.parametrize("make_noise", [ps.sphere_noise, ps.separator_noise])
def test_perturbed_audits_pass_and_catch_an_understated_bound(make_noise: Any) -> None:
    line = ps.IntegerGrid([-1], [1])
    pair = [
        ps.GridProblem(line, lambda r, m: np.abs(r - 40 * np.abs(m[None, :, 0])), np.array([[z]]),
                       lambda r, low, high: np.zeros((len(r), len(low))), bound=40)
        for z in (0, 40)
    ]  # fmt: skip

    def audit(loss: StatedLoss) -> float:
        noise = make_noise(line, 1.0, loss=loss)

        def draws(problem: ps.GridProblem, size: int) -> Int64Array:
            return perturbed_draws(problem, noise, size, Randomness.seeded(int(listed(problem)[0]) + 1))

        return lower_bound(draws, *pair, 20_000).epsilon

    assert audit(pair[0].loss) <= 1.0
    assert audit(StatedLoss(2)) > 1.0


def test_lipschitz_noise_beats_bounded_noise_by_their_ratio() -> None:
    """`G = 1` and `τ = 1` in steps of 1/4, so 4 steps and 1 to round, against a bound of 57, 228 steps."""
    records, grid = np.zeros((3, 2), dtype=int), ps.IntegerGrid([-20, -20], [20, 20])
    both = ps.GridProblem(grid, distance, records, lipschitz=1, bound=57, step=0.25)
    bounded = ps.GridProblem(grid, distance, records, nearest, bound=57, step=0.25)
    smaller, larger = (ps.sphere_noise(grid, 1.0, loss=p.loss) for p in (both, bounded))
    assert larger.scale / smaller.scale == pytest.approx(228 / 5, rel=1e-4)
    assert smaller.scale == pytest.approx(4 * 5 * 800, rel=1e-4)  # c = 4GD²/τ at epsilon = 1
    gaps = [ps.opdisc(p, 200.0, oracle="boxes", random_state=1).diagnostics.total_loss for p in (both, bounded)]
    assert gaps[0] < gaps[1]


def test_grids_of_ten_to_the_thirteen_points_are_drawn_from_and_large_ones_solved() -> None:
    rng = np.random.default_rng(0)
    homes = np.concatenate([rng.normal((300, -200), 30, (20, 2)), rng.normal((-400, 100), 30, (20, 2))])
    two = lambda at: lambda some, *ends: at(some, *(end[:, :2] for end in ends))  # noqa: E731

    def nearer(of: LossFunction) -> Any:
        return lambda some, *ends: np.minimum(two(of)(some, *ends), of(some, *(end[:, 2:] for end in ends)))

    grid = ps.IntegerGrid([-1000] * 4, [1000] * 4)
    problem = ps.GridProblem(grid, nearer(distance), homes, nearer(nearest), bound=3000, step=1)
    assert grid.size > 10**13
    run = ps.exponential(problem, 5.0, random_state=1)
    assert run.diagnostics.loss_per_record < 300
    smaller = ps.IntegerGrid([-100] * 4, [100] * 4)
    near = ps.GridProblem(smaller, nearer(distance), homes / 10, nearer(nearest), bound=300, step=1)
    best = BoxOracle().minimise(near, ps.Perturbation.zero(smaller))
    assert np.allclose(sorted(best.weights.reshape(2, 2).tolist()), [[-40, 10], [30, -20]], atol=4)
    again = ps.Release.from_json(run.release.to_json())
    assert (again.domain, again.loss.clipped) == (grid, True)


def test_opdisc_and_ledgers_take_it() -> None:
    records = np.random.default_rng(1).integers(-5, 6, size=(500, 2))
    problem = ps.GridProblem(ps.IntegerGrid([-20, -20], [20, 20]), distance, records, lipschitz=1, step=1)
    budget = ps.Accountant(epsilon=2.0)
    run = ps.opdisc(problem, 2.0, oracle="boxes", budget=budget, random_state=2)
    assert run.release.guarantee.oracle == "boxes"
    with pytest.raises(ps.BudgetExceeded):
        ps.exponential(problem, 0.1, budget=budget)


def test_a_wrong_bound_releases_nothing() -> None:
    records = np.zeros((20, 1), dtype=int)
    wrong = lambda some, low, high: nearest(some, low, high) + 1.0  # noqa: E731
    problem = ps.GridProblem(ps.IntegerGrid([-5], [5]), distance, records, wrong, bound=9, step=0.5)
    with pytest.raises(ps.PrivsolveError, match="least gave a bound above"):
        ps.exponential(problem, 1.0, random_state=1)
    with pytest.raises(ps.PrivsolveError, match="least gave a bound above"):
        BoxOracle().minimise(problem, ps.Perturbation.zero(problem.domain))


def test_limits_are_obeyed() -> None:
    records = np.random.default_rng(1).integers(-50, 51, size=(30, 2))
    grid = ps.IntegerGrid([-500, -500], [500, 500])
    problem = ps.GridProblem(grid, distance, records, nearest, bound=2000, step=1)
    with pytest.raises(ps.OracleNotCertified, match="BoxOracle"):
        BoxOracle(max_boxes=10).minimise(problem, ps.Perturbation.zero(grid))
    with pytest.raises(ps.PrivsolveError, match="max_nodes"):
        ps.exponential(problem, 1.0, max_nodes=20)


GRID, RECORDS = ps.IntegerGrid([0], [9]), np.zeros((3, 1), dtype=int)
FLAT = lambda some, low, high: np.zeros((len(some), len(low)))  # noqa: E731


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((GRID, lambda r, m: np.full((len(r), len(m)), len(r)), RECORDS, FLAT), {"bound": 9}, "one record at a time"),
        ((ps.TernaryCube(2), distance, RECORDS, nearest), {"bound": 1}, "IntegerGrid"),
        ((GRID, np.zeros((3, 10)), RECORDS, nearest), {"bound": 1}, "loss must be a function of 2"),
        ((GRID, lambda r: 0, RECORDS, nearest), {"bound": 1}, "loss must be a function of 2 arguments"),
        ((GRID, distance, RECORDS, distance), {"bound": 1}, "least must be a function of 3 arguments: records, low, high"),
        ((GRID, distance, RECORDS, nearest), {"bound": -1, "step": 1}, "bound must be"),
        ((GRID, distance, {1, 2}, nearest), {"bound": 1, "step": 1}, "records must be an array"),
        ((GRID, lambda r, m: distance(r, m) * np.nan, RECORDS, nearest), {"bound": 1, "step": 1}, "NaN or infinite"),
        ((GRID, lambda r, m: distance(r, m)[0], RECORDS, nearest), {"bound": 1, "step": 1}, "one row per record"),
        ((GRID, distance, RECORDS), {"bound": 9, "step": 1}, "least or lipschitz"),
        ((GRID, distance, RECORDS, nearest), {"step": 1}, "bound or lipschitz"),
        ((GRID, distance, 5, nearest), {"bound": 1, "step": 1}, "records"),
        ((GRID, distance, RECORDS[:0], nearest), {"bound": 1, "step": 1}, "records"),
        ((GRID, distance, RECORDS, nearest), {"bound": 9}, "step"),
        ((GRID, distance, RECORDS, lambda some, low, high: FLAT(some, low, high)[0]), {"bound": 9, "step": 1}, "least"),
        ((GRID, distance, RECORDS, lambda some, low, high: FLAT(some, low, high) * np.nan), {"bound": 9, "step": 1}, "least"),
    ],
)  # fmt: skip
def test_refusals_name_the_argument(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ps.GridProblem(*arguments, **options)


def test_a_prior_or_another_problem_is_refused_for_boxes() -> None:
    problem = ps.GridProblem(GRID, distance, RECORDS, nearest, bound=9, step=1)
    with pytest.raises(ValueError, match="uniform prior"):
        ps.exponential(problem, 1.0, prior=ps.SparsePrior())
    with pytest.raises(ValueError, match="needs a GridProblem"):
        ps.exponential(ps.DiscreteProblem(GRID, np.zeros((2, 10), dtype=int), bound=1), 1.0, method="boxes")
    assert ps.exponential(problem, 1.0, method="enumeration").diagnostics.values["method"] == "enumeration"
