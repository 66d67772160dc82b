"""What a private draft counts: for every column how many values are missing, texts, or numbers in which cell of its grid.

One query for some dozens of columns in an engine, whatever the size of the table; texts are counted in other ones, for columns
of texts. An engine that stores columns apart reads each once per query; a CSV file, which does not, is read once per column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.columns import LARGEST_INTEGER
from privsolve.data.connection import read_each_value
from privsolve.data.engines import is_ibis_table, run
from privsolve.data.expressions import number_of, text_of
from privsolve.data.frames import as_frame
from privsolve.data.private.grids import Grid
from privsolve.data.reading import PLAIN, SPACES, Marks
from privsolve.data.series import float_of, is_real, known_values, number_parser, numbers_of

MISSING_CODE, TEXT_CODE, NUMBERS = 0, 1, 2
"""Codes: missing, text or neither, and from 2 on twice the cell of a number, one more if it is not whole."""

SMALL_NUMBERS = range(21)
"""Whole numbers that are counted one by one."""

NA_CODES = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "#N/A")
"""Texts that stand for no value in files of most programs."""

TOGETHER = 32
"""Columns that one query counts: of several hundred an engine would need more memory than it is given."""


@dataclass(frozen=True)
class Kinds:
    """Exact counts of one column: not private."""

    missing: int
    texts: int
    cells: Int64Array
    fractions: Int64Array
    """Numbers by cell of the grid: all of them, and those that are not whole."""

    def whole_at(self, cell: int | None) -> int:
        """Whole numbers in a cell; none where there is no such cell."""
        return 0 if cell is None else int(self.cells[cell] - self.fractions[cell])


@dataclass(frozen=True)
class Declared:
    """What the definition of a table says, which is public: the names of its columns and, in an engine, some types."""

    names: tuple[str, ...]
    booleans: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    neither: frozenset[str] = frozenset()
    """Neither texts, numbers nor booleans, such as dates."""

    @classmethod
    def of(cls, data: Any) -> Declared:
        """Types of frames in memory are not used: they are inferred from all records together (theory, section 12)."""
        if not is_ibis_table(data):
            frame = as_frame(data)
            check_texts(frame.columns)
            return cls(tuple(frame.columns))
        kinds = {name: data[name].type() for name in data.columns}
        booleans = frozenset(name for name, kind in kinds.items() if kind.is_boolean())
        texts = frozenset(name for name, kind in kinds.items() if kind.is_string())
        numbers = {n for n, k in kinds.items() if k.is_floating() or k.is_integer() or k.is_decimal()}
        return cls(tuple(kinds), booleans, texts, frozenset(kinds) - booleans - texts - numbers)


def count_records(data: Any) -> int:
    """How many there are: public where a record is replaced."""
    if is_ibis_table(data):
        return int(run(data.aggregate(records=data.count()))["records"][0].as_py())
    return len(as_frame(data))


def check_texts(names: Iterable[object]) -> None:
    """Raise unless names of columns are texts, as they are in a schema."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"the names of columns must be texts, got {name!r}: rename them, for example by "
                "data.columns = data.columns.map(str)"
            )


def count_kinds(data: Any, grids: Mapping[str, Grid], marks: Marks = PLAIN) -> dict[str, Kinds]:
    """The counts of these columns, in which `marks` stand for no value."""
    sizes = {name: NUMBERS + 2 * (len(grid.points) + 1) for name, grid in grids.items()}
    if is_ibis_table(data):
        table = read_each_value(data)
        histograms: dict[str, Int64Array] = {}
        for names in batched(grids):
            histograms |= _in_engine(table, {name: grids[name] for name in names}, sizes, marks)
    else:
        frame = as_frame(data)
        histograms = {
            name: np.bincount(_codes(frame[name], grid, marks), minlength=sizes[name]) for name, grid in grids.items()
        }
    return {name: _kinds(histogram) for name, histogram in histograms.items()}


def _kinds(histogram: Int64Array) -> Kinds:
    whole, fractions = histogram[NUMBERS::2], histogram[NUMBERS + 1 :: 2]
    return Kinds(int(histogram[MISSING_CODE]), int(histogram[TEXT_CODE]), whole + fractions, fractions)


def _codes(series: Any, grid: Grid, marks: Marks) -> Int64Array:
    """The code of every value, each read by itself."""
    if series.dtype.is_integer() or series.dtype.is_float() or series.dtype == nw.Boolean:
        numbers = numbers_of(series, series.name, marks)
        others = np.full(len(series), MISSING_CODE)
    else:
        parsed, plain = number_parser(marks), number_parser(Marks(comma=marks.comma))
        values = known_values(series)
        numbers = np.array([_number(value, parsed) for value in values], dtype=np.float64)
        numbers[np.isin(numbers, marks.numbers)] = math.nan
        others = np.array([_missing_or_text(value, marks, plain) for value in values], dtype=np.int64)
    known = ~np.isnan(numbers)
    inside = np.where(known, numbers, 0.0)
    with np.errstate(invalid="ignore"):
        fraction = ~(inside % 1 == 0)
    codes = NUMBERS + 2 * grid.cells(inside) + fraction
    return np.where(known, codes, others).astype(np.int64)


