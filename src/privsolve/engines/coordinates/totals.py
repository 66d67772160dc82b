"""One column of the dynamic programme over total costs, compiled for the hot loops of the tree.

It is the step of `Knapsack`, in the semirings of `engines.semirings`: (min, +) for bounds on the objective and for the range of
scores, (+, ×) for the weights of the sampler.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from privsolve.compiled import helper
from privsolve.engines.semirings import plus, times


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
