"""Data files as tables of an embedded engine: their rows are never loaded into Python."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import sys
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

MEMORY_LIMIT = "1GB"
"""What the engine may use before it spills to disk."""

SEPARATORS = (",", ";", "\t", "|")
_CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_PARQUET = (".parquet", ".pq")
_DUCKDB = (".duckdb", ".ddb", ".db")


def open_table(source: str | os.PathLike[str]) -> Any:
    """An Ibis table of CSV or Parquet files (a path or a glob), or of a DuckDB file (`file.duckdb::table`).

    All columns of a CSV file are texts, which the schema says how to read: nothing about their types is guessed from the
    records. The separator is the most frequent one of `, ; | tab` in the first line, which must be the header.
    """
    with warnings.catch_warnings():
        # Ibis calls DuckDB by a name that newer versions of DuckDB deprecate
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        return _open_or_say(os.fspath(source))


def _open_or_say(source: str) -> Any:
    """What the engine complains about as an error that names the file."""
    try:
        return _open(source)
    except Exception as error:
        duckdb = sys.modules.get("duckdb")
        if duckdb is None or not isinstance(error, duckdb.Error):
            raise
        raise ValueError(f"{source}: {str(error).strip().splitlines()[0]}") from None


def _open(source: str) -> Any:
    path, _, name = source.partition("::")
    lower = path.lower()
    if lower.endswith(_DUCKDB):
        return _open_duckdb(path, name)
    if name:
        raise ValueError(f"{source}: only DuckDB files have tables; leave out ::{name}")
    if not lower.endswith(_CSV + _PARQUET):
        raise ValueError(f"{source}: must end in .csv, .parquet or .duckdb")
    files = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
    missing = [file for file in files if not os.path.isfile(file)]
    if missing or not files:
        raise FileNotFoundError(f"{source}: no such file")
    engine = _connect()
    if lower.endswith(_PARQUET):
        return _with_tidy_names(engine.read_parquet(files), source)
    return _read_csv(engine, files)


def _connect(path: str | None = None) -> Any:
    """DuckDB with bounded memory; it spills to the system's temporary folder."""
    import ibis

    engine = ibis.duckdb.connect(path, read_only=True) if path else ibis.duckdb.connect()
    engine.raw_sql(f"SET memory_limit = '{MEMORY_LIMIT}'")
    folder = tempfile.gettempdir().replace("'", "''")
    engine.raw_sql(f"SET temp_directory = '{folder}'")
    engine.raw_sql("SET preserve_insertion_order = false")
    return engine


def _read_csv(engine: Any, files: list[str]) -> Any:
    headers = {file: _header(file) for file in files}
    separator, names = headers[files[0]]
    for file, header in headers.items():
        if header != (separator, names):
            raise ValueError(f"{file}: its header differs from that of {files[0]}: files read together must agree")
    return engine.read_csv(
        files, header=False, skip=1, auto_detect=False, delim=separator, quote='"', escape='"',
        columns=dict.fromkeys(names, "VARCHAR"),
    )  # fmt: skip


def _header(path: str) -> tuple[str, tuple[str, ...]]:
    """Separator and column names: the first line, which is public."""
    opener = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        try:
            line = file.readline()
        except UnicodeDecodeError:
            raise ValueError(f"{path}: must be text in UTF-8: convert it first") from None
        except (EOFError, zlib.error) as error:
            raise ValueError(f"{path}: is damaged: {error}") from None
    separator = max(SEPARATORS, key=line.count)
    try:
        names = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
    except csv.Error as error:
        raise ValueError(f"{path}: the first line must be a header with the names of the columns: {error}") from None
    if not names:
        raise ValueError(f"{path}: the first line must be a header with the names of the columns")
    return separator, tuple(_tidy(names, path).values())


def _open_duckdb(path: str, name: str) -> Any:
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: no such file")
    engine = _connect(path)
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    tables = [row[0] for row in engine.raw_sql(query).fetchall()]
    if not name and len(tables) != 1:
        raise ValueError(f"{path}: say which table, as {path}::TABLE; it has {', '.join(tables) or 'none'}")
    if name and name not in tables:
        raise ValueError(f"{path}: has no table {name!r}; it has {', '.join(tables) or 'none'}")
    return engine.table(name or tables[0])


def _tidy(names: Sequence[str], source: str) -> dict[str, str]:
    """Names without surrounding spaces; engines do not tell upper from lower case."""
    tidy = {name: name.strip() for name in names}
    known = [name.casefold() for name in tidy.values()]
    if len(tidy) < len(names) or len(set(known)) < len(known) or "" in known:
        raise ValueError(f"{source}: column names must be different and not empty, got {', '.join(map(repr, names))}")
    return tidy


def _with_tidy_names(table: Any, source: str) -> Any:
    names = _tidy(table.columns, source)
    return table.rename({new: old for old, new in names.items() if new != old})