def _number(value: object, parsed: Callable[[str], float]) -> float:
    """The number that a value is, NaN if it is none."""
    if isinstance(value, str):
        return parsed(value.strip(SPACES))
    return float_of(value) if is_real(value) else math.nan


def _missing_or_text(value: object, marks: Marks, plain: Callable[[str], float]) -> int:
    """The code of a value that is no number, or one that stands for no value."""
    if isinstance(value, str):
        text = value.strip(SPACES)
        return TEXT_CODE if text and text not in marks.texts and plain(text) not in marks.numbers else MISSING_CODE
    return MISSING_CODE if value is None or is_real(value) else TEXT_CODE


def batched(names: Iterable[str]) -> Iterator[list[str]]:
    """The names of one query after the other."""
    left = iter(names)
    while some := list(islice(left, TOGETHER)):
        yield some


def _in_engine(table: Any, grids: Mapping[str, Grid], sizes: Mapping[str, int], marks: Marks) -> dict[str, Int64Array]:
    """One query: the different values of every column are counted first, so that reading them costs little.

    The columns are laid below each other before codes are made, so that the query says once what a grid is.
    """
    import ibis

    places = {name: i for i, name in enumerate(grids)}
    rows = ibis.union(*(_read(table, name, place, marks) for name, place in places.items()))
    by_grid: dict[Grid, list[int]] = {}
    for name, grid in grids.items():
        by_grid.setdefault(grid, []).append(places[name])
    inside = rows.number.coalesce(0.0)
    cells = [(rows.place.isin(those), grid.cell(inside)) for grid, those in by_grid.items()]
    cell = cells[0][1] if len(cells) == 1 else ibis.cases(*cells[:-1], else_=cells[-1][1])
    small = ibis.least(ibis.greatest(inside, -float(LARGEST_INTEGER)), float(LARGEST_INTEGER))
    whole = (small.floor() == small) & ~inside.isinf()
    number = NUMBERS + 2 * cell + whole.ifelse(0, 1)
    code = ibis.cases((rows.number.notnull(), number), (rows.text, TEXT_CODE), else_=MISSING_CODE).cast("int64")
    coded = rows.select(place=rows.place, code=code, records=rows.records)
    found = run(coded.group_by(["place", "code"]).aggregate(records=coded.records.sum()))
    histograms = {name: np.zeros(sizes[name], dtype=np.int64) for name in grids}
    columns = (found[name].to_numpy().astype(np.int64) for name in ("place", "code", "records"))
    names = list(grids)
    for place, which, records in zip(*columns, strict=True):
        histograms[names[place]][which] = records
    return histograms


def _read(table: Any, name: str, place: int, marks: Marks) -> Any:
    """The different values of a column: each as a number or null, whether it is a text, and how many records have it."""
    import ibis

    values = table.select(value=table[name])
    counted = values.group_by("value").aggregate(records=values.count())
    text = ibis.literal(False)
    if counted.value.type().is_string():
        text = text_of(counted.value, name, marks).notnull()
        if marks.numbers:
            text = text & ~number_of(counted.value, name).coalesce(math.nan).isin(list(marks.numbers))
    return counted.select(
        place=ibis.literal(place, type="int64"), number=number_of(counted.value, name, marks), text=text,
        records=counted.records,
    )  # fmt: skip


def count_texts(
    data: Any, names: Sequence[str], least: int, marks: Marks = PLAIN, always: Sequence[str] = ()
) -> dict[str, dict[str, int]]:
    """For every column, how many records have each text that is no number: of those that `least` records or more have, and of
    those in `always`.
    """
    if not is_ibis_table(data):
        frame, parsed = as_frame(data), number_parser(Marks(comma=marks.comma))
        found = {}
        for name in names:
            values = [] if frame[name].dtype.is_numeric() else known_values(frame[name])
            counted = Counter(value.strip(SPACES) for value in values if isinstance(value, str))
            found[name] = {
                text: count
                for text, count in counted.items()
                if (count >= least or text in always) and text and text not in marks.texts and math.isnan(parsed(text))
            }
        return found
    table = read_each_value(data)
    result: dict[str, dict[str, int]] = {name: {} for name in names}
    for some in batched(name for name in names if table[name].type().is_string()):
        result |= _texts_in_engine(table, some, least, marks, always)
    return result


def _texts_in_engine(
    table: Any, names: Sequence[str], least: int, marks: Marks, always: Sequence[str]
) -> dict[str, dict[str, int]]:
    import ibis

    parts = []
    for place, name in enumerate(names):
        values = table.select(value=table[name])
        counted = values.group_by("value").aggregate(records=values.count())
        number = number_of(counted["value"], name, Marks(comma=marks.comma))
        texts = counted.select(text=text_of(counted["value"], name, marks), number=number, records=counted["records"])
        texts = texts.filter(texts["text"].notnull() & texts["number"].isnull())
        summed = texts.group_by("text").aggregate(records=texts["records"].sum())
        enough = summed["records"] >= least
        kept = summed.filter(enough | summed["text"].isin(list(always)) if always else enough)
        parts.append(kept.mutate(place=ibis.literal(place, type="int64")))
    found = run(ibis.union(*parts)).to_pylist()
    result: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in found:
        result[names[int(row["place"])]][row["text"]] = int(row["records"])
    return result
