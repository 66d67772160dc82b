"""The integer program of the paper in exact integers (theory, section 8), and HiGHS and Gurobi as oracles for it.

Columns: the weights `w_j`; one binary per value of each weight (one-hot); one binary per total cost where ψ or the domain
needs a table; one binary per distinct pattern, which says whether its score is positive.

Floating-point solvers work to about 1e-6: what they are asked to prove must be well above that. Their own tolerances are
left alone. Tightening them looks safer and is not: at 1e-9 HiGHS was seen to cut off the optimum and to claim a wrong
bound, where a loose row can only lead to an answer that fails its certificate.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, block_diag, csr_array, diags_array, eye_array, hstack, vstack

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, KnapsackDomain
from privsolve.domains.knapsack import NOWHERE
from privsolve.engines.coordinates.minimise import POLL_SECONDS, ProgressCallback
from privsolve.errors import IntegerRangeError, OracleNotCertified, WorkLimitReached
from privsolve.oracles.base import TRUSTED, Oracle, Solution, Solver, SolverUnavailable, check_limits
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, Problem

BELIEVED = 0.25
"""A floating-point bound is believed up to this share of the tolerance; the solver may leave half of it as its gap."""

FLOAT_RANGE = 2.0**38
"""Floating-point solvers are given objectives of at most this many tolerances: fifteen bits of a double to spare."""

BUILT_IN_LIMIT = 2_000
"""Columns, and rows, that the licence inside Gurobi's package allows."""

TOO_LARGE = 10_010
"""Gurobi's error for a model beyond its licence."""

LARGEST_SUMSET = 200_000
"""Above this many different sums the scores nearest to zero are not looked for: the unit itself is the margin."""

LARGEST_REACH = 2_000_000_000
"""Above this much work the range of a score ignores the costs."""


_Terms = tuple[tuple[int, int], ...]  # pairs of a coefficient and a coordinate whose values it multiplies


class Choices(NamedTuple):
    """How the weights are chosen: rows `low <= matrix (w, choices) <= high` over binaries with costs in units."""

    matrix: csr_array
    low: Int64Array
    high: Int64Array
    cost: Int64Array
    constant: int


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
    """Minimise `constant + <cost, x>` (units of `2^-20`) over integers `low <= x <= high`.

    The columns are `x = (weights, choices, patterns)`; the first `dim` are the weights, all others are binary.
    """

    dim: int
    low: Int64Array
    high: Int64Array
    cost: Int64Array
    constant: int
    choices: Choices
    patterns: Patterns

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def rows(self) -> int:
        """Number of rows of `big_m`."""
        return len(self.choices.low) + 2 * len(self.patterns.cost)

    @property
    def largest(self) -> int:
        """An upper bound on the absolute value of any objective, in units."""
        return abs(self.constant) + sum(map(abs, map(int, self.cost)))

    def weights(self, columns: NDArray[np.float64]) -> Int64Array:
        """The weights of a solver's answer, rounded."""
        return np.rint(np.asarray(columns)[: self.dim]).astype(np.int64)

    def big_m(self) -> tuple[csr_array, NDArray[np.float64], NDArray[np.float64]]:
        """All rows as `low <= matrix x <= high` in floating point.

        For a pattern with binary y: `score >= low + (positive - low) y` and `score <= nonpositive + (high -
        nonpositive) y`, with `low` and `high` the range of the score over the domain: no smaller constants are valid.
        A wrong sign violates its row by at least `positive - nonpositive`, which is scaled to 1.
        """
        p, n = self.patterns, len(self.patterns.cost)
        scale = 1.0 / (p.positive - p.nonpositive)
        scores = hstack([diags_array(scale) @ p.features, csr_array((n, len(self.choices.cost)))])
        up = hstack([scores, diags_array((p.low - p.positive) * scale)])
        down = hstack([scores, diags_array((p.nonpositive - p.high) * scale)])
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
    choices, patterns = _choices(domain, perturbation), _patterns(problem)
    values = [domain.values(j) for j in range(domain.dim)]
    binaries = np.ones(len(choices.cost) + len(patterns.cost), dtype=np.int64)
    return Model(
        domain.dim,
        np.concatenate([[v[0] for v in values], 0 * binaries]),
        np.concatenate([[v[-1] for v in values], binaries]),
        np.concatenate([np.zeros(domain.dim, dtype=np.int64), choices.cost, patterns.cost]),
        choices.constant + patterns.constant,
        choices,
        patterns,
    )


