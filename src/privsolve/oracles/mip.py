"""The integer program of a problem in exact integers (theory, section 8), and what its solvers have in common.

Columns: the weights `w_j`; one binary per value of each weight (one-hot), or per point of a list; one binary per total
cost where ψ or the domain needs a table; one binary per distinct pattern, which says whether its score is
positive. Solvers that work in floating point read the rows of `Model.big_m`, integer solvers the implications.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, FiniteSet, Knapsack, KnapsackDomain
from privsolve.domains.knapsack import NOWHERE
from privsolve.engines.coordinates.instance import Layout, lay_out, perturbed
from privsolve.engines.coordinates.local import compile_improve, improve
from privsolve.engines.coordinates.minimise import POLL_SECONDS, Progress, ProgressCallback
from privsolve.errors import IntegerRangeError, OracleNotCertified, WorkLimitReached
from privsolve.oracles.base import Oracle, Solution, Solve
from privsolve.oracles.catalogue import Solver, require
from privsolve.problems.perturbation import UNIT, AnyPerturbation, Perturbation
from privsolve.problems.problem import BaseProblem, Problem

LARGEST_SUMSET = 200_000
"""Above this many different sums the scores nearest to zero are not looked for: the unit itself is the margin."""

LARGEST_REACH = 2_000_000_000
"""Above this much work the range of a score ignores the costs."""

SMALLEST_TOLERANCE = 1e-4
"""Floating-point solvers work to about 1e-6: what they are asked to prove must be well above that.

Their own tolerances are left alone. Tightening them looks safer and is not: at 1e-9 HiGHS was seen to cut off the
optimum and to claim a wrong bound, where a loose row can only lead to an answer that fails its certificate.
"""

BELIEVED = 0.25
"""A floating-point bound is believed up to this share of the tolerance; the solver may leave half of it as its gap."""

FLOAT_RANGE = 2.0**38
"""Floating-point solvers are given objectives of at most this many tolerances: fifteen bits of a double to spare."""


class End(Enum):
    """Why a solver stopped. After a failure nothing that it says is used."""

    DONE = "done"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Outcome(NamedTuple):
    """What a solver found: columns, or None, and its lower bound in units, without the model's constant."""

    end: End
    columns: NDArray[np.float64] | None
    lower: int | None
    nodes: int


