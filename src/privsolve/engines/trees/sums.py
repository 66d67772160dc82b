"""Sums over trees from the leaves upwards (theory, trees).

First the *units*: conjunctions of `d` answered questions with the two levels of the tree under them. Then the levels above
the units: sums over questions of stored values.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math

import numpy as np

from privsolve.compiled import compiled, helper
from privsolve.engines.subsets import invert_rows
from privsolve.engines.trees.counts import add_bits, add_lists, keep_rows, pairs, place
from privsolve.engines.trees.tables import leaf, open_mass, open_questions, power, reach, stays_open

UNREACHED = 2**62
"""The least loss of a conjunction that no record can satisfy."""


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
def solve_unit(law, level, left, cell, best, total, scratch, cost):
    """The least loss and the relative sum of all trees at a cell of this level, whose children are leaves' parents.

    `cell` holds the statistics of all pairs; `left` the codes that are left. `best[yes, j]` and `total[yes, j]` receive
    those of the trees under each answer to j. Returns the sum over the cell as its least loss and its relative weight.
    """
    m, width = len(law.weights), cell.shape[1]
    under = level + 1 < law.depth
    opened = open_questions(law, left)
    scale = np.zeros((2, m))
    stays = np.empty((2, m, m) if under else (2, 0, 0), np.bool_)
    if under:
        _scales(law, left, opened, scale, stays)
    whole = pairs(m)
    for j in range(m):
        for yes in range(2):
            best[yes, j] = UNREACHED
            total[yes, j] = 0.0
        if opened[j]:
            mine = place(m, j, j)
            for s in range(width):
                scratch[1, s] = cell[mine, s]
                scratch[0, s] = cell[whole, s] - cell[mine, s]
            for yes in range(2):
                best[yes, j], total[yes, j] = leaf(law, scratch, yes, cost)
                if under and scale[yes, j] > 0.0:
                    total[yes, j] *= 1.0 - law.split
    if under:
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
    m = len(opened)
    coarse, fine, bits, sums, column, ask = law.coarse, law.fine, law.bits, law.sums, law.column, law.weights
    low = (1 << bits) - 1
    for j in range(i + 1, m):
        if opened[j]:
            apart = column[i] != column[j]
            for yes in range(2):
                for side in range(2):  # i below j, then j below i
                    upper, lower = (i, j) if side else (j, i)
                    if ask[lower] == 0.0 or scale[yes, upper] == 0.0 or not (apart or stays[yes, upper, lower]):
                        continue  # a tree of prior weight 0: its loss must not become the least one
                    one, two = (2 * yes + 1, 2 * yes) if side else (2 + yes, yes)
                    term_loss = loss[one, j] + loss[two, j]
                    gap = term_loss - best[yes, upper]
                    if sums:
                        term = ask[lower] * scale[yes, upper] * weight[one, j] * weight[two, j]
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
def _scales(law, left, opened, scale, stays):
    """`α/Q` under each answer to each question, 0 where nothing is open there, and which of the same column stay open."""
    column, codes, weight, split = law.column, law.codes, law.weights, law.split
    m = len(weight)
    columns = column[m - 1] + 1
    by_column = np.zeros(columns)
    for i in range(m):
        if opened[i]:
            by_column[column[i]] += weight[i]
    start = 0
    while start < m:
        stop = start
        while stop < m and column[stop] == column[start]:
            stop += 1
        elsewhere = 0.0
        for c in range(columns):
            if c != column[start]:
                elsewhere += by_column[c]
        first, last = law.first[start], law.last[start]
        for j in range(start, stop):
            if opened[j]:
                for yes in range(2):
                    here = 0.0
                    for i in range(start, stop):
                        stays[yes, j, i] = i != j and opened[i] and stays_open(codes, left, first, last, j, yes == 1, i)
                        if stays[yes, j, i]:
                            here += weight[i]
                    if elsewhere + here > 0.0 and split > 0.0:
                        scale[yes, j] = split / (elsewhere + here)
        start = stop


@helper
def _whole_cell(law, opened, cell, best, total, scratch, cost):
    m = len(opened)
    for s in range(cell.shape[1]):
        scratch[0, s] = cell[pairs(m), s]
    least, weight = leaf(law, scratch, 0, cost)
    mass = open_mass(law, opened)
    if mass == 0.0:
        return least, weight
    total_weight = (1.0 - law.split) * weight  # relative to the least loss
    for j in range(m):
        ask = law.weights[j] * (law.split / mass)
        if opened[j] and ask > 0.0:
            loss, term = best[0, j] + best[1, j], ask * total[0, j] * total[1, j]
            if loss < least:
                total_weight = term + total_weight * power(law, least - loss)
                least = loss
            else:
                total_weight += term * power(law, loss - least)
    return least, total_weight


@compiled
def fill_counts(rows, binomials, size, start, stop, stored, offset):
    """Pair statistics of the sets of this size with numbers `start..stop-1`, into `stored[offset + number]`."""
    members = np.empty(max(size, 1), np.int64)
    lists = np.empty((size + 1, len(rows.answers)), np.int64)
    sets = np.empty((size + 1, rows.sets.shape[1]), np.uint64)
    kept = np.empty(size + 1, np.int64)
    some = np.empty(rows.sets.shape[1], np.uint64)
    _everything(rows, lists, sets, kept, size)
    before = np.full(max(size, 1), -1, np.int64)
    for number in range(start, stop):
        unrank(binomials, number, size, members)
        _narrow(rows, members, before, size, lists, sets, kept)
        _count(rows, lists, sets, kept, some, stored[offset + number])


@helper
def _everything(rows, lists, sets, kept, size):
    for r in range(len(rows.answers)):
        lists[size, r] = r
    kept[size] = len(rows.answers)
    for w in range(rows.sets.shape[1]):
        sets[size, w] = np.uint64(0xFFFFFFFFFFFFFFFF)


@helper
def _narrow(rows, members, before, size, lists, sets, kept):
    """Rows that answer yes to the members, the largest first; what is as before is not done again."""
    changed = size - 1
    while changed >= 0 and members[changed] == before[changed]:
        changed -= 1
    for k in range(changed, -1, -1):
        if rows.by_bits:
            mine = rows.sets[members[k]]
            for w in range(len(mine)):
                sets[k, w] = sets[k + 1, w] & mine[w]
        else:
            kept[k] = keep_rows(rows, members[k], lists[k + 1], kept[k + 1], lists[k])
        before[k] = members[k]


@helper
def _count(rows, lists, sets, kept, some, out):
    if rows.by_bits:
        add_bits(rows, sets[0], out, some)
    else:
        add_lists(rows, lists[0], kept[0], out)


@compiled
def solve_units(rows, law, binomials, size, start, stop, stored, offsets, least, logs):
    """All cells of the sets of `size` questions with numbers `start..stop-1`: least losses and logarithms of the rest."""
    n, m = rows.answers.shape
    width = rows.statistics.shape[1]
    patterns = 1 << size
    members = np.empty(max(size, 1), np.int64)
    subset = np.empty(max(size, 1), np.int64)
    lists = np.empty((size + 1, n), np.int64)
    sets = np.empty((size + 1, rows.sets.shape[1]), np.uint64)
    kept = np.empty(size + 1, np.int64)
    some = np.empty(rows.sets.shape[1], np.uint64)
    cells = np.empty((patterns, pairs(m) + 1, width), rows.statistics.dtype)
    best, total = np.empty((2, m), np.int64), np.empty((2, m))
    scratch, cost = np.empty((4, width), np.int64), np.empty(len(law.costs), np.int64)
    left = np.empty(len(law.every), np.uint64)
    _everything(rows, lists, sets, kept, size)
    before = np.full(max(size, 1), -1, np.int64)
    for number in range(start, stop):
        unrank(binomials, number, size, members)
        _narrow(rows, members, before, size, lists, sets, kept)
        _count(rows, lists, sets, kept, some, cells[patterns - 1])
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
            if not reach(law, left, members, size, pattern):
                least[number, pattern], logs[number, pattern] = UNREACHED, 0.0
                continue
            loss, weight = solve_unit(law, size, left, cells[pattern], best, total, scratch, cost)
            least[number, pattern] = loss
            logs[number, pattern] = np.log(weight) if law.sums else 0.0


# --- the levels above the units ---------------------------------------------------------------------


@compiled
def alternatives(law, binomials, level, members, pattern, statistics, least, logs, losses, weights, questions):
    """What a node can do: say a value (question -1), or ask. Returns how many alternatives there are.

    `losses[k]` is the least loss of alternative k and `weights[k]` the logarithm of its prior and of its sum relative to
    that; `least` and `logs` are those of the level below.
    """
    m = len(law.weights)
    left = np.empty(len(law.every), np.uint64)
    reach(law, left, members, level, pattern)
    cost = np.empty(len(law.costs), np.int64)
    losses[0], weight = leaf(law, statistics, 0, cost)
    weights[0] = math.log(weight) if law.sums else 0.0
    questions[0] = -1
    opened = open_questions(law, left)
    mass = open_mass(law, opened)
    if mass == 0.0:
        return 1
    weights[0] += math.log(1.0 - law.split)
    found = 1
    longer = np.empty(level + 1, np.int64)
    for j in range(m):
        ask = law.weights[j] * (law.split / mass)
        if opened[j] and ask > 0.0:
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
            weights[found] = math.log(ask) + logs[number, no] + logs[number, yes]
            questions[found] = j
            found += 1
    return found


@compiled
def solve_level(law, binomials, level, sets, totals, offset, least_below, logs_below, least, logs):
    """All cells of this level from those below; `totals[offset + number]` are the statistics of the rows of yes."""
    m, width = len(law.weights), law.costs.shape[1]
    members = np.empty(max(level, 1), np.int64)
    losses, weights = np.empty(m + 1, np.int64), np.empty(m + 1)
    questions = np.empty(m + 1, np.int64)
    statistics = np.empty((1, width), np.int64)
    left = np.empty(len(law.every), np.uint64)
    for number in range(sets):
        unrank(binomials, number, level, members)
        for pattern in range(1 << level):
            if not reach(law, left, members, level, pattern):
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
    for s in range(out.shape[1]):
        out[0, s] = 0
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
