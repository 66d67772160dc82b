"""The integer program of a problem in exact integers (theory, section 8).

Columns: the weights `w_j`; one binary per value of each weight (one-hot), or per point of a list; one binary per total
cost where ψ or the domain needs a table; one binary per distinct pattern, which says whether its score is
positive. Solvers that work in floating point read the rows of `Model.big_m`, integer solvers the implications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack, vstack

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, FiniteSet, Knapsack
from privsolve.domains.knapsack import NOWHERE
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import Problem

LARGEST_SUMSET = 200_000
"""Above this many different sums the scores nearest to zero are not looked for: the unit itself is the margin."""

LARGEST_REACH = 2_000_000_000
"""Above this much work the range of a score ignores the costs."""


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
    def first_pattern(self) -> int:
        """Column of the first pattern."""
        return self.columns - len(self.patterns.cost)

    @property
    def rows(self) -> int:
        """Number of rows of `big_m`."""
        return len(self.choices.low) + 2 * len(self.patterns.cost)

    @property
    def largest(self) -> int:
        """An upper bound on the absolute value of any objective, in units."""
        return abs(self.constant) + sum(map(abs, map(int, self.cost)))

    @property
    def trivial_bound(self) -> int:
        """A lower bound that needs no solver, in units."""
        return self.constant + int(np.minimum(self.cost, 0).sum())

    def weights(self, columns: NDArray[np.float64]) -> Int64Array:
        """The weights of a solver's answer, rounded."""
        return np.rint(np.asarray(columns)[: self.dim]).astype(np.int64)

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
    choices = _of_list(domain, perturbation) if isinstance(domain, FiniteSet) else _of_product(domain, perturbation)
    patterns = _patterns(problem)
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


def first_member(domain: Domain, perturbation: Perturbation) -> Int64Array:
    """The member with the smallest perturbation, from which solvers start."""
    if isinstance(domain, FiniteSet):
        return np.array(domain.points[np.argmin(perturbation.of_members(domain.points))])
    knapsack, by_total = perturbation.by_total()
    chosen = knapsack.cheapest(lambda j: perturbation.coordinate[j], by_total)
    return np.array([domain.values(j)[x] for j, x in enumerate(chosen)])


# --- choosing the weights ---------------------------------------------------------------------------------------------


def _of_list(domain: FiniteSet, perturbation: Perturbation) -> Choices:
    """One binary per point."""
    points = domain.points
    cost = perturbation.of_members(points)
    constant = int(cost.min())
    pick = np.concatenate([np.zeros(domain.dim, dtype=np.int64), np.ones(len(points), dtype=np.int64)])
    link = np.concatenate([np.eye(domain.dim, dtype=np.int64), -points.T], axis=1)
    rhs = np.concatenate([[1], np.zeros(domain.dim, dtype=np.int64)])
    matrix = csr_array(np.vstack([pick, link]))
    return Choices(matrix, rhs, rhs, cost - constant, constant, lambda w: (points == w).all(axis=1).astype(np.int64))


class _Row(NamedTuple):
    """A row of an integer matrix with its bounds."""

    columns: Sequence[int]
    values: Sequence[int]
    low: int
    high: int


def _of_product(domain: Domain, perturbation: Perturbation) -> Choices:
    """One binary per value of each coordinate, and one per total cost if a table of totals is needed."""
    knapsack, by_total = perturbation.by_total()
    dim, rows, starts = domain.dim, [], [0]
    tables, values, spent = [], [], []
    for j in range(dim):
        inside = np.flatnonzero(knapsack.costs[j] <= knapsack.limit)
        tables.append(perturbation.coordinate[j][inside])
        values.append(domain.values(j)[inside])
        spent += knapsack.costs[j][inside].tolist()
        columns = range(dim + starts[-1], dim + starts[-1] + len(inside))
        rows.append(_Row(columns, [1] * len(inside), 1, 1))
        rows.append(_Row([j, *columns], [1, *(-values[j]).tolist()], 0, 0))
        starts.append(starts[-1] + len(inside))

    spending = range(dim, dim + starts[-1])
    reached = knapsack.reached
    allowed = np.flatnonzero(knapsack.allowed & reached)
    if len(allowed) == 0:
        raise ValueError("the domain is empty: no vector has an allowed total")
    psi = by_total[allowed]
    without_gaps = reached[allowed[0] : allowed[-1] + 1].sum() == len(allowed)
    one_hot = bool((psi != psi[0]).any()) or not without_gaps
    if one_hot:
        columns = range(spending.stop, spending.stop + len(allowed))
        rows.append(_Row(columns, [1] * len(allowed), 1, 1))
        rows.append(_Row([*spending, *columns], [*spent, *(-allowed).tolist()], 0, 0))
    elif allowed[0] > 0 or allowed[-1] < sum(int(c[c <= knapsack.limit].max()) for c in knapsack.costs):
        rows.append(_Row(spending, spent, int(allowed[0]), int(allowed[-1])))
    cost = np.concatenate([*(table - table.min() for table in tables), psi - psi.min() if one_hot else psi[:0]])
    constant = sum(int(table.min()) for table in [*tables, psi])

    def encode(weights: Int64Array) -> Int64Array:
        chosen = np.zeros(len(cost), dtype=np.int64)
        at = [start + int(np.searchsorted(v, w)) for start, v, w in zip(starts, values, weights, strict=False)]
        chosen[at] = 1
        if one_hot:
            chosen[starts[-1] + np.searchsorted(allowed, sum(spent[k] for k in at))] = 1
        return chosen

    low, high = (np.array(ends, dtype=np.int64) for ends in zip(*((row.low, row.high) for row in rows), strict=True))
    return Choices(_sparse(rows, dim + len(cost)), low, high, cost, constant, encode)


def _sparse(rows: Sequence[_Row], width: int) -> csr_array:
    data = np.concatenate([np.asarray(row.values, dtype=np.int64) for row in rows])
    ends = np.cumsum([0, *(len(row.columns) for row in rows)])
    matrix = csr_array((data, np.concatenate([row.columns for row in rows]), ends), shape=(len(rows), width))
    matrix.eliminate_zeros()
    return matrix


# --- the signs of the scores ------------------------------------------------------------------------------------------


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
