"""Moments of all sets of few columns, and what the supports around one prefix can lose at least.

As in `cells`, the moment of a set is the sum over the rows that have all its columns, and inclusion-exclusion turns the
moments of a support's subsets into its cells. Here moments are counted with bit sets (`bits`), and those of the largest
supports, nearly all of them, are never stored: a *node* is a prefix T of `max_features - 2` columns. Its supports
`T ∪ {j, k}` are handled side by side, some of its *rows* j at a time, because for every `U ⊂ T` the moments of `U ∪ {j, k}`
are neighbours in memory. Only that of `T ∪ {j, k}` itself must then be counted.

Columns may be turned round (`bits.turned`). Cells are then named the other way round, until `name_cells`.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper, overload
from privsolve.engines.subsets import invert, invert_rows
from privsolve.engines.supports.bits import Bits, advance, begin, count_later, count_pairs, new_walk
from privsolve.engines.supports.instance import CardInstance, number_supports
from privsolve.engines.workers import Workers

PAIRS = 1024
"""Supports handled at a time, or those of one row if these are more: their cells should stay in the cache."""


class Moments(NamedTuple):
    """The moments of all sets of at most `max_features - 1` columns, numbered as in `cells`."""

    child_start: Int64Array
    moment: NDArray[Any]
    binomial: Int64Array


class Node(NamedTuple):
    """Scratch for a prefix T of d columns.

    Number and content of each of its `2^d` cells, and for each later column k the `part` of the cell that has k. For the
    pairs (j, k) of some rows j, one after the other (`first`, `second`), the part that has `both`, and for one cell at a
    time those that have `one` and the `other`. `loss` is for what `T ∪ {j, k}` loses at least, `single` for `T ∪ {j}`.
    Rows that constraints leave out are not `live`.
    """

    number: Int64Array
    cell: NDArray[Any]
    part: NDArray[Any]
    first: NDArray[np.uint32]
    second: NDArray[np.uint32]
    both: NDArray[Any]
    one: NDArray[Any]
    other: NDArray[Any]
    loss: NDArray[Any]
    single: NDArray[Any]
    live: NDArray[np.bool_]


def new_node(inst: CardInstance) -> Node:
    """Room for any prefix; cells are 32 bits wide if they can be, so that a vector instruction handles many."""
    cells, m = 1 << (inst.max_features - 2), inst.n_columns
    kind = np.int64 if inst.is_wide else np.int32
    pairs = min(m * (m - 1) // 2, PAIRS + m)
    return Node(
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells, dtype=kind),
        np.zeros((cells, m), dtype=kind),
        np.zeros(pairs, dtype=np.uint32),
        np.zeros(pairs, dtype=np.uint32),
        np.zeros((cells, pairs), dtype=kind),
        np.zeros(max(pairs, m), dtype=kind),
        np.zeros(pairs, dtype=kind),
        np.zeros(pairs, dtype=kind),
        np.zeros(m, dtype=kind),
        np.ones(m, dtype=np.bool_),
    )


def count_moments(inst: CardInstance, bits: Bits) -> Moments:
    """The moments of all sets of at most `max_features - 1` columns, by size."""
    m, most = inst.n_columns, inst.max_features - 1
    child_start, _ = number_supports(m, most)
    total = sum(math.comb(m, size) for size in range(most + 1))
    kind = np.int64 if inst.is_wide else np.int32
    binomial = np.array([[math.comb(n, k) for k in range(most + 2)] for n in range(m + 1)], dtype=np.int64)
    moments = Moments(child_start, np.zeros(total, dtype=kind), binomial)
    fill_moments(inst, bits, most, child_start, moments.moment)
    return moments


def fill_moments(inst: CardInstance, bits: Bits, most: int, child_start: Int64Array, moment: NDArray[Any]) -> None:
    """The moments of all sets of at most `most` columns, by size, on all cores."""
    m = inst.n_columns
    moment[0] = inst.row_cell.sum()
    walk = new_walk(bits, m, 0)
    begin(walk, 0)
    _count_singles(walk, bits.weight, moment)
    for size in range(2, most + 1):
        walks = Workers(lambda size=size: new_walk(bits, m, size - 2))  # type: ignore[misc]
        walks.run(lambda walk, first: _count_from(walk, first, bits.weight, child_start, moment), firsts(m, size - 2))


def firsts(m: int, size: int) -> range:
    """The first columns of all sets of a size; one of any for the empty set."""
    return range(m - size + 1) if size > 0 else range(1)


@compiled
def _count_singles(walk, weight, moment):
    count_later(walk, weight)
    if len(moment) > 1:
        for j in range(walk.n_columns):
            moment[1 + j] = walk.counted[j]


@compiled
def _count_from(walk, first, weight, child_start, moment):
    """Moments of the sets of two columns more than the walk's, those that start with column `first`."""
    m = walk.n_columns
    more = begin(walk, first)
    while more:
        number = 0
        for i in range(len(walk.path)):
            number = child_start[number] + walk.path[i]
        for j in range(walk.path[-1] + 1 if len(walk.path) > 0 else 0, m - 1):
            count_pairs(walk, weight, j)
            start = child_start[child_start[number] + j]
            copy_row(moment[start + j + 1 : start + m], walk.counted[j + 1 : m])
        more = advance(walk)


@helper
def copy_row(into, source):
    """`into[:] = source`, whatever the width of the numbers."""
    for k in range(len(into)):
        into[k] = source[k]


