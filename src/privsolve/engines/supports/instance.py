"""The arrays of a sparse scorecard problem, checked once.

A scorecard is a support `S` of at most `max_features` columns, a non-zero point for each column of `S`, and an
intercept. It predicts positive iff intercept plus the points of the columns that are 1 is greater than 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privsolve.data.patterns import Int64Array
from privsolve.errors import IntegerRangeError

LARGEST_SUPPORT = 12
"""Supports have up to `2^|S|` cells; beyond this their tables leave the cache and the sums take minutes."""

LARGEST_LOSS = 2**40
LARGEST_SCORE = 2**16


@dataclass(frozen=True)
class Instance:
    """Rows with what each adds to the loss when predicted positive instead of negative.

    The loss of a scorecard is `base + Σ excess` over the rows it predicts positive: all bounds need only `excess`.
    """

    rows: Int64Array
    excess: Int64Array
    base: int
    max_features: int
    points: Int64Array
    intercepts: Int64Array

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        cost_pos: ArrayLike,
        cost_neg: ArrayLike,
        max_features: int,
        points: ArrayLike,
        intercepts: ArrayLike,
    ) -> Instance:
        """Check the arrays and bring them into the form the compiled code reads."""
        table = np.ascontiguousarray(rows, dtype=np.int64)
        if table.ndim != 2 or not np.isin(table, (0, 1)).all():
            raise ValueError("rows must be a two-dimensional array of zeros and ones: encode columns as indicators")
        positive, negative = (
            _costs(c, name, len(table)) for c, name in ((cost_pos, "cost_pos"), (cost_neg, "cost_neg"))
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
        return cls(table, positive - negative, int(negative.sum()), most, values, starts)

    @property
    def n_columns(self) -> int:
        """Number of binary columns, without the intercept."""
        return int(self.rows.shape[1])

    @property
    def n_supports(self) -> int:
        """Number of supports of at most `max_features` columns, the empty one included."""
        return sum(math.comb(self.n_columns, size) for size in range(self.max_features + 1))

    @property
    def largest_excess(self) -> int:
        """No two scorecards differ by more than this in loss."""
        return int(np.abs(self.excess).sum())


def _costs(values: ArrayLike, name: str, rows: int) -> Int64Array:
    costs = np.asarray(values)
    if costs.shape != (rows,) or (rows and costs.dtype.kind not in "iu"):
        raise ValueError(f"{name} must hold one integer per row ({rows}), got shape {costs.shape} of {costs.dtype}")
    if rows and (costs.min() < 0 or int(costs.astype(object).sum()) >= LARGEST_LOSS):
        raise IntegerRangeError(f"{name} must be non-negative and sum to less than 2^40: use smaller public costs")
    return np.asarray(costs, dtype=np.int64)


def _distinct(values: ArrayLike, name: str) -> Int64Array:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or (np.diff(array) <= 0).any():
        raise ValueError(f"{name} must be a non-empty list of different integers in ascending order")
    return np.asarray(array, dtype=np.int64)
