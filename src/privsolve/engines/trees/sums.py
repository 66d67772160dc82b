"""Sums over the trees of *units*: conjunctions of `d` answered questions with two levels under them (theory, trees).

First the statistics of all pairs of questions are counted, over the rows that answer yes to a set of questions. The pairs
`i <= j` stand one after another, and after them the rows themselves: `place(m, i, j)` and `pairs(m)`.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper
from privsolve.domains.trees import SPLIT
from privsolve.engines.subsets import bit_sets, invert_rows, ones_in
from privsolve.engines.trees.tables import leaf, open_questions, power, reach, stays_open
from privsolve.problems.trees import TreeProblem

UNREACHED = 2**62
"""The least loss of a conjunction that no record can satisfy."""


class Rows(NamedTuple):
    """The merged rows as bit sets: `sets[j]` are those that answer yes to question j.

    A statistic is cut into binary digits: `planes[p]` is the set of rows that have digit `digit[p]` of statistic
    `statistic[p]`, and is empty from word `length[p]` on. Rows are sorted so that long numbers come first.
    """

    sets: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    statistic: Int64Array
    digit: Int64Array
    length: Int64Array


def rows_of(problem: TreeProblem) -> Rows:
    """The rows of a problem."""
    order = np.argsort(-problem.statistics.max(axis=1), kind="stable")
    statistics = problem.statistics[order]
    digits = [(s, b) for s, most in enumerate(statistics.max(axis=0)) for b in range(max(1, int(most).bit_length()))]
    planes = bit_sets(np.array([(statistics[:, s] >> b) & 1 for s, b in digits], dtype=np.uint8))
    length = [int(np.flatnonzero(row).max(initial=-1)) + 1 for row in planes]
    numbers: list[Any] = [*zip(*digits, strict=True), length]
    return Rows(bit_sets(problem.answers[order].T), planes, *(np.array(part, dtype=np.int64) for part in numbers))


@helper
def pairs(m):
    """Number of pairs `i <= j`."""
    return m * (m + 1) // 2


@helper
def place(m, i, j):
    """Where the pair `i <= j` stands."""
    return i * m - i * (i - 1) // 2 + j - i


@helper
def add_pairs(rows, members, out, some):
    """Statistics of all pairs over the bit set `members`."""
    sets, planes = rows.sets, rows.planes
    m = len(sets)
    for p in range(len(out)):
        for s in range(out.shape[1]):
            out[p, s] = 0
    for p in range(len(planes)):
        s, digit, length = rows.statistic[p], rows.digit[p], rows.length[p]
        total = 0
        for w in range(length):
            total += ones_in(planes[p, w] & members[w])
        out[pairs(m), s] += total << digit
        if total == 0:
            continue
        for i in range(m):
            any_left = np.uint64(0)
            for w in range(length):
                some[w] = planes[p, w] & members[w] & sets[i, w]
                any_left |= some[w]
            if any_left != np.uint64(0):
                base = place(m, i, i) - i
                for j in range(i, m):
                    both = 0
                    for w in range(length):
                        both += ones_in(some[w] & sets[j, w])
                    out[base + j, s] += both << digit


@helper
def rank(binomials, members, size):
    """The number of an ascending set among all sets of its size, the largest member counting most."""
    total = np.int64(0)
    for k in range(size):
        total += binomials[members[k], k + 1]
    return total


@helper
def unrank(binomials, number, size, members):
    """The set of that number."""
    for k in range(size, 0, -1):
        j = k - 1
        while binomials[j + 1, k] <= number:
            j += 1
        members[k - 1] = j
        number -= binomials[j, k]


@compiled
def solve_unit(law, left, cell, best, total, scratch, cost):
    """The least loss and the relative sum of all trees of depth two at a cell.

    `cell` holds the statistics of all pairs; `left` the codes that are left. `best[yes, j]` and `total[yes, j]` receive
    those of the trees under each answer to j. Returns the sum over the cell as its least loss and its relative weight.
    """
    m, width = len(law.column), cell.shape[1]
    opened = open_questions(law, left)
    scale, stays = np.zeros((2, m)), np.empty((2, m, m), np.bool_)
    whole, among, first = pairs(m), opened.sum(), 0
    for j in range(m):
        if law.column[first] != law.column[j]:
            first = j
        for yes in range(2):
            best[yes, j] = UNREACHED
            total[yes, j] = 0.0
        if opened[j]:
            mine = place(m, j, j)
            for s in range(width):
                scratch[1, s] = cell[mine, s]
                scratch[0, s] = cell[whole, s] - cell[mine, s]
            for yes in range(2):
                below = among  # questions that are still open after this answer: all of the other columns
                for i in range(first, m):
                    if law.column[i] != law.column[j]:
                        break
                    still = i != j and opened[i] and stays_open(law, left, j, yes == 1, i)
                    stays[yes, j, i] = still
                    below += np.int64(still) - np.int64(opened[i])
                best[yes, j], total[yes, j] = leaf(law, scratch, yes, cost)
                if below > 0:
                    scale[yes, j] = SPLIT / below
                    total[yes, j] *= 1.0 - SPLIT
    loss, weight = np.empty((4, m), np.int64), np.empty((4, m))
    for i in range(m):
        if opened[i]:
            if width == 2 and len(law.costs) == 2:
                _two_values(law, cell, opened, i, loss, weight)
            else:
                _any_values(law, cell, opened, i, scratch, cost, loss, weight)
            _join_pairs(law, opened, i, scale, stays, loss, weight, best, total)
    return _whole_cell(law, opened, cell, best, total, scratch, cost)


# The loops below call nothing: passing arrays to a function costs more than what is done with them here.


@helper
def _any_values(law, cell, opened, i, scratch, cost, loss, weight):
    """Least costs and relative sums of the four cells of i and each later j: both, i only, j only, none are 3, 2, 1, 0."""
    m, width, n_values = len(opened), cell.shape[1], len(law.costs)
    coarse, fine, bits, sums = law.coarse, law.fine, law.bits, law.sums
    costs, share, price, low = law.costs, law.share, law.price, (1 << law.bits) - 1
    one, whole, row = place(m, i, i), pairs(m), place(m, i, i) - i
    other = one
    for j in range(i + 1, m):
        other += m - j + 1  # where the pair of j with itself stands
        if opened[j]:
            for s in range(width):
                n_i, n_j, n_ij = cell[one, s], cell[other, s], cell[row + j, s]
                scratch[3, s] = n_ij
                scratch[2, s] = n_i - n_ij
                scratch[1, s] = n_j - n_ij
                scratch[0, s] = cell[whole, s] - n_i - n_j + n_ij
            for k in range(4):
                least = np.int64(UNREACHED)
                for v in range(n_values):
                    here = np.int64(0)
                    for s in range(width):
                        here += costs[v, s] * scratch[k, s]
                    cost[v] = here
                    least = min(least, here)
                loss[k, j] = least + price
                if sums:
                    total = 0.0
                    for v in range(n_values):
                        high = (cost[v] - least) >> bits
                        if high < len(coarse):
                            total += share * coarse[high] * fine[(cost[v] - least) & low]
                    weight[k, j] = total


@helper
def _two_values(law, cell, opened, i, loss, weight):
    """The same for two values and two statistics, without inner loops."""
    m = len(opened)
    coarse, fine, bits, sums, price = law.coarse, law.fine, law.bits, law.sums, law.price
    low = (1 << bits) - 1
    a0, a1, b0, b1 = law.costs[0, 0], law.costs[0, 1], law.costs[1, 0], law.costs[1, 1]
    row, whole = place(m, i, i) - i, pairs(m)
    x, y = np.int64(cell[row + i, 0]), np.int64(cell[row + i, 1])
    all_x, all_y = np.int64(cell[whole, 0]), np.int64(cell[whole, 1])
    other = row + i
    for j in range(i + 1, m):
        other += m - j + 1
        if opened[j]:
            both_x, both_y = np.int64(cell[row + j, 0]), np.int64(cell[row + j, 1])
            j_x, j_y = np.int64(cell[other, 0]), np.int64(cell[other, 1])
            for k in range(4):
                here_x = both_x if k == 3 else x - both_x if k == 2 else j_x - both_x
                here_y = both_y if k == 3 else y - both_y if k == 2 else j_y - both_y
                if k == 0:
                    here_x, here_y = all_x - x - here_x, all_y - y - here_y
                one, two = a0 * here_x + a1 * here_y, b0 * here_x + b1 * here_y
                loss[k, j] = min(one, two) + price
                if sums:
                    gap = abs(one - two)
                    high = gap >> bits
                    less = coarse[high] * fine[gap & low] if high < len(coarse) else 0.0
                    weight[k, j] = 0.5 + 0.5 * less


@helper
def _join_pairs(law, opened, i, scale, stays, loss, weight, best, total):
    """The terms of i below each later j, and of j below i, for both answers; sums are kept relative to their least loss."""
    coarse, fine, bits, sums, column = law.coarse, law.fine, law.bits, law.sums, law.column
    low = (1 << bits) - 1
    for j in range(i + 1, len(opened)):
        if opened[j]:
            apart = column[i] != column[j]
            for yes in range(2):
                for side in range(2):  # i below j, then j below i
                    upper, lower = (i, j) if side else (j, i)
                    if not (apart or stays[yes, upper, lower]):
                        continue  # no tree asks this: its loss must not become the least one
                    one, two = (2 * yes + 1, 2 * yes) if side else (2 + yes, yes)
                    term_loss = loss[one, j] + loss[two, j]
                    gap = term_loss - best[yes, upper]
                    if sums:
                        term = scale[yes, upper] * weight[one, j] * weight[two, j]
                        size = abs(gap)
                        high = size >> bits
                        factor = coarse[high] * fine[size & low] if high < len(coarse) else 0.0
                        if gap < 0:
                            total[yes, upper] = term + total[yes, upper] * factor
                        else:
                            total[yes, upper] += term * factor
                    if gap < 0:
                        best[yes, upper] = term_loss


@helper
def _whole_cell(law, opened, cell, best, total, scratch, cost):
    m, among = len(opened), opened.sum()
    for s in range(cell.shape[1]):
        scratch[0, s] = cell[pairs(m), s]
    least, weight = leaf(law, scratch, 0, cost)
    if among > 0:
        weight *= 1.0 - SPLIT  # relative to the least loss
    for j in range(m):
        if opened[j]:
            loss, term = best[0, j] + best[1, j], SPLIT / among * total[0, j] * total[1, j]
            if loss < least:
                weight = term + weight * power(law, least - loss)
                least = loss
            else:
                weight += term * power(law, loss - least)
    return least, weight


@compiled
def fill_counts(rows, binomials, size, start, stop, stored, offset):
    """Pair statistics of the sets of this size with numbers `start..stop-1`, into `stored[offset + number]`."""
    members, kept, some = np.empty(max(size, 1), np.int64), _all_rows(rows, size), np.empty_like(rows.sets[0])
    for number in range(start, stop):
        unrank(binomials, number, size, members)
        _narrow(rows, members, size, kept)
        add_pairs(rows, kept[0], stored[offset + number], some)


@helper
def _all_rows(rows, size):
    return np.full((size + 1, rows.sets.shape[1]), np.uint64(0xFFFFFFFFFFFFFFFF))


@helper
def _narrow(rows, members, size, kept):
    """Into `kept[0]`: rows that answer yes to the members."""
    for k in range(size - 1, -1, -1):
        mine = rows.sets[members[k]]
        for w in range(len(mine)):
            kept[k, w] = kept[k + 1, w] & mine[w]


@compiled
def solve_units(rows, law, binomials, size, start, stop, stored, offsets, least, logs, counts):
    """All cells of the sets of `size` questions with numbers `start..stop-1`.

    That is, least losses, logarithms of the sums relative to them, and the counts of the labels.
    """
    m, width = len(rows.sets), stored.shape[2]
    patterns = 1 << size
    members, subset = np.empty((2, max(size, 1)), np.int64)
    kept, some = _all_rows(rows, size), np.empty_like(rows.sets[0])
    cells = np.empty((patterns, pairs(m) + 1, width), stored.dtype)
    best, total = np.empty((2, m), np.int64), np.empty((2, m))
    scratch, cost = np.empty((4, width), np.int64), np.empty(len(law.costs), np.int64)
    left = np.empty(len(law.every), np.uint64)
    for number in range(start, stop):
        unrank(binomials, number, size, members)
        _narrow(rows, members, size, kept)
        add_pairs(rows, kept[0], cells[patterns - 1], some)
        for pattern in range(patterns - 1):
            few = 0
            for k in range(size):
                if pattern >> k & 1:
                    subset[few] = members[k]
                    few += 1
            at = offsets[few] + rank(binomials, subset, few)
            for p in range(cells.shape[1]):  # plain loops compile much faster than slices
                for s in range(width):
                    cells[pattern, p, s] = stored[at, p, s]
        invert_rows(cells.reshape(patterns, -1))  # to "yes to these and no to the others"
        for pattern in range(patterns):
            least[number, pattern], logs[number, pattern] = UNREACHED, 0.0
            for s in range(width):
                counts[number, pattern, s] = cells[pattern, -1, s]
            if reach(law, left, members, size, pattern):
                loss, weight = solve_unit(law, left, cells[pattern], best, total, scratch, cost)
                least[number, pattern] = loss
                logs[number, pattern] = np.log(weight) if law.sums else 0.0
