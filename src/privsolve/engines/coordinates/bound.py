"""The bound of a node, shared by the minimiser and the sampler.

A node fixes the columns before level `k` and has spent part of the budget. Every row that is not yet decided is
charged to one free column j, the first one it has: whatever the other free columns do within the budget, choosing
value x there costs at least the smallest entry of the row's (or its group's) cost table within reach. The sums
`gain[j, x]` of those charges are a *separable* lower bound on the loss,

    loss(w) >= decided + sum_j gain[j, x_j]     for every w below the node,

and a dynamic programme over (column, budget) combines them with the perturbation exactly: in (min, +) for the
minimiser, in (sum, *) for the sampler. Where every row has at most one free column the bound is exact.
"""

# numba infers the types of compiled functions: annotations would only repeat the field types of Layout
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper
from privsolve.engines.coordinates.instance import Layout
from privsolve.engines.semirings import plus, times


class Workspace(NamedTuple):
    """The path from the root to the current node: one slot per level, so that going back up costs nothing.

    `active[k, :n_active[k]]` are the undecided rows at row level k, `partial[k, i]` their scores so far,
    `decided[k]` the loss of the decided ones. `cells[cell_start[l] + t * n_groups[l] + g]` is entry t of the table of
    group g of table level l: equal entries of all groups lie side by side, so that runs of groups are handled by vector
    instructions. `gain[j, x]` is the bound of the node entered last; `smallest` is scratch.
    """

    active: Int64Array
    n_active: Int64Array
    partial: Int64Array
    decided: Int64Array
    cells: Int64Array
    cell_start: Int64Array
    gain: Int64Array
    smallest: Int64Array


def new_workspace(inst: Layout) -> Workspace:
    """A workspace that stands at the root."""
    dim, rows = len(inst.order), len(inst.rows)
    cell_start = np.concatenate([[0], np.cumsum(inst.n_groups * inst.width)])
    largest = int(inst.row_costs.max(axis=0).sum())
    cell_type = np.int32 if largest < 2**31 else np.int64  # half the width is nearly twice the speed
    ws = Workspace(
        active=np.tile(np.arange(rows), (inst.row_levels + 1, 1)),
        n_active=np.full(inst.row_levels + 1, rows),
        partial=np.zeros((inst.row_levels + 1, rows), dtype=np.int64),
        decided=np.zeros(dim + 1, dtype=np.int64),
        cells=np.zeros(cell_start[-1], dtype=cell_type),
        cell_start=cell_start,
        gain=np.zeros((dim, inst.values.shape[1]), dtype=np.int64),
        smallest=np.zeros(int(inst.n_groups.max()), dtype=cell_type),
    )
    if inst.row_levels == 0:
        tabulate_rows(inst, ws)
    return ws


@helper
def descend(inst, ws, k, x, left):
    """Fix column `k` to its value number `x`, which leaves budget `left`: make the state of level `k + 1`."""
    if k < inst.row_levels:
        _descend_rows(inst, ws, k, inst.values[k, x])
        if k + 1 == inst.row_levels:
            tabulate_rows(inst, ws)
    else:
        ws.decided[k + 1] = ws.decided[k]
        _fold(inst, ws, k - inst.row_levels, inst.values[k, x], left)


@helper
def _descend_rows(inst, ws, k, value):
    n = ws.n_active[k]
    active, deeper = ws.active[k], ws.active[k + 1]
    score, moved = ws.partial[k], ws.partial[k + 1]
    for a in range(n):
        i = active[a]
        deeper[a] = i
        moved[i] = score[i] + inst.rows[i, k] * value
    ws.n_active[k + 1] = n
    ws.decided[k + 1] = ws.decided[k]


@compiled
def tabulate_rows(inst, ws):
    """Turn the undecided rows into the tables of the first table level: a few steps each, added up by group."""
    width, n, k = inst.width, inst.n_groups[0], inst.row_levels
    cells, active, score = ws.cells, ws.active[k], ws.partial[k]
    for t in range(n * width):  # plain loops compile much faster than slices
        cells[t] = 0
    for a in range(ws.n_active[k]):
        i = active[a]
        group = inst.group_of[i]
        cells[group] += inst.row_costs[0, i]
        # the score turns positive where score + grid * step > 0: from the step floor(-score / grid) + 1 on
        turn = -score[i] // inst.grid + 1 + inst.offset
        if turn < width:
            cells[max(turn, 0) * n + group] += inst.row_costs[1, i] - inst.row_costs[0, i]
    for t in range(n, n * width):
        cells[t] += cells[t - n]