@dataclass
class Watch:
    """Clock and progress of one solve. Solvers report objective and bound in mistakes, without the model's constant."""

    constant: int
    best: int
    bound: int
    time_limit: float | None
    progress: ProgressCallback | None
    began: float = field(default_factory=time.monotonic)
    last: float = -math.inf

    @property
    def elapsed(self) -> float:
        """Seconds since the oracle was called."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """Seconds until the time limit, or None; never zero, which some solvers read as no limit."""
        return None if self.time_limit is None else max(self.time_limit - self.elapsed, 1e-3)

    @property
    def almost_over(self) -> bool:
        """Whether the time limit, if any, is why the solver stopped; some stop a little early."""
        return self.time_limit is not None and self.elapsed > 0.9 * self.time_limit

    def report(self, objective: float, bound: float, nodes: int) -> None:
        """Pass the state of the search on, at most ten times a second."""
        if self.progress is None or self.elapsed - self.last < POLL_SECONDS:
            return
        self.last = self.elapsed
        value, lower = self.best / UNIT, self.bound / UNIT
        offset = self.constant / UNIT
        if math.isfinite(objective):
            value = min(value, objective + offset)
        if math.isfinite(bound):
            lower = min(max(lower, bound + offset), value)
        self.progress(Progress(value, lower, nodes, self.elapsed))


@dataclass(frozen=True)
class MipOracle(Oracle):
    """A general solver as an oracle. It is trusted for its lower bound, and for nothing else.

    The weights it returns are rounded, their objective is recomputed in integers, and the answer is certified only if
    the solver's bound is within `tolerance` mistakes of that. Every mechanism pays for the tolerance in noise (theory,
    sections 1 and 6). `time_limit` (seconds) ends the search with `WorkLimitReached`; `threads` is left to the solver.
    """

    tolerance: float = 0.01
    time_limit: float | None = None
    threads: int | None = None
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (Problem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (KnapsackDomain, FiniteSet)
    about: ClassVar[Solver]
    smallest_tolerance: ClassVar[float] = SMALLEST_TOLERANCE

    def __post_init__(self) -> None:
        if not self.smallest_tolerance <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be at least {self.smallest_tolerance:g} mistakes, got {self.tolerance!r}")
        for option in ("time_limit", "threads"):
            value = getattr(self, option)
            if value is not None and not value > 0:
                raise ValueError(f"{option} must be positive or None, got {value!r}")

    @property
    def backend(self) -> str:
        """The name of the solver."""
        return self.about.name

    @property
    def name(self) -> str:
        """The name that goes into the guarantee."""
        return f"{self.backend} (trusts the solver's bound)"

    def unsupported(self, problem: BaseProblem) -> str:
        """The models know the sign of a score only: a loss of several steps is beyond them."""
        if isinstance(problem, Problem) and not problem.loss.is_step:
            return f"oracle {self.backend!r} cannot solve a loss of several steps: use oracle='tree'"
        return super().unsupported(problem)

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if the solver is missing or cannot take the problem."""
        super().check(problem)
        require(self.about)

    def prepare(self, problem: Problem, template: AnyPerturbation) -> Solve:
        """Lay the problem out for the local search that starts the solver, and compile that."""
        self.check(problem)
        return partial(self._minimise, problem, _layout(problem, template))

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """A member within the tolerance of the minimum, by the solver's bound; otherwise an error."""
        problem.check_perturbation(perturbation)
        solution: Solution = self.prepare(problem, perturbation)(perturbation, progress)
        return solution

    def _minimise(
        self, problem: Problem, layout: Layout | None, perturbation: Any, progress: ProgressCallback | None
    ) -> Solution:
        began = time.monotonic()
        problem.check_perturbation(perturbation)
        solver = require(self.about)
        model = build(problem, perturbation)
        self._check_range(model)
        start = warm_start(problem, perturbation, layout)
        value = problem.objective(start, perturbation)
        watch = Watch(model.constant, value, model.trivial_bound, self.time_limit, progress, began)
        watch.report(math.inf, -math.inf, 0)
        outcome = self._solve(solver, model, model.encode(start), watch)
        if outcome.end is End.INTERRUPTED:
            raise KeyboardInterrupt
        weights = _better(problem, perturbation, start, model.weights(outcome.columns))
        unknown = outcome.end is End.FAILED or outcome.lower is None
        lower = model.trivial_bound if unknown else model.constant + (outcome.lower or 0)
        value = problem.objective(weights, perturbation)
        solution = Solution(weights, value, lower, self.tolerance, {"nodes": outcome.nodes})
        self._certify(solution, outcome.end)
        return solution

    @abstractmethod
    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        """Run the solver on the model from the columns of a known member."""

    def _check_range(self, model: Model) -> None:
        if model.largest > FLOAT_RANGE * self.tolerance * UNIT:
            raise IntegerRangeError(
                f"loss and noise are too large for {self.backend} to resolve {self.tolerance:g} mistakes in floating "
                "point: nothing is released; solve the same noise with an oracle that works in integers, such as 'tree'"
            )

    def _lower(self, bound: float) -> int | None:
        """A floating-point bound in mistakes as one in units, lowered by what is left to the solver's rounding."""
        return math.floor((bound - BELIEVED * self.tolerance) * UNIT) if abs(bound) < 1e15 else None

    def _certify(self, solution: Solution, end: End) -> None:
        if solution.lower > solution.value:
            raise OracleNotCertified(
                f"{self.backend} claims a bound of {solution.bound:.6g}, above the exact objective "
                f"{solution.objective:.6g} of a member: its arithmetic failed and nothing is released; "
                "use the tree on the same noise"
            )
        if solution.certified:
            return
        state = (
            f"gap {(solution.value - solution.lower) / UNIT:.6g} (objective {solution.objective:.6g}, "
            f"bound {solution.bound:.6g})"
        )
        if end is End.TIME_LIMIT:
            raise WorkLimitReached(
                f"{self.backend} hit its time limit of {self.time_limit:g} s at {state}: nothing is "
                "released; retry with the same noise and a larger limit"
            )
        raise OracleNotCertified(
            f"{self.backend} stopped at {state}, more than its tolerance of {self.tolerance:g} mistakes: nothing is "
            "released; use the tree on the same noise"
        )


