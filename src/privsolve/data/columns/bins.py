"""A number cut at public points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Floats, Int64Array, IntArray
from privsolve.checks import check_choice
from privsolve.data.columns.base import (
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
    number_text,
    option_name,
    tidy,
)
from privsolve.data.columns.categories import indicators
from privsolve.data.questions import Choice, Option, Question, Span
from privsolve.data.reading import number_of, numbers_of


class Encoding(StrEnum):
    """How bins become features."""

    INTERVALS = "intervals"
    """One feature for each bin."""

    THRESHOLDS = "thresholds"
    """One feature for each cut: at least so much."""


MOST_CUTS = 2000
"""An answer of thresholds has as many features as cuts lie below it, so that their number grows with the square."""


@dataclass(frozen=True)
class Bins(Column):
    """A number cut at public points: `v` is in the bin of all cuts `<= v`, so that a value at a cut opens the next bin.

    `"thresholds"` gives every cut an indicator (`v >= cut`), `"intervals"` every bin. `whole` says that values are whole
    numbers, for names such as `age=25-34`. A missing value has no indicator, or that of the `missing` option;
    `missing_values` are missing too, such as -999, and texts are read with the sign `decimal`.
    """

    key: ClassVar[str] = "bins"
    keys: ClassVar[tuple[str, ...]] = ("bins", "encoding", "whole", "missing", "missing_values", "decimal")

    column: str
    cuts: tuple[Real, ...]
    encoding: Encoding = Encoding.THRESHOLDS
    whole: bool = False
    missing: str | None = None
    missing_values: tuple[Value, ...] = ()
    decimal: str = "."

    def __init__(
        self,
        column: str,
        cuts: Sequence[Real],
        encoding: Encoding | str = Encoding.THRESHOLDS,
        whole: bool = False,
        missing: str | None = None,
        missing_values: Sequence[Value] = (),
        decimal: str = ".",
    ) -> None:
        where = f"columns.{column}"
        if isinstance(cuts, str) or not isinstance(cuts, Sequence) or not cuts:
            raise ValueError(f"{where}: bins must be a non-empty list of cut points")
        if len(cuts) > MOST_CUTS:
            raise ValueError(f"{where}: bins must have at most {MOST_CUTS:,} cut points, got {len(cuts):,}")
        points = tuple(tidy(check_real(cut, f"{where}: bins")) for cut in cuts)
        if any(b <= a for a, b in pairwise(points)):
            raise ValueError(f"{where}: bins must be in ascending order without repeats, got {list(cuts)}")
        encoding = check_choice(f"{where}: encoding", encoding, Encoding)
        if not isinstance(whole, bool):
            raise ValueError(f"{where}: whole must be true or false, got {whole!r}")
        if whole and any(isinstance(cut, float) for cut in points):
            raise ValueError(f"{where}: bins must be whole numbers where whole = true, got {list(cuts)}")
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "cuts", points)
        set_field(self, "encoding", encoding)
        set_field(self, "whole", whole)
        set_field(self, "missing", option_name(missing, f"{where}: missing"))
        set_field(self, "missing_values", check_missing_values(missing_values, where))
        set_field(self, "decimal", check_decimal(decimal, where))

    @property
    def radix(self) -> int:
        """Codes are the bins in order, then missing."""
        return len(self.cuts) + 2

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values that are in no bin."""
        return {MISSING: len(self.cuts) + 1}

    @property
    def names(self) -> tuple[str, ...]:
        """The features, all 0/1."""
        if self.encoding is Encoding.INTERVALS:
            names = [self._bin_name(i) for i in range(len(self.cuts) + 1)]
        else:
            names = [f"{self.column}>={self._cut_text(cut)}" for cut in self.cuts]
        return (*names, f"{self.column}={self.missing}") if self.missing is not None else tuple(names)

    def _bin_name(self, i: int) -> str:
        if i in (0, len(self.cuts)):
            return self.column + self._range_text(i)
        if self.whole:
            return f"{self.column}={self._range_text(i)}"
        return f"{number_text(self.cuts[i - 1])}<={self.column}<{number_text(self.cuts[i])}"

    def _range_text(self, i: int) -> str:
        """Bin i as the answer to a question."""
        if i == 0:
            return f"<{number_text(self.cuts[0])}"
        if i == len(self.cuts):
            return f">={number_text(self.cuts[-1])}"
        low, high = self.cuts[i - 1], self.cuts[i]
        if not self.whole:
            return f"{number_text(low)} to below {number_text(high)}"
        return number_text(low) if high == low + 1 else f"{number_text(low)}-{number_text(high - 1)}"

    def _span(self, low: Real | None, high: Real | None) -> Span:
        """The values of a bin."""
        return Span(low, high, self.whole)

    def _cut_text(self, cut: Real) -> str:
        """A cut as people write it."""
        return number_text(cut)

    def _values(self, series: Any) -> Floats:
        """What is cut, of a narwhals series; NaN where it is missing."""
        return numbers_of(series, self.column, marks_of(self.missing_values, self.decimal))

    def read(self, value: Any) -> Any:
        """What is cut, in an engine; null where it is missing."""
        return number_of(value, self.column, marks_of(self.missing_values, self.decimal))

    def codes(self, series: Any) -> Int64Array:
        """Bins in order, then missing."""
        values = self._values(series)
        codes = np.searchsorted(np.array(self.cuts, dtype=np.float64), values, side="right")
        return np.where(np.isnan(values), self.outside[MISSING], codes).astype(np.int64)

    def code(self, read: Any) -> Any:
        """The same in an engine."""
        import ibis

        below = ((read < float(cut), i) for i, cut in enumerate(self.cuts))
        return ibis.cases((read.isnull(), self.outside[MISSING]), *below, else_=len(self.cuts))

    def expand(self, codes: Int64Array) -> IntArray:
        """The indicators of every code."""
        m, missing = len(self.cuts), codes == self.outside[MISSING]
        last = len(self.names) - 1 if self.missing is not None else -1
        if self.encoding is Encoding.INTERVALS:
            return indicators(np.where(missing, last, codes), len(self.names))
        rows = indicators(np.where(missing, last, -1), len(self.names))
        rows[:, :m] |= (codes[:, None] > np.arange(m)) & ~missing[:, None]
        return rows

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        spans = [self._span(low, high) for low, high in pairwise((None, *self.cuts, None))]
        ones = [
            self.names[i : i + 1] if self.encoding is Encoding.INTERVALS else self.names[:i] for i in range(len(spans))
        ]
        options = [Option(span.text, features, span) for span, features in zip(spans, ones, strict=True)]
        if self.missing is not None:
            options.append(Option(self.missing, self.names[-1:]))
        return Choice(self.column, tuple(options))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"bins": list(self.cuts), "encoding": self.encoding}
        settings |= ({"whole": True} if self.whole else {}) | declared(missing=self.missing)
        return settings | declared_marks(self.missing_values, self.decimal)

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Bins:
        """As in a schema file."""
        return cls(name, settings["bins"], **{key: value for key, value in settings.items() if key != "bins"})
