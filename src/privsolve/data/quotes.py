"""Quotes in CSV files: a file in which one value could swallow others is refused (theory, section 10).

A quote opens a value at its beginning and closes it at its end; inside, two stand for one. Readers forgive others, each in its
own way: with a stray quote in one record, a value of another that begins with a quote would reach up to it, over all records
between. So whoever changed one record could change how many there are.
"""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF8
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 24
"""Bytes looked at at a time."""

QUOTE = ord('"')


def check_quotes(path: str, separator: str, skipped: int) -> None:
    """Raise if a quote of the file, after `skipped` lines, neither opens a value, nor closes it, nor is doubled in one."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    ends = np.zeros(256, dtype=bool)
    ends[[ord(separator), ord("\n"), ord("\r")]] = True
    inside, lines = False, 1 + skipped
    with opener(path, "rb") as file:
        try:
            for _ in range(skipped):
                file.readline()
            rest = b"\n"  # what stands before the first value
            if not skipped and (begin := file.read(len(BOM_UTF8))) != BOM_UTF8:
                rest += begin
            while chunk := file.read(CHUNK):
                whole = rest + chunk
                cut = _last_sure(whole)
                inside, wrong = _follow(np.frombuffer(whole, dtype=np.uint8), cut, ends, inside)
                if wrong is not None:
                    raise _stray(path, lines + whole[1:wrong].count(b"\n"))
                lines += whole[1:cut].count(b"\n")
                rest = whole[cut - 1 :]
            inside, wrong = _follow(np.frombuffer(rest + b"\n", dtype=np.uint8), len(rest), ends, inside)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: is damaged: {error}") from None
    if wrong is not None:
        raise _stray(path, lines + rest[1:wrong].count(b"\n"))
    if inside:
        raise ValueError(f"{path}: a value that begins with a quote has no end: close it, or write its quotes twice")


def _last_sure(text: bytes) -> int:
    """Up to where runs of quotes are known with what follows them: before the last one, where the text ends with it."""
    cut = len(text)
    while cut > 1 and text[cut - 1] == QUOTE:
        cut -= 1
    return cut


def _follow(text: NDArray[np.uint8], cut: int, ends: NDArray[np.bool_], inside: bool) -> tuple[bool, int | None]:
    """Whether position `cut` is inside a quoted value, and where the first stray quote is. The first byte is context only."""
    at = np.flatnonzero(text[1:cut] == QUOTE) + 1
    if not at.size:
        return inside, None
    starts = at[np.concatenate([[True], np.diff(at) > 1])]
    stops = at[np.concatenate([np.diff(at) > 1, [True]])] + 1
    odd = (stops - starts) % 2 == 1
    before = (np.cumsum(odd) - odd + inside) % 2 == 1
    opens_wrongly = ~before & ~ends[text[starts - 1]]
    closes_wrongly = (before == odd) & ~ends[text[stops]]
    wrong = np.flatnonzero(opens_wrongly | closes_wrongly)
    return bool((odd.sum() + inside) % 2), int(starts[wrong[0]]) if wrong.size else None


def _stray(path: str, line: int) -> ValueError:
    return ValueError(
        f"{path}: line {line:,} has a quote inside a value: write the value in quotes and its own quotes twice, as in "
        '"12"" pipe"'
    )
