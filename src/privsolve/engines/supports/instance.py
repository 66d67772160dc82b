"""The arrays of a sparse scorecard problem, checked once.

A scorecard is a support `S` of at most `max_features` columns, a non-zero point for each column of `S`, and an
intercept. The score of a row is the intercept plus the points of the columns that are 1; it is positive above 0.

A cell of rows is one integer D, what predicting it positive adds to the loss; the D of disjoint cells add up. Apart from a
constant that all scorecards share a cell costs at least `min(D, 0)`, and beyond that `max(D, 0)` where the score is above 0,
else `max(-D, 0)` (theory, supports: "Cells").
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled
from privsolve.errors import IntegerRangeError
from privsolve.losses import ZeroOneLoss

LARGEST_SUPPORT = 12
"""Supports have up to `2^|S|` cells; beyond this their tables leave the cache and the sums take minutes."""

NARROW_LOSS = 2**30
"""Below this, sums of four cells fit into 32 bits."""

LARGEST_LOSS = 2**40
LARGEST_SCORE = 2**16


@dataclass(frozen=True)
class CardInstance:
    """Rows with what each puts into its cell: the loss of a scorecard is `base` and what its cells cost.

    No scorecard loses more than `largest_loss`.
    """

    rows: Int64Array
    row_cell: Int64Array
    base: int
    largest_loss: int
    max_features: int
    points: Int64Array
    intercepts: Int64Array

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        positives: ArrayLike,
        negatives: ArrayLike,
        loss: ZeroOneLoss,
        max_features: int,
        points: ArrayLike,
        intercepts: ArrayLike,
    ) -> CardInstance:
        """Check the arrays and bring them into the form the compiled code reads."""
        table = np.array(rows, dtype=np.int64, order="C")  # writable, so that one compiled version serves all
        if table.ndim != 2 or not ((table == 0) | (table == 1)).all():
            raise ValueError("rows must be a two-dimensional array of zeros and ones: encode columns as indicators")
        positive, negative = (
            _counts(c, name, len(table), loss.largest)
            for c, name in ((positives, "positives"), (negatives, "negatives"))
        )
        values = _distinct(points, "points")
        starts = _distinct(intercepts, "intercepts")
        if (values == 0).any():
            raise ValueError("points must be non-zero: a column with no points is outside the support")
        if (np.diff(starts) != 1).any():
            raise ValueError("intercepts must be consecutive integers in ascending order, or [0] for none")
        if not 0 <= max_features <= LARGEST_SUPPORT:
            raise ValueError(f"max_features must be between 0 and {LARGEST_SUPPORT}, got {max_features}")
        most = min(int(max_features), table.shape[1])
        if int(np.abs(starts).max()) + most * int(np.abs(values).max()) > LARGEST_SCORE:
            raise ValueError(f"points and intercepts reach scores beyond ±{LARGEST_SCORE:,}: use smaller points")
        if_negative = positive * loss.false_negative
        cells, base = negative * loss.false_positive - if_negative, int(if_negative.sum())
        largest = int(positive.sum() + negative.sum()) * loss.largest
        return cls(table, cells, base, largest, most, values, starts)

    @property
    def n_columns(self) -> int:
        """Number of binary columns, without the intercept."""
        return int(self.rows.shape[1])

    @property
    def n_supports(self) -> int:
        """Number of supports of at most `max_features` columns, the empty one included."""
        return count_supports(self.n_columns, self.max_features)

    @property
    def is_wide(self) -> bool:
        """Whether the cells of blocks need 64 bits."""
        return self.largest_loss >= NARROW_LOSS


def heaviest_first(inst: CardInstance) -> Int64Array:
    """The order of the columns that makes blocks fast: those of the heaviest rows first."""
    return np.argsort(-(np.abs(inst.row_cell) @ inst.rows), kind="stable")


def _counts(values: ArrayLike, name: str, rows: int, highest: int) -> Int64Array:
    counts = np.asarray(values)
    if counts.shape != (rows,) or (rows and counts.dtype.kind not in "iu"):
        raise ValueError(f"{name} must hold one integer per row ({rows}), got shape {counts.shape} of {counts.dtype}")
    if rows and (counts.min() < 0 or int(counts.astype(object).sum()) * highest >= LARGEST_LOSS):
        raise IntegerRangeError(f"{name} must be non-negative and cost less than 2^40: use smaller public costs")
    return np.asarray(counts, dtype=np.int64)


def _distinct(values: ArrayLike, name: str) -> Int64Array:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or (np.diff(array) <= 0).any():
        raise ValueError(f"{name} must be a non-empty list of different integers in ascending order")
    return np.asarray(array, dtype=np.int64)


# Numbers of supports: by size, then lexicographically. The supports that extend T by one later column are neighbours:
# `number(T ∪ {j}) = child_start[number(T)] + j`.


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


@compiled
def sum_of_least(cells):
    """The least that all cells together cost."""
    total = np.int64(0)
    for c in range(len(cells)):
        total += min(cells[c], 0)
    return total
