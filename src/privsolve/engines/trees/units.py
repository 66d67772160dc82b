"""Units: conjunctions of `d` answered questions with the two levels of the tree under them (theory, trees)."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import numpy as np

from privsolve.compiled import compiled
from privsolve.engines.trees.counts import add_bits, add_lists, keep_rows, pairs, place
from privsolve.engines.trees.tables import answer, is_open, leaf, power, stays_open

UNREACHED = 2**62
"""The least loss of a conjunction that no record can satisfy."""


@compiled
def rank(binomials, members, size):
    """The number of an ascending set among all sets of its size, the largest member counting most."""
    total = np.int64(0)
    for k in range(size):
        total += binomials[members[k], k + 1]
    return total


@compiled
def unrank(binomials, number, size, members):
    """The set of that number."""
    for k in range(size, 0, -1):
        j = k - 1
        while binomials[j + 1, k] <= number:
            j += 1
        members[k - 1] = j
        number -= binomials[j, k]


@compiled
def _join(best, total, a, b, law, loss, weight):
    """Add a term with this loss and relative weight to a sum kept relative to its least loss."""
    least = best[a, b]
    if loss < least:
        if law.sums:
            total[a, b] = weight + total[a, b] * power(law, least - loss)
        best[a, b] = loss
    elif law.sums:
        total[a, b] += weight * power(law, loss - least)


@compiled
def solve_unit(law, level, left, cell, best, total, scratch, cost):
    """The least loss and the relative sum of all trees at a cell of this level, whose children are leaves' parents.

    `cell` holds the statistics of all pairs; `left` the codes that are left. `best[yes, j]` and `total[yes, j]` receive
    those of the trees under each answer to j. Returns the sum over the cell as its least loss and its relative weight.
    """
    depth, m = law.weights.shape
    width = cell.shape[1]
    under = level + 1 < depth
    opened = np.empty(m, np.bool_)
    for j in range(m):
        opened[j] = is_open(law, left, j)
    scale = np.zeros((2, m))
    if under:
        _scales(law, level + 1, left, opened, scale)
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
                loss, weight = leaf(law, scratch, yes, cost)
                share = 1.0 if not under or scale[yes, j] == 0.0 else 1.0 - law.split[level + 1]
                best[yes, j] = loss
                total[yes, j] = share * weight
    if under:
        for i in range(m):
            if not opened[i]:
                continue
            one = place(m, i, i)
            for j in range(i + 1, m):
                if not opened[j]:
                    continue
                same = law.column[i] == law.column[j]
                other, both = place(m, j, j), place(m, i, j)
                for s in range(width):
                    n_i, n_j, n_ij = cell[one, s], cell[other, s], cell[both, s]
                    scratch[3, s] = n_ij
                    scratch[2, s] = n_i - n_ij
                    scratch[1, s] = n_j - n_ij
                    scratch[0, s] = cell[whole, s] - n_i - n_j + n_ij
                loss3, weight3 = leaf(law, scratch, 3, cost)
                loss2, weight2 = leaf(law, scratch, 2, cost)
                loss1, weight1 = leaf(law, scratch, 1, cost)
                loss0, weight0 = leaf(law, scratch, 0, cost)
                ask_i, ask_j = law.weights[level + 1, i], law.weights[level + 1, j]
                if ask_i > 0.0:
                    if not same or stays_open(law, left, j, True, i):
                        _join(best, total, 1, j, law, loss3 + loss1, ask_i * scale[1, j] * weight3 * weight1)
                    if not same or stays_open(law, left, j, False, i):
                        _join(best, total, 0, j, law, loss2 + loss0, ask_i * scale[0, j] * weight2 * weight0)
                if ask_j > 0.0:
                    if not same or stays_open(law, left, i, True, j):
                        _join(best, total, 1, i, law, loss3 + loss2, ask_j * scale[1, i] * weight3 * weight2)
                    if not same or stays_open(law, left, i, False, j):
                        _join(best, total, 0, i, law, loss1 + loss0, ask_j * scale[0, i] * weight1 * weight0)
    return _whole_cell(law, level, opened, cell, best, total, scratch, cost)


@compiled
def _scales(law, level, left, opened, scale):
    """`α/Q` under each answer to each question: 0 where nothing is open there."""
    m = law.weights.shape[1]
    columns = law.column[m - 1] + 1
    by_column = np.zeros(columns)
    for i in range(m):
        if opened[i]:
            by_column[law.column[i]] += law.weights[level, i]
    first = 0
    while first < m:
        last = first
        while last < m and law.column[last] == law.column[first]:
            last += 1
        elsewhere = 0.0
        for c in range(columns):
            if c != law.column[first]:
                elsewhere += by_column[c]
        for j in range(first, last):
            if opened[j]:
                for yes in range(2):
                    here = 0.0
                    for i in range(first, last):
                        if opened[i] and i != j and stays_open(law, left, j, yes == 1, i):
                            here += law.weights[level, i]
                    if elsewhere + here > 0.0 and law.split[level] > 0.0:
                        scale[yes, j] = law.split[level] / (elsewhere + here)
        first = last


@compiled
def _whole_cell(law, level, opened, cell, best, total, scratch, cost):
    depth, m = law.weights.shape
    whole = pairs(m)
    for s in range(cell.shape[1]):
        scratch[0, s] = cell[whole, s]
    least, weight = leaf(law, scratch, 0, cost)
    mass = 0.0
    if level < depth and law.split[level] > 0.0:
        for j in range(m):
            if opened[j]:
                mass += law.weights[level, j]
    if mass == 0.0:
        return least, weight
    sums = np.empty((1, 1))
    losses = np.empty((1, 1), np.int64)
    losses[0, 0] = least
    sums[0, 0] = (1.0 - law.split[level]) * weight
    scale = law.split[level] / mass
    for j in range(m):
        ask = law.weights[level, j]
        if opened[j] and ask > 0.0:
            _join(losses, sums, 0, 0, law, best[0, j] + best[1, j], ask * scale * total[0, j] * total[1, j])
    return losses[0, 0], sums[0, 0]


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


@compiled
def _everything(rows, lists, sets, kept, size):
    for r in range(len(rows.answers)):
        lists[size, r] = r
    kept[size] = len(rows.answers)
    for w in range(rows.sets.shape[1]):
        sets[size, w] = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
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


@compiled
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
    scratch, cost = np.empty((4, width), np.int64), np.empty(len(law.values), np.int64)
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
            cells[pattern] = stored[offsets[few] + rank(binomials, subset, few)]
        for k in range(size):  # from "yes to these" to "yes to these and no to the others"
            for pattern in range(patterns):
                if not pattern >> k & 1:
                    with_k = pattern | 1 << k
                    for at in range(pairs(m) + 1):
                        for s in range(width):
                            cells[pattern, at, s] -= cells[with_k, at, s]
        for pattern in range(patterns):
            left[:] = law.every
            reached = True
            for k in range(size):
                reached &= answer(law, left, members[k], pattern >> k & 1 == 1)
            if not reached:
                least[number, pattern], logs[number, pattern] = UNREACHED, 0.0
                continue
            loss, weight = solve_unit(law, size, left, cells[pattern], best, total, scratch, cost)
            least[number, pattern] = loss
            logs[number, pattern] = np.log(weight) if law.sums else 0.0
