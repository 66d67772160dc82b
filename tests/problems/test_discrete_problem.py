"""Losses of the user's own: random tables and functions against enumeration, exact laws, audits, calibrations, refusals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import chi2

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.audit import exact_loss, exponential_law, lower_bound, perturbed_draws
from privsolve.domains import Domain
from privsolve.losses import StatedLoss
from privsolve.noise.entropy import Randomness
from privsolve.problems.perturbation import UNIT

GRID = ps.IntegerGrid([-2, -1], [2, 1])


@dataclass(frozen=True)
class EvenPairs(Domain):
    """A domain of a user's own, not cut out by costs: pairs with an even sum."""

    side: int
    kind: ClassVar[str] = "test-even-pairs"
    dim: ClassVar[int] = 2

    @property
    def radius_sq_bound(self) -> int:
        return max(sum(v * v for v in w) for w in self.members().tolist())

    @property
    def separation_sq(self) -> int:
        return 2

    @property
    def equal_norms(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return len(self.members())

    def values(self, j: int) -> Int64Array:
        return np.arange(self.side)

    def has(self, vector: Int64Array) -> bool:
        return bool((vector >= 0).all() and (vector < self.side).all() and vector.sum() % 2 == 0)

    def members(self) -> Int64Array:
        pairs = product(range(self.side), repeat=2)
        return np.array([w for w in pairs if sum(w) % 2 == 0], dtype=np.int64)


DOMAINS = [GRID, ps.FiniteSet([[5, 1], [0, 0], [2, 2], [-3, 1]]), ps.TernaryCube(2), EvenPairs(4)]


def distances(records: np.ndarray, members: Int64Array) -> np.ndarray:
    return np.sqrt(((records[:, None, :] - members[None, :, :]) ** 2).sum(axis=2))


def understated(problem: ps.DiscreteProblem, largest: int) -> ps.DiscreteProblem:
    """The same data with a bound that is not true: what the constructor refuses to make."""
    object.__setattr__(problem, "loss", StatedLoss(largest))
    return problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: d.kind)
def test_tables_and_functions_add_up_and_are_minimised(domain: Domain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = domain.members()
    table = rng.integers(0, 8, size=(30, len(members)))
    by_table = ps.DiscreteProblem(domain, table, bound=7)
    column = {tuple(w): i for i, w in enumerate(members.tolist())}
    by_call = ps.DiscreteProblem(
        domain,
        lambda rows, some: table[np.ix_(rows, [column[tuple(w)] for w in some.tolist()])],
        np.arange(30),
        bound=7,
    )
    shuffled = rng.permutation(len(members))
    by_columns = ps.DiscreteProblem(domain, table[:, shuffled], bound=7, columns=members[shuffled])
    for problem in (by_table, by_call, by_columns):
        assert problem.losses_of(members).tolist() == table.sum(axis=0).tolist()
        assert [problem.total_loss(w) for w in members] == table.sum(axis=0).tolist()
        assert problem.losses_of(members[::-1]).tolist() == table.sum(axis=0)[::-1].tolist()
    noise = ps.Perturbation.lifted(domain, rng.normal(size=domain.lift_dim) * 20)
    found = ps.oracles.get("enumeration").minimise(by_table, noise)
    values = [int(t) * UNIT + noise.of(w) for t, w in zip(table.sum(axis=0), members, strict=True)]
    assert found.value == min(values) == found.lower


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: d.kind)
def test_every_mechanism_runs_pays_and_comes_back_from_its_file(domain: Domain) -> None:
    table = np.random.default_rng(1).random((20, domain.size))
    problem = ps.DiscreteProblem(domain, table, bound=1, step=0.01, names=["a", "b"])
    options: dict[str, Any] = {"oracle": "enumeration"}
    for mechanism, more in ((ps.exponential, {}), (ps.opdisc, options), (ps.rspm, options)):
        budget = ps.Accountant(epsilon=1.0)
        run = mechanism(problem, 1.0, random_state=3, budget=budget, **more)
        assert domain.contains(run.release.weights)
        again = ps.Release.from_json(run.release.to_json())
        assert again.loss == problem.loss == StatedLoss(100, None, "1/100", False)
        assert again.domain == domain
        with pytest.raises(ps.BudgetExceeded):
            mechanism(problem, 1.0, budget=budget, **more)


