"""What the records that have all columns of a set lose at every score, for all sets of a few columns."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled
from privsolve.engines.bits import ones_in
from privsolve.engines.numbering import count_supports
from privsolve.engines.stages.groups import Groups
from privsolve.engines.workers import Workers


def moments_of(groups: Groups, child_start: Int64Array, most: int) -> Int64Array:
    """`moment[number(T), x]`: what the records that have all of T lose together at score number x."""
    columns = groups.words.shape[0]
    moment = np.zeros((count_supports(columns, most), groups.cost.shape[1]), dtype=np.int64)
    moment[0] = groups.total
    workers = Workers(lambda: np.empty((most, groups.words.shape[1]), dtype=np.uint64))
    workers.run(
        lambda rows, first: fill_moments(groups, child_start, rows, first, moment), range(columns if most else 0)
    )
    return moment


@compiled
def fill_moments(groups, child_start, rows, first, moment):
    """Moments of all sets whose first column is `first`, depth first; `rows[d]` are those that have the first d + 1 columns."""
    columns, most = groups.words.shape[0], len(rows)
    column, number = np.zeros(most, np.int64), np.zeros(most, np.int64)
    depth, column[0] = 0, first
    while True:
        j = column[depth]
        if j < columns:
            number[depth] = child_start[number[depth - 1] if depth else 0] + j
            keep(groups.words[j], rows[depth - 1] if depth else groups.words[j], rows[depth])
            add_losses(groups, rows[depth], moment[number[depth]])
        if j < columns and depth + 1 < most:
            depth += 1
            column[depth] = j + 1
            continue
        if j == columns:
            depth -= 1
        if depth == 0:
            return
        column[depth] += 1


@compiled
def keep(one, other, into):
    """The rows in both sets."""
    for w in range(len(into)):
        into[w] = one[w] & other[w]


@compiled
def add_losses(groups, rows, moment):
    """What a set of rows loses at every score."""
    for g in range(len(groups.cost)):
        count = 0
        for w in range(groups.first[g], groups.first[g + 1]):
            count += ones_in(rows[w])
        if count > 0:
            for x in range(len(moment)):
                moment[x] += count * groups.cost[g, x]
