"""Records held out of a fit: every record by a coin of its own, exactly (theory, 11.5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_share
from privsolve.data.patterns import PatternTable
from privsolve.noise.entropy import Randomness

PARTS = 2**16
"""Shares are whole multiples of 1/65,536: one 16-bit word decides for one record."""

BLOCK = 2**22
"""Records that are decided at a time."""


def parts_of(share: float) -> int:
    """The share in parts of 1/65,536, at least one on each side."""
    stated = check_share("holdout", share, "; for example 0.2")
    return min(max(round(stated * PARTS), 1), PARTS - 1)


def split(
    tables: Sequence[PatternTable | None], share: float, rng: Randomness
) -> tuple[PatternTable, tuple[PatternTable | None, ...]]:
    """The table to fit on, of all groups together, and for every group the records held out, each with probability `share`.

    Equal records are decided one by one as well: how many of c equal ones are held out is drawn from the binomial law by c
    exact coins. That is the law of coins thrown for the records themselves, whatever their order. Either side may end up
    without a record: the table to fit on then has none, and the table of a group is None.
    """
    parts = parts_of(share)
    kept: list[PatternTable] = []
    held: list[PatternTable | None] = []
    for table in tables:
        if table is None:
            held.append(None)
            continue
        drawn = [_held_out(counts, parts, rng) for counts in (table.positives, table.negatives)]
        held.append(table.with_counts(*drawn) if sum(map(np.sum, drawn)) else None)
        kept.append(table.with_counts(table.positives - drawn[0], table.negatives - drawn[1]))
    return reduce(PatternTable.joined, kept), tuple(held)


def _held_out(counts: Int64Array, parts: int, rng: Randomness) -> Int64Array:
    """For every count, how many of so many coins fall on the side of `parts / PARTS`."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    sums = np.zeros(len(counts) + 1, dtype=np.int64)
    for start in range(0, total, BLOCK):
        stop = min(start + BLOCK, total)
        coins = rng.words(-(-(stop - start) // 4)).view(np.uint16)[: stop - start] < parts
        before = np.concatenate([[0], np.cumsum(coins)])
        places = np.clip(ends, start, stop) - start
        sums[1:] += before[places]
    return np.diff(sums)
