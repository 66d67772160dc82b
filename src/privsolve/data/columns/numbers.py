"""Numbers cut at public points or between public bounds, and dates, which are cut like numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.checks import check_choice
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
    number_text,
    option_name,
    tidy,
)
from privsolve.data.columns.categories import indicators
from privsolve.data.patterns import narrowest
from privsolve.data.questions import Choice, DateSpan, Option, Quantity, Question, Span
from privsolve.data.reading import Marks, is_mixed, number_of, stripped


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
    cuts: Sequence[Real]
    encoding: Encoding | str = Encoding.THRESHOLDS
    whole: bool = False
    missing: str | None = None
    missing_values: Sequence[Value] = ()
    decimal: str = "."

    def __post_init__(self) -> None:
        where, cuts = f"columns.{self.column}", self.cuts
        if isinstance(cuts, str) or not isinstance(cuts, Sequence) or not cuts:
            raise ValueError(f"{where}: bins must be a non-empty list of cut points")
        if len(cuts) > MOST_CUTS:
            raise ValueError(f"{where}: bins must have at most {MOST_CUTS:,} cut points, got {len(cuts):,}")
        points = tuple(tidy(check_real(cut, f"{where}: bins")) for cut in cuts)
        if any(b <= a for a, b in pairwise(points)):
            raise ValueError(f"{where}: bins must be in ascending order without repeats, got {list(cuts)}")
        if not isinstance(self.whole, bool):
            raise ValueError(f"{where}: whole must be true or false, got {self.whole!r}")
        if self.whole and any(isinstance(cut, float) for cut in points):
            raise ValueError(f"{where}: bins must be whole numbers where whole = true, got {list(cuts)}")
        set_field = object.__setattr__
        set_field(self, "cuts", points)
        set_field(self, "encoding", check_choice(f"{where}: encoding", self.encoding, Encoding))
        option_name(self.missing, f"{where}: missing")
        set_field(self, "missing_values", check_missing_values(self.missing_values, where))
        check_decimal(self.decimal, where)

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

    def read(self, value: Any) -> Any:
        """What is cut; null where it is missing."""
        return number_of(value, self.column, marks_of(self.missing_values, self.decimal))

    def code(self, read: Any) -> Any:
        """Bins in order, then missing."""
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


_TIME = r"([T ][0-9:.,+Z -]{1,40})?$"
ISO = "YYYY-MM-DD"
FORMATS: dict[str, tuple[str, tuple[int, int, int]]] = {
    ISO: (r"^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})" + _TIME, (1, 2, 3)),
    "DD.MM.YYYY": (r"^([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})" + _TIME, (3, 2, 1)),
    "DD/MM/YYYY": (r"^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})" + _TIME, (3, 2, 1)),
    "MM/DD/YYYY": (r"^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})" + _TIME, (3, 1, 2)),
}
"""The pattern of a text in every format, and which of its groups are year, month and day."""

_LONG_MONTHS = (1, 3, 5, 7, 8, 10, 12)


def number_of_day(day: object, where: str) -> int:
    """The number of a day that is stated: a date, or a text such as "1990-01-31"."""
    if isinstance(day, int) and not isinstance(day, bool):  # as `cuts` holds it
        day = f"{day // 10_000:04d}-{day // 100 % 100:02d}-{day % 100:02d}"
    try:
        found = day if isinstance(day, date) else date.fromisoformat(day) if isinstance(day, str) else None
    except ValueError:
        found = None
    if found is None or isinstance(found, datetime):
        raise ValueError(f'{where} must hold days such as "1990-01-31", got {day!r}')
    return found.year * 10_000 + found.month * 100 + found.day


def day_of(value: Any, name: str, form: str, marks: Marks) -> Any:
    """The number of a day as an expression of Ibis; null where there is none."""
    import ibis

    kind, null = value.type(), ibis.null("float64")
    if is_mixed(kind):
        day = value["day"]
        return ibis.cases(
            (day.notnull(), day_of(day, name, form, marks)), else_=day_of(value["text"], name, form, marks)
        )
    if kind.is_date() or kind.is_timestamp():
        if getattr(kind, "timezone", None) is not None:
            raise _with_time_zone(name)
        return (value.year() * 10_000 + value.month() * 100 + value.day()).cast("float64")
    if not kind.is_string():
        raise not_days(name, str(kind))
    pattern, groups = FORMATS[form]
    text = stripped(value)
    matches = text.re_search(pattern)
    parts = [ibis.cases((matches, text.re_extract(pattern, group)), else_="").nullif("") for group in groups]
    year, month, day = (part.try_cast("int64") for part in parts)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    last = ibis.cases((month.isin(_LONG_MONTHS), 31), (month != 2, 30), (is_leap, 29), else_=28)
    exists = (year >= 1) & month.between(1, 12) & (day >= 1) & (day <= last)
    missing = [(text.isin(list(marks.texts)), null)] if marks.texts else []
    number = (year * 10_000 + month * 100 + day).cast("float64")
    return ibis.cases(*missing, (exists, number), else_=null)


def not_days(name: str, kind: str) -> ValueError:
    """The error where a schema says that a column of something else holds dates."""
    return ValueError(f"column {name!r} holds {kind} values, not dates: use bins, or convert them to dates or texts")


def _with_time_zone(name: str) -> ValueError:
    return ValueError(f"column {name!r} has a time zone, in which a day depends on the place: convert it to dates")


@dataclass(frozen=True)
class Dates(Bins):
    """A date cut at public days: a date at a cut opens the next part. Times of day are left out.

    Dates are those of the data's own type, or texts in the `format`: `YYYY-MM-DD` unless stated, with or without a time behind
    it. Inside, a day is the number `yyyymmdd`, which orders days as the calendar does. `"thresholds"` gives every cut an
    indicator (`born>=1990-01-01`), `"intervals"` every part.
    """

    key: ClassVar[str] = "dates"
    keys: ClassVar[tuple[str, ...]] = ("dates", "encoding", "missing", "missing_values", "format")

    encoding: Encoding = Encoding.THRESHOLDS
    whole: bool = field(default=False, init=False)
    decimal: str = field(default=".", init=False)
    format: str = ISO

    def __init__(
        self,
        column: str,
        cuts: Sequence[date | str | float],
        encoding: Encoding | str = Encoding.THRESHOLDS,
        missing: str | None = None,
        missing_values: Sequence[Value] = (),
        format: str = ISO,
    ) -> None:
        where = f"columns.{column}"
        if isinstance(cuts, str) or not isinstance(cuts, Sequence) or not cuts:
            raise ValueError(f'{where}: dates must be a non-empty list of days such as "1990-01-31"')
        if format not in FORMATS:
            raise ValueError(f"{where}: format must be one of {', '.join(FORMATS)}, got {format!r}")
        days = [number_of_day(cut, f"{where}: dates") for cut in cuts]
        if sorted(set(days)) != days:
            raise ValueError(f"{where}: dates must be in ascending order without repeats")
        super().__init__(column, days, encoding, False, missing, missing_values)
        object.__setattr__(self, "format", format)

    def _cut_text(self, cut: float) -> str:
        day = f"{int(cut):08d}"
        return f"{day[:4]}-{day[4:6]}-{day[6:]}"

    def _range_text(self, i: int) -> str:
        if i == 0:
            return f"before {self._cut_text(self.cuts[0])}"
        if i == len(self.cuts):
            return f"from {self._cut_text(self.cuts[-1])} on"
        return f"{self._cut_text(self.cuts[i - 1])} to before {self._cut_text(self.cuts[i])}"

    def _span(self, low: Real | None, high: Real | None) -> Span:
        return DateSpan(low, high)

    def _bin_name(self, i: int) -> str:
        return f"{self.column} {self._range_text(i)}"

    def read(self, value: Any) -> Any:
        """The number of the day, in an engine; null where it is missing."""
        return day_of(value, self.column, self.format, marks_of(self.missing_values))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"dates": [self._cut_text(cut) for cut in self.cuts]}
        said = declared(
            encoding=self.encoding if self.encoding is not Encoding.THRESHOLDS else None,
            missing=self.missing,
            format=self.format if self.format != ISO else None,
        )
        return settings | said | declared_marks(self.missing_values)


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

    def read(self, value: Any) -> Any:
        """The number; null where it is missing."""
        return number_of(value, self.column, marks_of(self.missing_values, self.decimal))

    def code(self, read: Any) -> Any:
        """Below, then the steps in order, then above, then missing."""
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