def counted(drawn: Int64Array, domain: Domain) -> Int64Array:
    """How often each member was drawn."""
    place = {tuple(w): i for i, w in enumerate(domain.members().tolist())}
    return np.bincount([place[tuple(w)] for w in drawn.tolist()], minlength=len(place))


def test_draws_have_the_exact_law() -> None:
    rng = np.random.default_rng(2)
    problem = ps.DiscreteProblem(GRID, rng.integers(0, 4, size=(12, 15)), bound=3)
    weights = np.exp(-(2.0 - 1e-6) / 6 * problem.totals)
    law, runs = weights / weights.sum(), 6000
    assert np.allclose(np.exp(ps.audit.exponential_law(problem, 2.0)), law, atol=1e-12)
    drawn = ps.ExponentialSampler(problem, 2.0, random_state=4).draw(runs)
    counts = counted(drawn, GRID)
    limit = chi2.ppf(1 - 1e-4, 14)
    assert ((counts - runs * law) ** 2 / (runs * law)).sum() < limit
    flat = np.full(15, 1 / 15)
    assert ((counts - runs * flat) ** 2 / (runs * flat)).sum() > limit


def made(domain: Domain, rng: np.random.Generator, count: int) -> dict[str, Any]:
    """A problem of a user's own as arguments that take some records: a table or a function, either constant or both."""
    records = rng.integers(-3, 4, size=(count, 2))
    table = rng.integers(0, 6, size=(count, domain.size))
    stated: list[tuple[Any, dict[str, Any]]] = [
        (None, {"bound": 5}),
        (None, {"bound": 3, "clip": True}),
        (distances, {"bound": 12, "step": 0.5}),
        (distances, {"lipschitz": 1, "step": 0.25}),
        (distances, {"bound": 12, "lipschitz": 1, "step": 0.5}),
    ]
    loss, options = stated[int(rng.integers(len(stated)))]
    return {"loss": loss, "data": table if loss is None else records, "options": options}


def of(domain: Domain, rows: Any, *, loss: Any, data: np.ndarray, options: dict[str, Any]) -> ps.DiscreteProblem:
    given = (data[rows],) if loss is None else (loss, data[rows])
    return ps.DiscreteProblem(domain, *given, **options)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: d.kind)
def test_random_problems_have_the_law_and_keep_the_promise(domain: Domain, seed: int) -> None:
    """Draws against the law by its formula; and between neighbours, both ways to be one, at most epsilon is lost."""
    rng = np.random.default_rng(seed)
    problem = made(domain, rng, 9)
    whole, changed, less = (of(domain, rows, **problem) for rows in (slice(0, 8), slice(1, 9), slice(1, 8)))
    members = domain.members()
    for adjacency, other in (("replace", changed), ("add-remove", less)):
        kappa = (2.0 - 1e-6) / ((2 if adjacency == "replace" else 1) * whole.loss.largest)
        weights = np.exp(-kappa * (whole.totals - whole.totals.min()))
        drawn = ps.ExponentialSampler(whole, 2.0, adjacency=adjacency, random_state=seed).draw(1500)
        expected = 1500 * weights / weights.sum()
        usual = expected > 5
        seen, wanted = (np.append(x[usual], x[~usual].sum()) for x in (counted(drawn, domain), expected))
        statistic = ((seen - wanted) ** 2 / np.maximum(wanted, 1)).sum()
        assert statistic < chi2.ppf(1 - 1e-5, usual.sum())
        assert exact_loss(exponential_law, whole, other, epsilon=2.0, adjacency=adjacency).epsilon <= 2.0
    noise = ps.Perturbation.lifted(domain, rng.normal(size=domain.lift_dim) * 9)
    values = whole.totals * UNIT + noise.of_members(members)
    assert ps.oracles.get("enumeration").minimise(whole, noise).value == values.min()


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_lose_at_most_epsilon_and_more_if_the_bound_is_understated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.concatenate([rng.integers(0, 5, size=(8, 15)), np.eye(1, 15, dtype=int) * 4])
    other = table.copy()
    other[-1] = 4 - other[-1]
    pair = [ps.DiscreteProblem(GRID, t, bound=4) for t in (table, other)]
    assert exact_loss(exponential_law, *pair, epsilon=1.0).epsilon <= 1.0
    assert exact_loss(exponential_law, *[understated(p, 2) for p in pair], epsilon=1.0).refutes(1.0)


