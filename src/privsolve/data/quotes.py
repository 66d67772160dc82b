"""Quotes and line ends in CSV files: a file in which one value could swallow or make others is refused (theory, section 10).

A quote opens a value at its beginning and closes it at its end; inside, two stand for one. Readers forgive others, each in its
own way: with a stray quote in one record, a value of another that begins with a quote would reach up to it, over all records
between. A carriage return alone, outside of quotes, ends a record for some readers and not for others. So whoever changed one
record could change how many there are.
"""

from __future__ import annotations

from codecs import BOM_UTF8

import numpy as np
from numpy.typing import NDArray

from privsolve.data.files import bytes_of

CHUNK = 1 << 24
"""Bytes looked at at a time."""

QUOTE, RETURN, FEED = ord('"'), ord("\r"), ord("\n")


def check_quotes(path: str, separator: str, skipped: int) -> bool:
    """Whether there are quotes after `skipped` lines; raise if one neither opens a value, nor closes it, nor is doubled in one.

    Raises too for a carriage return outside of quotes that no line feed follows. Without quotes every record is one line.
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
