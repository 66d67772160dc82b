"""Neighbouring tables made to find readers that let one record change how another one is read, and readers of them.

A column has three values only: some records have `special`, the others `common`, but for one, which has `common` or
`changed`. Statistics of the column (the least and the largest value, whether any is missing, its type) then change with that
one record, and a special value that is read by them changes in all the others.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from privsolve.data import Column, Label, Schema
from privsolve.data.tables import open_table
from schema_data import SCHEMA, arrow_table, pool

RECORDS = 12
TARGET = 7
"""The record in which neighbours differ."""

Reader = Callable[[pa.Table, Path], Any]


def drawn(seed: int, columns: list[Column]) -> tuple[Schema, pa.Table, pa.Table]:
    """A schema of the columns, each under a new name, and two tables that differ in one record, the label included."""
    rng = random.Random(seed)
    renamed = [replace(column, column=f"{column.column} {i}") for i, column in enumerate(columns)]
    cells, changed = [], []
    for column in columns:
        special, common, other = (rng.choice(pool(column)) for _ in range(3))
        where = [rng.random() < 0.5 for _ in range(RECORDS)]
        cells.append([special if here and i != TARGET else common for i, here in enumerate(where)])
        changed.append(other)
    rows = [[*values, rng.choice("01")] for values in zip(*cells, strict=True)]
    neighbour = [row if i != TARGET else [*changed, "1"] for i, row in enumerate(rows)]
    schema = Schema(renamed, Label("label", 1, 0))
    return schema, arrow_table(renamed, rows), arrow_table(renamed, neighbour)


def columns_of(kinds: tuple[str, ...], rounds: int) -> list[Column]:
    """Every column of the shared schema whose name has one of the words, so many times."""
    return [column for column in SCHEMA.columns if any(kind in column.column for kind in kinds)] * rounds


def distance(one: Any, other: Any) -> int:
    """The ℓ1 distance between the counts of two pattern tables."""
    counts: dict[tuple[tuple[int, ...], bool], int] = {}
    for table, sign in ((one, 1), (other, -1)):
        for row, positives, negatives in zip(table.features.tolist(), table.positives, table.negatives, strict=True):
            for label, count in ((True, positives), (False, negatives)):
                counts[tuple(row), label] = counts.get((tuple(row), label), 0) + sign * int(count)
    return sum(map(abs, counts.values()))


def csv_file(data: pa.Table, path: Path) -> Any:
    pyarrow.csv.write_csv(data, path / "a.csv")
    return open_table(path / "a.csv")


def parquet_by_pyarrow(data: pa.Table, path: Path) -> Any:
    pq.write_table(data, path / "a.parquet")
    return open_table(path / "a.parquet")


def parquet_row_groups(data: pa.Table, path: Path) -> Any:
    pq.write_table(data, path / "a.parquet", row_group_size=3)
    return open_table(path / "a.parquet")


def parquet_by_polars(data: pa.Table, path: Path) -> Any:
    pl.DataFrame(data).write_parquet(path / "a.parquet", row_group_size=5)
    return open_table(path / "a.parquet")


def parquet_by_duckdb(data: pa.Table, path: Path) -> Any:
    with duckdb.connect() as connection:
        connection.register("frame", data)
        connection.execute(f"COPY frame TO '{path / 'a.parquet'}'")
    return open_table(path / "a.parquet")


def parquet_files(data: pa.Table, path: Path) -> Any:
    for i in range(0, RECORDS, 4):
        pq.write_table(data.slice(i, 4), path / f"part{i}.parquet")
    return open_table(path / "part*.parquet")


def duckdb_file(data: pa.Table, path: Path) -> Any:
    with duckdb.connect(str(path / "a.duckdb")) as connection:
        connection.register("frame", data)
        connection.execute("CREATE TABLE data AS SELECT * FROM frame")
    return open_table(path / "a.duckdb")


def duckdb_of_the_user(data: pa.Table, path: Path) -> Any:
    pq.write_table(data, path / "a.parquet")
    with warnings.catch_warnings():
        # Ibis calls DuckDB by a name that newer versions of DuckDB deprecate
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        return ibis.duckdb.connect().read_parquet(path / "a.parquet")


READERS: dict[str, Reader] = {
    "CSV": csv_file,
    "Parquet by pyarrow": parquet_by_pyarrow,
    "Parquet in row groups": parquet_row_groups,
    "Parquet by Polars": parquet_by_polars,
    "Parquet by DuckDB": parquet_by_duckdb,
    "Parquet in several files": parquet_files,
    "DuckDB file": duckdb_file,
    "a connection of the user": duckdb_of_the_user,
    "memtable": lambda data, path: ibis.memtable(data),
    "Arrow": lambda data, path: data,
    "Polars": lambda data, path: pl.DataFrame(data),
    "pandas": lambda data, path: data.to_pandas(),
    "pandas with Arrow types": lambda data, path: data.to_pandas(types_mapper=pd.ArrowDtype),
}