def shown(pair: list[ps.DiscreteProblem], noise: Any) -> float:
    """The epsilon that draws with this noise prove to be lost at least."""
    seeds = iter((1, 2))

    def draws(problem: ps.DiscreteProblem, size: int) -> Int64Array:
        return perturbed_draws(problem, noise, size, Randomness.seeded(next(seeds)))

    return lower_bound(draws, *pair, 20_000).epsilon


@pytest.mark.parametrize("make_noise", [ps.sphere_noise, ps.separator_noise])
def test_perturbed_audits_pass_and_catch_an_understated_bound(make_noise: Any) -> None:
    line, table = ps.IntegerGrid([-1], [1]), np.array([[40, 0, 40]])
    pair = [ps.DiscreteProblem(line, t, bound=40) for t in (table, 40 - table)]
    assert shown(pair, make_noise(line, 1.0, loss=pair[0].loss)) <= 1.0
    assert shown(pair, make_noise(line, 1.0, loss=StatedLoss(2))) > 1.0


def test_lipschitz_losses_lose_at_most_epsilon_under_the_smaller_noise() -> None:
    line = ps.IntegerGrid([-4], [4])
    pair = [
        ps.DiscreteProblem(line, lambda r, m: np.abs(r - m[:, 0]), np.array([[z]]), bound=8, lipschitz=1)
        for z in (-4, 4)
    ]
    assert shown(pair, ps.sphere_noise(line, 1.0, loss=pair[0].loss)) <= 1.0


def test_the_lipschitz_calibration_is_the_formula_and_beats_the_bounded_one() -> None:
    grid = ps.IntegerGrid([-10, -10], [10, 10])
    records = np.random.default_rng(0).integers(-10, 11, size=(50, 2))
    both = ps.DiscreteProblem(grid, distances, records, bound=29, lipschitz=1, step=Fraction(1, 5))
    bounded = ps.DiscreteProblem(grid, distances, records, bound=29, step=Fraction(1, 5))
    smaller, larger = (ps.sphere_noise(grid, 1.0, loss=p.loss) for p in (both, bounded))
    assert larger.scale / smaller.scale == pytest.approx(145 / 6, rel=1e-4)  # Gτ = 5 steps, 1 to round
    assert smaller.scale == pytest.approx(4 * 6 * 200, rel=1e-4)  # c = 4GD²/τ at epsilon = 1
    losses = [ps.opdisc(p, 20.0, oracle="enumeration", random_state=1).diagnostics.total_loss for p in (both, bounded)]
    assert losses[0] < losses[1]
    coarse = ps.DiscreteProblem(grid, distances, records, bound=29, lipschitz=100, step=1)
    assert coarse.loss.within(1) == coarse.loss.largest == 29  # a poor constant does no harm


def test_the_closest_pair_is_the_worst() -> None:
    grid, loss = ps.IntegerGrid([-3, -2], [3, 2]), StatedLoss(9, 2.5, "1/10")
    members, lifted = grid.members(), grid.lift(grid.members())
    needed = max(
        2 * 2 * loss.within(int(((w - u) ** 2).sum())) / float(((a - b) ** 2).sum())
        for w, a in zip(members, lifted, strict=True)
        for u, b in zip(members, lifted, strict=True)
        if (w != u).any()
    )
    assert needed <= ps.sphere_noise(grid, 1.0, loss=loss).scale * (1 + 1e-12)


def test_a_lipschitz_constant_alone_bounds_the_range() -> None:
    line = ps.IntegerGrid([-4], [4])
    problem = ps.DiscreteProblem(line, lambda r, m: 1000 + np.abs(r - m[:, 0]), np.array([[3], [-4]]), lipschitz=1)
    assert problem.loss.largest == 8
    assert ps.exponential(problem, 1.0, random_state=1).release.guarantee.epsilon == 1.0


