"""A hash table of the supports that were tightened, for frontiers that do not store all supports."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled, helper
from privsolve.engines.supports.block_sums import FIRST
from privsolve.engines.supports.chain import LISTED

EMPTY = -1


class Tightened(NamedTuple):
    """A hash table of the supports that were tightened: their step, and their bound relative to `U0`.

    The key of a support is `number·(columns + 1)`, that of `T ∪ {j, k}` the key of `T ∪ {j}` plus `k + 1`. A row of which any
    support was tightened has an entry as well (`mark_of`), so that nothing has to be looked up for the supports of the others.
    """

    key: Int64Array
    step: Int64Array
    log_bound: Floats
    used: Int64Array


def new_tightened(capacity: int) -> Tightened:
    """An empty table; `capacity` is a power of two."""
    return Tightened(
        np.full(capacity, EMPTY), np.zeros(capacity, dtype=np.int64), np.zeros(capacity), np.zeros(1, dtype=np.int64)
    )


@helper
def _place(tightened, key):
    """Where a key stands, or would."""
    last = len(tightened.key) - 1
    at = (key ^ (key >> 17)) * 0x9E3779B97F4A7C1 >> 20 & last
    while tightened.key[at] != EMPTY and tightened.key[at] != key:
        at = at + 1 & last
    return at


@compiled
def look_up(tightened, key):
    """Step and bound of a support."""
    at = _place(tightened, key)
    if tightened.key[at] == EMPTY:
        return LISTED, FIRST
    return tightened.step[at], tightened.log_bound[at]


@helper
def keep(tightened, key, step, log_bound):
    """Remember what a support was tightened to."""
    at = _place(tightened, key)
    if tightened.key[at] == EMPTY:
        tightened.used[0] += 1
    tightened.key[at], tightened.step[at], tightened.log_bound[at] = key, step, log_bound


@helper
def mark_of(key):
    """The key of a row, from that of its first support `T ∪ {j}`."""
    return -2 - key


@compiled
def move(old, new):
    """Put what one hash table holds into a larger one."""
    for at in range(len(old.key)):
        if old.key[at] != EMPTY:
            keep(new, old.key[at], old.step[at], old.log_bound[at])


@helper
def is_known(tightened, row):
    """Whether any support of a row was tightened, by the key of its first support."""
    return tightened.key[_place(tightened, mark_of(row))] != EMPTY
