"""The cells of every support, without touching the records again (supports-first tree, theory section 4).

The cell `c ⊆ S` of a support holds the rows whose ones among `S` are exactly `c`; it is one integer `D_c`, the sum of what
its rows put into it (`instance`). No points on `S` can lose less than `Bayes(S) = base + Σ_c min(D_c, 0)`. Each row is
scattered once into the *moments* `M[T] = Σ_{rows ⊇ T} D` of the subsets T of its ones, and inclusion-exclusion turns
moments into cells: `D_c = Σ_{c ⊆ T ⊆ S} (-1)^|T - c| M[T]`.

Supports are numbered by size, then lexicographically, so the supports that extend `T` by one later column are
neighbours: `number(T ∪ {j}) = child_start[number(T)] + j`. All numbers are exact integers.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper, inlined
from privsolve.engines.card_rules import is_allowed
from privsolve.engines.subsets import invert
from privsolve.engines.supports.bits import pack
from privsolve.engines.supports.instance import CardInstance, count_supports, number_supports
from privsolve.engines.supports.moments import fill_moments

NOT_ALLOWED = 2**62
LARGEST_SCATTER = 10**8
"""Beyond so many subsets of ones moments are counted by bit sets instead, which gives the same integers."""


class Listing(NamedTuple):
    """All supports by number: where their extensions start, their moments and their Bayes losses.

    `child_start` and `last` (the largest column) stop short of the largest supports, which have no extensions.
    `binomial[n, k]` decodes numbers.
    """

    child_start: Int64Array
    last: Int64Array
    moment: Int64Array
    bayes: Int64Array
    binomial: Int64Array


def scattered_subsets(inst: CardInstance) -> int:
    """How many subsets of ones the rows have: what scattering them takes."""
    rows_with = np.bincount(inst.rows.sum(axis=1), minlength=1).tolist()
    return sum(rows * count_supports(ones, inst.max_features) for ones, rows in enumerate(rows_with) if rows)


def list_supports(inst: CardInstance) -> Listing:
    """Scatter the rows into moments and invert them to the Bayes loss of every support."""
    m, most = inst.n_columns, inst.max_features
    binomial = np.array([[math.comb(n, k) for k in range(most + 1)] for n in range(m + 1)], dtype=np.int64)
    child_start, last = number_supports(m, most)
    moment, bayes = np.zeros(inst.n_supports, dtype=np.int64), np.empty(inst.n_supports, dtype=np.int64)
    listing = Listing(child_start, last, moment, bayes, binomial)
    if scattered_subsets(inst) > LARGEST_SCATTER:
        fill_moments(inst, pack(inst, np.zeros(m, dtype=np.bool_)), most, child_start, moment)
    else:
        path = np.zeros((2, most + 1), dtype=np.int64)
        _scatter(inst.rows, inst.row_cell, most, child_start, moment, np.zeros(m + 1, dtype=np.int64), *path)
    _walk(m, most, inst.base, listing, _new_path(m, max(most - 2, 0)))
    return listing


@compiled
def leave_out(rule, listing, columns):
    """Give `NOT_ALLOWED` as loss to the supports that are not allowed; `columns` is scratch."""
    for number in range(len(listing.bayes)):
        if not is_allowed(rule, columns, columns_of(listing, number, columns)):
            listing.bayes[number] = NOT_ALLOWED


@compiled
def _scatter(rows, row_cell, most, child_start, moment, ones, number, following):
    """Add what each row puts into its cell to every subset of at most `most` of its ones; the last three are scratch."""
    for i in range(len(rows)):
        d = row_cell[i]
        moment[0] += d
        n_ones = 0
        for j in range(rows.shape[1]):
            ones[n_ones] = j
            n_ones += rows[i, j]
        size = 0
        following[0] = 0
        while size >= 0:
            at = following[size]
            if at == n_ones or most == 0:
                size -= 1
            elif size == most - 1:
                start = child_start[number[size]]
                for p in range(at, n_ones):
                    moment[start + ones[p]] += d
                size -= 1
            else:
                following[size] = at + 1
                child = child_start[number[size]] + ones[at]
                moment[child] += d
                size += 1
                number[size], following[size] = child, at + 1


class Path(NamedTuple):
    """Where a walk stands, by depth: at depth d the cells of the path's d columns, `cell[d, c]`, with their `number`, the part
    of each that has the later column j, `part[d, j, c]`, and the next column to extend by."""

    cell: Int64Array
    part: Int64Array
    number: Int64Array
    scratch: Int64Array
    following: Int64Array


def _new_path(m: int, deepest: int) -> Path:
    cells = 1 << deepest
    cell, part, number = ((deepest + 1, cells), (deepest + 1, m, cells), (deepest + 1, cells))
    return Path(*(np.zeros(shape, dtype=np.int64) for shape in (cell, part, number, (2, cells), deepest + 1)))


@compiled
def _walk(m, most, base, listing, path):
    """Bayes loss of every support, depth first: a prefix hands its inverted cells to all its extensions.

    Extending by j splits every cell in two, so only the parts that have j are new. The
    last two columns are added together, which takes two subtractions per cell once both are inverted.
    """
    child_start, moment, bayes = listing.child_start, listing.moment, listing.bayes
    bayes[0] = base + min(moment[0], 0)
    if most == 0:
        return
    cell, part, number, scratch, following = path
    deepest = len(following) - 1
    cell[0, 0] = moment[0]
    for j in range(m):
        part[0, j, 0] = moment[1 + j]
    depth, entering = np.int64(0), True  # a literal would be compiled once more
    while depth >= 0:
        j = following[depth]
        if entering:
            start = child_start[number[depth, (1 << depth) - 1]]
            for k in range(j, m):
                bayes[start + k] = base + _split_bayes(cell[depth], part[depth, k], 1 << depth)
            if depth == most - 2 and j < m - 1:
                first = child_start[start + j] + j + 1
                _bayes_of_pairs(listing, number[depth], cell[depth], part[depth], scratch, j, m, base, bayes[first:])
            entering = False
        if depth == deepest or j >= m - 1:  # the last column has no later one to extend by
            depth -= 1
            continue
        following[depth] = j + 1
        _extend(child_start, moment, number, cell, part, scratch, depth, j, m)
        depth += 1
        following[depth] = j + 1
        entering = True


@helper
def _split_bayes(cell, having, n_cells):
    """`Σ min(D, 0)` over the cells split by one more column."""
    total = 0
    for c in range(n_cells):
        total += min(having[c], 0) + min(cell[c] - having[c], 0)
    return total


@helper
def _bayes_of_pairs(listing, number, cell, part, scratch, first, m, base, out):
    """`Bayes(S ∪ {j, k})` for all later columns j < k; they are numbered one after the other."""
    n_cells, at = len(cell), 0
    start, both = scratch[0], scratch[1]
    for c in range(n_cells):
        start[c] = listing.child_start[listing.child_start[number[c]] + first] + first + 1
    for j in range(first, m - 1):
        for k in range(j + 1, m):
            if n_cells == 16:  # a constant number of cells becomes straight vector code
                out[at] = base + _pair_bayes(listing.moment, start, at, cell, part[j], part[k], both, np.int64(16))
            elif n_cells == 4:
                out[at] = base + _pair_bayes(listing.moment, start, at, cell, part[j], part[k], both, np.int64(4))
            else:
                out[at] = base + _pair_bayes(listing.moment, start, at, cell, part[j], part[k], both, n_cells)
            at += 1


@inlined
def _pair_bayes(moment, start, at, cell, one, other, both, n_cells):
    """`Σ min(D, 0)` over the cells split by two more columns."""
    for c in range(n_cells):
        both[c] = moment[start[c] + at]
    invert(both, n_cells)
    total = 0
    for c in range(n_cells):
        total += min(both[c], 0) + min(one[c] - both[c], 0) + min(other[c] - both[c], 0)
        total += min(cell[c] - one[c] - other[c] + both[c], 0)
    return total


@helper
def _extend(child_start, moment, number, cell, part, scratch, depth, j, m):
    """Cells and parts of the path extended by column j, at depth + 1."""
    n_cells = 1 << depth
    start, both = scratch[0], scratch[1]
    for c in range(n_cells):
        child = child_start[number[depth, c]] + j
        number[depth + 1, c], number[depth + 1, n_cells + c] = number[depth, c], child
        cell[depth + 1, n_cells + c] = part[depth, j, c]
        cell[depth + 1, c] = cell[depth, c] - part[depth, j, c]
        start[c] = child_start[child]
    for k in range(j + 1, m):
        for c in range(n_cells):
            both[c] = moment[start[c] + k]
        invert(both, n_cells)
        for c in range(n_cells):
            part[depth + 1, k, n_cells + c] = both[c]
            part[depth + 1, k, c] = part[depth, k, c] - both[c]


@compiled
def columns_of(listing, number, columns):
    """Decode a support: its columns in ascending order go to `columns`; returns how many."""
    m, size, rank = len(listing.binomial) - 1, 0, number
    while rank >= listing.binomial[m, size]:
        rank -= listing.binomial[m, size]
        size += 1
    j = 0
    for position in range(size):
        while rank >= listing.binomial[m - 1 - j, size - 1 - position]:
            rank -= listing.binomial[m - 1 - j, size - 1 - position]
            j += 1
        columns[position] = j
        j += 1
    return size


@compiled
def cells_of(listing, columns, size, number, cells):
    """`D_c` of every cell of a support by inclusion-exclusion; bit i of c is `columns[i]`. `number` is scratch."""
    number[0] = 0
    for i in range(size):
        for c in range(1 << i):
            number[c + (1 << i)] = listing.child_start[number[c]] + columns[i]
    for c in range(1 << size):
        cells[c] = listing.moment[number[c]]
    invert(cells, 1 << size)


def sum_over_supports(inst: CardInstance, listing: Listing, addend: np.ndarray) -> np.ndarray:
    """`Σ_{j ∈ S} addend[j]` for every support, in the type of `addend`."""
    total = np.zeros(inst.n_supports, dtype=addend.dtype)
    _sum_over_supports(listing.child_start, listing.last, addend, total)
    return total


@compiled
def _sum_over_supports(child_start, last, addend, total):
    for number in range(len(child_start)):
        first, start = last[number] + 1, child_start[number]
        extensions, added = total[start + first : start + len(addend)], addend[first:]
        for x in range(len(extensions)):
            extensions[x] = total[number] + added[x]
