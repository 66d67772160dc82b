"""The law of a tree as compiled code needs it: powers of e, leaf costs and which questions are open."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled, helper
from privsolve.domains.trees import DecisionTrees, TreeQuestions

CUT = 650.0
"""Powers below `e^-CUT` are 0 in the tables; in draws nothing is cut (theory, trees: numbers)."""

WORD = 64


class Law(NamedTuple):
    """Everything public: `κ`, tables, and the sets of codes of the questions in words of 64 bits.

    `costs[v, y]` is what saying value v costs for a record of label y, and `share` the prior of each value.
    """

    kappa: float
    coarse: Floats
    fine: Floats
    bits: int
    costs: Int64Array
    share: float
    price: int
    sums: bool
    column: Int64Array
    first: Int64Array
    last: Int64Array
    codes: NDArray[np.uint64]
    every: NDArray[np.uint64]


def law_of(trees: DecisionTrees, kappa: float, largest: int, price: int = 0, sums: bool = True) -> Law:
    """The law for losses that differ by at most `largest`; without `sums` only least losses are computed."""
    powers = _powers(kappa, largest) if sums else (np.zeros(1), np.ones(1), 0)
    costs, columns = np.ascontiguousarray(trees.leaves.table.T), np.array(trees.questions.columns, dtype=np.int64)
    first, last, codes, every = _code_words(trees.questions)
    return Law(kappa, *powers, costs, 1.0 / trees.leaves.size, price, sums, columns, first, last, codes, every)


def _powers(kappa: float, largest: int) -> tuple[Floats, Floats, int]:
    """`exp(-κ i)` for `i = h·2^bits + l` is `coarse[h]·fine[l]`; beyond `CUT` the last coarse entry, 0, counts."""
    reach = int(min(largest, CUT / kappa)) + 1
    bits = max(4, math.ceil(math.log2(reach + 1) / 2))
    steps = np.arange((reach >> bits) + 2) * float(1 << bits)
    coarse = np.exp(-np.minimum(kappa * steps, 2 * CUT))
    coarse[-1] = 0.0
    return coarse, np.exp(-kappa * np.arange(1 << bits)), bits


def _code_words(questions: TreeQuestions) -> tuple[Int64Array, Int64Array, NDArray[np.uint64], NDArray[np.uint64]]:
    """Every column takes words of its own; a question's codes stand in the words `first..last` of its column."""
    sizes = [-(-radix // WORD) for radix in questions.radices]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    column = np.array(questions.columns, dtype=np.int64)
    first, last = starts[column], starts[column + 1]
    codes = np.zeros((len(column), max(sizes)), dtype=np.uint64)
    for row, value in zip(codes, questions.codes, strict=True):
        row[:] = [(value >> (WORD * w)) & (2**WORD - 1) for w in range(max(sizes))]
    every = [
        ((1 << radix) - 1 >> (WORD * w)) & (2**WORD - 1)
        for radix, size in zip(questions.radices, sizes, strict=True)
        for w in range(size)
    ]
    return first, last, codes, np.array(every, dtype=np.uint64)


@helper
def power(law, i):
    """`exp(-κ i)`."""
    high = i >> law.bits
    return 0.0 if high >= len(law.coarse) else law.coarse[high] * law.fine[i & ((1 << law.bits) - 1)]


@helper
def leaf(law, statistics, k, cost):
    """The least cost of a value for `statistics[k]`, with the price, and the sum of the values relative to it."""
    least = np.int64(0)
    for v in range(len(law.costs)):
        total = np.int64(0)
        for s in range(law.costs.shape[1]):
            total += law.costs[v, s] * statistics[k, s]
        cost[v] = total
        if v == 0 or total < least:
            least = total
    weight = 0.0
    if law.sums:
        for v in range(len(law.costs)):
            weight += law.share * power(law, cost[v] - least)
    return least + law.price, weight


@helper
def open_questions(law, left):
    """For every question whether codes with both answers are left."""
    opened = np.empty(len(law.column), np.bool_)
    for j in range(len(opened)):
        yes = np.uint64(0)
        no = np.uint64(0)
        for w in range(law.first[j], law.last[j]):
            mine = law.codes[j, w - law.first[j]]
            yes |= left[w] & mine
            no |= left[w] & ~mine
        opened[j] = yes != np.uint64(0) and no != np.uint64(0)
    return opened


@helper
def stays_open(law, left, j, answer, i):
    """Whether question i of the same column is open after this answer to question j."""
    yes = np.uint64(0)
    no = np.uint64(0)
    first = law.first[j]
    for w in range(first, law.last[j]):
        here = law.codes[j, w - first]
        still = left[w] & (here if answer else ~here)
        yes |= still & law.codes[i, w - first]
        no |= still & ~law.codes[i, w - first]
    return yes != np.uint64(0) and no != np.uint64(0)


@compiled
def answer(law, left, j, yes):
    """Take the answer to question j into account; False if no code is left."""
    some = np.uint64(0)
    for w in range(law.first[j], law.last[j]):
        mine = law.codes[j, w - law.first[j]]
        left[w] &= mine if yes else ~mine
        some |= left[w]
    return some != np.uint64(0)


@helper
def reach(law, left, members, size, pattern):
    """Into `left`: the codes after the answers of a pattern to these questions; False if none are left."""
    for w in range(len(left)):
        left[w] = law.every[w]
    reached = True
    for k in range(size):
        reached &= answer(law, left, members[k], pattern >> k & 1 == 1)
    return reached
