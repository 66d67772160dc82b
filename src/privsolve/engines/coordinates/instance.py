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
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.data.patterns import PatternTable
from privsolve.domains import Knapsack
from privsolve.engines.semirings import INFINITE_COST
from privsolve.errors import WorkLimitReached
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import Problem

INFEASIBLE = INFINITE_COST

WIDEST_TABLE = 512
LARGEST_TABLES = 16_000_000
LARGEST_REACH = 100_000_000


class Layout(NamedTuple):
    """Arrays of one problem, in branching order. Level `k` means that columns `0..k-1` are fixed.

    Columns: `n_values[j]`, `values[j, x]`, `costs[j, x]` (budget), `tables[j, x]` (perturbation, units),
    `total_table[t]` (perturbation of the total cost `t`, INFEASIBLE where `t` is not allowed), `completable[k, t]` (can
    columns from k on be chosen so that the total is allowed, `t` being spent before?).
    Rows (levels `0..row_levels-1`): `rows[i, j]` integer scores, `row_costs[0, i]` what the row costs
    where its score is at most 0 and `row_costs[1, i]` above it, `row_first[k, i]` the first free column that it has (or -1),
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
    values = [domain.values(j) for j in range(domain.dim)]
    movable = [bool(np.any(v)) for v in values]  # the others never touch a score
    scores = np.where(movable, problem.table.score_features, 0)
    table_columns = _grid_columns(problem.table, scores, values, knapsack)
    order = _branching_order(scores, values, problem.costs.sum(axis=1), table_columns)
    row_levels = domain.dim - len(table_columns)
    knapsack, values = knapsack.ordered(order), [values[j] for j in order]
    scores = np.ascontiguousarray(scores[:, order])
    if not knapsack.completable[0, 0]:
        raise ValueError("the domain is empty: no vector has an allowed total")

    grid = _grid_step(scores[:, row_levels:])
    levels, group_of = _group_levels(scores[:, row_levels:] // grid, row_levels)
    cells = ((row_levels + 1) * len(scores) + sum(len(level.merged) for level in levels)) * (knapsack.limit + 1)
    totals = f"total costs of up to {knapsack.limit}"
    _check_size(cells, scores, f"{row_levels} numeric columns and {totals}", "a domain with a smaller radius")
    rows, reach = _reaches(values, knapsack, scores, levels, group_of, row_levels, grid)
    low, high = (np.concatenate([getattr(level, name) for level in reach]) for name in ("low", "high"))
    lowest, highest = min(0, int(low.min())), max(0, int(high.max()))
    of, representative = _classes(low, high)
    runs, rank = _sort_into_runs(levels, of)
    return Layout(
        order=order,
        n_values=np.array([len(v) for v in values]),
        values=_padded(values, 0),
        costs=_padded(knapsack.costs, knapsack.limit + 1),
        tables=_padded([perturbation.coordinate[j] for j in order], INFEASIBLE),
        total_table=np.where(knapsack.allowed, by_total, INFEASIBLE),
        completable=knapsack.completable,
        rows=scores,
        row_costs=np.ascontiguousarray(problem.costs.T),
        row_levels=row_levels,
        row_first=_first_columns(scores, row_levels),
        row_low=np.stack([level.low for level in rows]),
        row_high=np.stack([level.high for level in rows]),
        group_of=rank[group_of],
        row_rest=of[levels[0].rest[group_of]],
        n_groups=np.array([len(level.merged) for level in levels]),
        merged=_padded([run.merged for run in runs], 0),
        n_runs=np.array([len(run.first) for run in runs]),
        run_start=_padded([run.start for run in runs], 0),
        run_first=_padded([run.first for run in runs], 0),
        run_step=_padded([run.step for run in runs], 0),
        run_rest=_padded([run.rest for run in runs], 0),
        reach_low=low[representative],
        reach_high=high[representative],
        span_low=np.stack([np.minimum(level.low.min(axis=0), 0) for level in reach]),
        span_high=np.stack([np.maximum(level.high.max(axis=0), 0) for level in reach]),
        grid=grid,
        offset=-lowest,
        width=highest - lowest + 1,
        exact_from=_exact_from(scores),
    )


def _check_size(cells: int, scores: Int64Array, what: str, remedy: str) -> None:
    if cells > LARGEST_REACH:
        raise WorkLimitReached(
            f"{len(scores):,} distinct rows with {what} are too large for the tree: bin the numeric columns or use {remedy}"
        )


def _reaches(
    values: list[Int64Array],
    knapsack: Knapsack,
    scores: Int64Array,
    levels: list[_Level],
    group_of: Int64Array,
    row_levels: int,
    grid: int,
) -> tuple[list[Reach], list[Reach]]:
    """What the columns from every level on can add to a score: for the rows, and for the groups that rows merge to."""
    columns = list(zip(values, knapsack.costs, strict=True))
    groups = [Reach.nothing(1, knapsack.limit)]
    for level, column in zip(levels[-2::-1], columns[: -len(levels) : -1], strict=True):
        groups.insert(0, groups[0].of(level.merged).extended((level.feature, level.feature), *column))
    rows = [Reach(groups[0].low[group_of] * grid, groups[0].high[group_of] * grid)]
    for k in range(row_levels - 1, -1, -1):
        rows.insert(0, rows[0].extended((scores[:, k], scores[:, k]), *columns[k]))
    return rows, groups


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


class Reach(NamedTuple):
    """What some columns can add to a score with every budget, at least and at most: one row per kind of record."""

    low: Int64Array
    high: Int64Array

    @classmethod
    def nothing(cls, rows: int, limit: int) -> Reach:
        """Without any columns."""
        return cls(*np.zeros((2, rows, limit + 1), dtype=np.int64))

    def of(self, rows: Int64Array) -> Reach:
        """The rows of these numbers."""
        return Reach(self.low[rows], self.high[rows])

    def extended(self, ends: tuple[Int64Array, Int64Array], values: Int64Array, costs: Int64Array) -> Reach:
        """With one more column, whose feature lies between `ends`; some value of it costs nothing."""
        least, most = np.full_like(self.low, INFEASIBLE), np.full_like(self.high, -INFEASIBLE)
        for value, cost in zip(values.tolist(), costs.tolist(), strict=True):
            if (rest := least.shape[1] - cost) > 0:
                below, above = (value * end[:, None] for end in (ends if value >= 0 else ends[::-1]))
                np.minimum(least[:, cost:], self.low[:, :rest] + below, out=least[:, cost:])
                np.maximum(most[:, cost:], self.high[:, :rest] + above, out=most[:, cost:])
        return Reach(least, most)


def _grid_columns(table: PatternTable, scores: Int64Array, values: list[Int64Array], knapsack: Knapsack) -> list[int]:
    """Columns that fit on one coarse grid together.

    Where the table declares its ranges, how wide a grid would be is known without looking at the records; only the number
    of distinct rows, which decides whether the tables fit into memory, is theirs. Otherwise the ranges are those of the rows.
    """
    if table.ranges is not None:
        steps = [table.unit // scale for scale in table.scales]
        ends = [(low * step, high * step) for (low, high), step in zip(table.ranges, steps, strict=True)]
    else:
        steps = [_grid_step(column) for column in scores.T]
        ends = [(min(0, int(column.min())), max(0, int(column.max()))) for column in scores.T]
    reach, step = Reach.nothing(1, knapsack.limit), 0
    chosen: list[int] = []
    kinds = np.zeros(len(scores), dtype=np.int64)
    for j in sorted(range(len(ends)), key=lambda j: ((ends[j][1] - ends[j][0]) // steps[j], j)):
        low, high = (np.array([end]) for end in ends[j])
        wider, finer = reach.extended((low, high), values[j], knapsack.costs[j]), math.gcd(step, steps[j])
        width = (int(wider.high.max()) - int(wider.low.min())) // finer + 1
        refined = _refine(kinds, scores[:, j])[0]
        if width <= WIDEST_TABLE and width * (int(refined.max()) + 1) <= LARGEST_TABLES:
            chosen, kinds, reach, step = [*chosen, j], refined, wider, finer
    return chosen


def _refine(kinds: Int64Array, column: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Split kinds of rows by one more column; also the first row of every new kind."""
    _, rank = np.unique(column, return_inverse=True)
    _, first, refined = np.unique(kinds * len(column) + rank, return_index=True, return_inverse=True)
    return refined.astype(np.int64), first.astype(np.int64)


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