def _better(problem: Problem, perturbation: Perturbation, start: Int64Array, found: Int64Array | None) -> Int64Array:
    """The better of two vectors by their exact objectives; what is not a member is dropped."""
    if found is None or not problem.domain.contains(found):
        return start
    return min(start, found, key=lambda w: problem.objective(w, perturbation))


class Choices(NamedTuple):
    """How the weights are chosen: rows `low <= matrix (w, choices) <= high` over binaries with costs in units."""

    matrix: csr_array
    low: Int64Array
    high: Int64Array
    cost: Int64Array
    constant: int
    encode: Callable[[Int64Array], Int64Array]


class Patterns(NamedTuple):
    """Rows whose sign is open: a score is at most `nonpositive` or at least `positive`, and in `[low, high]`.

    Feature rows are divided by their greatest common divisor, and rows that become equal are one pattern.
    `cost` is what a positive sign costs more than a negative one, in units; decided rows are in `constant`.
    """

    features: csr_array
    nonpositive: Int64Array
    positive: Int64Array
    low: Int64Array
    high: Int64Array
    cost: Int64Array
    constant: int


@dataclass(frozen=True, eq=False)
class Model:
    """Minimise `constant + <cost, x>` (units of `2^-20`) over integer columns `x = (weights, choices, patterns)`."""

    choices: Choices
    patterns: Patterns
    weight_low: Int64Array
    weight_high: Int64Array

    @property
    def dim(self) -> int:
        """Number of weights: they are the first columns, all others are binary."""
        return len(self.weight_low)

    @property
    def first_pattern(self) -> int:
        """Column of the first pattern."""
        return self.dim + len(self.choices.cost)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.first_pattern + len(self.patterns.cost)

    @property
    def rows(self) -> int:
        """Number of rows of `big_m`."""
        return len(self.choices.low) + 2 * len(self.patterns.cost)

    @property
    def cost(self) -> Int64Array:
        """Cost of each column, in units."""
        return np.concatenate([np.zeros(self.dim, dtype=np.int64), self.choices.cost, self.patterns.cost])

    @property
    def constant(self) -> int:
        """What every member costs, in units."""
        return self.choices.constant + self.patterns.constant

    @property
    def low(self) -> Int64Array:
        """Lower bounds of the columns."""
        return np.concatenate([self.weight_low, np.zeros(self.columns - self.dim, dtype=np.int64)])

    @property
    def high(self) -> Int64Array:
        """Upper bounds of the columns."""
        return np.concatenate([self.weight_high, np.ones(self.columns - self.dim, dtype=np.int64)])

    @property
    def largest(self) -> int:
        """An upper bound on the absolute value of any objective, in units."""
        return abs(self.constant) + sum(map(abs, map(int, self.cost)))

    @property
    def trivial_bound(self) -> int:
        """A lower bound that needs no solver, in units."""
        return self.constant + int(np.minimum(self.cost, 0).sum())

    def weights(self, columns: NDArray[np.float64] | None) -> Int64Array | None:
        """The weights of a solver's answer, rounded."""
        return None if columns is None else np.rint(np.asarray(columns)[: self.dim]).astype(np.int64)

    def encode(self, weights: Int64Array) -> Int64Array:
        """All columns of one member."""
        positive = self.patterns.features @ weights >= self.patterns.positive
        return np.concatenate([weights, self.choices.encode(weights), positive.astype(np.int64)])

    def big_m(self) -> tuple[csr_array, NDArray[np.float64], NDArray[np.float64]]:
        """All rows as `low <= matrix x <= high` in floating point.

        For a pattern with binary y: `score >= low + (positive - low) y` and `score <= nonpositive + (high -
        nonpositive) y`, with `low` and `high` the range of the score over the domain: no smaller constants are valid.
        A wrong sign violates its row by at least `positive - nonpositive`, which is scaled to 1.
        """
        p, n = self.patterns, len(self.patterns.cost)
        scale = 1.0 / (p.positive - p.nonpositive)
        scores = hstack([_scaled(p.features, scale), csr_array((n, len(self.choices.cost)))])
        up = hstack([scores, _diagonal((p.low - p.positive) * scale)])
        down = hstack([scores, _diagonal((p.nonpositive - p.high) * scale)])
        choices = hstack([self.choices.matrix.astype(np.float64), csr_array((len(self.choices.low), n))])
        free = np.full(n, np.inf)
        return (
            csr_array(vstack([choices, up, down])),
            np.concatenate([self.choices.low, p.low * scale, -free]).astype(np.float64),
            np.concatenate([self.choices.high, free, p.nonpositive * scale]).astype(np.float64),
        )