def test_rounding_and_clipping_are_public_rules() -> None:
    pair = ps.FiniteSet([[0], [1]])
    rounded = ps.DiscreteProblem(pair, [[0.24, 0.25], [0.75, 1.0]], bound=1, step=0.5)
    assert rounded.totals.tolist() == [0 + 2, 1 + 2]
    cut = ps.DiscreteProblem(pair, [[-3, 9]], bound=4, clip=True)
    assert cut.totals.tolist() == [0, 4]
    assert cut.setting["loss"]["clipped"] is True
    released = ps.exponential(cut, 1.0, random_state=1).release
    assert ps.Release.from_json(released.to_json()).loss.clipped is True
    odd = ps.DiscreteProblem(pair, [[0.0, 0.15]], bound=0.15, step=0.1)
    assert odd.totals.max() <= odd.loss.largest == 2


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_losses_of_any_precision_are_rounded_in_one(kind: type) -> None:
    """In half precision 1000 / 0.01 is infinite, and as an integer the least there is."""
    quad = ps.FiniteSet([[0], [1], [2], [3]])
    table = np.zeros((3, 4))
    table[:, 1] = [1.0, 1000.0, 0.25]
    problem = ps.DiscreteProblem(quad, table.astype(kind), bound=1000, step=0.01)
    assert problem.totals.tolist() == [0, 100_125, 0, 0]


OTHERS: list[Any] = [0.25, True, np.float32(0.1), np.uint64(2**63), 2**63 - 1, -1, np.float16(0.5), np.longdouble(1)]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("road", ["rows", "array", "function", "pandas", "polars"])
def test_one_record_of_another_type_does_not_change_how_the_others_are_cut(road: str, other: Any) -> None:
    """NumPy and frames give a column one type for all records: with 0.25 among them, whole losses were cut elsewhere."""
    pair = ps.FiniteSet([[0], [1]])
    rule: dict[str, Any] = {"bound": 2.5, "step": 0.5, "clip": True}
    losses = [9] * 59 + [other]
    rows = [[x, 0] for x in losses]
    frame = {"a": losses, "b": [0] * 60}
    tables: dict[str, Any] = {
        "array": lambda: np.array(rows),
        "pandas": lambda: pd.DataFrame(frame).to_numpy(),
        "polars": lambda: pl.DataFrame(frame, strict=False).to_numpy(),
    }
    table = tables[road]() if road in tables else rows
    arguments = (lambda some, _: some, rows) if road == "function" else (table,)
    if np.asarray(table).dtype == object:  # what frames make of some mixtures
        with pytest.raises(ValueError, match="loss must give numbers, got dtype object"):
            ps.DiscreteProblem(pair, *arguments, **rule)
        return
    alone = ps.DiscreteProblem(pair, [[float(other), 0.0]], **rule).totals
    assert ps.DiscreteProblem(pair, *arguments, **rule).totals.tolist() == [59 * 5 + alone[0], 0]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = np.random.default_rng(0).integers(-2, 3, size=(40, 2))
    whole = ps.DiscreteProblem(GRID, distances, records, bound=6, step=0.1).totals
    for block in (7, 33, 200):
        monkeypatch.setattr("privsolve.problems.discrete.BLOCK", block)
        assert np.array_equal(ps.DiscreteProblem(GRID, distances, records, bound=6, step=0.1).totals, whole)


def test_hundreds_of_thousands_of_members_are_fine() -> None:
    grid = ps.IntegerGrid([-300, -300], [300, 300])
    problem = ps.DiscreteProblem(
        grid, lambda r, m: np.abs(r[:, :1] - m[:, 0]) + np.abs(r[:, 1:] - m[:, 1]), np.array([[17, -5]] * 3), bound=1200
    )
    assert ps.oracles.get("enumeration").minimise(problem, ps.Perturbation.zero(grid)).weights.tolist() == [17, -5]


