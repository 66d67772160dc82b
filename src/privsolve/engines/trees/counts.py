"""Statistics of all pairs of questions, over the rows that answer yes to a set of questions.

The pairs `i <= j` stand one after another, and after them the rows themselves: `place(m, i, j)` and `pairs(m)`.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import helper
from privsolve.engines.subsets import bit_sets, ones_in
from privsolve.problems.trees import TreeProblem


class Rows(NamedTuple):
    """The merged rows as bit sets: `sets[j]` are those that answer yes to question j.

    A statistic is cut into binary digits: `planes[p]` is the set of rows that have digit `digit[p]` of statistic
    `statistic[p]`, and is empty from word `length[p]` on. Rows are sorted so that long numbers come first.
    """

    sets: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    statistic: Int64Array
    digit: Int64Array
    length: Int64Array


def rows_of(problem: TreeProblem) -> Rows:
    """The rows of a problem."""
    order = np.argsort(-problem.statistics.max(axis=1), kind="stable")
    statistics = problem.statistics[order]
    digits = [(s, b) for s, most in enumerate(statistics.max(axis=0)) for b in range(max(1, int(most).bit_length()))]
    planes = bit_sets(np.array([(statistics[:, s] >> b) & 1 for s, b in digits], dtype=np.uint8))
    length = [int(np.flatnonzero(row).max(initial=-1)) + 1 for row in planes]
    numbers: list[Any] = [*zip(*digits, strict=True), length]
    return Rows(bit_sets(problem.answers[order].T), planes, *(np.array(part, dtype=np.int64) for part in numbers))


@helper
def pairs(m):
    """Number of pairs `i <= j`."""
    return m * (m + 1) // 2


@helper
def place(m, i, j):
    """Where the pair `i <= j` stands."""
    return i * m - i * (i - 1) // 2 + j - i


@helper
def add_pairs(rows, members, out, some):
    """Statistics of all pairs over the bit set `members`."""
    sets, planes = rows.sets, rows.planes
    m = len(sets)
    for p in range(len(out)):
        for s in range(out.shape[1]):
            out[p, s] = 0
    for p in range(len(planes)):
        s, digit, length = rows.statistic[p], rows.digit[p], rows.length[p]
        total = 0
        for w in range(length):
            total += ones_in(planes[p, w] & members[w])
        out[pairs(m), s] += total << digit
        if total == 0:
            continue
        for i in range(m):
            any_left = np.uint64(0)
            for w in range(length):
                some[w] = planes[p, w] & members[w] & sets[i, w]
                any_left |= some[w]
            if any_left != np.uint64(0):
                base = place(m, i, i) - i
                for j in range(i, m):
                    both = 0
                    for w in range(length):
                        both += ones_in(some[w] & sets[j, w])
                    out[base + j, s] += both << digit
