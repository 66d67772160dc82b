"""Data files as tables of an embedded engine: their rows are never loaded into Python."""

from __future__ import annotations

import csv
import os
import re
import reprlib
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from privsolve.data.complaints import in_our_words
from privsolve.data.connection import connect, quoted, read_each_value
from privsolve.data.files import bytes_of, files_of, literal
from privsolve.data.quotes import check_quotes
from privsolve.data.reading import of_place

SEPARATORS = (",", ";", "\t", "|")
LONGEST_HEADER = 2**20
_TEXTS = (".csv", ".tsv", ".txt", ".data", ".dat")
_CSV = (*_TEXTS, *(f"{ending}.gz" for ending in _TEXTS))
_PARQUET = (".parquet", ".pq")
_DUCKDB = (".duckdb", ".ddb", ".db")


def open_table(source: str | os.PathLike[str], *, header: str | None = None) -> Any:
    """An Ibis table of CSV or Parquet files (a path or a glob), or of a DuckDB file (`file.duckdb::table`).

    All columns of a CSV file are texts, which the schema says how to read: nothing about their types is guessed from the
    records. The separator is the most frequent one of `, ; | tab` in the first line, which must be the header; a file
    without one is read by a `header` that is stated, a line with the separator of the file (also a space). Columns that
    have no name, or share theirs, are called after their place, so that they stop nobody who does not use them. Files
    that are read together must have the same columns, of the same types. A DuckDB file may come from anybody: only
    its tables are read, no views, and nothing but the file itself.
    """
    return open_for_copying(source, None, header=header)


