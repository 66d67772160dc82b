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

LIST_STEP, WORD_STEP = 1.0, 0.4
"""What adding a statistic to a pair costs, and what counting the bits of a word costs, in about a nanosecond."""

LARGEST_INT32 = 2**31 - 1


class Rows(NamedTuple):
    """The merged rows, as lists of ones and as bit sets, of which the cheaper is used.

    A statistic is cut into binary digits: `planes[p]` is the set of rows that have digit `digit[p]` of statistic
    `statistic[p]`, and is empty from word `length[p]` on. Rows are sorted so that long numbers come first.
    """

    answers: NDArray[np.uint8]
    statistics: NDArray[Any]
    starts: Int64Array
    ones: NDArray[np.int32]
    sets: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    statistic: Int64Array
    digit: Int64Array
    length: Int64Array
    by_bits: bool


def rows_of(problem: TreeProblem, sizes: list[int]) -> Rows:
    """The rows of a problem, laid out for sets of these sizes."""
    order = np.argsort(-problem.statistics.max(axis=1), kind="stable")
    answers, statistics = problem.answers[order], problem.statistics[order]
    kind = np.int32 if int(statistics.sum(axis=0).max()) <= LARGEST_INT32 else np.int64
    per_row = answers.sum(axis=1, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64)
    planes, statistic, digit, length = _planes(statistics)
    lists, words = _steps(per_row, statistics.shape[1], length, answers.shape[1], sizes)
    return Rows(
        np.ascontiguousarray(answers),
        np.ascontiguousarray(statistics.astype(kind)),
        starts,
        np.nonzero(answers)[1].astype(np.int32),
        bit_sets(answers.T),
        planes,
        statistic,
        digit,
        length,
        by_bits=WORD_STEP * words < LIST_STEP * lists,
    )


def _steps(per_row: Int64Array, width: int, length: Int64Array, m: int, sizes: list[int]) -> tuple[float, float]:
    """What the two ways of counting take for all sets of these sizes."""
    ones = per_row.astype(np.float64)
    lists = words = 0.0
    for size in sizes:
        subsets, sets = np.ones_like(ones), 1.0
        for k in range(size):
            subsets, sets = subsets * np.maximum(ones - k, 0) / (k + 1), sets * (m - k) / (k + 1)
        lists += float((subsets * ones * (ones + 1) / 2).sum()) * width
        words += sets * m * (m + 1) / 2 * float(length.sum())
    return lists, words


def _planes(statistics: Int64Array) -> tuple[NDArray[np.uint64], Int64Array, Int64Array, Int64Array]:
    found = [(s, b) for s in range(statistics.shape[1]) for b in range(int(statistics[:, s].max()).bit_length())] or [
        (0, 0)
    ]
    sets = bit_sets(np.array([(statistics[:, s] >> b) & 1 for s, b in found], dtype=np.uint8))
    length = [int(np.flatnonzero(row).max()) + 1 if row.any() else 0 for row in sets]
    statistic, digit = zip(*found, strict=True)
    return sets, *(np.array(part, dtype=np.int64) for part in (statistic, digit, length))  # type: ignore[return-value]


@helper
def pairs(m):
    """Number of pairs `i <= j`."""
    return m * (m + 1) // 2


@helper
def place(m, i, j):
    """Where the pair `i <= j` stands."""
    return i * m - i * (i - 1) // 2 + j - i


@helper
def keep_rows(rows, feature, source, n, target):
    """The rows among `source[:n]` that answer yes, in `target`; how many they are."""
    kept = 0
    for at in range(n):
        if rows.answers[source[at], feature]:
            target[kept] = source[at]
            kept += 1
    return kept


@helper
def _clear(out):
    for p in range(len(out)):
        for s in range(out.shape[1]):
            out[p, s] = 0


@helper
def add_lists(rows, members, n, out):
    """Statistics of all pairs over the rows `members[:n]`, by their lists of ones."""
    m, width = rows.answers.shape[1], rows.statistics.shape[1]
    _clear(out)
    for at in range(n):
        r = members[at]
        low, high = rows.starts[r], rows.starts[r + 1]
        for s in range(width):
            value = rows.statistics[r, s]
            if value != 0:
                out[pairs(m), s] += value
                for a in range(low, high):
                    i = rows.ones[a]
                    base = place(m, i, i) - i
                    for b in range(a, high):
                        out[base + rows.ones[b], s] += value


@helper
def add_bits(rows, members, out, some):
    """The same over the bit set `members`."""
    m = rows.answers.shape[1]
    sets, planes = rows.sets, rows.planes
    _clear(out)
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
