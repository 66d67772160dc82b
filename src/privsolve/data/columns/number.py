"""A number between public bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.data.columns.base import (
    ABOVE,
    BELOW,
    LARGEST_INTEGER,
    MISSING,
    Column,
    Real,
    Value,
    check_decimal,
    check_missing_values,
    check_real,
    declared,
    declared_marks,
    marks_of,
    tidy,
)
from privsolve.data.patterns import narrowest
from privsolve.data.questions import Quantity, Question
from privsolve.data.reading import number_of, numbers_of


@dataclass(frozen=True)
class Number(Column):
    """A number between public bounds: the feature is `floor(v / step + 1/2)` after clipping, and stands for itself / `scale`.

    A missing value counts as the number `missing`, which is `low` unless stated; `missing_values` are missing too, such
    as -999, and texts are read with the sign `decimal`.
    """

    key: ClassVar[str] = "low"
    keys: ClassVar[tuple[str, ...]] = ("low", "high", "step", "scale", "missing", "missing_values", "decimal")
    needs: ClassVar[tuple[str, ...]] = ("high",)

    column: str
    low: Real
    high: Real
    step: Real = 1
    scale: int = 1
    missing: Real | None = None
    missing_values: tuple[Value, ...] = ()
    decimal: str = "."

    def __post_init__(self) -> None:
        where = f"columns.{self.column}"
        for key in ("low", "high", "step"):
            object.__setattr__(self, key, tidy(check_real(getattr(self, key), f"{where}: {key}")))
        if self.low >= self.high:
            raise ValueError(f"{where}: low must be less than high, got {self.low} and {self.high}")
        if self.step <= 0:
            raise ValueError(f"{where}: step must be positive, got {self.step}")
        if isinstance(self.scale, bool) or not isinstance(self.scale, int) or self.scale < 1:
            raise ValueError(f"{where}: scale must be a positive whole number, got {self.scale!r}")
        if max(abs(self.low), abs(self.high)) / self.step >= LARGEST_INTEGER:
            raise ValueError(f"{where}: step is too small for these bounds: they must be fewer than 2^53 steps from 0")
        if self.missing is not None:
            object.__setattr__(self, "missing", tidy(check_real(self.missing, f"{where}: missing")))
            if not self.low <= self.missing <= self.high:
                raise ValueError(f"{where}: missing must lie between low and high, got {self.missing}")
        object.__setattr__(self, "missing_values", check_missing_values(self.missing_values, where))
        check_decimal(self.decimal, where)

    def steps(self, value: Real) -> int:
        """The feature of a value within the bounds."""
        return math.floor(float(value) / float(self.step) + 0.5)

    @property
    def first(self) -> int:
        """The least value of the feature."""
        return self.steps(self.low)

    @property
    def radix(self) -> int:
        """Codes are below, then the steps in order, then above, then missing."""
        return self.steps(self.high) - self.first + 4

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values out of bounds."""
        return {BELOW: 0, ABOVE: self.radix - 2, MISSING: self.radix - 1}

    @property
    def names(self) -> tuple[str, ...]:
        """One feature, named like the column."""
        return (self.column,)

    @property
    def scales(self) -> tuple[int, ...]:
        """The scale."""
        return (self.scale,)

    @property
    def range(self) -> tuple[int, int]:
        """The steps of the bounds."""
        return self.first, self.steps(self.high)

    def codes(self, series: Any) -> Int64Array:
        """Below, then the steps in order, then above, then missing."""
        values = numbers_of(series, self.column, marks_of(self.missing_values, self.decimal))
        low, high, missing = float(self.low), float(self.high), np.isnan(values)
        inside = np.clip(np.where(missing, low, values), low, high)
        codes = np.floor(inside / float(self.step) + 0.5).astype(np.int64) - self.first + 1
        for outside, fate in ((values < low, BELOW), (values > high, ABOVE), (missing, MISSING)):
            codes[outside] = self.outside[fate]
        return codes

    def read(self, value: Any) -> Any:
        """The number, in an engine; null where it is missing."""
        return number_of(value, self.column, marks_of(self.missing_values, self.decimal))

    def code(self, read: Any) -> Any:
        """The same in an engine."""
        import ibis

        low, high = float(self.low), float(self.high)
        # clipped inside the branch too: an engine may compute it for rows that take another branch
        inside = ibis.least(ibis.greatest(read.coalesce(low), low), high)
        steps = (inside / float(self.step) + 0.5).floor().cast("int64")
        return ibis.cases(
            (read.isnull(), self.outside[MISSING]),
            (read < low, self.outside[BELOW]),
            (read > high, self.outside[ABOVE]),
            else_=steps - self.first + 1,
        )

    def expand(self, codes: Int64Array) -> IntArray:
        """The feature of every code."""
        values = np.clip(codes - 1, 0, self.radix - 4) + self.first
        features = np.where(codes == self.outside[MISSING], self._if_missing, values)
        return features.astype(narrowest(*self.range))[:, None]

    @property
    def stands_for_missing(self) -> Real:
        """The number that a missing value counts as."""
        return self.low if self.missing is None else self.missing

    @property
    def _if_missing(self) -> int:
        return self.steps(self.stands_for_missing)

    def points(self, read: Any, weights: Sequence[int]) -> Any:
        """The column's part of a score in an engine."""
        import ibis

        code, (weight,) = self.code(read).cast("int64"), weights
        features = self.expand(np.array(list(self.outside.values())))[:, 0]
        outside = [(code == k, int(x) * weight) for k, x in zip(self.outside.values(), features, strict=True)]
        return ibis.cases(*outside, else_=(code - 1 + self.first) * weight)

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        return Quantity(self.column, self.column, float(self.low), float(self.high), float(self.step), self.scale)

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"low": self.low, "high": self.high, "step": self.step, "scale": self.scale}
        return settings | declared(missing=self.missing) | declared_marks(self.missing_values, self.decimal)

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Number:
        """As in a schema file."""
        return cls(name, **settings)