def open_for_copying(
    source: str | os.PathLike[str], folder: str | os.PathLike[str] | None, *, header: str | None = None
) -> Any:
    """The same, from which files can be written to `folder`."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        raise ValueError(f"source must be the path of a file, such as 'patients.csv', got {reprlib.repr(source)}")
    if header is not None and not isinstance(header, str):
        raise ValueError(f"header must be a line with the names of the columns, got {reprlib.repr(header)}")
    with warnings.catch_warnings(), in_our_words(name):
        # Ibis calls DuckDB by a name that newer versions of DuckDB deprecate
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        return read_each_value(_open(name, folder, header))


def _open(source: str, folder: str | os.PathLike[str] | None, header: str | None) -> Any:
    path, _, name = source.partition("::")
    lower = path.lower()
    if header is not None and not lower.endswith(_CSV):
        raise ValueError(f"{source}: a header is stated for text files only, whose first line lacks it: leave it out")
    if lower.endswith(_DUCKDB):
        return _open_duckdb(path, name, folder)
    if name:
        raise ValueError(f"{source}: only DuckDB files have tables; leave out ::{name}")
    if not lower.endswith(_CSV + _PARQUET):
        raise ValueError(f"{source}: must end in .csv, .parquet or .duckdb")
    if lower.endswith(_PARQUET):
        return _read_parquet(connect(), files_of(path))
    return _read_csv(connect(), files_of(path), header)


def _read_parquet(engine: Any, files: list[str]) -> Any:
    """Exactly the columns in the files: names of folders add none, and values are looked at, whatever statistics say."""
    names = {file: _columns(engine, file) for file in files}
    for file, columns in names.items():
        if columns != names[files[0]]:
            raise ValueError(
                f"{file}: its columns or their types differ from those of {files[0]}: files read together must agree"
            )
    patterns = [literal(file) for file in files]
    table = engine.read_parquet(patterns, can_have_nan=True, hive_partitioning=False)
    return _with_tidy_names(table, _names_in_parquet(files[0]))


def _names_in_parquet(file: str) -> Sequence[str]:
    """The names as they are in the file: where two are the same, DuckDB would call one of them otherwise."""
    import pyarrow.parquet

    names: Sequence[str] = pyarrow.parquet.read_schema(file).names
    return names


def _columns(engine: Any, file: str) -> list[tuple[str, str]]:
    """The names and types of a Parquet file."""
    of_file = f"read_parquet({quoted(literal(file))}, hive_partitioning = false)"
    return [row[:2] for row in engine.raw_sql(f"DESCRIBE SELECT * FROM {of_file}").fetchall()]


def _read_csv(engine: Any, files: list[str], stated: str | None) -> Any:
    headers = {file: _header(file) if stated is None else _stated_header(stated) for file in files}
    separator, names = headers[files[0]]
    quotes = False
    for file, header in headers.items():
        if header != (separator, names):
            raise ValueError(f"{file}: its header differs from that of {files[0]}: files read together must agree")
        quotes |= check_quotes(file, separator, skipped=int(stated is None))
    return engine.read_csv(
        [literal(file) for file in files],
        header=False,
        skip=int(stated is None),
        auto_detect=False,
        delim=separator,
        quote='"',
        escape='"',
        columns=dict.fromkeys(names, "VARCHAR"),
        hive_partitioning=False,
        parallel=not quotes,  # from the middle of a file nobody can tell whether a line feed is within quotes
    )


def _header(path: str) -> tuple[str, tuple[str, ...]]:
    """Separator and column names: the first line, which is public."""
    with bytes_of(path) as file:
        try:
            line = file.readline(LONGEST_HEADER).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{path}: must be text in UTF-8: convert it first") from None
    if len(line) >= LONGEST_HEADER // 4:
        raise ValueError(f"{path}: the first line must be a header with the names of the columns, it is too long")
    if "\r" in line.rstrip("\r\n"):
        raise ValueError(
            f"{path}: its lines end with a carriage return alone: convert them to ordinary line ends first"
        )
    if line.count('"') % 2:
        raise ValueError(f"{path}: a name in the header has a line break in it: write the header in one line")
    if re.fullmatch(r"sep=.\s*", line):
        raise ValueError(f"{path}: the first line only says which sign separates values: delete it, a header is enough")
    separator = _separator(line)
    return separator, _names_in_line(line, separator, f"{path}: the first line")


def decimal_sign(source: str, header: str | None = None) -> str:
    """The sign before decimals in a file, from its header alone: `","` where semicolons separate values, else `"."`."""
    if not source.lower().endswith(_CSV):
        return "."
    separator, _ = _header(files_of(source)[0]) if header is None else _stated_header(header)
    return "," if separator == ";" else "."


def _separator(header: str) -> str:
    """The sign that is most frequent outside of quotes; one with a space behind it belongs to a name, unless all have one."""
    plain = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=lambda sign: (len(re.findall(f"{re.escape(sign)}(?! )", plain)), plain.count(sign)))


def _stated_header(line: str) -> tuple[str, tuple[str, ...]]:
    """The same of a line that the file lacks; its separator may be a space."""
    separator = max((*SEPARATORS, " "), key=lambda sign: (line.count(sign) > 0 and sign != " ", line.count(sign)))
    return separator, _names_in_line(line, separator, "header")


def _names_in_line(line: str, separator: str, where: str) -> tuple[str, ...]:
    try:
        names = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
    except csv.Error as error:
        raise ValueError(f"{where} must be a header with the names of the columns: {error}") from None
    if not names:
        raise ValueError(f"{where} must be a header with the names of the columns")
    return tidy_names(names)


def _open_duckdb(path: str, name: str, folder: str | os.PathLike[str] | None) -> Any:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file")
    if not os.path.isfile(path):
        raise ValueError(f"{path}: is not a regular file: copy its content to one")
    engine = connect(path, writing_to=folder)
    query = (
        "SELECT table_name, sql FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY table_name"
    )
    made = dict(engine.raw_sql(query).fetchall())
    tables = list(made)
    if not name and len(tables) != 1:
        raise ValueError(f"{path}: say which table, as {path}::TABLE; it has {', '.join(tables) or 'none'}")
    if name and name not in tables:
        raise ValueError(
            f"{path}: has no table {name!r}; it has {', '.join(tables) or 'none'}; of a view, which could compute without "
            "end, copy the rows into a table first"
        )
    if "GENERATED ALWAYS AS" in made[name or tables[0]].upper():
        raise ValueError(f"{path}: has columns that are computed: copy the rows into a table without them first")
    return engine.table(name or tables[0])


def tidy_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names without surrounding spaces, all different for engines, which do not tell upper from lower case.

    Columns without a name, and all that share one, are called after their place: `age (column 3)`.
    """
    tidy = [name.strip() for name in names]
    times = Counter(name.casefold() for name in tidy)
    return tuple(
        name if name and times[name.casefold()] == 1 else of_place(name, place) for place, name in enumerate(tidy, 1)
    )


def _with_tidy_names(table: Any, names: Sequence[str]) -> Any:
    tidy = tidy_names(names)
    return table.rename({new: old for old, new in zip(table.columns, tidy, strict=True) if new != old})
