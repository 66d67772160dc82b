"""The rows as bit sets: moments of many sets of columns at once, by AND and counting of bits.

Rows are laid out in *classes* of one weight, a power of two times what all have in common, so that a moment is the
sum over classes of weight times number of bits; a row of weight 5 stands in the classes of 4 and of 1. Every class starts
at a word of its own. A column that most rows have is turned round: it splits cells the same way, only with their names
exchanged, and what its sets of columns have in common is then less.

A *walk* goes through the sets of a given size in lexicographic order. The rows that have all but the last column of the
set are copied together, so that the words to be counted are few; those that have the last one too where that saves more
than it costs.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array, Words
from privsolve.compiled import compiled, helper
from privsolve.engines.subsets import lowest_one, ones_in
from privsolve.engines.supports.instance import CardInstance

WORD = 64
FEW = 12
MANY_LATER, MANY_WORDS = 30, 8
"""Columns after a set, and words of rows before its last column, from which on copying the rows of the set pays."""


class Bits(NamedTuple):
    """A set of rows by row (`rows[r]`, a bit for each column) and by column (`columns[w, j]`, a bit for each of 64 rows).

    Class g holds the rows of the words `start[g]` to `start[g + 1]` and its `weight`; rows without ones fill up its last.
    """

    rows: Words
    columns: Words
    start: Int64Array
    weight: Int64Array


class Walk(NamedTuple):
    """Where a walk stands: its set (`path`), and the rows that have the first one, two, ... columns of it.

    Level 0 of `rows`, `columns`, `start` are all rows. Those of the whole set are at `level[0]`, marked by `mask` where they
    are not copied for the last column.
    """

    path: Int64Array
    rows: Words
    columns: Words
    start: Int64Array
    level: Int64Array
    mask: Words
    pair: Words
    marked: Words
    counted: Int64Array
    n_columns: int


def turned(inst: CardInstance) -> NDArray[np.bool_]:
    """The columns that most rows have."""
    return np.asarray(2 * inst.rows.sum(axis=0) > len(inst.rows))


def pack(inst: CardInstance, flip: NDArray[np.bool_]) -> Bits:
    """The rows of an instance, with the columns of `flip` turned round."""
    n, m = inst.rows.shape
    words = max(-(-m // WORD), 1)
    bits = np.zeros((n + 1, words * WORD), dtype=np.uint8)  # the last one fills up
    bits[:n, :m] = inst.rows != flip
    packed = np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little")).view(np.uint64)
    rows, start, weights = [np.zeros(0, dtype=np.int64)], [0], []
    for weight, members in _classes(inst):
        filled = np.full(-(-len(members) // WORD) * WORD, n)
        filled[: len(members)] = members
        rows.append(filled)
        weights.append(weight)
        start.append(start[-1] + len(filled) // WORD)
    at = np.concatenate(rows)
    columns = np.zeros((start[-1], words * WORD), dtype=np.uint64)
    _transpose_all(packed[at], columns)
    return Bits(packed[at], columns, np.array(start, dtype=np.int64), np.array(weights, dtype=np.int64))


def _classes(inst: CardInstance) -> list[tuple[int, Int64Array]]:
    """Weight and rows of every class."""
    found = []
    for unit in (1, -1):
        counts = np.maximum(unit * inst.row_cell, 0)
        common = math.gcd(*counts.tolist()) or 1
        whole = counts // common
        for bit in range(int(whole.max(initial=0)).bit_length()):
            found.append((unit * common << bit, np.flatnonzero(whole >> bit & 1)))
    return [(weight, members) for weight, members in found if len(members)]


def new_walk(bits: Bits, n_columns: int, size: int) -> Walk:
    """A walk through sets of `size` columns, before its first."""
    levels = size + 1  # all rows, and a copy for every column
    words = len(bits.columns)
    rows = np.zeros((levels, *bits.rows.shape), dtype=np.uint64)
    columns = np.zeros((levels, *bits.columns.shape), dtype=np.uint64)
    start = np.zeros((levels, len(bits.start)), dtype=np.int64)
    rows[0], columns[0], start[0] = bits.rows, bits.columns, bits.start
    return Walk(
        np.full(size, -1),
        rows,
        columns,
        start,
        np.zeros(1, dtype=np.int64),
        np.zeros(words, dtype=np.uint64),
        np.zeros(words, dtype=np.uint64),
        np.zeros(bits.columns.shape[1], dtype=np.uint64),
        np.zeros(bits.columns.shape[1], dtype=np.int64),
        n_columns,
    )


@compiled
def begin(walk, first):
    """Go to the first set that starts with column `first`; returns whether there is one."""
    size = len(walk.path)
    if first + size > walk.n_columns:
        return False
    for i in range(size):
        walk.path[i] = first + i
    _copy_from(walk, 0)
    return True


@compiled
def advance(walk):
    """Go to the next set with the same first column; returns whether there is one."""
    size, m = len(walk.path), walk.n_columns
    i = size - 1
    while i > 0 and walk.path[i] == m - size + i:
        i -= 1
    if i <= 0:
        return False
    walk.path[i] += 1
    for k in range(i + 1, size):
        walk.path[k] = walk.path[k - 1] + 1
    _copy_from(walk, i)
    return True


@helper
def _copy_from(walk, changed):
    """Renew the copies after the column at position `changed`, and the mask."""
    size = len(walk.path)
    whole = size == 0 or _pays_to_copy(walk)
    walk.level[0] = size if whole else size - 1
    for i in range(changed, walk.level[0]):
        _keep(
            walk.rows[i],
            walk.columns[i],
            walk.start[i],
            walk.path[i],
            walk.rows[i + 1],
            walk.columns[i + 1],
            walk.start[i + 1],
        )
    columns, n = walk.columns[walk.level[0]], walk.start[walk.level[0], -1]
    for w in range(n):
        walk.mask[w] = ~np.uint64(0) if whole else columns[w, walk.path[size - 1]]


@helper
def _pays_to_copy(walk):
    """Whether the rows that have the last column of the set, too, are copied: by its place and the number of all rows."""
    size = len(walk.path)
    return walk.n_columns - walk.path[size - 1] > MANY_LATER and walk.start[0, -1] > MANY_WORDS << size


@helper
def _keep(rows, columns, start, column, kept_rows, kept_columns, kept_start):
    """The rows that have a column, by row and by (later) column."""
    words, at = rows.shape[1], 0
    first = (column + 1) // WORD
    block = np.empty(WORD, np.uint64)
    for g in range(len(start) - 1):
        kept_start[g] = at
        filled = WORD * at
        for w in range(start[g], start[g + 1]):
            left = columns[w, column]
            while left != 0:
                r = WORD * w + lowest_one(left)
                left &= left - np.uint64(1)
                for q in range(first, words):
                    kept_rows[filled, q] = rows[r, q]
                filled += 1
        while filled % WORD != 0:
            for q in range(first, words):
                kept_rows[filled, q] = 0
            filled += 1
        while WORD * at < filled:
            for q in range(first, words):
                _transpose(kept_rows, at, q, block, kept_columns)
            at += 1
    kept_start[len(start) - 1] = at


@helper
def _transpose(rows, w, q, block, columns):
    """64 rows by 64 columns: bit b of row r becomes bit r of column b, by exchanging ever smaller squares."""
    for r in range(WORD):
        block[r] = rows[WORD * w + r, q]
    side, low = 32, np.uint64(0xFFFFFFFF)
    while side > 0:
        shift = np.uint64(side)
        for square in range(0, WORD, 2 * side):
            one, other = block[square : square + side], block[square + side : square + 2 * side]
            for r in range(side):
                swap = ((one[r] >> shift) ^ other[r]) & low
                one[r] ^= swap << shift
                other[r] ^= swap
        side //= 2
        low ^= low << np.uint64(max(side, 1))
    into = columns[w, WORD * q : WORD * (q + 1)]
    for b in range(WORD):
        into[b] = block[b]


@compiled
def _transpose_all(rows, columns):
    block = np.empty(WORD, np.uint64)
    for w in range(len(columns)):
        for q in range(rows.shape[1]):
            _transpose(rows, w, q, block, columns)


@helper
def count_bits(columns, start, weight, mask, first, count):
    """`count[j]`, from `first` on: the weights of the rows that have column j and are marked in `mask`."""
    total = count[first:]
    for k in range(len(total)):
        total[k] = 0
    for g in range(len(weight)):
        unit, w, end = weight[g], start[g], start[g + 1]
        while w + 4 <= end:
            s, t, u, v = mask[w], mask[w + 1], mask[w + 2], mask[w + 3]
            a, b, c, d = columns[w, first:], columns[w + 1, first:], columns[w + 2, first:], columns[w + 3, first:]
            for k in range(len(total)):
                here = ones_in(s & a[k]) + ones_in(t & b[k]) + ones_in(u & c[k]) + ones_in(v & d[k])
                total[k] += unit * here
            w += 4
        while w < end:
            s, a = mask[w], columns[w, first:]
            for k in range(len(total)):
                total[k] += unit * ones_in(s & a[k])
            w += 1


@helper
def count_later(walk, weight):
    """`walk.counted[j]` for every column j after the walk's set T: the moment of `T ∪ {j}`."""
    size = len(walk.path)
    level, after = walk.level[0], (walk.path[size - 1] if size > 0 else -1) + 1
    count_bits(walk.columns[level], walk.start[level], weight, walk.mask, after, walk.counted[: walk.n_columns])


@helper
def count_pairs(walk, weight, j):
    """`walk.counted[k]` for every column k after j: the moment of `T ∪ {j, k}`."""
    columns, start = walk.columns[walk.level[0]], walk.start[walk.level[0]]
    for w in range(start[-1]):
        walk.pair[w] = walk.mask[w] & columns[w, j]
    count_bits(columns, start, weight, walk.pair, j + 1, walk.counted[: walk.n_columns])


@helper
def few_words(walk):
    """Whether so few rows are left that going through pairs word by word is faster than row by row."""
    return walk.start[walk.level[0], -1] <= FEW


@helper
def count_side_by_side(walk, weight, first, second, total):
    """`total[x]`: the moment of `T ∪ {first[x], second[x]}`."""
    level, marked = walk.level[0], walk.marked
    start = walk.start[level]
    for x in range(len(total)):
        total[x] = 0
    for g in range(len(weight)):
        unit = weight[g]
        for w in range(start[g], start[g + 1]):
            columns, mask = walk.columns[level, w], walk.mask[w]
            for j in range(len(marked)):
                marked[j] = columns[j] & mask
            for x in range(len(total)):
                total[x] += unit * ones_in(marked[first[x]] & columns[second[x]])
