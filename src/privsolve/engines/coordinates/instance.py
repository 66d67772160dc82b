"""A problem laid out for the tree: columns in branching order, and rows that merge as columns are fixed.

Columns are fixed one by one in a static order. Once the columns before level `k` are fixed, two rows that agree on
the columns from `k` on differ only by the score they have already collected. So rows are merged into *groups* by
what they still have to see, and a group is a table: its cost as a function of the score its free columns will add.
Fixing a column shifts the tables of the groups that have it and adds up those that have become equal; a problem of
thousands of rows is a few dozen short tables a few levels down.

That needs scores on a coarse grid. Columns with many different values (hours per week) are fixed first, row by row
(the *row levels*); the others (indicators) follow, group by group (the *table levels*).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import helper
from privsolve.data.patterns import PatternTable
from privsolve.domains import Domain, Knapsack
from privsolve.engines.coordinates.totals import group_reach, row_reach
from privsolve.engines.semirings import INFINITE_COST
from privsolve.errors import WorkLimitReached
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import Problem

INFEASIBLE = INFINITE_COST

WIDEST_TABLE = 512
LARGEST_TABLES = 16_000_000
LARGEST_REACH = 100_000_000


class Scale(NamedTuple):
    """Which scores fall on which entry of the loss: `unit` is one point, `first` the points of the first entry.

    A single step at 0 (0/1 loss) has None instead: compiled code is then made for that case, without divisions and loops.
    """

    unit: int
    first: int
    entries: int


@helper
def threshold(scale, e):  # type: ignore[no-untyped-def]
    """Entry `e` and later ones are for scores above this."""
    if scale is None:
        return 0
    return (scale.first + e - 1) * scale.unit


@helper
def entry(scale, score):  # type: ignore[no-untyped-def]
    """The entry of the loss that a score falls on."""
    if scale is None:
        return np.int64(score > 0)
    return min(max(-(-score // scale.unit) - scale.first, 0), scale.entries - 1)


class Layout(NamedTuple):
    """Arrays of one problem, in branching order. Level `k` means that columns `0..k-1` are fixed.

    Columns: `n_values[j]`, `values[j, x]`, `costs[j, x]` (budget), `tables[j, x]` (perturbation, units),
    `total_table[t]` (perturbation of the total cost `t`, INFEASIBLE where `t` is not allowed), `completable[k, t]` (can
    columns from k on be chosen so that the total is allowed, `t` being spent before?).
    Rows (levels `0..row_levels-1`): `rows[i, j]` integer scores, `row_costs[e, i]` the cost where the score falls on
    entry e of the loss (by `scale`), `row_first[k, i]` the first free column that row i has (or -1),
    `row_low/row_high[k, i, b]` the range of the score that the columns from k on can add with budget b.
    Groups (levels `row_levels..dim`), indexed by level minus `row_levels`: `n_groups[l]` and `merged[l, g]`, the
    group's index one level deeper. Groups are sorted into *runs* that behave alike: groups `run_start[l, r]..run_start[l, r+1]`
    have the first free column `run_first[l, r]` (-1: none, the groups are decided), the feature `run_step[l, r]` there,
    in steps of the grid, and the same reach: `reach_low/reach_high[run_rest[l, r], b]` is the range, in steps, of what
    their later columns can add with budget b. `span_low/span_high[l, b]` is the widest such
    range over the level, first columns included. `group_of[i]` is the group of row i at the first table level,
    `row_rest[i]` its reach after its first column, `grid` the score of one step, `offset` the table index of step 0.
    From level `exact_from` on every row has at most one free column, so the bound is the optimum of the node.
    """

    order: Int64Array
    n_values: Int64Array
    values: Int64Array
    costs: Int64Array
    tables: Int64Array
    total_table: Int64Array
    completable: NDArray[np.bool_]
    rows: Int64Array
    scale: Scale | None
    row_costs: Int64Array
    row_levels: int
    row_first: Int64Array
    row_low: Int64Array
    row_high: Int64Array
    group_of: Int64Array
    row_rest: Int64Array
    n_groups: Int64Array
    merged: Int64Array
    n_runs: Int64Array
    run_start: Int64Array
    run_first: Int64Array
    run_step: Int64Array
    run_rest: Int64Array
    reach_low: Int64Array
    reach_high: Int64Array
    span_low: Int64Array
    span_high: Int64Array
    grid: int
    offset: int
    width: int
    exact_from: int


def lay_out(problem: Problem, perturbation: Perturbation) -> Layout:
    """The problem as the tree sees it. Work and memory limits are checked here, before any search."""
    domain = problem.domain
    knapsack, by_total = perturbation.by_total()
    scores = np.where(_movable(domain), problem.table.score_features, 0)
    if problem.costs.size > LARGEST_REACH:
        raise WorkLimitReached(
            f"{len(scores):,} distinct rows and a loss of {problem.costs.shape[1]:,} entries are too large for the tree: bin "
            "the numeric columns or use a loss with fewer scores"
        )
    records = problem.costs.sum(axis=1)
    values = [domain.values(j) for j in range(domain.dim)]
    table_columns = _grid_columns(problem.table, scores, values, knapsack)
    order = _branching_order(scores, values, records, table_columns)
    row_levels = domain.dim - len(table_columns)

    ordered_scores = np.ascontiguousarray(scores[:, order])
    n_values = np.array([len(values[j]) for j in order])
    padded_values = _padded([values[j] for j in order], 0)
    knapsack = knapsack.ordered(order)
    padded_costs = _padded(list(knapsack.costs), knapsack.limit + 1)
    padded_tables = _padded([perturbation.coordinate[j] for j in order], INFEASIBLE)
    if not knapsack.completable[0, 0]:
        raise ValueError("the domain is empty: no vector has an allowed total")

    grid = _grid_step(ordered_scores[:, row_levels:])
    groups = _group_levels(ordered_scores[:, row_levels:] // grid, row_levels)
    _check_reach_size(row_levels, len(scores), int(groups.n_groups.sum()), knapsack.limit)
    low, high = group_reach(
        groups.n_groups,
        groups.feature,
        groups.merged,
        n_values[row_levels:],
        padded_values[row_levels:],
        padded_costs[row_levels:],
        knapsack.limit,
    )
    row_low, row_high = row_reach(
        ordered_scores,
        row_levels,
        n_values,
        padded_values,
        padded_costs,
        low[groups.group_of],
        high[groups.group_of],
        grid,
    )
    lowest, highest = min(0, int(low.min())), max(0, int(high.max()))
    level_start = np.concatenate([[0], np.cumsum(groups.n_groups)[:-1]])
    runs = _sort_into_runs(groups, _classes(low, high))
    return Layout(
        order=order,
        n_values=n_values,
        values=padded_values,
        costs=padded_costs,
        tables=padded_tables,
        total_table=np.where(knapsack.allowed, by_total, INFEASIBLE),
        completable=knapsack.completable,
        rows=ordered_scores,
        scale=_scale(problem),
        row_costs=np.ascontiguousarray(problem.costs.T),
        row_levels=row_levels,
        row_first=_first_columns(ordered_scores, row_levels),
        row_low=row_low,
        row_high=row_high,
        group_of=runs.group_of,
        row_rest=runs.row_rest,
        n_groups=groups.n_groups,
        merged=runs.merged,
        n_runs=runs.n_runs,
        run_start=runs.start,
        run_first=runs.first,
        run_step=runs.step,
        run_rest=runs.rest,
        reach_low=low[runs.representative],
        reach_high=high[runs.representative],
        span_low=np.minimum(np.minimum.reduceat(low, level_start, axis=0), 0),
        span_high=np.maximum(np.maximum.reduceat(high, level_start, axis=0), 0),
        grid=grid,
        offset=-lowest,
        width=highest - lowest + 1,
        exact_from=_exact_from(ordered_scores),
    )


def _scale(problem: Problem) -> Scale | None:
    return None if problem.loss.is_step else Scale(problem.table.unit, problem.loss.first, problem.costs.shape[1])


def perturbed(layout: Layout, perturbation: Perturbation) -> Layout:
    """The same layout under another perturbation of the kind it was made for: with a table of norms, or without one."""
    knapsack, by_total = perturbation.by_total()
    if len(by_total) != len(layout.total_table):
        raise ValueError("the layout was made for a perturbation of another kind: lay the problem out again")
    return layout._replace(
        tables=_padded([perturbation.coordinate[j] for j in layout.order], INFEASIBLE),
        total_table=np.where(knapsack.allowed, by_total, INFEASIBLE),
    )


def weights_of(inst: Layout, indices: Int64Array) -> Int64Array:
    """The vector whose columns, in branching order, take their values number `indices`."""
    weights = np.empty(len(inst.order), dtype=np.int64)
    weights[inst.order] = inst.values[np.arange(len(inst.order)), indices]
    return weights


def _movable(domain: Domain) -> NDArray[np.bool_]:
    """Columns whose weight can be anything but zero; the others never touch a score."""
    return np.array([bool(np.any(domain.values(j))) for j in range(domain.dim)])


def _grid_columns(table: PatternTable, scores: Int64Array, values: list[Int64Array], knapsack: Knapsack) -> list[int]:
    """Columns that fit on one coarse grid together.

    Where the table declares its ranges, how wide a grid would be is known without looking at the records; only the number
    of distinct rows, which decides whether the tables fit into memory, is theirs.
    """
    if table.ranges is not None:
        factors = [table.unit // scale for scale in table.scales]
        ends = [(low * f, high * f) for (low, high), f in zip(table.ranges, factors, strict=True)]
        widths: _Declared | _Observed = _Declared(ends, factors, values, knapsack)
    else:
        widths = _Observed(scores, values, knapsack)
    chosen: list[int] = []
    kinds = np.zeros(len(scores), dtype=np.int64)
    for j in widths.order:
        width = widths.with_column(j)
        refined = _refine(kinds, scores[:, j])[0]
        if width <= WIDEST_TABLE and width * (int(refined.max()) + 1) <= LARGEST_TABLES:
            chosen, kinds = [*chosen, j], refined
            widths.accept(j)
    return chosen


class _Declared:
    """Widths of grids from declared ranges: what the columns can add to a score within the budget, in public steps."""

    def __init__(
        self, ends: list[tuple[int, int]], steps: list[int], values: list[Int64Array], knapsack: Knapsack
    ) -> None:
        self._ends, self._steps, self._values, self._knapsack = ends, steps, values, knapsack
        self._low = np.zeros(knapsack.limit + 1, dtype=np.int64)
        self._high, self._step = self._low, 0
        size = [(high - low) // step for (low, high), step in zip(ends, steps, strict=True)]
        self.order = sorted(range(len(ends)), key=lambda j: (size[j], j))

    def with_column(self, j: int) -> int:
        low, high = self._extended(j)
        reach = int(high.max()) - int(low.min())
        return reach // math.gcd(self._step, self._steps[j]) + 1

    def accept(self, j: int) -> None:
        self._low, self._high = self._extended(j)
        self._step = math.gcd(self._step, self._steps[j])

    def _extended(self, j: int) -> tuple[Int64Array, Int64Array]:
        """The least and most that the columns so far and column j can add, by what of the budget they may use."""
        least, most = self._low.copy(), self._high.copy()
        for value, cost in zip(self._values[j].tolist(), self._knapsack.costs[j].tolist(), strict=True):
            added = [value * end for end in self._ends[j]]
            if cost <= self._knapsack.limit:
                rest = len(least) - cost
                least[cost:] = np.minimum(least[cost:], self._low[:rest] + min(added))
                most[cost:] = np.maximum(most[cost:], self._high[:rest] + max(added))
        return least, most


class _Observed:
    """Widths of grids where nothing is declared, from the scores themselves: the layout then depends on the records."""

    def __init__(self, scores: Int64Array, values: list[Int64Array], knapsack: Knapsack) -> None:
        self._scores = scores
        self._largest = [
            _largest_step(scores[:, j], values[j], knapsack.costs[j], knapsack.limit) for j in range(len(values))
        ]
        self._chosen: list[int] = []
        self._at_once = np.zeros(len(scores), dtype=np.int64)
        self.order = sorted(range(len(values)), key=lambda j: (len(np.unique(scores[:, j])), j))

    def with_column(self, j: int) -> int:
        largest = [self._largest[i] for i in (*self._chosen, j)]
        at_once = self._at_once + (self._scores[:, j] != 0)
        reach = min(sum(largest), int(at_once.max()) * max(largest))
        return 2 * reach // _grid_step(self._scores[:, [*self._chosen, j]]) + 1

    def accept(self, j: int) -> None:
        self._chosen.append(j)
        self._at_once = self._at_once + (self._scores[:, j] != 0)


def _refine(kinds: Int64Array, column: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Split kinds of rows by one more column; also the first row of every new kind."""
    _, rank = np.unique(column, return_inverse=True)
    _, first, refined = np.unique(kinds * len(column) + rank, return_index=True, return_inverse=True)
    return refined.astype(np.int64), first.astype(np.int64)