def _padded(arrays: Sequence[Int64Array], filler: int) -> Int64Array:
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


class _Level(NamedTuple):
    """The groups of one table level: what they become one level deeper, and the feature there.

    `first` is the first column that they have (-1: none) and `step` the feature there; `rest` numbers, over all levels, the
    group that they are after it.
    """

    merged: Int64Array
    feature: Int64Array
    first: Int64Array
    step: Int64Array
    rest: Int64Array


def _group_levels(steps: Int64Array, row_levels: int) -> tuple[list[_Level], Int64Array]:
    """Distinct rests of the rows at every table level, and the group of every row at the first one."""
    columns, nothing = steps.shape[1], np.zeros(1, dtype=np.int64)
    of_row, first_row = [np.zeros(len(steps), dtype=np.int64)], [nothing]
    for level in range(columns - 1, -1, -1):
        kinds, representative = _refine(of_row[0], steps[:, level])
        of_row.insert(0, kinds)
        first_row.insert(0, representative)
    start = np.cumsum([0, *(len(rows) for rows in first_row)])
    levels = [_Level(nothing, nothing, nothing - 1, nothing, nothing + start[columns])]
    for level in range(columns - 1, -1, -1):
        feature, merged, below = steps[first_row[level], level], of_row[level + 1][first_row[level]], levels[0]
        first, step, rest = below.first[merged], below.step[merged], below.rest[merged]
        has = feature != 0
        first[has], step[has], rest[has] = level + row_levels, feature[has], start[level + 1] + merged[has]
        levels.insert(0, _Level(merged, feature, first, step, rest))
    return levels, of_row[0]