FLOATS = np.full((2, 15), 0.5)
WHOLE = np.ones((2, 15), dtype=int)
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((GRID, WHOLE), {}, "bound or lipschitz must be stated"),
    ((GRID, FLOATS), {"bound": 1}, "state a step"),
    ((GRID, 2 * WHOLE), {"bound": 1}, "outside 0..bound=1"),
    ((GRID, -WHOLE), {"bound": 1}, "outside 0..bound=1"),
    ((GRID, WHOLE * 2.0), {"bound": 1.5, "step": 1}, "outside 0..bound=1.5"),
    ((GRID, FLOATS * math.nan), {"bound": 1, "step": 0.1}, "NaN or infinite"),
    ((GRID, WHOLE[:, :3]), {"bound": 1}, "15 columns"),
    ((GRID, WHOLE.astype(str)), {"bound": 1}, "loss must give numbers"),
    ((GRID, WHOLE, [1, 2]), {"bound": 1}, "records are for a function"),
    ((GRID, distances), {"bound": 1}, "records must be an array"),
    ((GRID, distances, []), {"bound": 1}, "at least one record"),
    ((GRID, lambda r, m: np.zeros(3), [1]), {"bound": 1}, "one row per record"),
    ((GRID, lambda r, m: [[0], [0, 1]], [1]), {"bound": 1}, "loss must be rows of numbers, all of one length"),
    ((GRID, lambda r: 0, [1]), {"bound": 1}, "loss must be a function of 2 arguments: records, members"),
    ((GRID, distances, {1, 2}), {"bound": 1}, "records must be an array"),
    ((GRID, distances, {"a": 1}), {"bound": 1}, "records must be an array"),
    ((GRID, [[1, 2], [3]]), {"bound": 3}, "loss must be rows of numbers, all of one length"),
    ((GRID, np.ma.masked_array(WHOLE, mask=WHOLE > 0)), {"bound": 1}, "loss has a mask"),
    ((GRID, WHOLE * 1j), {"bound": 1}, "loss must give numbers"),
    ((GRID, FLOATS * math.inf), {"bound": 1, "step": 0.1, "clip": True}, "NaN or infinite"),
    ((GRID, WHOLE), {"bound": -1}, "bound must be"),
    ((GRID, WHOLE), {"bound": math.inf}, "bound must be"),
    ((GRID, WHOLE), {"lipschitz": -1}, "lipschitz must be"),
    ((GRID, WHOLE[:0]), {"bound": 1}, "one row per record"),
    ((GRID, lambda r, m: np.full((len(r), len(m)), len(r)), [1, 2]), {"bound": 9}, "one record at a time"),
    ((GRID, WHOLE), {"bound": 0}, "bound must be"),
    ((GRID, WHOLE), {"bound": 1.5}, "bound must be a whole number"),
    ((GRID, WHOLE), {"bound": 10**7}, "choose another step"),
    ((GRID, WHOLE), {"lipschitz": math.nan}, "lipschitz must be"),
    ((GRID, WHOLE), {"lipschitz": 10**6}, "coarser step"),
    ((GRID, np.eye(2, 15, dtype=int) * 5), {"bound": 5, "lipschitz": 2}, "more than lipschitz times"),
    ((GRID, np.eye(2, 15, dtype=int) * 50), {"lipschitz": 2}, "vary by more than"),
    ((GRID, WHOLE), {"bound": 1, "step": "x"}, "step must be"),
    ((GRID, WHOLE), {"lipschitz": 1, "clip": True}, "needs a bound"),
    ((GRID, WHOLE), {"bound": 1, "columns": [[0, 0]] * 15}, "columns must be the 15 members"),
    ((ps.IntegerGrid([0, 0], [9999, 9999]), WHOLE), {"bound": 1}, "too many to list .*: state a smaller domain"),
    (("grid", WHOLE), {"bound": 1}, "domain must be"),
]


@pytest.mark.parametrize(("arguments", "options", "says"), WRONG)
def test_what_is_not_covered_is_refused(arguments: tuple[Any, ...], options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ps.DiscreteProblem(*arguments, **options)


def test_solvers_of_linear_rules_refuse_it() -> None:
    says = r"'tree' does not take DiscreteProblem.*use another oracle, such as 'enumeration'"
    with pytest.raises(ValueError, match=says):
        ps.opdisc(ps.DiscreteProblem(GRID, WHOLE, bound=1), 1.0)


# --- totals that are not sums over records ---------------------------------------------------------


QUERIES = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])


def largest_error(cells: Any, members: Int64Array) -> Any:
    """How far a histogram in quarters is from the records, over three queries: one record moves it by at most 1."""
    truth = QUERIES @ np.bincount(cells, minlength=4)
    return np.abs(truth - members @ QUERIES.T).max(axis=1)


