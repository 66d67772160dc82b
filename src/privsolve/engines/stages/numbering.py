"""Numbers of supports: by size, then in lexicographic order, so that `number(T ∪ {j}) = child_start[number(T)] + j`."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled


def n_supports(columns: int, most: int) -> int:
    """Number of supports of at most `most` columns, the empty one included."""
    return sum(math.comb(columns, size) for size in range(most + 1))


def child_starts(columns: int, most: int) -> Int64Array:
    """Where the extensions of every support that has some would start at column 0."""
    starts = np.empty(n_supports(columns, most - 1), dtype=np.int64)
    last = np.full(len(starts), -1, dtype=np.int64)
    _number(columns, starts, last)
    return starts


@compiled
def _number(columns, child_start, last):
    first = 1
    for number in range(len(child_start)):
        child_start[number] = first - (last[number] + 1)
        for j in range(last[number] + 1, columns):
            if first < len(last):
                last[first] = j
            first += 1


@compiled
def subset_numbers(child_start, support, size, numbers):
    """The number of each subset of a support; bit i of the subset is its i-th column."""
    numbers[0] = 0
    for c in range(1, 1 << size):
        top = size - 1
        while c >> top & 1 == 0:
            top -= 1
        numbers[c] = child_start[numbers[c & ~(1 << top)]] + support[top]
