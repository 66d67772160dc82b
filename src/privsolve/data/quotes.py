"""Quotes in CSV files: a file in which one value could swallow others is refused (theory, section 10).

A quote opens a value at its beginning and closes it at its end; inside, two stand for one. Readers forgive others, each in its
own way: with a stray quote in one record, a value of another that begins with a quote would reach up to it, over all records
between. So whoever changed one record could change how many there are.
"""

from __future__ import annotations

from codecs import BOM_UTF8

import numpy as np
from numpy.typing import NDArray

from privsolve.data.files import bytes_of

CHUNK = 1 << 24
"""Bytes looked at at a time."""

QUOTE = ord('"')


def check_quotes(path: str, separator: str, skipped: int) -> None:
    """Raise if a quote of the file, after `skipped` lines, neither opens a value, nor closes it, nor is doubled in one."""
    ends = np.zeros(256, dtype=bool)
    ends[[ord(separator), ord("\n"), ord("\r")]] = True
    opened, lines = 0, 1 + skipped  # the line of the value that is open, 0 for none
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
            opened = _follow(whole, cut, ends, opened, lines)
            lines += whole[1:cut].count(b"\n")
            rest = whole[cut - 1 :] if chunk else b""
    if opened:
        raise _unreadable(opened, "begins a value with a quote that is never closed")


def _last_sure(text: bytes) -> int:
    """Up to where runs of quotes are known with what follows them: before the last one, where the text ends with it."""
    cut = len(text)
    while cut > 1 and text[cut - 1] == QUOTE:
        cut -= 1
    return cut


def _follow(text: bytes, cut: int, ends: NDArray[np.bool_], opened: int, lines: int) -> int:
    """The line of the value that is open at `cut`, or 0; raise at a stray quote. The first byte is context only."""
    signs = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero(signs[1:cut] == QUOTE) + 1
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


def _unreadable(line: int, what: str) -> ValueError:
    return ValueError(
        f"the data cannot be read: line {line:,} {what}: write values with quotes in quotes, and their own quotes twice, as "
        'in "12"" pipe"'
    )