def build(problem: Problem, perturbation: Perturbation) -> Model:
    """The model of one perturbed problem; exact, and without any limit but those of int64."""
    domain = problem.domain
    choices = _of_list(domain, perturbation) if isinstance(domain, FiniteSet) else _of_product(domain, perturbation)
    values = [domain.values(j) for j in range(domain.dim)]
    return Model(
        choices,
        _patterns(problem),
        np.array([v.min() for v in values], dtype=np.int64),
        np.array([v.max() for v in values], dtype=np.int64),
    )


def _layout(problem: Problem, template: Any) -> Layout | None:
    """The problem as the local search takes it, if it can; what the search runs is compiled."""
    if isinstance(problem.domain, FiniteSet):
        return None
    try:
        layout = lay_out(problem, template)
    except WorkLimitReached:
        return None
    compile_improve(layout, np.zeros(len(layout.order), dtype=np.int64))
    return layout


def warm_start(problem: Problem, perturbation: Perturbation, layout: Layout | None) -> Int64Array:
    """A good member: the one that minimises the perturbation alone, improved by local search where the tree fits."""
    domain = problem.domain
    if isinstance(domain, FiniteSet):
        return np.array(domain.points[np.argmin(perturbation.of_members(domain.points))])
    weights = _cheapest(domain, perturbation)
    if layout is None:
        return weights
    inst = perturbed(layout, perturbation)
    path = np.array([np.searchsorted(domain.values(j), weights[j]) for j in inst.order], dtype=np.int64)
    path, _ = improve(inst, path)
    weights[inst.order] = inst.values[np.arange(len(path)), path]
    return weights


# --- choosing the weights ---------------------------------------------------------------------------------------------


def _of_list(domain: FiniteSet, perturbation: Perturbation) -> Choices:
    """One binary per point."""
    points = domain.points
    cost = perturbation.of_members(points)
    constant = int(cost.min())
    pick = np.concatenate(
        [np.zeros((1, domain.dim), dtype=np.int64), np.ones((1, len(points)), dtype=np.int64)], axis=1
    )
    link = np.concatenate([np.eye(domain.dim, dtype=np.int64), -points.T], axis=1)
    rhs = np.concatenate([[1], np.zeros(domain.dim, dtype=np.int64)])
    matrix = csr_array(np.concatenate([pick, link]))
    return Choices(matrix, rhs, rhs, cost - constant, constant, lambda w: (points == w).all(axis=1).astype(np.int64))


