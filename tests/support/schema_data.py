"""Tables with every type of column and every awkward value, and a schema that reads each in every way."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from privsolve.data import Bins, Categories, Category, Column, Label, Number, Schema

CUTS = (-1, 0, 0.5, 2.5)
TYPES = {
    "double": pa.float64(),
    "single": pa.float32(),
    "integer": pa.int64(),
    "small": pa.int8(),
    "decimal": pa.decimal128(9, 2),
    "boolean": pa.bool_(),
    "text": pa.string(),
}
VALUES: dict[str, list[Any]] = {
    "double": [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 2.5, -1.0, 0.125, 0.375, 1.0, 2.0, 1e300, -1e-300, 0.1],
    "single": [0.0, -0.0, math.nan, math.inf, 0.5, 2.5, 0.10000000149011612, -1.0],
    "integer": [0, 1, 2, 3, -1, -5, 100, 2**53, -(2**62)],
    "small": [0, 1, 2, -1, 127],
    "decimal": [Decimal(x) for x in ("0.00", "0.50", "2.50", "-1.00", "0.10", "1.00", "9999999.99")],
    "boolean": [True, False],
    "text": [
        "0", "1", "2", " 1 ", "\t0.5\n", "2.5", "-1", "+2", "5.", ".5", "-0", "1e1", "1e400", "1_0", "0x1", "nan", "inf",
        "", "  ", "one", "1 0", "true", "False", "ONE", "１", "1e-1", "--1",
    ],
}  # fmt: skip
TEXTS = ["red", "blue", " red", "Red", "", "green ", "42", "true", "re d", "rouge", "it's"]


def columns() -> list[Column]:
    found: list[Column] = []
    for kind in TYPES:
        found += [
            Bins(f"{kind} intervals", CUTS, missing="missing"),
            Bins(f"{kind} thresholds", CUTS, "thresholds"),
            Number(f"{kind} quarters", -1, 2.5, 0.25, 4),
            Number(f"{kind} steps", 0, 3, 1, missing=2),
            Categories(f"{kind} values", [0, Category("some", (1, 2)), 0.5], other="other"),
            Categories(f"{kind} flags", [True, False], missing="missing"),
        ]
    found.append(Categories("colours", [Category("red", ("red", "rouge")), "blue", "42", "it's"], "other", "missing"))
    return found


SCHEMA = Schema(columns(), Label("label", 1, missing="negative"))


def arrow_table(columns: list[Column], rows: list[list[Any]]) -> pa.Table:
    types = [TYPES.get(column.column.split()[0], pa.string()) for column in columns]
    arrays = [pa.array([row[i] for row in rows], type=kind) for i, kind in enumerate([*types, pa.string()])]
    return pa.table(arrays, names=[*(column.column for column in columns), "label"])


def pool(column: Column) -> list[Any]:
    return [None, *VALUES.get(column.column.split()[0], TEXTS)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A few of the columns, and rows of awkward values."""
    columns = draw(st.lists(st.sampled_from(SCHEMA.columns), min_size=3, max_size=5, unique=True))
    cells = [st.sampled_from(pool(column)) for column in columns]
    rows = draw(st.lists(st.tuples(*cells, st.sampled_from(["1", "0", None, "2"])), min_size=1, max_size=8))
    return Schema(columns, SCHEMA.label), arrow_table(columns, [list(row) for row in rows])


def every_value() -> pa.Table:
    """Each awkward value of each column at least once."""
    pools = [pool(column) for column in SCHEMA.columns]
    rows = range(max(map(len, pools)))
    return arrow_table(list(SCHEMA.columns), [[*(p[i % len(p)] for p in pools), str(i % 2)] for i in rows])
