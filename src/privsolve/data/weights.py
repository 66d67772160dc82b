"""Weights of records, such as survey weights: cut at a public bound and rounded to a public grid (theory, 19.13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite
from privsolve.data.codes import as_given, check_order, collected, count_codes, names_of
from privsolve.data.columns import Number
from privsolve.data.columns.base import check_keys
from privsolve.data.patterns import PatternTable
from privsolve.data.reading import column_of
from privsolve.data.schema import Schema

UNITS = 2**10
"""A record counts as a multiple of 1/1024 of the largest weight. A power of two: dividing by it rounds nothing."""

BESIDE = "sample_weight"
"""What weights are called that lie beside a table."""

SMALLEST, LARGEST = 1e-6, 1e12


@dataclass(frozen=True)
class Weight:
    """The column that says how much each record counts, and the largest weight, which is public.

    A weight w counts as `floor(1024·w/largest + 1/2)/1024` after it is cut to between 0 and `largest`. One that is missing
    or negative counts as 0. This looks at one record only.

    Args:
        column: the name of the column; it is no feature.
        largest: larger weights are cut to it. Stated, never read off the records.
        decimal: the sign before decimals in texts.
    """

    column: str
    largest: float
    decimal: str = "."

    def __post_init__(self) -> None:
        largest = check_finite("max_weight", self.largest, "be a number above 0")
        if not SMALLEST <= largest <= LARGEST:
            raise ValueError(f"max_weight must be between {SMALLEST:g} and {LARGEST:g}, got {largest:g}")
        object.__setattr__(self, "largest", largest)
        _ = self.coded

    @property
    def coded(self) -> Number:
        """The column as it is read: a number of units from 0 to 1024."""
        return Number(self.column, 0, self.largest, self.largest / UNITS, decimal=self.decimal)

    def beside(self, schema: Schema) -> Schema:
        """The schema with the weight as its last column, so that it is read and counted with the features."""
        if self.column in (column.column for column in schema.columns):
            raise ValueError(f"weight {self.column!r}: it is a column of the schema too; take it out there")
        self.check_label(schema.predicted)
        return replace(schema, columns=(*schema.columns, self.coded))

    def check_label(self, label: str | None) -> None:
        """Raise if the column to predict is that of the weights."""
        if label == self.column:
            raise ValueError(
                f"weight {self.column!r}: this is the label, which cannot be the weight: name another column"
            )

    def units(self, table: PatternTable) -> Int64Array:
        """How many units each row of a table counts that was read with the weight."""
        return table.rows[:, table.names.index(self.column)].astype(np.int64)

    def without(self, schema: Schema) -> Schema:
        """The inverse of `beside`."""
        return replace(schema, columns=tuple(c for c in schema.columns if c.column != self.column))

    def applied(self, table: PatternTable) -> PatternTable:
        """The table without the weight, each record counted as often as it has units."""
        units = self.units(table)
        return table.with_counts(table.positives * units, table.negatives * units, without=self.column)

    def dropped(self, table: PatternTable) -> PatternTable:
        """The table without the weight, each record counted once."""
        return table.with_counts(table.positives, table.negatives, without=self.column)

    def check(self, data: Any) -> None:
        """Raise if there is no such column, or no record has a weight above 0, before anything is paid for."""
        codes = count_codes(data, [self.coded]).of_column(0)
        if len(codes) and not self.coded.expand(codes).any():
            raise ValueError(
                f"weight {self.column!r}: no record has a number above 0 there: name the column of the weights, and choose "
                "max_weight of their size (nothing was spent)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"column": self.column, "max_weight": self.largest, "units": UNITS}

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """The inverse of `to_dict`."""
        check_keys(values, ("column", "max_weight", "units"), "weight")
        assert isinstance(values, Mapping)
        if values.get("units") != UNITS or not isinstance(values.get("column"), str):
            raise ValueError(f"weight: it must name its column and have {UNITS} units")
        return cls(values["column"], values.get("max_weight"))  # type: ignore[arg-type]


def attached(frame: Any, weights: ArrayLike) -> Any:
    """A table in memory with the weights, one for each row, as the column `sample_weight`. Each is read on its own."""
    check_order(frame)
    table = collected(frame)
    if BESIDE in names_of(table):
        raise ValueError(f"X has a column {BESIDE!r}, which is what the weights are called: rename it or leave it out")
    given = as_given(weights)
    if given.shape != (len(table),):
        raise ValueError(f"sample_weight has shape {given.shape} for {len(table)} records: give one weight per record")
    if hasattr(table, "assign"):
        return table.assign(**{BESIDE: given})
    column = column_of(given.tolist())
    if hasattr(table, "append_column"):
        return table.append_column(BESIDE, column)
    return table.hstack(type(table)({BESIDE: column}))
