"""What all baselines share: the records as rows of real numbers, and a fitted linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from privsolve.arrays import Floats, Int64Array
from privsolve.data.patterns import PatternTable
from privsolve.privacy.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model: a record `x` is predicted positive iff `<x / scales, weights> > 0`.

    `weights` and `guarantee` may be published; `guarantee` is None if the fit is not private. `seconds` and everything
    `accuracy` says depend on the data and may not.
    """

    weights: Floats
    guarantee: Guarantee | None
    seconds: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.weights).all():
            raise ValueError("weights must be finite: use smaller settings")
        self.weights.setflags(write=False)

    def accuracy(self, table: PatternTable) -> float:
        """Share of records classified correctly. Data-dependent: not for publication."""
        if table.dim != len(self.weights):
            raise ValueError(f"table has {table.dim} features but the fit has {len(self.weights)} weights")
        return float(Rows.of(table).accuracies(self.weights[:, None])[0])


@dataclass(frozen=True, eq=False)
class Rows:
    """The distinct rows `x / scales` of a table, their norms, and how many positive and negative records have each.

    `integers` are the features x themselves, of which every row is `x / scales`.
    Sparse: rows of indicators are mostly zeros, and the products run on one thread whatever else the machine does.
    """

    rows: Any
    integers: Any
    scales: Floats
    norms: Floats
    positives: Int64Array
    negatives: Int64Array

    @classmethod
    def of(cls, table: PatternTable) -> Rows:
        """The rows of a table, in the table's order."""
        if not isinstance(table, PatternTable):
            raise ValueError(f"table must be a PatternTable, got {type(table).__name__}")
        dense = table.features / np.array(table.scales, dtype=np.float64)
        integers = sparse.csr_array(np.asarray(table.features, dtype=np.int64))
        counts = table.positives.astype(np.int64), table.negatives.astype(np.int64)
        return cls(sparse.csr_array(dense), integers, np.array(table.scales, dtype=np.float64), _norms(dense), *counts)

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def accuracies(self, weights: Floats) -> Floats:
        """Training accuracy of every column of `weights`."""
        positive = self.rows @ weights > 0
        right = self.positives @ positive + self.negatives @ ~positive
        return np.asarray(right / (self.positives.sum() + self.negatives.sum()))


def _norms(dense: Floats) -> Floats:
    """Euclidean norms of rows, by additions and products of single numbers.

    IEEE 754 rounds these correctly, so a row's norm does not depend on where in the table it stands or on what else is there.
    """
    squares = np.zeros(len(dense))
    for column in dense.T:
        squares += column * column
    return np.asarray(np.sqrt(squares))
