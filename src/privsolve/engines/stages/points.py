"""The points of one support: the losses of all of them, the least, and the sum of their weights (theory, stages).

The cell `c ⊆ S` holds the records whose ones among S are exactly c, and `cost[c, x]` is what they lose at score number x.
Fixing the points of the last free column to v joins two cells: `cost'[c, x] = cost[c, x] + cost[c ∪ j, x + v]`. With no
column left the vector of the empty cell is the loss at every intercept.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled
from privsolve.engines.bits import ones
from privsolve.engines.numbering import subset_numbers


class Shape(NamedTuple):
    """What is public: the points, which include their extremes `low <= 0 <= high`, and the number of intercepts.

    Score number 0 is the least intercept plus `most` times `low`.
    """

    points: Int64Array
    low: int
    high: int
    intercepts: int
    most: int


class Law(NamedTuple):
    """`κ`, the prior of points (by column) and intercepts, each of sum 1, and the cut between heavy and light cards."""

    kappa: float
    points: Floats
    intercepts: Floats
    cut: float


class Scratch(NamedTuple):
    """Room for one support: costs at every depth of the fold, numbers of its subsets, the chosen points and the sums."""

    cost: Int64Array
    numbers: Int64Array
    at: Int64Array
    support: Int64Array
    terms: Floats
    parts: Floats


def new_scratch(shape: Shape, terms: bool = True) -> Scratch:
    """Room for the largest support, taken now and not when it is first used; without `terms` nothing can be summed."""
    most, width = shape.most, shape.intercepts + shape.most * (shape.high - shape.low)
    return Scratch(
        np.zeros((most + 1, 1 << most, width), dtype=np.int64),
        np.zeros(1 << most, dtype=np.int64),
        np.zeros(most + 1, dtype=np.int64),
        np.zeros(max(most, 1), dtype=np.int64),
        np.full(len(shape.points) ** most * shape.intercepts if terms else 0, 0.0),
        np.zeros(max(len(shape.points), shape.intercepts)),
    )


@compiled
def load(moment, child_start, scratch, size):
    """The costs of the cells of `scratch.support`, by inclusion and exclusion."""
    subset_numbers(child_start, scratch.support, size, scratch.numbers)
    cost, cells = scratch.cost[0], 1 << size
    for c in range(cells):
        for x in range(cost.shape[1]):
            cost[c, x] = moment[scratch.numbers[c], x]
    half = 1
    while half < cells:
        for c in range(cells):
            if c & half == 0:
                for x in range(cost.shape[1]):
                    cost[c, x] -= cost[c + half, x]
        half *= 2


@compiled
def fix_last(shape, scratch, size, depth, v):
    """Fix the points of the last free column: from `depth` columns fixed to `depth + 1`."""
    source, target, half = scratch.cost[depth], scratch.cost[depth + 1], 1 << (size - depth - 1)
    for c in range(half):
        start, stop = used(shape, c)
        for x in range(start, stop):
            target[c, x] = source[c, x] + source[c + half, x + v]


@compiled
def used(shape, c):
    """The range of scores that cell c can take."""
    start = (ones(c) - shape.most) * shape.low
    return start, start + shape.intercepts + ones(c) * (shape.high - shape.low)


@compiled
def least(shape, law, scratch, size):
    """The least loss of the loaded support, over points that have weight."""
    found = np.int64(2**62)
    depth, n_points = 0, len(shape.points)
    at, start = scratch.at, -shape.most * shape.low
    at[0] = 0
    while depth >= 0:
        if depth == size:
            losses = scratch.cost[depth, 0]
            for x in range(start, start + shape.intercepts):
                found = min(found, losses[x])
            depth -= 1
        elif at[depth] == n_points:
            depth -= 1
        elif law.points[scratch.support[size - depth - 1], at[depth]] == 0.0:
            at[depth] += 1
        else:
            fix_last(shape, scratch, size, depth, shape.points[at[depth]])
            at[depth] += 1
            depth += 1
            at[depth] = 0
    return found


@compiled
def floor(shape, scratch, size):
    """What the loaded support loses at least, were every cell free to take the best score it can reach."""
    total = np.int64(0)
    for c in range(1 << size):
        total += least_in(scratch.cost[0, c], *used(shape, c))
    return total


@compiled
def sketch(shape, law, scratch, size):
    """A bound on the sum of `prior·exp(-κ(loss - floor))` over all points of the loaded support.

    A cell of two or more columns is charged to its first one, at the best score that its other points can lead to: then the
    columns are independent given the intercept.
    """
    base, n = -shape.most * shape.low, shape.intercepts + shape.high - shape.low
    sums = np.empty(shape.intercepts)
    lowest = least_in(scratch.cost[0, 0], base, base + shape.intercepts)
    for t in range(shape.intercepts):
        sums[t] = law.intercepts[t] * np.exp(-law.kappa * (scratch.cost[0, 0, base + t] - lowest))
    gain = np.empty(n, np.int64)
    for i in range(size):
        floor_i = charge(shape, scratch, size, i, gain)
        points = law.points[scratch.support[i]]
        for t in range(shape.intercepts):
            total = 0.0
            for p in range(len(shape.points)):
                total += points[p] * np.exp(-law.kappa * (gain[t + shape.points[p] - shape.low] - floor_i))
            sums[t] *= total
    bound = 0.0
    for t in range(shape.intercepts):
        bound += sums[t]
    return bound


@compiled
def charge(shape, scratch, size, i, gain):
    """What the cells whose first column is i cost at least, by the score of that column; the sum of their floors."""
    gain[:] = 0
    total = np.int64(0)
    start = (1 - shape.most) * shape.low  # of the scores of one column
    for c in range(1 << size):
        if c >> i & 1 and c & ((1 << i) - 1) == 0:
            others = ones(c) - 1
            cost = scratch.cost[0, c]
            first = start + others * shape.low
            width = 1 + others * (shape.high - shape.low)
            lowest = cost[first]
            for x in range(len(gain)):
                best = cost[first + x]
                for d in range(1, width):
                    best = min(best, cost[first + x + d])
                gain[x] += best
                lowest = min(lowest, best)
            total += lowest
    return total


@compiled
def least_in(cost, start, stop):
    """The least entry."""
    best = cost[start]
    for x in range(start + 1, stop):
        best = min(best, cost[x])
    return best


@compiled
def floors_of(shape, listed, supports, sizes, scratch, first, step, found):
    """The floor of every support with the number `first`, `first + step`, ..."""
    for s in range(first, len(supports), step):
        take(supports, s, scratch)
        load(listed.moment, listed.child_start, scratch, sizes[s])
        found[s] = floor(shape, scratch, sizes[s])


@compiled
def take(supports, s, scratch):
    """Make a support the one at hand."""
    for i in range(supports.shape[1]):
        scratch.support[i] = supports[s, i]


@compiled
def weigh(shape, law, scratch, size, smallest):
    """The sum of `prior·exp(-κ(loss - smallest))` over the heavy points, those with an exponent of at most the cut.

    `terms` holds one summand for each choice: the points of the last column vary slowest, the intercept fastest. Points that
    are not allowed have no weight, and may lose less than `smallest`.
    """
    total, at_term = 0.0, 0
    depth, n_points = 0, len(shape.points)
    at, start = scratch.at, -shape.most * shape.low
    prior = np.ones(size + 1)
    at[0] = 0
    while depth >= 0:
        if depth == size:
            losses = scratch.cost[depth, 0]
            for t in range(shape.intercepts):
                excess = law.kappa * (losses[start + t] - smallest)
                heavy = excess <= law.cut and prior[depth] > 0.0
                term = prior[depth] * law.intercepts[t] * np.exp(-excess) if heavy else 0.0
                scratch.terms[at_term] = term
                at_term += 1
                total += term
            depth -= 1
        elif at[depth] == n_points:
            depth -= 1
        else:
            p = at[depth]
            prior[depth + 1] = prior[depth] * law.points[scratch.support[size - depth - 1], p]
            fix_last(shape, scratch, size, depth, shape.points[p])
            at[depth] += 1
            depth += 1
            at[depth] = 0
    return total