def _choices(domain: Domain, perturbation: Perturbation) -> Choices:
    """One binary per value of each coordinate, and one per total cost if a table of totals is needed."""
    knapsack, by_total = perturbation.by_total()
    dim, tables, values, spent = domain.dim, [], [], []
    for j, costs in enumerate(knapsack.costs):
        inside = np.flatnonzero(costs <= knapsack.limit)
        tables.append(perturbation.coordinate[j][inside])
        values.append(domain.values(j)[inside])
        spent.append(costs[inside])
    reached = knapsack.reached
    allowed = np.flatnonzero(knapsack.allowed & reached)
    if len(allowed) == 0:
        raise ValueError("the domain is empty: no vector has an allowed total")
    psi = by_total[allowed]
    without_gaps = reached[allowed[0] : allowed[-1] + 1].sum() == len(allowed)
    one_hot = bool((psi != psi[0]).any()) or not without_gaps

    # for every coordinate: one of its binaries is 1, and the weight is the value that it stands for
    rows: list[list[Any]] = [
        [None, block_diag([np.ones((1, len(v)), dtype=np.int64) for v in values])],
        [eye_array(dim, dtype=np.int64), block_diag([-v[None, :] for v in values])],
    ]
    low = high = [1] * dim + [0] * dim
    total = np.concatenate(spent)[None, :]
    if one_hot:
        ones = np.ones((1, len(allowed)), dtype=np.int64)
        rows = [*([*row, None] for row in rows), [None, None, ones], [None, total, -allowed[None, :]]]
        low = high = [*low, 1, 0]
    elif allowed[0] > 0 or allowed[-1] < sum(int(costs.max()) for costs in spent):
        rows.append([None, total])
        low, high = [*low, int(allowed[0])], [*high, int(allowed[-1])]
    cost = np.concatenate([*(table - table.min() for table in tables), psi - psi.min() if one_hot else psi[:0]])
    constant = sum(int(table.min()) for table in [*tables, psi])
    matrix = csr_array(block_array(rows))
    matrix.eliminate_zeros()
    return Choices(matrix, np.array(low), np.array(high), cost, constant)


def _patterns(problem: Problem) -> Patterns:
    domain = problem.domain
    scores = problem.table.score_features
    divisor = np.maximum(np.gcd.reduce(scores, axis=1), 1)
    rows, first, merged = np.unique(scores // divisor[:, None], axis=0, return_index=True, return_inverse=True)
    if_negative, if_positive = np.zeros((2, len(rows)), dtype=np.int64)
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
    knapsack = domain.knapsack()
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(domain.values(j).tobytes() + c.tobytes(), j) for j, c in enumerate(knapsack.costs)]

    def sums(terms: _Terms) -> tuple[Int64Array, Int64Array] | None:
        """The sums of one multiple per term that are within the limit, each with the least it spends; None if too many."""
        if not terms:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        (coefficient, j), before = terms[-1], of_beginning(terms[:-1])
        if before is None or len(before[0]) * len(domain.values(j)) > LARGEST_SUMSET:
            return None
        total = np.add.outer(before[0], coefficient * domain.values(j)).ravel()
        spent = np.add.outer(before[1], knapsack.costs[j]).ravel()
        order = np.lexsort((spent, total))
        order = order[spent[order] <= knapsack.limit]
        distinct, first = np.unique(total[order], return_index=True)
        return distinct, spent[order][first]

    of_beginning = cache(sums)  # rows share them; those of whole rows would take too much memory

    @cache
    def around_zero(terms: _Terms) -> tuple[int, int]:
        if (listed := sums(terms)) is None:
            return 0, math.gcd(*(coefficient for coefficient, _ in terms))
        return int(listed[0][listed[0] <= 0].max(initial=-NOWHERE)), int(listed[0][listed[0] > 0].min(initial=NOWHERE))

    terms = [tuple(sorted(((int(row[j]), kind[j]) for j in np.flatnonzero(row)), reverse=True)) for row in rows]
    return np.array([around_zero(row) for row in terms], dtype=np.int64).reshape(-1, 2).T


