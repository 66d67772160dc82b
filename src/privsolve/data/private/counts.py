"""What a private draft counts: for every column how many values are missing, texts, or numbers in which cell of its grid.

One query for some dozens of columns in an engine, whatever the size of the table; texts are counted in other ones, for columns
of texts. An engine that stores columns apart reads each once per query; a CSV file, which does not, is read once per column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.data.columns import LARGEST_INTEGER
from privsolve.data.connection import read_each_value
from privsolve.data.engines import is_ibis_table, run
from privsolve.data.expressions import number_of, text_of
from privsolve.data.frames import as_frame
from privsolve.data.private.grids import Grid
from privsolve.data.reading import PLAIN, SPACES, Marks
from privsolve.data.series import number_parser, numbers_of

MISSING_CODE, TEXT_CODE, NUMBERS = 0, 1, 2
"""Codes: missing, text, and from 2 on twice the cell of a number, one more if it is not whole."""

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

    @property
    def records(self) -> int:
        """How many there are."""
        return self.missing + self.texts + int(self.cells.sum())


def readable(data: Any) -> dict[str, bool]:
    """The columns that can be drafted, and whether each may hold texts: a fact of the format, which is public."""
    if is_ibis_table(data):
        kinds = {name: data[name].type() for name in data.columns}
        numeric = ("is_boolean", "is_floating", "is_integer", "is_decimal")
        found = {n: k.is_string() for n, k in kinds.items() if k.is_string() or any(getattr(k, w)() for w in numeric)}
        return found
    frame = as_frame(data)
    check_texts(frame.columns)
    types = {name: frame[name].dtype for name in frame.columns}
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown)
    return {
        name: isinstance(kind, texts) or kind in texts
        for name, kind in types.items()
        if kind.is_numeric() or kind == nw.Boolean or isinstance(kind, texts) or kind in texts
    }


def are_truths(data: Any, names: Iterable[str]) -> dict[str, bool]:
    """Which columns are true or false by their type, which is public."""
    if is_ibis_table(data):
        return {name: data[name].type().is_boolean() for name in names}
    frame = as_frame(data)
    return {name: frame[name].dtype == nw.Boolean for name in names}


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
            name: np.bincount(_codes(frame[name], name, grid, marks), minlength=sizes[name])
            for name, grid in grids.items()
        }
    return {name: _kinds(histogram) for name, histogram in histograms.items()}


def _kinds(histogram: Int64Array) -> Kinds:
    whole, fractions = histogram[NUMBERS::2], histogram[NUMBERS + 1 :: 2]
    return Kinds(int(histogram[MISSING_CODE]), int(histogram[TEXT_CODE]), whole + fractions, fractions)


def _codes(series: Any, name: str, grid: Grid, marks: Marks) -> Int64Array:
    numbers = numbers_of(series, name, marks)
    known = ~np.isnan(numbers)
    inside = np.where(known, numbers, 0.0)
    with np.errstate(invalid="ignore"):
        fraction = ~(inside % 1 == 0)
    codes = NUMBERS + 2 * grid.cells(inside) + fraction
    texts = _are_texts(series, marks)
    return np.where(known, codes, np.where(texts, TEXT_CODE, MISSING_CODE)).astype(np.int64)


def _are_texts(series: Any, marks: Marks) -> NDArray[np.bool_]:
    """Which values are texts with something in them, and are no numbers; a number that stands for no value is missing."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.zeros(len(series), dtype=np.bool_)
    nulls = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    parsed = number_parser(Marks(comma=marks.comma))

    def is_text(value: object) -> bool:
        text = value.strip(SPACES) if isinstance(value, str) else ""
        return bool(text) and text not in marks.texts and parsed(text) not in marks.numbers

    return np.array([is_text(value) for value in series.to_list()], dtype=np.bool_) & ~nulls


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


def count_texts(data: Any, names: Sequence[str], least: int, marks: Marks = PLAIN) -> dict[str, dict[str, int]]:
    """For every column, how many records have each text, of those that `least` records or more have."""
    if not is_ibis_table(data):
        frame = as_frame(data)
        counted = {
            name: Counter(v.strip(SPACES) for v in frame[name].to_list() if isinstance(v, str)) for name in names
        }
        empty = {"", *marks.texts}
        return {
            n: {text: c for text, c in found.items() if text not in empty and c >= least}
            for n, found in counted.items()
        }
    table = read_each_value(data)
    result: dict[str, dict[str, int]] = {}
    for some in batched(names):
        result |= _texts_in_engine(table, some, least, marks)
    return result


def _texts_in_engine(table: Any, names: Sequence[str], least: int, marks: Marks) -> dict[str, dict[str, int]]:
    import ibis

    parts = []
    for place, name in enumerate(names):
        texts = table.select(text=text_of(table[name], name, marks)).filter(lambda t: t["text"].notnull())
        counted = texts.group_by("text").aggregate(records=texts.count()).filter(lambda t: t["records"] >= least)
        parts.append(counted.mutate(place=ibis.literal(place, type="int64")))
    found = run(ibis.union(*parts)).to_pylist()
    result: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in found:
        result[names[int(row["place"])]][row["text"]] = int(row["records"])
    return result