def _largest_step(column: Int64Array, values: Int64Array, costs: Int64Array, limit: int) -> int:
    return int(np.abs(column).max(initial=0)) * int(np.abs(values[costs <= limit]).max(initial=0))


def _grid_step(scores: Int64Array) -> int:
    return max(1, int(np.gcd.reduce(np.abs(scores), axis=None))) if scores.size else 1


def _branching_order(
    scores: Int64Array, values: list[Int64Array], records: Int64Array, table_columns: list[int]
) -> Int64Array:
    """Row-level columns first, then the columns that move the most records, last a set that excludes each other.

    No row has two columns of the last set, so a node that has fixed all the others is solved by its bound.
    """
    moved = np.abs(scores).astype(np.float64).T @ records
    weight = np.array([moved[j] * np.abs(v).max() for j, v in enumerate(values)])
    in_table = np.isin(np.arange(len(values)), table_columns)
    last = np.isin(np.arange(len(values)), _exclusive_columns(scores != 0, records, table_columns))
    return np.lexsort((np.arange(len(values)), -weight, last, in_table)).astype(np.int64)


def _exclusive_columns(present: NDArray[np.bool_], records: Int64Array, columns: list[int]) -> list[int]:
    """Columns of which no row has two, found greedily from each column and scored by the branching they save."""
    indicator = present.astype(np.float64)  # floats multiply fast, and counts of records are exact in them
    together = indicator.T @ indicator
    count = indicator.T @ records
    by_count = sorted(columns, key=lambda j: (-float(count[j]), j))
    best: list[int] = []
    for seed in columns:
        chosen = [seed]
        for j in by_count:
            if j not in chosen and all(together[j, i] == 0 for i in chosen):
                chosen.append(j)
        if np.sqrt(count[chosen]).sum() > np.sqrt(count[best]).sum():
            best = chosen
    return best


