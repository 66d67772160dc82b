"""The first bounds of a frontier of blocks: sums over rows and blocks, in single precision (theory, supports: "Blocks").

They are inflated by more than single precision can be wrong. All later sums are formed in double precision (`blocks`).
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.compiled import compiled, helper, overload
from privsolve.engines.card_rules import Rule, extend, for_one_thread, is_allowed
from privsolve.engines.supports.bits import (
    Bits,
    Walk,
    advance,
    begin,
    count_pairs,
    count_side_by_side,
    few_words,
    new_walk,
)
from privsolve.engines.supports.cells import cells_of, columns_of
from privsolve.engines.supports.chain import EXACT, INFLATION, LISTED
from privsolve.engines.supports.instance import CardInstance, sum_of_least
from privsolve.engines.supports.moments import (
    Moments,
    Node,
    copy_row,
    enter,
    enter_rows,
    exact_loss,
    firsts,
    least_of_rows,
    least_of_singles,
    new_node,
    next_rows,
)
from privsolve.engines.workers import Workers

FIRST = (EXACT - LISTED) * INFLATION
"""Bound of a support that was never tightened, relative to `U0`."""

ROUGH, FINE = 1e-4, 1e-5
"""By how much the sums of rows and blocks are inflated: those in single precision, and all others."""

TINY = 1e-30
"""More than what `rough_exp` makes of all numbers it takes for zero."""

MAX_ROWS = 130_000_000
"""Rows take twelve bytes each: 1.6 GB."""


class Target(NamedTuple):
    """The law over supports: `κ`, the prior mass of every column and of the intercepts, and the loss that is subtracted.

    `offset` is what the sum over cells lacks to a loss relative to the reference; `mass` is relative to the largest.
    """

    kappa: float
    log_mass: Floats
    log_mass_intercept: float
    offset: int
    mass: NDArray[np.float32]
    largest_log_mass: float


class Sums(NamedTuple):
    """`log` of the bound of every entry, by its number, and of every row, by the number of `T ∪ {j}` less `first_row`."""

    block: Floats
    row: Floats
    first_block: int
    first_row: int


class Shape(NamedTuple):
    """How many sets of columns a frontier of blocks stores: entries, and rows."""

    entries: int
    rows: int


def shape_of(m: int, most: int) -> Shape:
    """Entries and rows for at most `most` of m columns."""
    entries = sum(math.comb(m, size) for size in range(most - 1))
    return Shape(entries, math.comb(m, most - 1))


def target_of(inst: CardInstance, kappa: float, log_mass: Floats, log_mass_intercept: float, reference: int) -> Target:
    """The law over the supports of an instance."""
    largest = float(log_mass.max(initial=0.0))
    mass = np.exp(log_mass - largest).astype(np.float32)
    return Target(kappa, log_mass, log_mass_intercept, inst.base - reference, mass, largest)


def first_sums(
    inst: CardInstance,
    bits: Bits,
    moments: Moments,
    target: Target,
    rule: Rule,
    progress: Callable[[int], None] | None = None,
) -> Sums:
    """The first bounds of all entries and rows, on all cores."""
    m, most = inst.n_columns, inst.max_features
    shape = shape_of(m, most)
    first_block = shape.entries - math.comb(m, most - 2)
    sums = Sums(np.full(shape.entries, -np.inf), np.full(shape.rows, -np.inf), first_block, shape.entries)
    cells = np.zeros((2, 1 << most), dtype=np.int64)
    _sum_small(moments, target, sums, np.zeros(most, np.int64), cells[0], cells[1], rule)

    def scratch() -> tuple[Walk, Node, NDArray[np.float32], Rule]:
        node = new_node(inst)
        return new_walk(bits, m, most - 2), node, np.zeros(len(node.loss), dtype=np.float32), for_one_thread(rule)

    def sum_from(own: tuple[Walk, Node, NDArray[np.float32], Rule], first: int) -> None:
        _sum_from(moments, bits.weight, target, sums, *own, first)

    Workers(scratch).run(sum_from, firsts(m, most - 2), progress)
    return sums


def as_float(bits):
    """The single-precision number that a word of 32 bits stands for."""
    return np.int32(bits).view(np.float32)


@overload(as_float)
def _as_float_compiled(bits):
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def reinterpreted(context: Any, bits: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(types.float32))

        return types.float32(types.int32), generate

    return lambda bits: reinterpreted(bits)  # type: ignore[call-arg]


@helper
def rough_exp(x):
    """`exp(x)` for x <= 0 with a relative error below 1e-5, and below 1e-36 a number of that size; in vectors."""
    scaled = max(x * np.float32(1.4426950408889634), np.float32(-120.0))
    whole = np.floor(scaled + np.float32(0.5))
    f = scaled - whole
    high = np.float32(0.05550411) + f * (np.float32(0.00961813) + f * np.float32(0.00133336))
    power = np.float32(1.0) + f * (np.float32(0.69314718) + f * (np.float32(0.24022651) + f * high))
    return power * as_float((np.int32(whole) + np.int32(127)) << np.int32(23))


@helper
def _rough_weights(kappa, loss, weight):
    """`weight = exp(-κ·(loss - lowest))`; returns the lowest."""
    lowest = loss[0]
    for x in range(len(loss)):
        lowest = min(lowest, loss[x])
    scale = np.float32(-kappa)
    for x in range(len(loss)):
        weight[x] = rough_exp(scale * np.float32(loss[x] - lowest))
    return lowest


@helper
def log_add(a, b):
    """`log(exp(a) + exp(b))`."""
    if b == -np.inf:
        return a
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@helper
def log_sum(values):
    """`log Σ exp(values)`."""
    highest, total = np.max(values), 0.0
    if highest == -np.inf:
        return highest
    for x in range(len(values)):
        total += math.exp(values[x] - highest)
    return highest + math.log(total)


@helper
def log_prior_of(target, columns, size):
    """`log` of the prior mass of a support."""
    total = target.log_mass_intercept
    for i in range(size):
        total += target.log_mass[columns[i]]
    return total


@compiled
def _sum_small(moments, target, sums, columns, cells, scratch, rule):
    """`log` bounds of the supports that are entries by themselves; minus infinity for those that are not allowed."""
    for number in range(sums.first_block):
        size = columns_of(moments, number, columns)
        if rule.active and not is_allowed(rule, columns, size):
            continue
        cells_of(moments, columns, size, scratch, cells)
        loss = target.offset + sum_of_least(cells[: 1 << size])
        sums.block[number] = log_prior_of(target, columns, size) - target.kappa * loss + FIRST


@compiled
def _sum_from(moments, unit, target, sums, walk, node, weight, rule, first):
    """First bounds of the blocks that start with column `first`, and of their rows; dead ones are passed over."""
    m, size = walk.n_columns, len(walk.path)
    more, own, columns = begin(walk, first), True, np.empty(size + 1, np.int64)
    while more:
        copy_row(columns[:size], walk.path)
        if rule.active:
            own = is_allowed(rule, columns, size)
            leads_on = extend(rule, columns, size)
            copy_row(node.live, rule.alive)
            if not (own or leads_on):
                more = advance(walk)
                continue
        enter(moments, walk.path, node)
        number = node.number[len(node.cell) - 1]
        log_prior = log_prior_of(target, walk.path, size) - target.kappa * target.offset
        after = walk.path[size - 1] + 1 if size > 0 else 0
        rows = sums.row[moments.child_start[number] - sums.first_row + after :][: m - after]
        total = log_prior - target.kappa * exact_loss(node, -1, -1) + FIRST if own else -np.inf
        if after < m:
            least_of_singles(node, after)
            for j in range(after, m):
                rows[j - after] = -target.kappa * node.single[j]
                if rule.active and not rule.allowed[j]:
                    rows[j - after] = -np.inf
            j = after
            while j < m - 1:
                if not node.live[j]:
                    j += 1
                    continue
                stop, pairs = next_rows(node, j)
                count_rows(walk, unit, node, j, stop, pairs)
                enter_rows(moments, node, j, pairs)
                least_of_rows(node, pairs)
                _add_pairs(target, node, j, stop, pairs, weight, rows[j - after :], rule, columns)
                j = stop
            for j in range(after, m):
                rows[j - after] += log_prior + target.log_mass[j] + ROUGH
            total = log_add(log_sum(rows), total)
        sums.block[number] = total + FINE
        more = advance(walk)


@helper
def count_rows(walk, unit, node, j, stop, pairs):
    """The moments of `T ∪ {j, k}`: row after row, or all side by side where there are few words to count."""
    last, at = len(node.cell) - 1, 0
    if few_words(walk):
        count_side_by_side(walk, unit, node.first[:pairs], node.second[:pairs], node.both[last, :pairs])
        return
    for i in range(j, stop):
        count_pairs(walk, unit, i)
        later = walk.counted[i + 1 : walk.n_columns]
        copy_row(node.both[last, at : at + len(later)], later)
        at += len(later)


@helper
def _add_pairs(target, node, j, stop, pairs, weight, rows, rule, columns):
    """Add the pairs of each row to what `rows` holds: the logarithm of its support without a second column.

    Under a rule the columns that a row may not have are left out. `columns` holds T, with room for one more.
    """
    size = len(columns) - 1
    lowest = _rough_weights(target.kappa, node.loss[:pairs], weight[:pairs])
    base, at = target.largest_log_mass - target.kappa * lowest, 0
    for i in range(j, stop):
        later = target.mass[i + 1 :]
        here, total = weight[at : at + len(later)], np.float32(TINY)
        if rule.active:
            columns[size] = i
            extend(rule, columns, size + 1)
            for x in range(len(later)):
                if not rule.allowed[i + 1 + x]:
                    here[x] = 0
        for x in range(len(later)):
            total += here[x] * later[x]
        rows[i - j] = log_add(base + math.log(total), rows[i - j])
        at += len(later)
