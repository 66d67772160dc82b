"""What a draft looks at: a few figures of a column, exact, the same whatever the table is. They depend on the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.data.columns import Value, tidy
from privsolve.data.columns.values import marks_of
from privsolve.data.days import ISO, day_parser, days_of
from privsolve.data.engines import is_ibis_table, run
from privsolve.data.frames import as_frame
from privsolve.data.reading import Marks
from privsolve.data.series import number_parser, numbers_of, texts_of

MOST_VALUES = 20
"""Columns with more different values than this are not listed as categories."""

QUARTILES = (0.25, 0.5, 0.75)

NA_CODES = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "#N/A")
"""Texts that stand for no value in files of most programs."""

MOST_CELLS = 10_000_000
"""Of a larger table in an engine, a draft looks at so many values, of records chosen at random."""

DATE_FORMATS = (ISO, "DD.MM.YYYY")
"""In which dates are found; others could be read in more than one way."""


THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


class Kind(StrEnum):
    """How a column reads."""

    TEXT = "text"
    NUMBER = "number"
    COMMA = "number with a decimal comma"
    BOOLEAN = "boolean"
    DATE = "date"


@dataclass(frozen=True)
class Profile:
    """A column: how it reads (None if it cannot be read), and a few figures.

    `values` are the different values in order, or None if there are more than MOST_VALUES. `cuts` are the quartiles, and
    `upper_cuts` those of the values above the least one, for columns that are mostly one value. Dates are numbers
    `yyyymmdd`, written in a `format`. `codes` are the texts in the column that stand for no value.
    """

    kind: Kind | None
    records: int
    missing: int = 0
    values: tuple[Value, ...] | None = None
    distinct: int = 0
    least: float = 0.0
    largest: float = 0.0
    whole: bool = False
    cuts: tuple[float, ...] = ()
    upper_cuts: tuple[float, ...] = ()
    codes: tuple[str, ...] = ()
    format: str = ISO


def profiles(data: Any, missing: Sequence[Value] = (), columns: Sequence[str] | None = None) -> dict[str, Profile]:
    """A profile of every column, or of those named; values in `missing` are missing.

    A table in an engine is fetched by one query, whatever the number of its columns; of a very large one, a sample.
    """
    frame = as_frame(_fetched(data, columns) if is_ibis_table(data) else data, columns)
    check_texts(frame.columns)
    marks = marks_of((*NA_CODES, *missing))
    names = frame.columns if columns is None else [name for name in frame.columns if name in columns]
    return {name: _profile(frame[name], name, marks) for name in names}


def _fetched(table: Any, columns: Sequence[str] | None) -> Any:
    """The records, or a sample of them."""
    if columns is not None:
        table = table.select([name for name in table.columns if name in columns])
    records = int(run(table.aggregate(records=table.count()))["records"][0].as_py())
    cells = records * len(table.columns)
    return run(table if cells <= MOST_CELLS else table.sample(MOST_CELLS / cells, seed=0))


def check_texts(names: Sequence[object]) -> None:
    """Raise unless names of columns are texts, as they are in a schema."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"the names of columns must be texts, got {name!r}: rename them, for example by "
                "data.columns = data.columns.map(str)"
            )


def _profile(series: Any, name: str, marks: Marks) -> Profile:
    if series.dtype == nw.Boolean:
        return _of_numbers(_counted(numbers_of(series, name)), Kind.BOOLEAN, len(series))
    if series.dtype.is_numeric():
        return _of_numbers(_counted(numbers_of(series, name, marks)), Kind.NUMBER, len(series))
    try:
        if series.dtype == nw.Date or series.dtype == nw.Datetime:
            return _of_numbers(_counted(days_of(series, name, ISO, marks)), Kind.DATE, len(series))
        texts = Counter(text for text in texts_of(series, name) if text is not None)
    except ValueError:
        return _of_objects(series, name, marks)
    return _of_texts(texts, len(series), marks)


def _of_objects(series: Any, name: str, marks: Marks) -> Profile:
    """Numbers, texts that are numbers, and dates, side by side."""
    try:
        return _of_numbers(_counted(numbers_of(series, name, marks)), Kind.NUMBER, len(series))
    except ValueError:
        pass
    try:
        return _of_numbers(_counted(days_of(series, name, ISO, marks)), Kind.DATE, len(series))
    except ValueError:
        return Profile(None, len(series))


def _of_texts(texts: Mapping[str, int], records: int, marks: Marks) -> Profile:
    """The first way to read that reads all of them but the codes for no value."""
    known = {text: count for text, count in texts.items() if text not in marks.texts}
    counts = np.array(list(known.values()), dtype=np.int64)
    codes = tuple(sorted(text for text in texts if text in marks.texts))
    parse, comma = (number_parser(Marks(numbers=marks.numbers, comma=comma)) for comma in (False, True))
    ways = [(Kind.NUMBER, parse, ISO), (Kind.COMMA, comma, ISO), *((Kind.DATE, day_parser(f), f) for f in DATE_FORMATS)]
    for kind, read, form in ways:
        numbers = np.array([read(text) for text in known])
        if not len(known) or np.isnan(numbers).any() or (kind is Kind.COMMA and _may_be_thousands(known)):
            continue
        words = kind is Kind.NUMBER and all(text.lower() in ("true", "false") for text in known)
        of_codes = np.isin(numbers, marks.numbers)
        read_ones = (numbers[~of_codes], counts[~of_codes])
        return _of_numbers(read_ones, Kind.BOOLEAN if words else kind, records, codes, form)
    return _listed(Kind.TEXT, records, records - int(counts.sum()), sorted(known), codes)


def _may_be_thousands(texts: Iterable[str]) -> bool:
    """Whether every comma has three digits behind it: then it may separate thousands, and nothing is guessed."""
    return all(THOUSANDS.fullmatch(text.strip()) for text in texts if "," in text)


def _counted(numbers: Floats) -> tuple[Floats, Int64Array]:
    values, counts = np.unique(numbers[~np.isnan(numbers)] + 0.0, return_counts=True)
    return values, counts.astype(np.int64)


def _of_numbers(
    counted: tuple[Floats, NDArray[np.int64]], kind: Kind, records: int, codes: tuple[str, ...] = (), form: str = ISO
) -> Profile:
    """Of values with how often each occurs, not necessarily different or in order."""
    known = np.repeat(*counted)
    values = np.unique(known + 0.0)
    listed = [_value(v, kind) for v in values[: MOST_VALUES + 1] if np.isfinite(v)]
    finite = known[np.isfinite(known)]
    if kind is Kind.BOOLEAN or not len(finite):
        return _listed(kind, records, records - len(known), listed, codes)
    upper = finite[finite > finite.min()]
    return Profile(
        kind, records, records - len(known), tuple(listed) if len(values) <= MOST_VALUES else None, len(values),
        float(finite.min()), float(finite.max()), bool((finite % 1 == 0).all()), _quartiles(finite), _quartiles(upper),
        codes, form,
    )  # fmt: skip


def _quartiles(numbers: Floats) -> tuple[float, ...]:
    return tuple(map(float, np.quantile(numbers, QUARTILES))) if len(numbers) else ()


def _listed(kind: Kind, records: int, missing: int, values: Sequence[Value], codes: tuple[str, ...]) -> Profile:
    few = tuple(values) if len(values) <= MOST_VALUES else None
    return Profile(kind, records, missing, few, len(values), codes=codes)


def _value(value: Any, kind: Kind) -> Value:
    return bool(value) if kind is Kind.BOOLEAN else tidy(value)