def _classes(low: Int64Array, high: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Which groups have equal reach: a class number for each, and one group of every class."""
    mix = np.random.default_rng(0).integers(1, 2**62, size=(2, low.shape[1]), dtype=np.int64) | 1
    with np.errstate(over="ignore"):
        hashed = (low * mix[0] + high * mix[1]).sum(axis=1)
    _, representative, of = np.unique(hashed, return_index=True, return_inverse=True)
    if (low != low[representative[of]]).any() or (high != high[representative[of]]).any():
        both = np.concatenate([low, high], axis=1)  # a hash collision: compare the tables themselves
        _, representative, of = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return of.reshape(-1), representative


class _Runs(NamedTuple):
    merged: Int64Array
    start: Int64Array
    first: Int64Array
    step: Int64Array
    rest: Int64Array


def _sort_into_runs(levels: list[_Level], classes: Int64Array) -> tuple[list[_Runs], Int64Array]:
    """Renumber the groups of every level so that those which behave alike stand together; also the first level's numbers."""
    rank, runs = np.zeros(1, dtype=np.int64), list[_Runs]()
    for level in levels[::-1]:
        keys, deeper = np.stack([level.first, level.step, classes[level.rest]]), rank[level.merged]
        order = np.lexsort((deeper, *keys[::-1]))
        keys, rank = keys[:, order], np.argsort(order)
        begins = np.flatnonzero(np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)]))
        runs.insert(0, _Runs(deeper[order], np.append(begins, len(order)), *keys[:, begins]))
    return runs, rank