@helper
def enter(moments, path, node):
    """Cells and parts of the prefix `path`."""
    size, m, child_start = len(path), node.part.shape[1], moments.child_start
    after = path[size - 1] + 1 if size > 0 else 0
    node.number[0] = 0
    for i in range(size):
        for c in range(1 << i):
            node.number[c + (1 << i)] = child_start[node.number[c]] + path[i]
    for c in range(1 << size):
        node.cell[c] = moments.moment[node.number[c]]
        start = child_start[node.number[c]]
        copy_row(node.part[c, after:], moments.moment[start + after : start + m])
    invert(node.cell, 1 << size)
    invert_rows(node.part[:, after:])


@helper
def next_rows(node, j):
    """The pairs of row j and of live ones after it that are handled together: the row after these, and how many pairs."""
    m, stop, pairs = node.part.shape[1], j, 0
    while stop < m - 1 and node.live[stop] and (stop == j or pairs + m - 1 - stop <= PAIRS):
        first, second = node.first[pairs : pairs + m - 1 - stop], node.second[pairs : pairs + m - 1 - stop]
        for x in range(len(first)):
            first[x] = stop
            second[x] = stop + 1 + x
        pairs += m - 1 - stop
        stop += 1
    return stop, pairs


@helper
def enter_rows(moments, node, j, pairs):
    """`both` of so many pairs from row j on; the last of its cells holds the moments of `T ∪ {j, k}` already."""
    cells, child_start = len(node.cell), moments.child_start
    for c in range(cells - 1):
        start = child_start[child_start[node.number[c]] + j] + j + 1
        copy_row(node.both[c, :pairs], moments.moment[start : start + pairs])
    invert_rows(node.both[:, :pairs])


@helper
def least_of_rows(node, pairs):
    """Into `loss`: what the cells of `T ∪ {j, k}` lose at least."""
    first, second, one, other = node.first[:pairs], node.second[:pairs], node.one[:pairs], node.other[:pairs]
    loss = node.loss[:pairs]
    for x in range(pairs):
        loss[x] = 0
    for c in range(len(node.cell)):
        part = node.part[c]
        for x in range(pairs):  # gathered first: the sums are then straight vector code
            one[x] = part[first[x]]
            other[x] = part[second[x]]
        add_least(node.both[c, :pairs], one, other, node.cell[c], loss)


@helper
def least_of_singles(node, after):
    """Into `single`: the same for `T ∪ {j}`."""
    single, nothing = node.single[after:], node.one[: len(node.single) - after]
    for x in range(len(single)):
        single[x] = 0
        nothing[x] = 0
    for c in range(len(node.cell)):
        add_least(nothing, nothing, node.part[c, after:], node.cell[c], single)


def add_least(both, one, other, whole, loss):
    """Add what four cells lose at least, of which the parts with one, the other and both of two columns are given."""
    add = _add_narrow if loss.dtype == np.int32 else _add_wide
    add(both, one, other, whole, loss)


@overload(add_least)
def _add_least(both, one, other, whole, loss):
    return _add_narrow if str(loss.dtype) == "int32" else _add_wide


def _add_narrow(both, one, other, whole, loss):
    zero = np.int32(0)  # casts, because sums of 32 bits are 64 wide for numba
    for x in range(len(loss)):
        b, i, o = both[x], one[x], other[x]
        total = min(b, zero) + min(np.int32(i - b), zero) + min(np.int32(o - b), zero)
        loss[x] = np.int32(loss[x] + total + min(np.int32(whole - i - o + b), zero))


def _add_wide(both, one, other, whole, loss):
    for x in range(len(loss)):
        b, i, o = both[x], one[x], other[x]
        loss[x] += min(b, 0) + min(i - b, 0) + min(o - b, 0) + min(whole - i - o + b, 0)


@helper
def exact_loss(node, j, k):
    """What the cells of `T ∪ {j, k}` lose at least, exactly; those of `T ∪ {j}` for k < 0, of T for j < 0.

    Row j must be the first in `both`.
    """
    total = zero = np.int64(0)
    for c in range(len(node.cell)):
        whole = np.int64(node.cell[c])
        if j < 0:
            total += min(whole, zero)
            continue
        one = np.int64(node.part[c, j])
        if k < 0:
            total += min(one, zero) + min(whole - one, zero)
        else:
            b, o = np.int64(node.both[c, k - j - 1]), np.int64(node.part[c, k])
            total += min(b, zero) + min(one - b, zero) + min(o - b, zero) + min(whole - one - o + b, zero)
    return total


@helper
def name_cells(node, columns, size, j, k, flip, cells):
    """The cells of T, `T ∪ {j}` or `T ∪ {j, k}`, named by the columns as they are; row j is the first in `both`."""
    n, turn = len(node.cell), np.int64(0)
    for i in range(size):
        turn |= np.int64(flip[columns[i]]) << i
    for c in range(n):
        whole = np.int64(node.cell[c])
        one = np.int64(node.part[c, j]) if j >= 0 else 0
        other = np.int64(node.part[c, k]) if k >= 0 else 0
        both = np.int64(node.both[c, k - j - 1]) if k >= 0 else 0
        cells[c ^ turn] = whole - one - other + both
        if j >= 0:
            cells[(c | n) ^ turn] = one - both
        if k >= 0:
            cells[(c | 2 * n) ^ turn] = other - both
            cells[(c | 3 * n) ^ turn] = both
