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

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper
from privsolve.errors import IntegerRangeError
from privsolve.losses import ScoreLoss

HALF = 32
LOW_HALF = (1 << HALF) - 1
MOST_RECORDS = 2**31


class CellCosts(NamedTuple):
    """The loss of a positive and of a negative record at the scores `first`, `first + 1`, ... that can be reached.

    For a loss with a single step at 0 `is_step` is true, and nothing else is filled in: a cell costs `max(D, 0)` beyond its
    least where the score is above 0, else `max(-D, 0)`. Both kinds have one type, so that one compiled version serves both.
    `hull` holds the same losses at those scores alone that are best for some numbers of records.
    """

    is_step: bool
    first: int
    positive: Int64Array
    negative: Int64Array
    hull: Int64Array


def cell_costs(loss: ScoreLoss, lowest: int, highest: int) -> CellCosts:
    """How cells cost over the scores `lowest..highest`."""
    if loss.is_step:
        none = np.zeros(0, dtype=np.int64)
        return CellCosts(True, lowest, none, none, np.zeros((0, 2), dtype=np.int64))
    positive, negative = np.ascontiguousarray(loss.table[:, loss.entries(np.arange(lowest, highest + 1))])
    return CellCosts(False, lowest, positive, negative, hull_of(positive, negative))


def hull_of(positive: Int64Array, negative: Int64Array) -> Int64Array:
    """The pairs of losses on the lower left hull: no others minimise `P·positive + N·negative`."""
    chain: list[tuple[int, int]] = []
    for p, n in sorted(zip(positive.tolist(), negative.tolist(), strict=True)):
        if chain and n >= chain[-1][1]:
            continue
        while len(chain) > 1:
            (a, b), (c, d) = chain[-2:]
            if (c - a) * (n - b) > (d - b) * (p - a):  # the last one is below the line from the one before it to this
                break
            chain.pop()
        chain.append((p, n))
    return np.array(chain, dtype=np.int64)


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


@helper
def least(costs, cell):
    """The least that a cell costs."""
    return min(cell, 0) if costs.is_step else _least_of_table(costs, cell)


@compiled
def _least_of_table(costs, cell):
    """Not a helper: sums over cells of a step are straight vector code only where this loop is not part of them."""
    lowest = (cell >> HALF) * costs.hull[0, 0] + (cell & LOW_HALF) * costs.hull[0, 1]
    for e in range(1, len(costs.hull)):
        lowest = min(lowest, (cell >> HALF) * costs.hull[e, 0] + (cell & LOW_HALF) * costs.hull[e, 1])
    return lowest


@helper
def cost_at(costs, cell, score):
    """What a cell costs at a score, or at many, where the loss is not a single step."""
    e = score - costs.first
    return (cell >> HALF) * costs.positive[e] + (cell & LOW_HALF) * costs.negative[e]


@helper
def regret(costs, cell, score):
    """What a cell costs at a score, or at many, beyond its least."""
    if costs.is_step:
        return (score > 0) * max(cell, 0) + (score <= 0) * max(-cell, 0)
    return cost_at(costs, cell, score) - least(costs, cell)


@helper
def mass(costs, cell):
    """How much a cell, or each of many, matters for orders that only decide how fast an answer is found."""
    return abs(cell) if costs.is_step else (cell >> HALF) + (cell & LOW_HALF)


@compiled
def sum_of_least(costs, cells):
    """The least that all cells together cost."""
    total = np.int64(0)
    for c in range(len(cells)):
        total += least(costs, cells[c])
    return total
