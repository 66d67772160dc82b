"""Codes of several columns in one 64-bit integer, so that rows are grouped by one number instead of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.columns import Column

LARGEST_KEY = 2**62


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


def pack_codes(codes: Sequence[Any], pack: Sequence[Column]) -> Any:
    """One key from the codes of a pack, as arrays or as expressions of an engine: a number in mixed radix."""
    key = codes[0]
    for code, column in zip(codes[1:], pack[1:], strict=True):
        key = key * column.radix + code
    return key


def unpack_codes(keys: Int64Array, pack: Sequence[Column]) -> list[Int64Array]:
    """The codes of a pack, column by column."""
    codes = []
    for column in reversed(pack):
        codes.append(keys % column.radix)
        keys = keys // column.radix
    return codes[::-1]


def distinct_codes(codes: Sequence[Int64Array], columns: Sequence[Column]) -> tuple[list[Int64Array], Int64Array]:
    """The distinct rows of codes, column by column, and how often each occurs."""
    keys, first = [], 0
    for pack in packs_of(columns):
        keys.append(pack_codes(codes[first : first + len(pack)], pack))
        first += len(pack)
    order = np.lexsort(keys)
    stacked = np.stack([key[order] for key in keys])
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (stacked[:, 1:] != stacked[:, :-1]).any(axis=0)
    counts = np.diff(np.append(np.flatnonzero(new), len(order)))
    return [code[order][new] for code in codes], counts.astype(np.int64)