def total_problem(cells: list[int], **options: Any) -> ps.DiscreteProblem:
    grid = ps.IntegerGrid([0] * 4, [2] * 4)
    return ps.DiscreteProblem(grid, largest_error, cells, **{"sensitivity": 1, "bound": 20} | options)


def test_a_total_is_the_users_own() -> None:
    problem = total_problem([0, 1, 1, 3])
    members = problem.domain.members()
    assert problem.losses_of(members).tolist() == largest_error([0, 1, 1, 3], members).tolist()
    assert problem.total_loss([1, 2, 0, 1]) == 0
    assert problem.n == 4
    run = ps.exponential(problem, 50.0, random_state=1)
    assert run.diagnostics.loss == run.diagnostics.total_loss == 0
    read = ps.Release.from_json(run.release.to_json())
    assert read.setting["loss"] == {"kind": "total", "largest": 1, "step": ""}


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_total_may_rise_with_one_member_and_fall_with_another(adjacency: str) -> None:
    """Two histograms, one record moved: one error rises by one and the other falls: nearly all of epsilon is used."""
    pair = ps.FiniteSet([[0, 0, 0, 0], [2, 2, 2, 2]])
    neighbour = [0] if adjacency == "add-remove" else [0, 2]
    data, other = (ps.DiscreteProblem(pair, opposite, cells, sensitivity=1, bound=20) for cells in ([0, 0], neighbour))
    found = exact_loss(exponential_law, data, other, epsilon=1.0, adjacency=adjacency)
    assert 0.95 < found.epsilon <= 1.0


def opposite(cells: Any, members: Int64Array) -> Any:
    zeros = int((np.asarray(cells) == 0).sum())
    return np.where(members[:, 0] == 0, zeros, 10 - zeros)


def test_the_noise_of_a_total_is_that_of_twice_its_sensitivity() -> None:
    domain, loss = total_problem([0]).domain, total_problem([0], sensitivity=3).loss
    for noise in (ps.sphere_noise, ps.separator_noise):
        bounded = noise(domain, 1.0, loss=StatedLoss(3)).scale
        assert noise(domain, 1.0, loss=loss).scale == bounded
        assert noise(domain, 1.0, loss=loss, adjacency="add-remove").scale == bounded
    run = ps.opdisc(total_problem([0, 1, 1, 3]), 1000.0, oracle="enumeration", random_state=1)
    assert run.diagnostics.total_loss == 0
    assert ps.rspm(total_problem([0, 1]), 9.0, oracle="enumeration", random_state=1).release.guarantee.epsilon == 9


def test_a_rounded_total_keeps_its_sensitivity() -> None:
    """Totals a unit apart on the edge of two steps are two steps apart: the sensitivity in steps says so."""
    grid = ps.IntegerGrid([0], [1])
    found = [
        ps.DiscreteProblem(grid, lambda x, m: np.full(len(m), x[0]), [value], sensitivity=1, bound=9, step=0.7)
        for value in (1.74, 2.74)
    ]
    assert abs(found[0].totals - found[1].totals).max() == 2 == found[0].loss.largest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": None}, "state its bound"),
        ({"lipschitz": 1}, "leave out lipschitz"),
        ({"clip": True}, "leave out lipschitz"),
        ({"sensitivity": 0}, "sensitivity must be"),
        ({"sensitivity": 0.5}, "sensitivity must be from 1"),
        ({"bound": 1}, "outside 0..bound"),
        ({"loss": lambda records, members: np.zeros((1, len(members)))}, "one total per member"),
        ({"loss": lambda records, members: np.full(len(members), 0.5)}, "state a step"),
        ({"loss": lambda records, members: np.full(len(members), np.nan)}, "NaN"),
        ({"loss": np.zeros((1, 81))}, "a function that returns one total"),
    ],
)
def test_totals_that_are_refused(options: dict[str, Any], message: str) -> None:
    given = {"loss": largest_error, "records": [0, 1, 1, 3], "sensitivity": 1, "bound": 20} | options
    with pytest.raises(ValueError, match=message):
        ps.DiscreteProblem(ps.IntegerGrid([0] * 4, [2] * 4), **given)
