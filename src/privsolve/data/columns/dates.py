"""Dates: a day is read as the number `yyyymmdd`, the same in Python and in engines, and cut like other numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from privsolve.arrays import Floats
from privsolve.data.columns.base import Real, Value, declared, declared_marks, marks_of
from privsolve.data.columns.bins import Bins, Encoding
from privsolve.data.questions import DateSpan, Span
from privsolve.data.reading import PLAIN, SPACES, Marks, known_values, stripped

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


def days_of(series: Any, name: str, form: str, marks: Marks) -> Floats:
    """The numbers of days of a narwhals series; NaN where there is none."""
    kind = series.dtype
    if kind == nw.Date or (kind == nw.Datetime and getattr(kind, "time_zone", None) is None):
        parts = [_part(part) for part in (series.dt.year(), series.dt.month(), series.dt.day())]
        return np.asarray(parts[0] * 10_000 + parts[1] * 100 + parts[2])
    read, readable, others = day_parser(form, marks), False, set()
    values = known_values(series)
    found: Floats = np.full(len(values), math.nan)
    for i, value in enumerate(values):
        if isinstance(value, str):
            found[i], readable = read(value.strip(SPACES)), True
        elif isinstance(value, date) and getattr(value, "tzinfo", None) is None:
            found[i], readable = value.year * 10_000 + value.month * 100 + value.day, True
        elif value is not None:
            others.add(type(value))
    if others and not readable:
        odd = min(others, key=lambda one: one.__name__)
        raise _with_time_zone(name) if issubclass(odd, datetime) else not_days(name, odd.__name__)
    return found


def _part(series: Any) -> Floats:
    values = np.array(series.fill_null(0).to_numpy(), dtype=np.float64)
    values[np.asarray(series.is_null().to_numpy(), dtype=np.bool_)] = math.nan
    return values


def day_parser(form: str, marks: Marks = PLAIN) -> Callable[[str], float]:
    """What reads a text without surrounding spaces as a day."""
    pattern, groups = FORMATS[form]
    compiled = re.compile(pattern)

    def read(text: str) -> float:
        found = compiled.search(text)
        if found is None or text in marks.texts:
            return math.nan
        year, month, day = (int(found[group]) for group in groups)
        try:
            date(year, month, day)
        except ValueError:
            return math.nan
        return float(year * 10_000 + month * 100 + day)

    return read


def day_of(value: Any, name: str, form: str, marks: Marks) -> Any:
    """The same as an expression of Ibis; null where there is none."""
    import ibis

    kind, null = value.type(), ibis.null("float64")
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

    def _values(self, series: Any) -> Floats:
        return days_of(series, self.column, self.format, marks_of(self.missing_values))

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

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Dates:
        """As in a schema file."""
        return cls(name, settings["dates"], **{key: value for key, value in settings.items() if key != "dates"})
