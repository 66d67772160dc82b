"""Codes of a table that is in memory: pandas, Polars or Arrow, through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from privsolve.arrays import Int64Array
from privsolve.data.columns import Column
from privsolve.data.reading import check_columns


def codes_of_frame(data: Any, columns: Sequence[Column]) -> list[Int64Array]:
    """The code of every row, column by column."""
    frame = as_frame(data)
    check_columns([column.column for column in columns], frame.columns)
    return [column.codes(frame[column.column]) for column in columns]


def as_frame(data: Any) -> Any:
    """A table in memory as a narwhals frame."""
    try:
        return nw.from_native(data, eager_only=True)
    except TypeError:
        raise TypeError(
            f"data must be a pandas, Polars or Arrow table or an Ibis table, got {type(data).__name__}"
        ) from None