class _Entries:
    """A sparse integer matrix with row bounds, built row by row."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.column: list[int] = []
        self.value: list[int] = []
        self.low: list[int] = []
        self.high: list[int] = []

    def add(self, columns: Sequence[int], values: Sequence[int], low: int, high: int) -> None:
        self.row += [len(self.low)] * len(columns)
        self.column += columns
        self.value += values
        self.low.append(low)
        self.high.append(high)

    def matrix(self, columns: int) -> csr_array:
        data = np.array(self.value, dtype=np.int64)
        matrix = csr_array((data, (self.row, self.column)), shape=(len(self.low), columns))
        matrix.eliminate_zeros()
        return matrix


def _of_product(domain: Domain, perturbation: Perturbation) -> Choices:
    """One binary per value of each coordinate, and one per total cost if a table of totals is needed."""
    knapsack, total_table = perturbation.by_total()
    dim = domain.dim
    entries, constant = _Entries(), 0
    cost: list[int] = []
    kept, starts = [], []
    spending: tuple[list[int], list[int]] = ([], [])
    for j in range(dim):
        inside = np.flatnonzero(knapsack.costs[j] <= knapsack.limit)
        table = perturbation.coordinate[j][inside]
        start = dim + len(cost)
        columns = list(range(start, start + len(inside)))
        entries.add(columns, [1] * len(columns), 1, 1)
        entries.add([j, *columns], [1, *(-domain.values(j)[inside]).tolist()], 0, 0)
        spending[0].extend(columns)
        spending[1].extend(knapsack.costs[j][inside].tolist())
        cost += (table - table.min()).tolist()
        constant += int(table.min())
        kept.append(domain.values(j)[inside])
        starts.append(start - dim)

    reached = knapsack.reached
    allowed = np.flatnonzero(knapsack.allowed & reached)
    if len(allowed) == 0:
        raise ValueError("the domain is empty: no vector has an allowed total")
    psi = total_table[allowed]
    constant += int(psi.min())
    without_gaps = reached[allowed[0] : allowed[-1] + 1].sum() == len(allowed)
    first_total = len(cost)
    one_hot = bool((psi != psi[0]).any()) or not without_gaps
    if one_hot:
        columns = list(range(dim + first_total, dim + first_total + len(allowed)))
        entries.add(columns, [1] * len(columns), 1, 1)
        entries.add([*spending[0], *columns], [*spending[1], *(-allowed).tolist()], 0, 0)
        cost += (psi - psi.min()).tolist()
    else:
        least, most = (sum(int(f(c[c <= knapsack.limit])) for c in knapsack.costs) for f in (np.min, np.max))
        if least < allowed[0] or most > allowed[-1]:
            entries.add(*spending, int(allowed[0]), int(allowed[-1]))

    def encode(weights: Int64Array) -> Int64Array:
        chosen = np.zeros(len(cost), dtype=np.int64)
        total = 0
        for j, (start, values) in enumerate(zip(starts, kept, strict=True)):
            chosen[start + np.searchsorted(values, weights[j])] = 1
            total += int(knapsack.costs[j][np.searchsorted(domain.values(j), weights[j])])
        if one_hot:
            chosen[first_total + np.searchsorted(allowed, total)] = 1
        return chosen

    low, high = np.array(entries.low, dtype=np.int64), np.array(entries.high, dtype=np.int64)
    return Choices(entries.matrix(dim + len(cost)), low, high, np.array(cost, dtype=np.int64), constant, encode)


def _cheapest(domain: Domain, perturbation: Perturbation) -> Int64Array:
    """The member with the smallest perturbation."""
    knapsack, by_total = perturbation.by_total()
    chosen = knapsack.cheapest(lambda j: perturbation.coordinate[j], by_total)
    return np.array([domain.values(j)[x] for j, x in enumerate(chosen)])


# --- the signs of the scores ------------------------------------------------------------------------------------------


def _patterns(problem: Problem) -> Patterns:
    domain = problem.domain
    scores = problem.table.score_features
    divisor = np.maximum(np.gcd.reduce(scores, axis=1), 1)
    rows, first, merged = np.unique(scores // divisor[:, None], axis=0, return_index=True, return_inverse=True)
    if_negative, if_positive = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    np.add.at(if_negative, merged.reshape(-1), problem.costs[:, 0])
    np.add.at(if_positive, merged.reshape(-1), problem.costs[:, 1])

    low, high = _score_ranges(domain, rows)
    open_ = (low <= 0) & (high > 0) & (if_positive != if_negative)
    known = int(if_negative.sum() + (if_positive - if_negative)[low > 0].sum())
    nonpositive, positive = _scores_around_zero(domain, scores[first[open_]]) // divisor[first[open_]]
    return Patterns(
        csr_array(rows[open_]),
        nonpositive,
        positive,
        low[open_],
        high[open_],
        (if_positive - if_negative)[open_] * UNIT,
        known * UNIT,
    )


def _score_ranges(domain: Domain, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The smallest and largest score of every row over the domain."""
    if isinstance(domain, FiniteSet):
        listed = [rows @ point for point in domain.points]
        return np.minimum.reduce(listed), np.maximum.reduce(listed)
    knapsack = domain.knapsack()
    choices = sum(len(c) for c in knapsack.costs)
    if len(rows) * choices * (knapsack.limit + 1) > LARGEST_REACH:
        ends = [[f(domain.values(j)) for j in range(domain.dim)] for f in (np.min, np.max)]
        steps = np.stack([rows * np.array(end, dtype=np.int64) for end in ends])
        return steps.min(axis=0).sum(axis=1), steps.max(axis=0).sum(axis=1)

    def scores(j: int) -> Int64Array:
        return np.outer(domain.values(j), rows[:, j])

    return knapsack.least(scores), knapsack.largest(scores)


