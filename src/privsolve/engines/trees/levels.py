"""The levels above the units: sums over questions of stored values (theory, trees)."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math

import numpy as np

from privsolve.compiled import compiled, helper
from privsolve.engines.trees.tables import answer, is_open, leaf
from privsolve.engines.trees.units import UNREACHED, rank, unrank


@compiled
def alternatives(law, binomials, level, members, pattern, statistics, least, logs, losses, weights, questions):
    """What a node can do: say a value (question -1), or ask. Returns how many alternatives there are.

    `losses[k]` is the least loss of alternative k and `weights[k]` the logarithm of its prior and of its sum relative to
    that; `least` and `logs` are those of the level below.
    """
    m = law.weights.shape[1]
    left = law.every.copy()
    for k in range(level):
        answer(law, left, members[k], pattern >> k & 1 == 1)
    cost = np.empty(len(law.values), np.int64)
    losses[0], weight = leaf(law, statistics, 0, cost)
    weights[0] = math.log(weight) if law.sums else 0.0
    questions[0] = -1
    mass = 0.0
    if law.split[level] > 0.0:
        for j in range(m):
            if law.weights[level, j] > 0.0 and is_open(law, left, j):
                mass += law.weights[level, j]
    if mass == 0.0:
        return 1
    weights[0] += math.log(1.0 - law.split[level])
    found = 1
    longer = np.empty(level + 1, np.int64)
    scale = law.split[level] / mass
    for j in range(m):
        ask = law.weights[level, j]
        if ask > 0.0 and is_open(law, left, j):
            at = 0
            while at < level and members[at] < j:
                longer[at] = members[at]
                at += 1
            longer[at] = j
            for k in range(at, level):
                longer[k + 1] = members[k]
            number = rank(binomials, longer, level + 1)
            no = pattern & ((1 << at) - 1) | (pattern >> at) << (at + 1)
            yes = no | 1 << at
            losses[found] = least[number, no] + least[number, yes]
            weights[found] = math.log(ask * scale) + logs[number, no] + logs[number, yes]
            questions[found] = j
            found += 1
    return found


@compiled
def solve_level(law, binomials, level, sets, totals, offset, least_below, logs_below, least, logs):
    """All cells of this level from those below; `totals[offset + number]` are the statistics of the rows of yes."""
    m, width = law.weights.shape[1], law.coefficients.shape[1]
    members = np.empty(max(level, 1), np.int64)
    losses, weights = np.empty(m + 1, np.int64), np.empty(m + 1)
    questions = np.empty(m + 1, np.int64)
    statistics = np.empty((1, width), np.int64)
    left = np.empty(len(law.every), np.uint64)
    for number in range(sets):
        unrank(binomials, number, level, members)
        for pattern in range(1 << level):
            left[:] = law.every
            reached = True
            for k in range(level):
                reached &= answer(law, left, members[k], pattern >> k & 1 == 1)
            if not reached:
                least[number, pattern], logs[number, pattern] = UNREACHED, 0.0
                continue
            _statistics(binomials, level, members, pattern, totals, offset, statistics)
            n = alternatives(
                law, binomials, level, members, pattern, statistics, least_below, logs_below, losses, weights, questions
            )
            smallest = losses[:n].min()
            least[number, pattern], logs[number, pattern] = smallest, 0.0
            if law.sums:
                top = -math.inf  # sums relative to the largest term: below a unit weights may leave the range of floats
                for k in range(n):
                    top = max(top, weights[k] - law.kappa * (losses[k] - smallest))
                total = 0.0
                for k in range(n):
                    total += math.exp(weights[k] - law.kappa * (losses[k] - smallest) - top)
                logs[number, pattern] = top + math.log(total)


@helper
def _statistics(binomials, level, members, pattern, totals, offset, out):
    """The statistics of a cell from those of rows that answer yes, by inclusion and exclusion."""
    subset = np.empty(max(level, 1), np.int64)
    out[:] = 0
    for extra in range(1 << level):
        if extra & pattern:
            continue
        few, sign = 0, 1
        for k in range(level):
            if (pattern | extra) >> k & 1:
                subset[few] = members[k]
                few += 1
            if extra >> k & 1:
                sign = -sign
        row = totals[offset[few] + rank(binomials, subset, few)]
        for s in range(out.shape[1]):
            out[0, s] += sign * row[s]
