"""One column of the dynamic programme over total costs, compiled for the hot loops of the tree, and what scores can reach.

It is the step of `Knapsack`, in the semirings of `engines.semirings`: (min, +) for bounds on the objective and for the range of
scores, (+, ×) for the weights of the sampler.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from privsolve.compiled import compiled, helper
from privsolve.engines.semirings import Costs, plus, times

FAR = 2**63 - 1
"""Above every score; nothing is ever added to it."""


@helper
def add_column(ring, tables, after, here, start, j, n_values, costs, entries):
    """Row `here` of the tables from row `after`, by column `j`: `here[t] = ⊕_x entries[j, x] ⊗ after[t + costs[j, x]]`.

    `t` is what is spent before the column; only totals from `start` on are made. Whole arrays and row numbers are passed
    because a view for every row would cost more than the sums do where there are few totals.
    """
    totals = tables.shape[1]
    for t in range(start, totals):
        tables[here, t] = ring.zero
    for x in range(n_values):
        cost, entry = costs[j, x], entries[j, x]
        for t in range(start, totals - cost):
            tables[here, t] = plus(ring, tables[here, t], times(ring, entry, tables[after, t + cost]))


@compiled
def group_reach(n_groups, feature, merged, n_values, values, costs, limit):
    """Range, in steps, of what the columns of every group can add with each budget; groups of all levels in a row."""
    low = np.zeros((n_groups.sum(), limit + 1), dtype=np.int64)
    minus_high = np.zeros_like(low)
    scores = np.empty_like(values)
    deeper = n_groups.sum() - 1
    for level in range(len(n_groups) - 2, -1, -1):
        start = deeper - n_groups[level]
        for g in range(n_groups[level]):
            step, after, here = feature[level, g], deeper + merged[level, g], start + g
            _reach(low, after, here, step, level, n_values, values, costs, scores)
            _reach(minus_high, after, here, -step, level, n_values, values, costs, scores)
        deeper = start
    _turn(low, 1)
    _turn(minus_high, -1)
    return low, minus_high


@compiled
def row_reach(rows, row_levels, n_values, values, costs, table_low, table_high, grid):
    """`low/high[k, i, b]`: range of the score that columns from k on can add to row i with budget b."""
    n, limit = len(rows), table_low.shape[1] - 1
    low = np.zeros(((row_levels + 1) * n, limit + 1), dtype=np.int64)
    minus_high = np.zeros_like(low)
    scores = np.empty_like(values)
    for i in range(n):
        for t in range(limit + 1):
            low[row_levels * n + i, t] = table_low[i, limit - t] * grid
            minus_high[row_levels * n + i, t] = -table_high[i, limit - t] * grid
        for k in range(row_levels - 1, -1, -1):
            after, here = (k + 1) * n + i, k * n + i
            _reach(low, after, here, rows[i, k], k, n_values, values, costs, scores)
            _reach(minus_high, after, here, -rows[i, k], k, n_values, values, costs, scores)
    _turn(low, 1)
    _turn(minus_high, -1)
    shape = (row_levels + 1, n, limit + 1)
    return low.reshape(shape), minus_high.reshape(shape)


@helper
def _reach(tables, after, here, step, j, n_values, values, costs, scores):
    """The least that column j, with the feature `step`, and those after it can add, by the total spent before.

    The knapsack gives every column a value of cost zero: there is always something to add, and a column without the
    feature can be passed over.
    """
    if step == 0:
        for t in range(tables.shape[1]):
            tables[here, t] = tables[after, t]
    else:
        for x in range(n_values[j]):
            scores[j, x] = step * values[j, x]
        add_column(Costs(FAR, 0), tables, after, here, 0, j, n_values[j], costs, scores)


@helper
def _turn(tables, sign):
    """From tables by the total that is spent to tables by what is left of the limit, in place and times `sign`."""
    last = tables.shape[1] - 1
    for i in range(len(tables)):
        for t in range(last // 2 + 1):
            tables[i, t], tables[i, last - t] = sign * tables[i, last - t], sign * tables[i, t]
