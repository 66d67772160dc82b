"""Codes of a table in an engine: one query encodes and counts, and only distinct codes come back.

Each column becomes its code by an expression of the engine. Codes are packed into as few 64-bit integers as hold them, so
that the engine groups by one number instead of many columns, and are taken apart again in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.columns import Column
from privsolve.data.complaints import in_our_words
from privsolve.data.connection import interruptibly, read_each_value
from privsolve.data.packing import pack_codes, packs_of, unpack_codes
from privsolve.data.reading import check_columns


def is_ibis_table(data: object) -> bool:
    """Whether it is an Ibis table; looks without importing ibis, which takes a second."""
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(data, ibis.Table)


def count_codes(table: Any, columns: Sequence[Column]) -> tuple[list[Int64Array], Int64Array]:
    """The distinct codes, column by column, and the number of records of each: one GROUP BY in the engine."""
    check_columns([column.column for column in columns], table.columns)
    result = run(count_keys(coded(read_each_value(table), columns)))
    codes: list[Int64Array] = []
    for i, pack in enumerate(packs_of(columns)):
        codes += unpack_codes(result[f"key{i}"].to_numpy().astype(np.int64), pack)
    return codes, result["records"].to_numpy().astype(np.int64)


def run(query: Any) -> Any:
    """The result of a query as an Arrow table; what DuckDB cannot read (a broken file) is an error in one line."""
    with in_our_words("the data cannot be read"):
        return interruptibly(query, query.to_pyarrow)


def coded(table: Any, columns: Sequence[Column]) -> Any:
    """The packed codes `key0`, `key1`, ... of every row, as a query."""
    return table.select(**{f"key{i}": _key(table, pack) for i, pack in enumerate(packs_of(columns))})


def count_keys(keys: Any) -> Any:
    """The query that groups by all columns and counts `records`."""
    return keys.group_by(list(keys.columns)).aggregate(records=keys.count())


def _key(table: Any, pack: Sequence[Column]) -> Any:
    return pack_codes([column.code(table[column.column]).cast("int64") for column in pack], pack)
