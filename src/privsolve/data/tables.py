"""Data files as tables of an embedded engine: their rows are never loaded into Python."""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import os
import re
import reprlib
import stat
import warnings
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privsolve.data.duckdb import connect, in_our_words, quoted, read_each_value
from privsolve.data.reading import of_place

LARGEST_TEXT = 64 * 2**20
"""Schemas and releases are smaller than this by far."""


def files_of(source: str) -> list[str]:
    """The regular files of a path or a glob, as absolute paths in order; a file that would be read twice is refused."""
    found = sorted(glob.glob(source)) if glob.has_magic(source) and not os.path.lexists(source) else [source]
    if not found or not all(map(os.path.exists, found)):
        raise FileNotFoundError(f"{source}: no such file")
    paths = [os.path.abspath(path) for path in found]
    for path in paths:
        if not os.path.isfile(path):
            raise ValueError(f"{path}: is not a regular file: copy its content to one")
    _check_different(paths)
    return paths


def _check_different(paths: Sequence[str]) -> None:
    """Raise if two names are links to one file, whose records would count twice."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        found = os.stat(path)
        first = seen.setdefault((found.st_dev, found.st_ino), path)
        if first != path:
            raise ValueError(f"{path}: is the same file as {first}, so its records would count twice: leave one out")


def literal(path: str) -> str:
    """The path as a pattern of DuckDB that stands for itself, whatever characters it has."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def content_digest(source: str) -> str:
    """A digest of the content of the files that a source stands for, by which a run knows its data again."""
    found = hashlib.sha256()
    for path in files_of(source.partition("::")[0]):
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


@contextmanager
def bytes_of(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, also of a compressed one; a damaged one is refused."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        try:
            yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: is damaged: {error}") from None


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> str:
    """The text of a regular file in UTF-8; a pipe, a device or a file of more than `largest` bytes is refused unread."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would wait here
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("is not a regular file: copy its content to one")
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"has more than {largest // 2**20} MB, too many for a file of its kind")
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


CHUNK = 1 << 24
"""Bytes looked at at a time."""

QUOTE, RETURN, FEED = ord('"'), ord("\r"), ord("\n")


def check_quotes(path: str, separator: str, skipped: int) -> bool:
    """Whether there are quotes after `skipped` lines; raise if one neither opens a value, nor closes it, nor is doubled in one.

    Raises too for a carriage return outside of quotes that no line feed follows. Without quotes every record is one line.

    A quote opens a value at its beginning and closes it at its end; inside, two stand for one. Readers forgive others, each in
    its own way: with a stray quote in one record, a value of another that begins with a quote would reach up to it, over all
    records between. A carriage return alone ends a record for some readers and not for others. So one changed record could
    change how many there are (theory, section 10).
    """
    ends = np.zeros(256, dtype=bool)
    ends[[ord(separator), ord("\n"), ord("\r")]] = True
    opened, lines, found = 0, 1 + skipped, False  # the line of the value that is open, 0 for none
    with bytes_of(path) as file:
        for _ in range(skipped):
            file.readline()
        rest = b"\n"  # what stands before the first value
        if not skipped and (begin := file.read(len(BOM_UTF8))) != BOM_UTF8:
            rest += begin
        while rest:
            chunk = file.read(CHUNK)
            whole = rest + (chunk or b"\n")
            cut = _last_sure(whole)
            found = found or b'"' in whole
            opened = _follow(whole, cut, ends, opened, lines)
            lines += whole[1:cut].count(b"\n")
            rest = whole[cut - 1 :] if chunk else b""
    if opened:
        raise _unreadable(opened, "begins a value with a quote that is never closed")
    return found


def _last_sure(text: bytes) -> int:
    """Up to where quotes and carriage returns are known with what follows them: before the last, where the text ends so."""
    cut = len(text)
    while cut > 1 and text[cut - 1] in (QUOTE, RETURN):
        cut -= 1
    return cut


def _follow(text: bytes, cut: int, ends: NDArray[np.bool_], opened: int, lines: int) -> int:
    """The line of the value that is open at `cut`, or 0; raise at a stray quote. The first byte is context only."""
    if b'"' not in text and b"\r" not in text:
        return opened
    signs = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero(signs[1:cut] == QUOTE) + 1
    _check_returns(text, signs, cut, at, opened, lines)
    if not at.size:
        return opened
    starts = at[np.concatenate([[True], np.diff(at) > 1])]
    stops = at[np.concatenate([np.diff(at) > 1, [True]])] + 1
    odd = (stops - starts) % 2 == 1
    inside = (np.cumsum(odd) - odd + (opened > 0)) % 2 == 1  # before each run of quotes
    opens_wrongly = ~inside & ~ends[signs[starts - 1]]
    closes_wrongly = (inside == odd) & ~ends[signs[stops]]
    for run in np.flatnonzero(opens_wrongly | closes_wrongly)[:1]:
        raise _unreadable(lines + text[1 : starts[run]].count(b"\n"), "has a quote inside a value")
    if inside[-1] == odd[-1]:
        return 0
    last = np.flatnonzero(~inside & odd)
    return lines + text[1 : starts[last[-1]]].count(b"\n") if last.size else opened


def _check_returns(
    text: bytes, signs: NDArray[np.uint8], cut: int, quotes: NDArray[np.intp], opened: int, lines: int
) -> None:
    """Raise for a carriage return without a line feed where no value is open: before it stands an even number of quotes."""
    alone = np.flatnonzero((signs[1:cut] == RETURN) & (np.append(signs[2 : cut + 1], FEED)[: cut - 1] != FEED)) + 1
    outside = (np.searchsorted(quotes, alone) + (opened > 0)) % 2 == 0
    for place in alone[outside][:1]:
        raise ValueError(
            f"the data cannot be read: line {lines + text[1:place].count(FEED):,} has a carriage return without a line feed: "
            "convert the line ends, or write the value in quotes"
        )


def _unreadable(line: int, what: str) -> ValueError:
    return ValueError(
        f"the data cannot be read: line {line:,} {what}: write values with quotes in quotes, and their own quotes twice, as "
        'in "12"" pipe"'
    )


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
