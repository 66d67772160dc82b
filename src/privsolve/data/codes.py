"""Codes of tables: every value becomes a small integer by a rule that looks at that value only, and equal rows are counted.

Codes of several columns are packed into one 64-bit integer, so that rows are grouped by few numbers. DuckDB does it, also for
tables in memory, which it reads in place. Only distinct rows come back from it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import chain, count
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite, check_length
from privsolve.data.columns import Column
from privsolve.data.duckdb import ask_in_memory, in_our_words, interruptibly, read_each_value
from privsolve.data.reading import check_columns, column_of, of_place

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


def packed(columns: Sequence[Column], codes: Sequence[Any]) -> list[Any]:
    """The keys of all columns, as arrays or as expressions of an engine: the codes of a pack are digits in mixed radix."""
    keys, left = [], iter(codes)
    for pack in packs_of(columns):
        key = next(left)
        for column in pack[1:]:
            key = key * column.radix + next(left)
        keys.append(key)
    return keys


def unpack_codes(keys: Int64Array, pack: Sequence[Column]) -> list[Int64Array]:
    """The codes of a pack, column by column."""
    codes = []
    for column in reversed(pack):
        codes.append(keys % column.radix)
        keys = keys // column.radix
    return codes[::-1]


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


def collected(data: Any, wanted: Sequence[str] | None = None) -> Any:
    """A table in memory as it is; of one that is lazy or a query, only the `wanted` columns are computed.

    Columns of a table that share a name are called after their place, as in files.
    """
    if is_relation(data):
        return _some_columns(data, data.columns, wanted).to_arrow_table()
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return _some_columns(data, data.collect_schema().names(), wanted).collect()
    if hasattr(data, "get_column"):  # Polars
        return data
    if hasattr(data, "column_names"):  # Arrow
        names = _distinct(data.column_names)
        return data if names == list(data.column_names) else data.rename_columns(names)
    if hasattr(data, "set_axis") and hasattr(data, "columns"):
        return data if data.columns.is_unique else data.set_axis(_distinct(list(data.columns)), axis=1)
    check_order(data)
    raise TypeError(f"data must be {KINDS_OF_TABLES}, got {type(data).__name__}")


def names_of(frame: Any) -> list[Any]:
    """The names of the columns of a table in memory."""
    return list(getattr(frame, "column_names", getattr(frame, "columns", ())))  # Arrow's columns are the data


def values_of_column(frame: Any, name: str) -> list[Any]:
    """The values of a column of a table in memory, each as it is."""
    column = frame[name]
    found: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return found


def arrow_columns(data: Any, names: Sequence[str]) -> Any:
    """These columns of a table in memory as an Arrow table in which they are called `c0`, `c1`, ...

    Engines do not tell upper from lower case in names.
    """
    import pyarrow as pa

    frame = collected(data, names)
    check_columns(names, names_of(frame))
    return pa.table({f"c{place}": arrow_column(frame[name]) for place, name in enumerate(names)})


def arrow_column(column: Any) -> Any:
    """A column of a pandas, Polars or Arrow table as one of Arrow; what may hold values of any type is read one by one."""
    import pyarrow as pa

    kind = str(column.dtype if hasattr(column, "dtype") else column.type)
    if kind == "category" and hasattr(column, "cat"):
        codes = column.cat.codes.to_numpy()
        return arrow_column(column.cat.categories.to_series()).take(pa.array(codes, mask=codes < 0))
    if hasattr(column, "to_pylist"):
        found = column
    elif kind.lower() == "object" or kind.startswith("complex"):
        return column_of(column.to_list())
    elif hasattr(column, "to_arrow"):  # Polars
        found = (column.cast(float) if kind in ("Int128", "UInt128") else column).to_arrow()
    else:
        try:
            found = pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            return column_of(column.to_list())
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_null(found.type):
        return found.cast(pa.string())
    if pa.types.is_timestamp(found.type) and found.type.tz is None:  # days, as in mixed columns; DuckDB has no last one
        return found.cast(pa.date32(), safe=False)
    if pa.types.is_float16(found.type):
        return found.cast(pa.float32())
    if "binary" in str(found.type) or pa.types.is_decimal256(found.type):  # bytes become the texts that they spell
        return column_of(found.to_pylist())
    return found


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


def _distinct(names: Sequence[Any]) -> list[Any]:
    times = Counter(names)
    return [name if times[name] == 1 else of_place(str(name), place) for place, name in enumerate(names, 1)]


def is_ibis_table(data: object) -> bool:
    """Whether it is an Ibis table; looks without importing ibis, which takes a second."""
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(data, ibis.Table)


def codes_of_frame(data: Any, columns: Sequence[Column]) -> list[Int64Array]:
    """The code of every row, column by column."""
    check_order(data)
    return _asked(arrow_columns(data, [column.column for column in columns]), tuple(columns), False, None)


def count_codes(
    data: Any, columns: Sequence[Column], *, last: Int64Array | None = None, sample_rate: float = 1.0
) -> CountedCodes:
    """The distinct codes of a table, and the number of records of each: one GROUP BY in the engine.

    Where the codes of the last column lie beside a table in memory, they are `last`. Below 1, `sample_rate` is the share of the
    records that is kept (`kept_of`).
    """
    if is_ibis_table(data):
        check_columns([column.column for column in columns], data.columns)
        result = run(_counted(coded(read_each_value(data), columns), sample_rate))
        *keys, counts = (column.to_numpy().astype(np.int64, copy=False) for column in result.columns)
    else:
        import pyarrow as pa

        read = columns if last is None else columns[:-1]
        frame = arrow_columns(data, [column.column for column in read])
        if last is not None:
            frame = frame.append_column(f"c{len(read)}", pa.array(last))
        *keys, counts = _asked(frame, tuple(columns), last is not None, sample_rate)
    return CountedCodes(tuple(columns), tuple(keys), counts)


def _asked(frame: Any, columns: tuple[Column, ...], coded_last: bool, sample_rate: float | None) -> list[Int64Array]:
    """The codes of every row of an Arrow table, in order; with a rate the distinct keys and how many records are kept."""
    import ibis

    found = ask_in_memory(frame, _sql(ibis.Schema.from_pyarrow(frame.schema), columns, coded_last, sample_rate))
    return [column.astype(np.int64, copy=False) for column in found.values()]


@lru_cache(maxsize=256)
def _sql(types: Any, columns: tuple[Column, ...], coded_last: bool, sample_rate: float | None) -> str:
    """What the engine is asked of a table in memory. It is kept, as writing it takes longer than to answer it for few rows."""
    import ibis

    table = ibis.table(types, name="frame")
    read = columns[: len(columns) - coded_last]
    wider, names = computed_once(table, [column.read(table[f"c{i}"]) for i, column in enumerate(read)])
    codes = [column.code(wider[name]) for column, name in zip(read, names, strict=True)]
    if sample_rate is None:
        return written(wider.select(**{f"code{i}": code for i, code in enumerate(codes)}))
    return written(
        _counted(_keys(wider, columns, [*codes, *(wider[f"c{len(read)}"] for _ in range(coded_last))]), sample_rate)
    )


def written(query: Any) -> str:
    """The query as DuckDB is asked it. Spaces for people would take longer to write and to read than the rest."""
    import ibis

    return str(ibis.to_sql(query, dialect="duckdb", pretty=False))


def queried(data: Any, names: Sequence[str]) -> tuple[Any, Callable[[Any], Any]]:
    """Columns of a table as an Ibis table in which they are called `c0`, `c1`, ..., and what answers queries of it."""
    import ibis
    import pyarrow as pa

    if is_ibis_table(data):
        table = read_each_value(data)
        return table.select(**{f"c{place}": table[name] for place, name in enumerate(names)}), run
    frame = arrow_columns(data, names)
    table = ibis.table(ibis.Schema.from_pyarrow(frame.schema), name="frame")
    return table, lambda query: pa.table(ask_in_memory(frame, written(query)))


def run(query: Any) -> Any:
    """The result of a query as an Arrow table; what DuckDB cannot read (a broken file) is an error in one line."""
    with in_our_words("the data cannot be read"):
        return interruptibly(query.get_backend().con, query.to_pyarrow)


def coded(table: Any, columns: Sequence[Column]) -> Any:
    """The packed codes `key0`, `key1`, ... of every row, as a query."""
    wider, names = with_read(table, columns)
    return _keys(wider, columns, [column.code(wider[name]) for name, column in zip(names, columns, strict=True)])


def _keys(table: Any, columns: Sequence[Column], codes: Sequence[Any]) -> Any:
    keys = packed(columns, [code.cast("int64") for code in codes])
    return table.select(**{f"key{i}": key for i, key in enumerate(keys)})


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


def _counted(keys: Any, sample_rate: float) -> Any:
    """The query that groups by all columns and counts `records`, of which it keeps some below a rate of 1."""
    query = keys.group_by(list(keys.columns)).aggregate(records=keys.count())
    if sample_rate < 1:
        query = query.mutate(records=kept_of(query.records, [query[name] for name in keys.columns], sample_rate))
        query = query.filter(query.records > 0)
    return query
