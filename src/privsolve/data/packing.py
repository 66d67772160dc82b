"""Codes of several columns in one 64-bit integer: rows are grouped by few numbers, and a large table takes little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite
from privsolve.data.columns import Column

LARGEST_KEY = 2**62

BLOCK = 2**15
"""Rows whose codes are taken apart at once."""

RATE_BITS = 16
"""Rates of sampling are whole multiples of 1/65,536."""

_PRIME = 2**31 - 1


@dataclass(frozen=True)
class CountedCodes:
    """The distinct rows of the codes of some columns, packed into keys, and the number of records of each."""

    columns: tuple[Column, ...]
    keys: tuple[Int64Array, ...]
    counts: Int64Array

    def of_column(self, place: int) -> Int64Array:
        """The codes of the column at that place."""
        packs = packs_of(self.columns)
        number = 0
        while place >= len(packs[number]):
            place -= len(packs[number])
            number += 1
        below = prod(column.radix for column in packs[number][place + 1 :])
        return np.asarray(self.keys[number] // below % packs[number][place].radix)

    def blocks(self) -> Iterator[tuple[list[Int64Array], Int64Array]]:
        """The codes, column by column, and the counts of some rows at a time."""
        packs = packs_of(self.columns)
        for start in range(0, len(self.counts), BLOCK):
            place = slice(start, start + BLOCK)
            codes = [unpack_codes(key[place], pack) for key, pack in zip(self.keys, packs, strict=True)]
            yield list(chain.from_iterable(codes)), self.counts[place]

    def only(self, rows: NDArray[np.bool_]) -> CountedCodes:
        """Some of the rows."""
        return replace(self, keys=tuple(key[rows] for key in self.keys), counts=self.counts[rows])


def packs_of(columns: Sequence[Column]) -> list[list[Column]]:
    """Consecutive columns whose codes fit into one key together."""
    packs: list[list[Column]] = []
    size = LARGEST_KEY
    for column in columns:
        size *= column.radix
        if size > LARGEST_KEY:
            packs.append([])
            size = column.radix
        packs[-1].append(column)
    return packs


def packed(columns: Sequence[Column], code_of: Callable[[int, Column], Any]) -> list[Any]:
    """The keys of all columns, as arrays or as expressions of an engine: the codes of a pack are digits in mixed radix.

    `code_of` gives the codes of one column, so that those of all columns need not be held at once.
    """
    keys, place = [], 0
    for pack in packs_of(columns):
        key: Any = None
        for column in pack:
            code = code_of(place, column)
            key = code if key is None else key * column.radix + code
            place += 1
        keys.append(key)
    return keys


def unpack_codes(keys: Int64Array, pack: Sequence[Column]) -> list[Int64Array]:
    """The codes of a pack, column by column."""
    codes = []
    for column in reversed(pack):
        codes.append(keys % column.radix)
        keys = keys // column.radix
    return codes[::-1]


def counted(keys: Sequence[Int64Array], columns: Sequence[Column], sample_rate: float = 1.0) -> CountedCodes:
    """The distinct rows of keys in memory, and how often each occurs."""
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(order))).astype(np.int64)
    distinct = tuple(key[order[first]] for key in keys)
    if sample_rate < 1:
        counts = kept_of(counts, distinct, sample_rate)
    found = CountedCodes(tuple(columns), distinct, counts)
    return found.only(counts > 0) if sample_rate < 1 else found


def kept_of(counts: Any, keys: Sequence[Any], sample_rate: float) -> Any:
    """How many of the records of each distinct row are kept, as arrays or as expressions of an engine (theory, section 19.12).

    Of c equal records `⌊c·rate + u⌋` are kept, where u is a public number in [0, 1) that belongs to the row: a universal hash
    of its keys, with fixed coefficients. One record more is kept or not, and changes nothing else.
    """
    hashed: Any = 0
    for place, key in enumerate(keys):
        for digit in range(3):
            value = (key >> (30 * digit)) & (2**30 - 1)
            hashed = hashed + (value * _coefficient(3 * place + digit)) % _PRIME
    part = (hashed % _PRIME) >> (31 - RATE_BITS)
    return (counts * checked_parts(sample_rate) + part) >> RATE_BITS


def _coefficient(number: int) -> int:
    return int.from_bytes(sha256(f"sample {number}".encode()).digest()[:8], "big") % _PRIME


def checked_parts(sample_rate: float) -> int:
    """The rate in parts of 1/65,536, at least one."""
    rate = check_finite("sample_rate", sample_rate, "lie above 0 and be at most 1")
    if not 0 < rate <= 1:
        raise ValueError(f"sample_rate must lie above 0 and be at most 1, got {sample_rate:g}; for example 0.1")
    return max(int(rate * 2**RATE_BITS), 1)
