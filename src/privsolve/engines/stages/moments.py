"""What the records that have all columns of a set lose at every score, for all sets of a few columns."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled
from privsolve.engines.bits import ones_in
from privsolve.engines.stages.groups import Groups
from privsolve.engines.stages.numbering import n_supports

THREADS = 2


def moments_of(groups: Groups, child_start: Int64Array, most: int) -> Int64Array:
    """`moment[number(T), x]`: what the records that have all of T lose together at score number x."""
    columns = groups.words.shape[0]
    moment = np.zeros((n_supports(columns, most), groups.cost.shape[1]), dtype=np.int64)
    moment[0] = groups.total
    parts = [np.arange(start, columns, THREADS) for start in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:  # the machine code leaves the interpreter's lock to others
        list(pool.map(lambda part: fill_moments(groups, child_start, most, part, moment), parts))
    return moment


@compiled
def fill_moments(groups, child_start, most, first_columns, moment):
    """Moments of all sets whose first column is one of `first_columns`, depth first."""
    columns, n_words = groups.words.shape
    rows = np.empty((most, n_words), np.uint64)
    column, number = np.zeros(most, np.int64), np.zeros(most, np.int64)
    for first in first_columns:
        depth, column[0] = 0, first
        while depth >= 0:
            j = column[depth]
            if j == columns:
                depth -= 1
                if depth == 0:
                    break
                column[depth] += 1
                continue
            number[depth] = child_start[number[depth - 1] if depth else 0] + j
            keep(groups.words[j], rows[depth - 1] if depth else groups.words[j], rows[depth])
            add_losses(groups, rows[depth], moment[number[depth]])
            if depth + 1 < most:
                depth += 1
                column[depth] = j + 1
            elif depth == 0:
                break
            else:
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
        count = np.uint64(0)
        for w in range(groups.first[g], groups.first[g + 1]):
            count += ones_in(rows[w])
        if count != np.uint64(0):
            n = np.int64(count)
            for x in range(len(moment)):
                moment[x] += n * groups.cost[g, x]
