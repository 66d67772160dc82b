"""Codes of a table in an engine: one query encodes and counts, and only distinct codes come back.

Each column becomes its code by an expression of the engine. Codes are packed into as few 64-bit integers as hold them, so
that the engine groups by one number instead of many columns, and are taken apart again in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.data.columns import MISSING, OTHER, Bins, Categories, Column, Number
from privsolve.data.complaints import in_our_words
from privsolve.data.connection import read_each_value
from privsolve.data.packing import pack_codes, packs_of, unpack_codes
from privsolve.data.patterns import Int64Array
from privsolve.data.reading import NUMBER_PATTERN, check_columns, text_for_numbers


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
        return query.to_pyarrow()


def coded(table: Any, columns: Sequence[Column]) -> Any:
    """The packed codes `key0`, `key1`, ... of every row, as a query."""
    return table.select(**{f"key{i}": _key(table, pack) for i, pack in enumerate(packs_of(columns))})


def count_keys(keys: Any) -> Any:
    """The query that groups by all columns and counts `records`."""
    return keys.group_by(list(keys.columns)).aggregate(records=keys.count())


def _key(table: Any, pack: Sequence[Column]) -> Any:
    return pack_codes([code_of(table[column.column], column).cast("int64") for column in pack], pack)


def code_of(value: Any, column: Column) -> Any:
    """The code of a column as an expression."""
    import ibis

    if isinstance(column, Categories):
        return _category_code(value, column)
    number = number_of(value, column.column, boolean=False)
    missing = column.outside[MISSING]
    if isinstance(column, Bins):
        return ibis.cases(
            (number.isnull(), missing),
            *((number < float(cut), i) for i, cut in enumerate(column.cuts)),
            else_=len(column.cuts),
        )
    return _number_code(number, column)


def _number_code(number: Any, column: Number) -> Any:
    import ibis

    low, high = float(column.low), float(column.high)
    # clipped inside the branch too: an engine may compute it for rows that take another branch
    inside = ibis.least(ibis.greatest(number.coalesce(low), low), high)
    steps = (inside / float(column.step) + 0.5).floor().cast("int64")
    return ibis.cases(
        (number.isnull(), column.outside[MISSING]),
        (number < low, column.outside["below"]),
        (number > high, column.outside["above"]),
        else_=steps - column.first + 1,
    )


def _category_code(value: Any, column: Categories) -> Any:
    import ibis

    if column.kind == "text":
        read = text_of(value, column.column)
        options = [option.values for option in column.options]
    else:
        read = number_of(value, column.column, boolean=column.kind == "boolean")
        options = [tuple(float(v) for v in option.values) for option in column.options]
    matches = [(_is_in(read, values), i) for i, values in enumerate(options)]
    return ibis.cases((read.isnull(), column.outside[MISSING]), *matches, else_=column.outside[OTHER])


def _is_in(value: Any, values: Sequence[Any]) -> Any:
    return value == values[0] if len(values) == 1 else value.isin(list(values))


def text_of(value: Any, name: str) -> Any:
    """Text without surrounding spaces; null where there is none."""
    if not value.type().is_string():
        raise text_for_numbers(name)
    return value.strip().nullif("")


def number_of(value: Any, name: str, boolean: bool) -> Any:
    """A number as float64; null where there is none, which engines order in their own ways if it is NaN."""
    import ibis

    kind, null = value.type(), ibis.null("float64")
    if kind.is_string():
        text = value.strip()
        if boolean:
            return ibis.cases((text.lower() == "true", 1.0), (text.lower() == "false", 0.0), else_=null)
        return ibis.cases((text.re_search(NUMBER_PATTERN), text.try_cast("float64")), else_=null)
    if kind.is_boolean():
        return value.cast("int8").cast("float64")
    if kind.is_floating():
        number = value.cast("float64")
        return ibis.cases((number.isnan(), null), else_=number)
    if kind.is_integer() or kind.is_decimal():
        return value.cast("float64")
    raise ValueError(f"column {name!r} holds {kind} values: convert them to numbers or texts")
