"""Numbers of supports: by size, then lexicographically.

The supports that extend T by one later column are neighbours: `number(T ∪ {j}) = child_start[number(T)] + j`.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled


def count_supports(columns: int, most: int) -> int:
    """Supports of at most `most` of so many columns, the empty one included."""
    return sum(math.comb(columns, size) for size in range(most + 1))


def number_supports(columns: int, most: int) -> tuple[Int64Array, Int64Array]:
    """`child_start` and `last` (the largest column) of all supports with fewer than `most` columns."""
    inner = count_supports(columns, most - 1)
    child_start, last = np.empty(inner, dtype=np.int64), np.empty(inner, dtype=np.int64)
    _number(columns, child_start, last)
    return child_start, last


@compiled
def _number(m, child_start, last):
    """Fill `child_start` and `last` level by level: extensions are numbered in the order of what they extend."""
    if len(child_start) == 0:
        return
    last[0] = -1
    first = 1
    for number in range(len(child_start)):
        child_start[number] = first - (last[number] + 1)
        for j in range(last[number] + 1, m):
            if first < len(last):
                last[first] = j
            first += 1
