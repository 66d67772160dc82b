"""Codes of a table that is in memory: pandas, Polars or Arrow, through narwhals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_length
from privsolve.data.columns import Column
from privsolve.data.packing import packed
from privsolve.data.reading import check_columns, of_place

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