@helper
def _fold(inst, ws, level, value, left):
    """Shift the tables of the groups that have the column by its contribution and add up groups that became equal.

    Only the entries that the budget `left` can still reach are made; by the triangle inequality they read entries
    that were within reach one level up.
    """
    cells, merged = ws.cells, inst.merged[level]
    n, deeper = inst.n_groups[level], inst.n_groups[level + 1]
    source, target = ws.cell_start[level], ws.cell_start[level + 1]
    first, last = inst.offset + inst.span_low[level + 1, left], inst.offset + inst.span_high[level + 1, left]
    for t in range(target + first * deeper, target + (last + 1) * deeper):
        cells[t] = 0
    for r in range(inst.n_runs[level]):
        here = inst.run_first[level, r] == level + inst.row_levels
        shift = inst.run_step[level, r] * value if here else 0
        for t in range(max(first, -shift), min(last + 1, inst.width - shift)):
            into, table = target + t * deeper, source + (t + shift) * n
            for g in range(inst.run_start[level, r], inst.run_start[level, r + 1]):
                cells[into + merged[g]] += cells[table + g]


@compiled
def charge(inst, ws, k, left):
    """Fill `gain[k:]` for the node at level `k` with budget `left`; returns the loss that is already decided."""
    for j in range(k, len(ws.gain)):
        for x in range(ws.gain.shape[1]):
            ws.gain[j, x] = 0
    if k < inst.row_levels:
        return _charge_rows(inst, ws, k, left)
    return _charge_groups(inst, ws, k, left)


@helper
def _charge_rows(inst, ws, k, left):
    kept = 0
    decided = ws.decided[k]
    active, score, low, high = ws.active[k], ws.partial[k], inst.row_low[k], inst.row_high[k]
    for a in range(ws.n_active[k]):
        i = active[a]
        least = np.int64(score[i] + low[i, left] > 0)
        if least == np.int64(score[i] + high[i, left] > 0):
            decided += inst.row_costs[least, i]
        else:
            active[kept] = i
            kept += 1
    ws.n_active[k] = kept
    ws.decided[k] = decided
    for a in range(kept):  # to the first free column of each
        i = active[a]
        j = inst.row_first[k, i]
        for x in range(inst.n_values[j]):
            after = left - inst.costs[j, x]
            if after < 0:
                continue
            moved = score[i] + inst.rows[i, j] * inst.values[j, x]
            if j < inst.row_levels:
                least, most = moved + inst.row_low[j + 1, i, after], moved + inst.row_high[j + 1, i, after]
            else:
                rest = inst.row_rest[i]
                least = moved + inst.reach_low[rest, after] * inst.grid
                most = moved + inst.reach_high[rest, after] * inst.grid
            ws.gain[j, x] += _least_cost(inst.row_costs, i, least, most)
    return decided


@helper
def _least_cost(costs, i, low, high):
    """The least row i can cost when its score will be between `low` and `high`."""
    if low > 0:
        return costs[1, i]
    return costs[0, i] if high <= 0 else min(costs[0, i], costs[1, i])


@helper
def _charge_groups(inst, ws, k, left):
    level = k - inst.row_levels
    decided = ws.decided[k]
    cells, n, start = ws.cells, inst.n_groups[level], ws.cell_start[level]
    for r in range(inst.n_runs[level]):
        j, rest = inst.run_first[level, r], inst.run_rest[level, r]
        low, high = start + inst.run_start[level, r], start + inst.run_start[level, r + 1]
        if j < 0:
            decided += _sum_of_minima(cells, low, high, n, inst.offset, inst.offset, ws.smallest)
            continue
        for x in range(inst.n_values[j]):
            after = left - inst.costs[j, x]
            if after >= 0:
                centre = inst.offset + inst.run_step[level, r] * inst.values[j, x]
                first, last = centre + inst.reach_low[rest, after], centre + inst.reach_high[rest, after]
                ws.gain[j, x] += _sum_of_minima(cells, low, high, n, first, last, ws.smallest)
    return decided


@helper
def _sum_of_minima(cells, low, high, n, first, last, smallest):
    """Sum over a run of groups of each group's smallest entry between `first` and `last`."""
    count = high - low
    for g in range(count):
        smallest[g] = cells[low + first * n + g]
    for t in range(first + 1, last + 1):
        for g in range(count):
            smallest[g] = min(smallest[g], cells[low + t * n + g])
    total = np.int64(0)
    for g in range(count):
        total += smallest[g]
    return total


@helper
def add_column(ring, tables, j, start, n_values, costs, entries):
    """One column of the dynamic programme: `tables[j, t] = ⊕_x entries[j, x] ⊗ tables[j + 1, t + costs[j, x]]`.

    Only totals from `start` on are made; `t` is what is spent before the column. Whole arrays and row numbers are passed
    because a view for every row would cost more than the sums do where there are few totals.
    """
    totals = tables.shape[1]
    for t in range(start, totals):
        tables[j, t] = ring.zero
    for x in range(n_values):
        cost, entry = costs[j, x], entries[j, x]
        for t in range(start, totals - cost):
            tables[j, t] = plus(ring, tables[j, t], times(ring, entry, tables[j + 1, t + cost]))
