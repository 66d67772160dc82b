"""Tables with every type of column and every awkward value, and a schema that reads each in every way."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from privsolve.data import Bins, Categories, Category, Column, Dates, Label, Number, Schema
from privsolve.data.columns.numbers import FORMATS

CUTS = (-1, 0, 0.5, 2.5)
TYPES = {
    "double": pa.float64(),
    "single": pa.float32(),
    "integer": pa.int64(),
    "small": pa.int8(),
    "decimal": pa.decimal128(9, 2),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
}
NUMBERS = [kind for kind in TYPES if kind not in ("day", "moment")]
"""What bins, numbers and values can be read from."""

VALUES: dict[str, list[Any]] = {
    "double": [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 2.5, -1.0, 0.125, 0.375, 1.0, 2.0, 1e300, -1e-300, 0.1],
    "single": [0.0, -0.0, math.nan, math.inf, 0.5, 2.5, 0.10000000149011612, -1.0],
    "integer": [0, 1, 2, 3, -1, -5, 100, 2**53, -(2**62)],
    "small": [0, 1, 2, -1, 127],
    "decimal": [Decimal(x) for x in ("0.00", "0.50", "2.50", "-1.00", "0.10", "1.00", "9999999.99")],
    "boolean": [True, False],
    "text": [
        "0",
        "1",
        "2",
        " 1 ",
        "\t0.5\n",
        "2.5",
        "-1",
        "+2",
        "5.",
        ".5",
        "-0",
        "1e1",
        "1e400",
        "1_0",
        "0x1",
        "nan",
        "inf",
        "",
        "  ",
        "one",
        "1 0",
        "true",
        "False",
        "ONE",
        "１",
        "1e-1",
        "--1",
        "yes",
        "N",
        "t",
        "F",
        "no ",
        "0,5",
        "2,5",
        "-1,0",
        ",5",
        "1,0e1",
        "1.000,5",
        "NA",
        "-999",
        "-999,0",
    ],
    "day": [
        date(1, 1, 1),
        date(1989, 12, 31),
        date(1990, 1, 1),
        date(2000, 2, 29),
        date(2001, 6, 15),
        date(9999, 12, 31),
    ],
    "moment": [
        datetime(1989, 12, 31, 23, 59, 59, 999999),
        datetime(1990, 1, 1),
        datetime(2000, 2, 29, 12),
        datetime(1970, 1, 1),
        datetime(2001, 6, 15, 0, 0, 1),
    ],
    "written": [
        "1989-12-31",
        "1990-01-01",
        " 2000-02-29 ",
        "2001-02-29",
        "1900-02-29",
        "2001-06-15 08:30:00",
        "2001-06-15T08:30:00Z",
        "1990-1-1",
        "31.12.1989",
        "01.01.1990",
        "15/06/2001",
        "06/15/2001",
        "2001-13-01",
        "2001-06-31",
        "0000-01-01",
        "2001-06-15x",
        "20010615",
        "",
        "never",
        "1999-01-01",
    ],
}
TEXTS = ["red", "blue", " red", "Red", "", "green ", "42", "true", "re d", "rouge", "it's"]


def columns() -> list[Column]:
    found: list[Column] = []
    for kind in NUMBERS:
        found += [
            Bins(f"{kind} intervals", CUTS, "intervals", missing="missing"),
            Bins(f"{kind} thresholds", CUTS, "thresholds"),
            Number(f"{kind} quarters", -1, 2.5, 0.25, 4),
            Number(f"{kind} steps", 0, 3, 1, missing=2),
            Categories(f"{kind} values", [0, Category("some", (1, 2)), 0.5], other="other"),
            Categories(f"{kind} flags", [True, False], missing="missing"),
        ]
    found += [
        Bins("text commas", CUTS, "intervals", missing="missing", missing_values=["NA", -999], decimal=","),
        Number("text comma steps", 0, 3, 0.5, decimal=","),
        Bins("text codes", CUTS, "intervals", missing="missing", missing_values=["one", 2.5, -999]),
        Bins("double codes", CUTS, "intervals", missing="missing", missing_values=["NA", -1, 2.5]),
        Number("integer codes", 0, 3, missing_values=[2]),
        Categories("integer yes", [1], no=0, missing="missing", missing_values=[2]),
        Categories("text yes", [True], no=False, other="other"),
        Categories("boolean yes", [True], no=Category("not so", (False,))),
        Categories("colours of two", [Category("red", ("red", "rouge"))], no="blue", missing_values=["42", "true"]),
        Dates("day cuts", ["1990-01-01", "2000-02-29"], "intervals", "missing"),
        Dates("moment cuts", ["1990-01-01", "2000-02-29"]),
        Dates("written cuts", ["1990-01-01", "2000-02-29"], missing="missing", missing_values=["1999-01-01"]),
        *(Dates(f"written {form}", ["1990-01-01", "2001-06-15"], "intervals", format=form) for form in FORMATS),
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
