"""What a cell costs at a score: the one place where the supports-first tree knows a loss.

A cell is one integer, and integers of disjoint cells add up. For a loss with a single step it is D, what predicting the
cell positive adds to the loss (the fast case). For any other table it holds the numbers of positive and negative
records side by side, `P·2^32 + N`. `least` is the least the cell can cost at any score, apart from a constant
that all scorecards share, and `regret` what it costs at a score beyond that (theory, supports: "Tables").
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled, helper
from privsolve.errors import IntegerRangeError
from privsolve.losses import ScoreLoss

HALF = 32
CHORDS = 256
MOST_RECORDS = 2**31


class CellCosts(NamedTuple):
    """The loss of a positive and of a negative record at the scores `first`, `first + 1`, ... that can be reached.

    For a loss with a single step at 0 `is_step` is true, and nothing else is filled in: a cell costs `max(D, 0)` beyond its
    least where the score is above 0, else `max(-D, 0)`. Both kinds have one type, so that one compiled version serves both.

    `hull` are the entries that are best for some numbers of records, from best for positives to best for negatives. The
    chords are lower bounds: `least >= P·chord_positive[i] + N·chord_negative[i]` where `P/(P+N)` lies between `i/CHORDS` and
    `(i + 1)/CHORDS` (theory, supports: "Chords"), and `near[i]` is where on the hull the least is found for a share of
    `i/CHORDS`.
    """

    is_step: bool
    first: int
    positive: Int64Array
    negative: Int64Array
    hull: Int64Array
    chord_positive: Floats
    chord_negative: Floats
    near: Int64Array


def cell_costs(loss: ScoreLoss, lowest: int, highest: int) -> CellCosts:
    """How cells cost over the scores `lowest..highest`."""
    if loss.is_step:
        none = np.zeros(0, dtype=np.int64)
        return CellCosts(True, lowest, none, none, none, np.zeros(0), np.zeros(0), none)
    positive, negative = loss.table[:, loss.entries(np.arange(lowest, highest + 1))]
    hull, tables = _hull(positive, negative), (np.ascontiguousarray(positive), np.ascontiguousarray(negative))
    chord_positive, chord_negative, near = _chords(positive[hull], negative[hull])
    return CellCosts(False, lowest, *tables, hull, chord_positive, chord_negative, near)


def _at_knots(positive: Int64Array, negative: Int64Array) -> Int64Array:
    """What every entry of the hull costs at every knot, in units of `1/CHORDS`: integers, so the knots are exact."""
    share = np.arange(CHORDS + 1)[:, None]  # of positive records
    return np.asarray(share * positive + (CHORDS - share) * negative)


def row_cells(loss: ScoreLoss, positives: Int64Array, negatives: Int64Array) -> tuple[Int64Array, int]:
    """What every row puts into its cell, and the constant that the loss has beyond `least` and `regret`."""
    if loss.is_step:
        if_negative, if_positive = (positives * int(p) + negatives * int(n) for p, n in loss.table.T)
        return if_positive - if_negative, int(if_negative.sum())
    if max(int(positives.sum()), int(negatives.sum())) >= MOST_RECORDS:
        raise IntegerRangeError(
            "scorecards with a loss of several steps are limited to 2^31 records of either label: use ZeroOneLoss or fewer "
            "records"
        )
    return (positives << HALF) + negatives, 0


def _hull(positive: Int64Array, negative: Int64Array) -> Int64Array:
    """The entries on the lower left hull of the points (positive, negative): no others minimise `P·positive + N·negative`."""
    chain: list[int] = []
    for e in np.lexsort((negative, positive)).tolist():
        if chain and negative[e] >= negative[chain[-1]]:
            continue
        while len(chain) > 1 and _turns_out(positive, negative, chain[-2], chain[-1], e):
            chain.pop()
        chain.append(e)
    return np.array(chain, dtype=np.int64)


def _chords(positive: Int64Array, negative: Int64Array) -> tuple[Floats, Floats, Int64Array]:
    """What a positive and a negative record cost along each chord, one more than there are for a share of 1; and `near`."""
    costs = _at_knots(positive, negative)
    knot = costs.min(axis=1) / CHORDS
    slope = np.append(np.diff(knot), knot[-1] - knot[-2]) * CHORDS
    at_none = np.append(knot[:-1], knot[-2]) - slope * np.append(np.arange(CHORDS), CHORDS - 1) / CHORDS
    return at_none + slope, at_none, costs.argmin(axis=1)


def _turns_out(positive: Int64Array, negative: Int64Array, a: int, b: int, c: int) -> bool:
    """Whether entry b is not below the line from a to c."""
    along = int(positive[b] - positive[a]) * int(negative[c] - negative[a])
    return along - int(negative[b] - negative[a]) * int(positive[c] - positive[a]) <= 0


@helper
def least(costs, cell):
    """The least that a cell costs."""
    return min(cell, 0) if costs.is_step else _least_of_table(costs, cell)


@helper
def regret(costs, cell, score):
    """What a cell costs at a score beyond its least."""
    if costs.is_step:
        return max(cell, 0) if score > 0 else max(-cell, 0)
    return cost_at(costs, cell, score) - _least_of_table(costs, cell)


@helper
def mass(costs, cell):
    """How much a cell matters, for orders that only decide how fast an answer is found."""
    return abs(cell) if costs.is_step else (cell >> HALF) + (cell & ((1 << HALF) - 1))


@helper
def _least_of_table(costs, cell):
    """Along the hull the cost falls, then rises: from an entry near the lowest, down to it."""
    positives, negatives = cell >> HALF, cell & ((1 << HALF) - 1)
    at = costs.near[np.int64(positives / max(positives + negatives, 1) * CHORDS)]
    best = costs.hull[at]
    lowest = positives * costs.positive[best] + negatives * costs.negative[best]
    for step in (1, -1):
        while 0 <= at + step < len(costs.hull):
            best = costs.hull[at + step]
            further = positives * costs.positive[best] + negatives * costs.negative[best]
            if further > lowest:
                break
            lowest = further
            at += step
    return lowest


@helper
def cost_at(costs, cell, score):
    """What a cell costs at a score, where the loss is not a single step."""
    e = score - costs.first
    return (cell >> HALF) * costs.positive[e] + (cell & ((1 << HALF) - 1)) * costs.negative[e]


@compiled
def sum_of_least(costs, cells):
    """The least that all cells together cost."""
    total = np.int64(0)
    for c in range(len(cells)):
        total += least(costs, cells[c])
    return total


def masses(costs: CellCosts, cells: Int64Array) -> Int64Array:
    """`mass` of every cell."""
    return np.asarray(np.abs(cells) if costs.is_step else (cells >> HALF) + (cells & ((1 << HALF) - 1)))


def regrets(costs: CellCosts, cell: int, scores: ArrayLike) -> NDArray[np.int64]:
    """`regret` of one cell at many scores, without compiled code."""
    at = np.asarray(scores)
    if costs.is_step:
        return np.where(at > 0, max(cell, 0), max(-cell, 0))
    total = (cell >> HALF) * costs.positive + (cell & ((1 << HALF) - 1)) * costs.negative
    return np.asarray((total - total[costs.hull].min())[at - costs.first])