def _padded(arrays: list[Int64Array], filler: int) -> Int64Array:
    result = np.full((len(arrays), max(len(a) for a in arrays)), filler, dtype=np.int64)
    for row, array in zip(result, arrays, strict=True):
        row[: len(array)] = array
    return result


def _first_columns(scores: Int64Array, row_levels: int) -> Int64Array:
    """`first[k, i]`: the first column from `k` on where row i is non-zero, or -1."""
    dim = scores.shape[1]
    first = np.full((row_levels + 1, len(scores)), -1, dtype=np.int64)
    for k in range(row_levels + 1):
        free = scores[:, k:] != 0
        if k < dim:
            first[k] = np.where(free.any(axis=1), k + free.argmax(axis=1), -1)
    return first


def _exact_from(scores: Int64Array) -> int:
    free_after = np.cumsum((scores != 0)[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    several = np.flatnonzero(free_after > 1)
    return int(several[-1]) + 1 if len(several) else 0


class _Groups(NamedTuple):
    n_groups: Int64Array
    feature: Int64Array
    merged: Int64Array
    first: Int64Array
    first_step: Int64Array
    rest: Int64Array
    group_of: Int64Array


def _group_levels(steps: Int64Array, row_levels: int) -> _Groups:
    """Distinct rests of the rows at every table level, from the last column back to the first."""
    columns = steps.shape[1]
    of_row = [np.zeros(len(steps), dtype=np.int64)]
    first_row = [np.zeros(1, dtype=np.int64)]
    for level in range(columns - 1, -1, -1):
        kinds, representative = _refine(of_row[0], steps[:, level])
        of_row.insert(0, kinds)
        first_row.insert(0, representative)
    n_groups = np.array([len(r) for r in first_row])
    start = np.concatenate([[0], np.cumsum(n_groups)])
    shape = (columns + 1, int(n_groups.max()))
    feature, merged, first_step, rest = (np.zeros(shape, dtype=np.int64) for _ in range(4))
    first = np.full(shape, -1, dtype=np.int64)
    rest[columns, 0] = start[columns]
    for level in range(columns - 1, -1, -1):
        rows, here = first_row[level], np.arange(n_groups[level])
        deeper = of_row[level + 1][rows]
        has = steps[rows, level] != 0
        feature[level, here] = steps[rows, level]
        merged[level, here] = deeper
        first[level, here] = np.where(has, level + row_levels, first[level + 1, deeper])
        first_step[level, here] = np.where(has, steps[rows, level], first_step[level + 1, deeper])
        rest[level, here] = np.where(has, start[level + 1] + deeper, rest[level + 1, deeper])
    return _Groups(n_groups, feature, merged, first, first_step, rest, of_row[0])


class _Classes(NamedTuple):
    of: Int64Array
    representative: Int64Array


def _classes(low: Int64Array, high: Int64Array) -> _Classes:
    """Which groups have equal reach tables: a class number for each, and one group of every class."""
    mix = np.random.default_rng(0).integers(1, 2**62, size=(2, low.shape[1]), dtype=np.int64) | 1
    with np.errstate(over="ignore"):
        hashed = (low * mix[0] + high * mix[1]).sum(axis=1)
    _, representative, of = np.unique(hashed, return_index=True, return_inverse=True)
    same = (low == low[representative[of]]).all() and (high == high[representative[of]]).all()
    if not same:  # a hash collision: compare the tables themselves
        both = np.concatenate([low, high], axis=1)
        _, representative, of = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return _Classes(of.reshape(-1), representative)


class _Runs(NamedTuple):
    group_of: Int64Array
    row_rest: Int64Array
    merged: Int64Array
    n_runs: Int64Array
    start: Int64Array
    first: Int64Array
    step: Int64Array
    rest: Int64Array
    representative: Int64Array


def _sort_into_runs(groups: _Groups, classes: _Classes) -> _Runs:
    """Renumber the groups of every level so that those which behave alike stand together."""
    levels, most = groups.first.shape
    rank = np.zeros((levels, most), dtype=np.int64)
    merged = np.zeros((levels, most), dtype=np.int64)
    n_runs = np.zeros(levels, dtype=np.int64)
    start = np.zeros((levels, most + 1), dtype=np.int64)
    first, step, rest = (np.zeros((levels, most), dtype=np.int64) for _ in range(3))
    for level in range(levels - 1, -1, -1):
        n = int(groups.n_groups[level])
        keys = np.stack([groups.first[level, :n], groups.first_step[level, :n], classes.of[groups.rest[level, :n]]])
        deeper = rank[level + 1, groups.merged[level, :n]] if level + 1 < levels else np.zeros(n, dtype=np.int64)
        order = np.lexsort((deeper, keys[2], keys[1], keys[0]))
        rank[level, order] = np.arange(n)
        merged[level, :n] = deeper[order]
        keys = keys[:, order]
        begins = np.flatnonzero(np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)]))
        count = n_runs[level] = len(begins)
        start[level, :count], start[level, count] = begins, n
        first[level, :count], step[level, :count], rest[level, :count] = keys[:, begins]
    row_rest = classes.of[groups.rest[0, groups.group_of]]
    return _Runs(rank[0, groups.group_of], row_rest, merged, n_runs, start, first, step, rest, classes.representative)


def _check_reach_size(row_levels: int, rows: int, groups: int, limit: int) -> None:
    if ((row_levels + 1) * rows + groups) * (limit + 1) > LARGEST_REACH:
        raise WorkLimitReached(
            f"{rows:,} distinct rows with {row_levels} numeric columns and total costs of up to {limit} are too large for the "
            "tree: bin the numeric columns or use a domain with a smaller radius"
        )