def _scores_around_zero(domain: Domain, rows: Int64Array) -> Int64Array:
    """For every row, numbers `a <= 0 < b` such that no member has a score strictly between them.

    They are the scores nearest to zero if those can be listed, otherwise 0 and the row's divisor. The wider the gap,
    the further the solver's tolerances are from a wrong sign: (99, 99, 40) times small weights never comes near 1.
    """
    if isinstance(domain, FiniteSet):
        scores = rows @ domain.points.T
        nonpositive = np.where(scores <= 0, scores, -NOWHERE).max(axis=1)
        return np.stack([nonpositive, np.where(scores > 0, scores, NOWHERE).min(axis=1)])
    knapsack = domain.knapsack()
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(domain.values(j).tobytes() + c.tobytes(), j) for j, c in enumerate(knapsack.costs)]
    sums = _Sums([domain.values(j) for j in range(domain.dim)], knapsack)
    known: dict[_Terms, tuple[int, int]] = {}
    around = np.empty((2, len(rows)), dtype=np.int64)
    for i, row in enumerate(rows):
        terms = tuple(sorted(((int(row[j]), kind[j]) for j in np.flatnonzero(row)), reverse=True))
        if terms not in known:
            known[terms] = sums.around_zero(terms)
        around[:, i] = known[terms]
    return around


_Terms = tuple[tuple[int, int], ...]  # pairs of a coefficient and a coordinate whose values it multiplies


class _Sums:
    """All sums of one multiple per term, each with the least that it spends; shared by rows that begin alike."""

    def __init__(self, values: list[Int64Array], knapsack: Knapsack) -> None:
        self.values, self.costs, self.limit = values, knapsack.costs, knapsack.limit
        nothing = np.zeros(1, dtype=np.int64)
        self.known: dict[_Terms, tuple[Int64Array, Int64Array] | None] = {(): (nothing, nothing)}

    def around_zero(self, terms: _Terms) -> tuple[int, int]:
        """The largest non-positive and the smallest positive sum within the limit."""
        divisor = math.gcd(*(c for c, _ in terms))
        listed = self._extended(terms)
        if listed is None:
            return 0, divisor
        sums = listed[0]
        return int(sums[sums <= 0].max(initial=-NOWHERE)), int(sums[sums > 0].min(initial=NOWHERE))

    def _extended(self, terms: _Terms) -> tuple[Int64Array, Int64Array] | None:
        """Sums, with repetitions, and what they spend; None if there are too many."""
        before = self._distinct(terms[:-1])
        (coefficient, j) = terms[-1]
        if before is None or len(before[0]) * len(self.values[j]) > LARGEST_SUMSET:
            return None
        sums = np.add.outer(before[0], coefficient * self.values[j])
        spent = np.add.outer(before[1], self.costs[j])
        return sums[spent <= self.limit], spent[spent <= self.limit]

    def _distinct(self, terms: _Terms) -> tuple[Int64Array, Int64Array] | None:
        if terms not in self.known:
            listed = self._extended(terms)
            if listed is not None:
                order = np.lexsort(listed[::-1])
                sums, first = np.unique(listed[0][order], return_index=True)
                listed = sums, listed[1][order][first]
            self.known[terms] = listed
        return self.known[terms]


def _scaled(matrix: csr_array, scale: NDArray[np.float64]) -> csr_array:
    return csr_array(_diagonal(scale) @ matrix.astype(np.float64))


def _diagonal(values: NDArray[np.float64]) -> csr_array:
    n = len(values)
    return csr_array((np.asarray(values, dtype=np.float64), (np.arange(n), np.arange(n))), shape=(n, n))
