"""Codes of a table in an engine: one query encodes and counts, and only distinct codes come back.

Each column becomes its code by an expression of the engine. Codes are packed into as few 64-bit integers as hold them, so
that the engine groups by one number instead of many columns, and are taken apart again in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.columns import Column
from privsolve.data.complaints import in_our_words
from privsolve.data.connection import interruptibly, read_each_value
from privsolve.data.frames import keys_of_frame
from privsolve.data.packing import CountedCodes, counted, kept_of, packed, packs_of
from privsolve.data.reading import check_columns


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
