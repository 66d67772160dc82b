"""What DuckDB complains about, in words of ours: its own messages can show cells of the data."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LINE = re.compile(r"CSV Error on Line: (\d+)")
_SAYS: tuple[tuple[str, str], ...] = (
    (r"Expected Number of Columns: (\d+) Found: (\d+)", "has {1} values where the header names {0}"),
    (r"unterminated quote", "has a quote that does not end as it should"),
    (r"not utf-8 encoded", "is not text in UTF-8: convert the file"),
    (r"Maximum line size", "is longer than 2 MB"),
)
_KINDS: tuple[tuple[str, str, str], ...] = (
    # the class of the error, what its text contains, what it means
    (
        "OutOfMemoryException",
        "",
        "the engine needs more memory or disk space than it has: use fewer or coarser columns, or Parquet instead of text",
    ),
    ("PermissionException", "", "it reads other files, or writes some, which an opened table must not: copy the rows"),
    ("Error", "No magic bytes", "it is not a Parquet file"),
    ("Error", "too small to be a Parquet file", "it is not a Parquet file"),
    ("Error", "not a valid DuckDB database file", "it is not a DuckDB file"),
    ("Error", "end of GZIP stream", "it is cut off or not compressed by gzip"),
    ("Error", "No space left", "the disk is full"),
    ("Error", "Could not set lock", "another process is writing to it"),
    ("Error", "newer version of DuckDB", "it was written by a newer version of DuckDB: export it as Parquet"),
    ("ConversionException", "", "a value does not fit the type of its column"),
)


@contextmanager
def in_our_words(about: str) -> Iterator[None]:
    """An error of DuckDB in the block becomes a `ValueError` of one line about `about`, an interrupt an interrupt.

    Nothing of DuckDB's text is repeated but numbers of lines and of columns, so no value of the data is shown.
    """
    try:
        yield
    except Exception as error:
        duckdb = sys.modules.get("duckdb")
        if duckdb is None or not isinstance(error, duckdb.Error):
            if str(error) == "Query interrupted":  # a RuntimeError
                raise KeyboardInterrupt from None
            raise
        if isinstance(error, duckdb.InterruptException):
            raise KeyboardInterrupt from None
        raise ValueError(f"{about}: {_meaning(error)}") from None


def _meaning(error: Exception) -> str:
    text, kinds = str(error), {kind.__name__ for kind in type(error).__mro__}
    if line := _LINE.search(text):
        return f"line {line[1]} {_of_line(text)}"
    for kind, part, words in _KINDS:
        if kind in kinds and part in text:
            return words
    return f"it is damaged, or not of the kind its name says (DuckDB raised {type(error).__name__})"


def _of_line(text: str) -> str:
    for pattern, words in _SAYS:
        if found := re.search(pattern, text):
            return words.format(*found.groups())
    return "cannot be read"
