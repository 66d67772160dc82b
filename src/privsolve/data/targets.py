"""What is predicted where it is not yes or no: one of several classes, or a number between public bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.data.columns import Bins, Categories, Column, Real, Value, check_real, tidy
from privsolve.data.columns.base import check_decimal, check_keys, check_missing_values, declared_marks, values_of

STEPS = 100
"""Numbers are rounded to so many equal steps between their bounds."""


@dataclass(frozen=True)
class Target:
    """The column to predict: with `classes`, three at least, or with public bounds `low` and `high`, to which numbers are cut.

    A value that is missing or none of the classes is an error before any budget is spent. `missing_values` are missing too,
    such as -999, and texts are read as numbers with the sign `decimal`.
    """

    column: str
    classes: tuple[Value, ...] = ()
    low: Real | None = None
    high: Real | None = None
    missing_values: tuple[Value, ...] = ()
    decimal: str = "."

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "missing_values", check_missing_values(self.missing_values, "label"))
        check_decimal(self.decimal, "label")
        if not isinstance(self.column, str) or not self.column:
            raise ValueError(f"label: column must be the name of a column, got {self.column!r}")
        if self.classes:
            set_field(self, "classes", values_of(self.classes, "label: classes"))
            if len(self.classes) < 3 or self.low is not None or self.high is not None:
                raise ValueError(
                    "label: classes must be three or more, without low and high; two are positive and negative"
                )
        elif self.low is None or self.high is None:
            raise ValueError("label: state positive values, or classes, or low and high")
        else:
            set_field(self, "low", tidy(check_real(self.low, "label: low")))
            set_field(self, "high", tidy(check_real(self.high, "label: high")))
            if not self.low < self.high:
                raise ValueError(f"label: low must be less than high, got {self.low} and {self.high}")
        _ = self.coded  # what is wrong with the values is said here

    @property
    def coded(self) -> Column:
        """Classes in order; or numbers in steps, each rounded to the nearest one, which a record decides alone."""
        if self.classes:
            return Categories(self.column, self.classes, missing_values=self.missing_values)
        assert self.low is not None
        assert self.high is not None
        step = (self.high - self.low) / STEPS
        cuts = [self.low + (k + 0.5) * step for k in range(STEPS)]
        return Bins(self.column, cuts, missing_values=self.missing_values, decimal=self.decimal)

    @property
    def words(self) -> str:
        """What its values are."""
        return ", ".join(map(str, self.classes)) if self.classes else f"{self.low} to {self.high}"

    def check(self, codes: Int64Array) -> None:
        """Raise if a record has none of the values; no value is shown."""
        if np.isin(codes, list(self.coded.outside.values())).any():
            wanted = "one of the classes" if self.classes else "a number"
            raise ValueError(
                f"label {self.column!r}: at least one record has no value, or one that is not {wanted}: correct the data "
                "(nothing was spent)"
            )

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        stated = {"classes": list(self.classes)} if self.classes else {"low": self.low, "high": self.high}
        return {"column": self.column, **stated, **declared_marks(self.missing_values, self.decimal)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Target:
        """As in a schema file."""
        check_keys(settings, ("column", "classes", "low", "high", "missing_values", "decimal"), "label")
        return cls(**{"column": None, **settings})


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Distinct rows of 0/1 features and coded targets, and how many records have each: `counts`."""

    rows: IntArray
    targets: Int64Array
    counts: Int64Array

    @classmethod
    def of(cls, rows: IntArray, targets: Int64Array, counts: Int64Array) -> TargetTable:
        """Equal rows are added up, in an order that does not depend on that of the records."""
        both, place = np.unique(np.column_stack([rows, targets]), axis=0, return_inverse=True)
        summed = np.zeros(len(both), dtype=np.int64)
        np.add.at(summed, place.reshape(-1), counts)
        return cls(both[:, :-1].astype(rows.dtype), both[:, -1].astype(np.int64), summed)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())
