"""Codes of tables: every value becomes a small integer by a rule that looks at that value only, and equal rows are counted.

Codes of several columns are packed into one 64-bit integer, so that rows are grouped by few numbers, in memory or in an engine.
Only distinct rows come back from an engine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, count
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite, check_length
from privsolve.data.columns import Column
from privsolve.data.duckdb import in_our_words, interruptibly, read_each_value
from privsolve.data.reading import check_columns, of_place

LARGEST_KEY = 2**62

BLOCK = 2**15
"""Rows whose codes are taken apart at once."""

RATE_BITS = 16
"""Rates of sampling are whole multiples of 1/65,536."""

_PRIME = 2**31 - 1


@dataclass(frozen=True)
class CountedCodes:
    """The distinct rows of the codes of some columns, packed into keys, and the number of records of each."""

    columns: tuple[Column, ...]
    keys: tuple[Int64Array, ...]
    counts: Int64Array

    def of_column(self, place: int) -> Int64Array:
        """The codes of the column at that place."""
        packs = packs_of(self.columns)
        number = 0
        while place >= len(packs[number]):
            place -= len(packs[number])
            number += 1
        below = prod(column.radix for column in packs[number][place + 1 :])
        return np.asarray(self.keys[number] // below % packs[number][place].radix)

    def blocks(self) -> Iterator[tuple[list[Int64Array], Int64Array]]:
        """The codes, column by column, and the counts of some rows at a time."""
        packs = packs_of(self.columns)
        for start in range(0, len(self.counts), BLOCK):
            place = slice(start, start + BLOCK)
            codes = [unpack_codes(key[place], pack) for key, pack in zip(self.keys, packs, strict=True)]
            yield list(chain.from_iterable(codes)), self.counts[place]

    def only(self, rows: NDArray[np.bool_]) -> CountedCodes:
        """Some of the rows."""
        return replace(self, keys=tuple(key[rows] for key in self.keys), counts=self.counts[rows])


def packs_of(columns: Sequence[Column]) -> list[list[Column]]:
    """Consecutive columns whose codes fit into one key together."""
    packs: list[list[Column]] = []
    size = LARGEST_KEY
    for column in columns:
        size *= column.radix
        if size > LARGEST_KEY:
            packs.append([])
            size = column.radix
        packs[-1].append(column)
    return packs


def packed(columns: Sequence[Column], code_of: Callable[[int, Column], Any]) -> list[Any]:
    """The keys of all columns, as arrays or as expressions of an engine: the codes of a pack are digits in mixed radix.

    `code_of` gives the codes of one column, so that those of all columns need not be held at once.
    """
    keys, place = [], 0
    for pack in packs_of(columns):
        key: Any = None
        for column in pack:
            code = code_of(place, column)
            key = code if key is None else key * column.radix + code
            place += 1
        keys.append(key)
    return keys


def unpack_codes(keys: Int64Array, pack: Sequence[Column]) -> list[Int64Array]:
    """The codes of a pack, column by column."""
    codes = []
    for column in reversed(pack):
        codes.append(keys % column.radix)
        keys = keys // column.radix
    return codes[::-1]


def counted(keys: Sequence[Int64Array], columns: Sequence[Column], sample_rate: float = 1.0) -> CountedCodes:
    """The distinct rows of keys in memory, and how often each occurs."""
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(order))).astype(np.int64)
    distinct = tuple(key[order[first]] for key in keys)
    if sample_rate < 1:
        counts = kept_of(counts, distinct, sample_rate)
    found = CountedCodes(tuple(columns), distinct, counts)
    return found.only(counts > 0) if sample_rate < 1 else found


def kept_of(counts: Any, keys: Sequence[Any], sample_rate: float) -> Any:
    """How many of the records of each distinct row are kept, as arrays or as expressions of an engine (theory, section 19.12).

    Of c equal records `⌊c·rate + u⌋` are kept, where u is a public number in [0, 1) that belongs to the row: a universal hash
    of its keys, with fixed coefficients. One record more is kept or not, and changes nothing else.
    """
    hashed: Any = 0
    for place, key in enumerate(keys):
        for digit in range(3):
            value = (key >> (30 * digit)) & (2**30 - 1)
            hashed = hashed + (value * _coefficient(3 * place + digit)) % _PRIME
    part = (hashed % _PRIME) >> (31 - RATE_BITS)
    return (counts * checked_parts(sample_rate) + part) >> RATE_BITS


def _coefficient(number: int) -> int:
    return int.from_bytes(sha256(f"sample {number}".encode()).digest()[:8], "big") % _PRIME


def checked_parts(sample_rate: float) -> int:
    """The rate in parts of 1/65,536, at least one."""
    rate = check_finite("sample_rate", sample_rate, "lie above 0 and be at most 1")
    if not 0 < rate <= 1:
        raise ValueError(f"sample_rate must lie above 0 and be at most 1, got {sample_rate:g}; for example 0.1")
    return max(int(rate * 2**RATE_BITS), 1)


KINDS_OF_TABLES = "a pandas, Polars or Arrow table, a Polars LazyFrame, a DuckDB relation or an Ibis table"


def codes_of_frame(data: Any, columns: Sequence[Column]) -> list[Int64Array]:
    """The code of every row, column by column."""
    frame = _frame_with(data, columns)
    return [column.codes(frame[column.column]) for column in columns]


def keys_of_frame(data: Any, columns: Sequence[Column], last: Int64Array | None = None) -> list[Int64Array]:
    """The packed codes of every row. Where those of the last column lie beside the table, they are `last`."""
    read = columns if last is None else columns[:-1]
    frame = _frame_with(data, read)
    return packed(columns, lambda place, column: column.codes(frame[column.column]) if place < len(read) else last)


def _frame_with(data: Any, columns: Sequence[Column]) -> Any:
    names = [column.column for column in columns]
    frame = as_frame(data, names)
    check_columns(names, frame.columns)
    return frame


def as_frame(data: Any, wanted: Sequence[str] | None = None) -> Any:
    """A table as a narwhals frame in memory; of one that is lazy or a query, only the `wanted` columns are computed.

    Columns of a pandas frame that share a name are called after their place, as in files.
    """
    if is_relation(data):
        data = _some_columns(data, data.columns, wanted).to_arrow_table()
    try:
        frame = nw.from_native(_distinct_names(data))
    except TypeError:
        raise TypeError(f"data must be {KINDS_OF_TABLES}, got {type(data).__name__}") from None
    if isinstance(frame, nw.DataFrame):
        return frame
    check_order(data)
    return _some_columns(frame, frame.collect_schema().names(), wanted).collect()


def as_given(values: Any) -> NDArray[Any]:
    """An array of values as they are: lists and the like become one of objects, not of one type for all values."""
    if isinstance(values, np.ndarray) or hasattr(values, "iloc"):
        return np.asarray(values)
    check_length("labels", values)
    for listing in ("to_list", "to_pylist"):
        if hasattr(values, listing):
            values = getattr(values, listing)()
            break
    return np.array(values, dtype=object)


def is_relation(data: object) -> bool:
    """Whether it is a relation of DuckDB."""
    return type(data).__name__ == "DuckDBPyRelation"


def check_order(data: object) -> None:
    """Raise for a table whose rows have no order, where something is said of each row or lies beside it."""
    if is_relation(data) or type(data).__module__.startswith("ibis."):
        kind, how = ("a DuckDB relation", "df()") if is_relation(data) else ("an Ibis table", "to_pandas()")
        raise TypeError(
            f"the rows of {kind} have no order, so nothing can be matched to them: pass table.{how}; to fit, the label may be "
            "a column of the table (leave y out); to predict, `privsolve predict` writes the answers beside the rows"
        )


def _some_columns(table: Any, names: Sequence[str], wanted: Sequence[str] | None) -> Any:
    kept = [name for name in wanted or () if name in names]
    return table.select(*kept) if kept else table


def _distinct_names(data: Any) -> Any:
    """A pandas frame whose columns have names of their own; anything else as it is."""
    if not hasattr(data, "set_axis") or not hasattr(data, "columns") or data.columns.is_unique:
        return data
    names = data.columns
    times = Counter(list(names))
    distinct = [name if times[name] == 1 else of_place(str(name), place) for place, name in enumerate(names, 1)]
    return data.set_axis(distinct, axis=1)


def is_ibis_table(data: object) -> bool:
    """Whether it is an Ibis table; looks without importing ibis, which takes a second."""
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(data, ibis.Table)


def count_codes(
    data: Any, columns: Sequence[Column], *, last: Int64Array | None = None, sample_rate: float = 1.0
) -> CountedCodes:
    """The distinct codes of a table, and the number of records of each: for an Ibis table one GROUP BY in its engine.

    Where the codes of the last column lie beside a table in memory, they are `last`. Below 1, `sample_rate` is the share of the
    records that is kept (`kept_of`).
    """
    if not is_ibis_table(data):
        return counted(keys_of_frame(data, columns, last), columns, sample_rate)
    check_columns([column.column for column in columns], data.columns)
    query = count_keys(coded(read_each_value(data), columns))
    names = [f"key{i}" for i in range(len(packs_of(columns)))]
    if sample_rate < 1:
        query = query.mutate(records=kept_of(query.records, [query[name] for name in names], sample_rate))
        query = query.filter(query.records > 0)
    result = run(query)
    *keys, counts = (result[name].to_numpy().astype(np.int64, copy=False) for name in [*names, "records"])
    return CountedCodes(tuple(columns), tuple(keys), counts)


def run(query: Any) -> Any:
    """The result of a query as an Arrow table; what DuckDB cannot read (a broken file) is an error in one line."""
    with in_our_words("the data cannot be read"):
        return interruptibly(query, query.to_pyarrow)


def coded(table: Any, columns: Sequence[Column]) -> Any:
    """The packed codes `key0`, `key1`, ... of every row, as a query."""
    wider, names = with_read(table, columns)
    keys = packed(columns, lambda place, column: column.code(wider[names[place]]).cast("int64"))
    return wider.select(**{f"key{i}": key for i, key in enumerate(keys)})


def with_read(table: Any, columns: Sequence[Column]) -> tuple[Any, list[str]]:
    """The table with what is read of each of these columns beside it, and the names of that.

    A subquery: engines compute an expression as often as it stands in a query, and codes refer to it several times.
    """
    return computed_once(table, [column.read(table[column.column]) for column in columns])


def computed_once(table: Any, expressions: Sequence[Any]) -> tuple[Any, list[str]]:
    """The table with these expressions as columns of a subquery, and their names, which the table does not have yet."""
    taken = {name.casefold() for name in table.columns}
    first = next(k for k in count() if not any(name.startswith(f"read{k}_") for name in taken))
    names = [f"read{first}_{i}" for i in range(len(expressions))]
    # Ibis would write the expressions into the outer query again, were it not for the view
    return table.mutate(**dict(zip(names, expressions, strict=True))).view(), names


def count_keys(keys: Any) -> Any:
    """The query that groups by all columns and counts `records`."""
    return keys.group_by(list(keys.columns)).aggregate(records=keys.count())
