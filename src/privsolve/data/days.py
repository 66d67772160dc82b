"""How a day is read: a date, a point in time or a text becomes the number `yyyymmdd`, the same in Python and in engines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import narwhals as nw
import numpy as np

from privsolve.arrays import Floats
from privsolve.data.expressions import stripped
from privsolve.data.reading import PLAIN, SPACES, Marks
from privsolve.data.series import known_values

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