class Outcome(NamedTuple):
    """What a solver found: columns and its lower bound in mistakes, without the model's constant; None for nothing."""

    columns: NDArray[np.float64] | None
    bound: float | None
    nodes: int
    timed_out: bool = False


@dataclass(frozen=True)
class MipOracle(Oracle):
    """A general solver as an oracle. It is trusted for its lower bound, and for nothing else.

    The weights it returns are rounded, their objective is recomputed in integers, and the answer is certified only if
    the solver's bound is within `tolerance` mistakes of that. Every mechanism pays for the tolerance in noise (theory,
    sections 1 and 6). `time_limit` (seconds) ends the search with `WorkLimitReached`.
    """

    tolerance: float = 0.01
    time_limit: float | None = None
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (Problem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (KnapsackDomain,)
    about: ClassVar[Solver]

    def __post_init__(self) -> None:
        if not 1e-4 <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be at least 0.0001 mistakes, got {self.tolerance!r}")
        check_limits(self, "time_limit")

    @property
    def name(self) -> str:
        """The name that goes into the guarantee."""
        return f"{self.about.name} (trusts the solver's bound)"

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """A member within the tolerance of the minimum, by the solver's bound; otherwise an error."""
        began = time.monotonic()
        Oracle.check(self, problem)
        problem.check_perturbation(perturbation)
        model, name = build(problem, perturbation), self.about.name
        if model.largest > FLOAT_RANGE * self.tolerance * UNIT:
            raise IntegerRangeError(
                f"loss and noise are too large for {name} to resolve {self.tolerance:g} mistakes in floating point: nothing "
                "is released; solve the same noise with an oracle that works in integers, such as 'tree'"
            )
        # never zero, which some solvers read as no limit
        left = None if self.time_limit is None else max(self.time_limit - (time.monotonic() - began), 1e-3)
        found, state = self._solve(model, left), "no answer"
        bound = math.inf if found.bound is None else found.bound
        weights = None if found.columns is None else model.weights(found.columns)
        if weights is not None and problem.domain.contains(weights) and abs(bound) < 1e15:
            lower = model.constant + math.floor((bound - BELIEVED * self.tolerance) * UNIT)
            value = problem.objective(weights, perturbation)
            solution = Solution(weights, value, lower, self.tolerance, {"nodes": found.nodes})
            state = f"gap {(value - lower) / UNIT:.6g} (objective {value / UNIT:.6g}, bound {lower / UNIT:.6g})"
            if lower > value:
                raise OracleNotCertified(
                    f"{name} claims a bound above the exact objective of a member, {state}: its arithmetic failed and "
                    "nothing is released; use the tree on the same noise"
                )
            if solution.certified:
                return solution
        if found.timed_out:
            raise WorkLimitReached(
                f"{name} hit its time limit of {self.time_limit:g} s at {state}: nothing is "
                "released; retry with the same noise and a larger limit"
            )
        raise OracleNotCertified(
            f"{name} stopped at {state}, more than its tolerance of {self.tolerance:g} mistakes: nothing is "
            "released; use the tree on the same noise"
        )

    @abstractmethod
    def _solve(self, model: Model, time_limit: float | None) -> Outcome:
        """Run the solver on the model."""


@dataclass(frozen=True)
class HighsOracle(MipOracle):
    """Minimum within the tolerance by HiGHS, as SciPy brings it, trusting its dual bound.

    SciPy's interface has no number of threads and no news of the search. An interrupt is heard at once (SciPy 1.15 or
    later); the search itself then ends with the process or at its time limit.
    """

    about: ClassVar[Solver] = Solver("highs", "MIT", TRUSTED, "part of SciPy")

    def _solve(self, model: Model, time_limit: float | None) -> Outcome:
        from scipy import optimize  # takes a while to import

        matrix, low, high = model.big_m()
        options: dict[str, Any] = {"mip_rel_gap": self.tolerance / 2 / max(model.largest / UNIT, 1.0)}
        if time_limit is not None:
            options["time_limit"] = time_limit
        found: list[Any] = []

        def search() -> None:
            try:
                found.append(
                    optimize.milp(
                        model.cost / UNIT,
                        integrality=np.ones(model.columns),
                        bounds=optimize.Bounds(model.low, model.high),
                        constraints=optimize.LinearConstraint(matrix, low, high),
                        options=options,
                    )
                )
            except Exception as error:
                found.append(error)

        thread = Thread(target=search, daemon=True)  # so that Ctrl-C is heard: SciPy lets other threads run
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
        (result,) = found
        if isinstance(result, Exception):
            raise result
        if result.status not in (0, 1):  # after a failure nothing that it says is used
            return Outcome(None, None, 0)
        return Outcome(result.x, result.mip_dual_bound, int(result.mip_node_count or 0), result.status == 1)


@dataclass(frozen=True)
class GurobiOracle(MipOracle):
    """Minimum within the tolerance by Gurobi, the solver of the paper's experiments, trusting its dual bound.

    The package brings a licence for 2,000 columns and 2,000 rows; with a full licence there is no such limit. `threads` is
    left to Gurobi if None.
    """

    threads: int | None = None
    about: ClassVar[Solver] = Solver(
        "gurobi", "commercial", TRUSTED, "2,000 columns and rows without a full licence", "gurobipy"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limits(self, "threads")

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if Gurobi is missing, has no licence or one too small for the problem."""
        super().check(problem)
        solver, domain = self.about.load(), problem.domain
        largest = Perturbation.zero(domain)
        if not domain.equal_norms:  # a table of norms that is not constant needs the largest model
            largest = Perturbation(domain, largest.coordinate, np.arange(len(domain.norms_sq)))
        model = build(problem, largest)
        with gurobi_environment(solver) as env:
            if max(model.columns, model.rows) > BUILT_IN_LIMIT and gurobi_is_limited(solver, env):
                raise SolverUnavailable(
                    f"the problem has {model.columns:,} columns and {model.rows:,} rows, but Gurobi's built-in licence "
                    f"allows {BUILT_IN_LIMIT:,} of each: install a full licence, or use oracle='tree' or 'highs'"
                )

    def _solve(self, model: Model, time_limit: float | None) -> Outcome:
        solver = self.about.load()
        grb = solver.GRB
        with gurobi_environment(solver) as env, solver.Model(env=env) as program:
            options = {"MIPGapAbs": self.tolerance / 2, "TimeLimit": time_limit, "Threads": self.threads, "MIPGap": 0.0}
            for option, value in options.items():
                if value is not None:
                    program.setParam(option, value)
            columns = program.addMVar(
                model.columns, lb=model.low, ub=model.high, obj=model.cost / UNIT, vtype=grb.INTEGER
            )
            matrix, low, high = model.big_m()
            for chosen, sense, side in ((np.isfinite(low), ">", low), (np.isfinite(high) & (low < high), "<", high)):
                equal = np.where(low[chosen] == high[chosen], "=", sense)
                program.addMConstr(matrix[chosen], columns, equal, side[chosen])
            program.optimize()
            if program.Status == grb.INTERRUPTED:
                raise KeyboardInterrupt
            if program.Status not in (grb.OPTIMAL, grb.TIME_LIMIT):
                return Outcome(None, None, 0)
            found = columns.X if program.SolCount else None
            return Outcome(found, program.ObjBound, int(program.NodeCount), program.Status == grb.TIME_LIMIT)


@contextmanager
def gurobi_environment(solver: ModuleType) -> Iterator[Any]:
    """A silent environment; a refused licence is an error that says so."""
    env = solver.Env(empty=True)
    try:
        env.setParam("OutputFlag", 0)
        env.start()
    except solver.GurobiError as error:
        raise SolverUnavailable(f"Gurobi refuses its licence ({error}): renew it, or use oracle='tree'") from error
    try:
        yield env
    finally:
        env.dispose()


def gurobi_is_limited(solver: ModuleType, env: Any) -> bool:
    """Whether the licence refuses one column more than the built-in one allows."""
    with solver.Model(env=env) as probe:
        probe.addMVar(BUILT_IN_LIMIT + 1)
        try:
            probe.optimize()
        except solver.GurobiError as error:
            if error.errno == TOO_LARGE:
                return True
            raise
    return False
