"""Very many supports, listed without being stored: a frontier of blocks (theory, supports: "Blocks").

An entry of the frontier is a *block*, a prefix T of `max_features - 2` columns with all supports that add up to two later
columns to it, or a single support of fewer columns. A block has *rows*, one for each later column j: the supports
`T ∪ {j}` and `T ∪ {j, k}`. Of all supports only the sum of the bounds of each row is kept. An attempt proposes a block,
then one of its rows, forms the bounds of the row's supports again, proposes one of those, and goes down its chain
(`chain`). Supports that were tightened are kept in a hash table, and the sums of their row and block are renewed.

The first sums are formed in single precision, and inflated by more than that can be wrong; all later ones, and all that
decide who is chosen, in double precision.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled
from privsolve.engines.card_rules import Room, Rule, dead_at, extend, new_room, no_rule
from privsolve.engines.rejection import GREW, KEPT, LOST
from privsolve.engines.supports.bits import (
    Bits,
    Walk,
    advance,
    advance_at,
    begin,
    count_bits,
    count_pairs,
    count_side_by_side,
    few_words,
    new_walk,
    pack,
)
from privsolve.engines.supports.cells import cells_of, columns_of
from privsolve.engines.supports.chain import EXACT, INFLATION, LISTED, attempt
from privsolve.engines.supports.costs import Step, sum_of_least
from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.moments import (
    Moments,
    Node,
    copy_row,
    count_moments,
    enter,
    enter_rows,
    exact_loss,
    firsts,
    least_of_rows,
    least_of_singles,
    name_cells,
    new_node,
    next_rows,
)
from privsolve.engines.workers import Workers
from privsolve.noise.coins import SumTree, choose_of_many, coin, new_sum_tree, propose, set_weight

FIRST = (EXACT - LISTED) * INFLATION
"""Bound of a support that was never tightened, relative to `U0`."""

ROUGH, FINE = 1e-4, 1e-5
"""By how much the sums of rows and blocks are inflated: those in single precision, and all others."""

TINY = 1e-30
"""More than what `rough_exp` makes of all numbers it takes for zero."""

MAX_ROWS = 130_000_000
"""Rows take twelve bytes each, twenty for tables: 1.6 GB."""

FIRST_CAPACITY = 1 << 10
EMPTY = -1


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
    rough: float


class Sums(NamedTuple):
    """`log` of the bound of every entry, by its number, and of every row, by the number of `T ∪ {j}` less `first_row`."""

    block: Floats
    row: Floats
    first_block: int
    first_row: int


class Tightened(NamedTuple):
    """A hash table of the supports that were tightened: their step, and their bound relative to `U0`.

    The key of a support is `number·(columns + 1)`, that of `T ∪ {j, k}` the key of `T ∪ {j}` plus `k + 1`. A row of which any
    support was tightened has an entry as well (`_mark`), so that nothing has to be looked up for the supports of the others.
    """

    key: Int64Array
    step: Int64Array
    log_bound: Floats
    used: Int64Array


class Supports(NamedTuple):
    """What the supports are made of."""

    moments: Moments
    node: Node
    columns: NDArray[np.uint64]
    start: Int64Array
    weight: Int64Array
    flip: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    counted: Int64Array
    log_part: Floats
    log_support: Floats
    choice: Floats
    rule: Rule
    room: Room


class Shape(NamedTuple):
    """How many sets of columns a frontier of blocks stores: entries, and rows."""

    entries: int
    rows: int


def shape_of(m: int, most: int) -> Shape:
    """Entries and rows for at most `most` of m columns."""
    entries = sum(math.comb(m, size) for size in range(most - 1))
    return Shape(entries, math.comb(m, most - 1))


class BlockFrontier:
    """All supports of an instance in blocks, with their bounds and what was tightened."""

    def __init__(
        self,
        inst: CardInstance,
        flip: NDArray[np.bool_],
        kappa: float,
        log_mass: Floats,
        log_mass_intercept: float,
        progress: Callable[[int], None] | None = None,
        rule: Rule | None = None,
    ) -> None:
        m, most = inst.n_columns, inst.max_features
        bits = pack(inst, flip)
        self.inst, self.moments = inst, count_moments(inst, bits)
        self.reference = inst.base + int(sum_of_least(inst.costs, inst.row_cell))  # no scorecard loses less
        self.target = _target(inst, kappa, log_mass, log_mass_intercept, self.reference)
        shape = shape_of(m, most)
        first_block = shape.entries - math.comb(m, most - 2)
        self.sums = Sums(np.full(shape.entries, -np.inf), np.full(shape.rows, -np.inf), first_block, shape.entries)
        kept_to = rule or no_rule(m, most)
        self.supports = _supports(inst, bits, self.moments, flip, kept_to)
        _sum_small(
            inst.costs, self.moments, self.target, self.sums, np.zeros(most, np.int64), *_cells(inst), kept_to,
            self.supports.room,
        )  # fmt: skip
        scratch = Workers(lambda: (*_scratch(inst, bits), new_room(kept_to)))

        def sum_from(own: tuple[Walk, Node, NDArray[np.float32], Room], first: int) -> None:
            walk, node, weight, room = own
            _sum_from(
                inst.costs, self.moments, bits.weight, self.target, self.sums, walk, node, weight, first, kept_to, room
            )

        scratch.run(sum_from, firsts(m, most - 2), progress)
        self.tree: SumTree = new_sum_tree(self.sums.block, shape.entries)
        self.tightened = _new_tightened(FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self.sums.block) + int(self.tightened.used[0])

    def make_room(self) -> None:
        """Between attempts: the hash table stays half empty."""
        old = self.tightened
        if 2 * int(old.used[0]) >= len(old.key):
            self.tightened = _new_tightened(2 * len(old.key))
            move(old, self.tightened)


def _scratch(inst: CardInstance, bits: Bits) -> tuple[Walk, Node, NDArray[np.float32]]:
    node = new_node(inst)
    return new_walk(bits, inst.n_columns, inst.max_features - 2), node, np.zeros(len(node.loss), dtype=np.float32)


def _target(inst: CardInstance, kappa: float, log_mass: Floats, log_mass_intercept: float, reference: int) -> Target:
    largest = float(log_mass.max(initial=0.0))
    mass = np.exp(log_mass - largest).astype(np.float32)
    # of chords: what a share of records rounded across a knot makes wrong, and the rounding of sums
    wrong = 2.0**-50 * (1 << inst.max_features) * kappa * inst.largest_loss
    if not isinstance(inst.costs, Step):
        wrong += (
            kappa * 1e-8 * (1 << inst.max_features) * float(max(inst.costs.positive.max(), inst.costs.negative.max()))
        )
    return Target(kappa, log_mass, log_mass_intercept, inst.base - reference, mass, largest, ROUGH + wrong)


def _supports(inst: CardInstance, bits: Bits, moments: Moments, flip: NDArray[np.bool_], rule: Rule) -> Supports:
    m = inst.n_columns
    return Supports(
        moments, new_node(inst), bits.columns, bits.start, bits.weight, flip, np.zeros(len(bits.columns), dtype=np.uint64),
        np.zeros(m, dtype=np.int64), np.zeros(m + 1), np.zeros(m + 1), np.zeros(4 * (m + 1)), rule, new_room(rule),
    )  # fmt: skip


def _cells(inst: CardInstance) -> tuple[Int64Array, Int64Array]:
    cells = np.zeros(1 << inst.max_features, dtype=np.int64)
    return cells, cells.copy()


def _new_tightened(capacity: int) -> Tightened:
    return Tightened(
        np.full(capacity, EMPTY), np.zeros(capacity, dtype=np.int64), np.zeros(capacity), np.zeros(1, dtype=np.int64)
    )


# --- the first sums -------------------------------------------------------------------------------


def _reinterpret(context: Any, bits: Any) -> Any:
    """The single-precision number that a word of 32 bits stands for."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


_as_float: Any = intrinsic(_reinterpret)


@compiled
def rough_exp(x):
    """`exp(x)` for x <= 0 with a relative error below 1e-5, and below 1e-36 a number of that size; in vectors."""
    scaled = max(x * np.float32(1.4426950408889634), np.float32(-120.0))
    whole = np.floor(scaled + np.float32(0.5))
    f = scaled - whole
    high = np.float32(0.05550411) + f * (np.float32(0.00961813) + f * np.float32(0.00133336))
    power = np.float32(1.0) + f * (np.float32(0.69314718) + f * (np.float32(0.24022651) + f * high))
    return power * _as_float((np.int32(whole) + np.int32(127)) << np.int32(23))


@compiled
def _rough_weights(kappa, loss, weight):
    """`weight = exp(-κ·(loss - lowest))`; returns the lowest."""
    lowest = loss[0]
    for x in range(len(loss)):
        lowest = min(lowest, loss[x])
    scale = np.float32(-kappa)
    for x in range(len(loss)):
        weight[x] = rough_exp(scale * np.float32(loss[x] - lowest))
    return lowest


@compiled
def log_add(a, b):
    """`log(exp(a) + exp(b))`."""
    if b == -np.inf:
        return a
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@compiled
def log_sum(values):
    """`log Σ exp(values)`."""
    highest, total = np.max(values), 0.0
    if highest == -np.inf:
        return highest
    for x in range(len(values)):
        total += math.exp(values[x] - highest)
    return highest + math.log(total)


@compiled
def _log_prior(target, columns, size):
    total = target.log_mass_intercept
    for i in range(size):
        total += target.log_mass[columns[i]]
    return total


@compiled
def _sum_small(costs, moments, target, sums, columns, cells, scratch, rule, room):
    """`log` bounds of the supports that are entries by themselves; minus infinity for those that are not allowed."""
    for number in range(sums.first_block):
        size = columns_of(moments, number, columns)
        if rule.active and not (dead_at(rule, room, columns[:size]) == size and extend(rule, columns, size, room)):
            continue
        cells_of(moments, columns, size, scratch, cells)
        loss = target.offset + sum_of_least(costs, cells[: 1 << size])
        sums.block[number] = _log_prior(target, columns, size) - target.kappa * loss + FIRST


@compiled
def _sum_from(costs, moments, unit, target, sums, walk, node, weight, first, rule, room):
    """First bounds of the blocks that start with column `first`, and of their rows; dead ones are passed over."""
    m, size = walk.n_columns, len(walk.path)
    more, own = begin(walk, first), True
    while more:
        if rule.active:
            dead = dead_at(rule, room, walk.path)
            if dead < size:
                more = advance_at(walk, dead)
                continue
            own = extend(rule, walk.path, size, room)
            node.live[:] = room.alive
        enter(moments, walk.path, node)
        number = node.number[len(node.cell) - 1]
        log_prior = _log_prior(target, walk.path, size) - target.kappa * target.offset
        after = walk.path[size - 1] + 1 if size > 0 else 0
        rows = sums.row[moments.child_start[number] - sums.first_row + after :][: m - after]
        total = log_prior - target.kappa * exact_loss(costs, node, -1, -1) + FIRST if own else -np.inf
        if after < m:
            least_of_singles(costs, node, after)
            for j in range(after, m):
                rows[j - after] = -target.kappa * node.single[j]
            if rule.active:
                _leave_out_singles(rule, room, walk.path, node, after, rows)
            j = after
            while j < m - 1:
                if not node.live[j]:
                    j += 1
                    continue
                stop, pairs = next_rows(node, j)
                count_rows(walk, unit, node, j, stop, pairs)
                enter_rows(moments, node, j, pairs)
                least_of_rows(costs, node, pairs)
                if rule.active:
                    _add_allowed_pairs(target, node, j, stop, pairs, weight, rows[j - after :], rule, room, walk.path)
                else:
                    _add_pairs(target, node, j, stop, pairs, weight, rows[j - after :])
                j = stop
            for j in range(after, m):
                rows[j - after] += log_prior + target.log_mass[j] + target.rough
            total = log_add(log_sum(rows), total)
        sums.block[number] = total + FINE
        more = advance(walk)


@compiled
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


@compiled
def _add_pairs(target, node, j, stop, pairs, weight, rows):
    """Add the pairs of each row to what `rows` holds: the logarithm of its support without a second column."""
    lowest = _rough_weights(target.kappa, node.loss[:pairs], weight[:pairs])
    base, at = target.largest_log_mass - target.kappa * lowest, 0
    for i in range(j, stop):
        later = target.mass[i + 1 :]
        here, total = weight[at : at + len(later)], np.float32(TINY)
        for x in range(len(later)):
            total += here[x] * later[x]
        rows[i - j] = log_add(base + math.log(total), rows[i - j])
        at += len(later)


@compiled
def _leave_out_singles(rule, room, path, node, after, rows):
    """`T ∪ {j}` has no weight where a required variable is missing, and a row that is not alive has none at all."""
    size, columns = len(path), np.empty(len(path) + 1, np.int64)
    columns[:size] = path
    for j in range(after, len(node.live)):
        columns[size] = j
        if not node.live[j] or not extend(rule, columns, size + 1, room):
            rows[j - after] = -np.inf


@compiled
def _add_allowed_pairs(target, node, j, stop, pairs, weight, rows, rule, room, path):
    """The same under a rule: the columns that a row may not have are left out."""
    size, columns = len(path), np.empty(len(path) + 1, np.int64)
    columns[:size] = path
    lowest = _rough_weights(target.kappa, node.loss[:pairs], weight[:pairs])
    base, at = target.largest_log_mass - target.kappa * lowest, 0
    for i in range(j, stop):
        columns[size] = i
        extend(rule, columns, size + 1, room)
        total = np.float32(TINY)
        for k in range(i + 1, len(target.mass)):
            if room.alive[k]:
                total += weight[at] * target.mass[k]
            at += 1
        rows[i - j] = log_add(base + math.log(total), rows[i - j])


# --- what was tightened ---------------------------------------------------------------------------


@compiled
def _place(tightened, key):
    """Where a key stands, or would."""
    last = len(tightened.key) - 1
    at = (key ^ (key >> 17)) * 0x9E3779B97F4A7C1 >> 20 & last
    while tightened.key[at] != EMPTY and tightened.key[at] != key:
        at = at + 1 & last
    return at


@compiled
def look_up(tightened, key):
    """Step and bound of a support."""
    at = _place(tightened, key)
    if tightened.key[at] == EMPTY:
        return LISTED, FIRST
    return tightened.step[at], tightened.log_bound[at]


@compiled
def keep(tightened, key, step, log_bound):
    """Remember what a support was tightened to."""
    at = _place(tightened, key)
    if tightened.key[at] == EMPTY:
        tightened.used[0] += 1
    tightened.key[at], tightened.step[at], tightened.log_bound[at] = key, step, log_bound


@compiled
def _mark(key):
    """The key of a row, from that of its first support `T ∪ {j}`."""
    return -2 - key


@compiled
def move(old, new):
    """Put what one hash table holds into a larger one."""
    for at in range(len(old.key)):
        if old.key[at] != EMPTY:
            keep(new, old.key[at], old.step[at], old.log_bound[at])


# --- one attempt ----------------------------------------------------------------------------------


@compiled
def _log_bound(target, tightened, log_prior, loss, key, known=True):
    """`log` of the current bound of a support; `known` is False if it was never tightened."""
    bound = look_up(tightened, key)[1] if known else FIRST
    return log_prior - target.kappa * (target.offset + loss) + bound


@compiled
def _parts_of_block(costs, supports, target, sums, tightened, columns, size):
    """Into `log_part`: the prefix itself, then its rows. Returns how many."""
    node, m = supports.node, len(supports.flip)
    enter(supports.moments, columns[:size], node)
    number = node.number[len(node.cell) - 1]
    after = columns[size - 1] + 1 if size > 0 else 0
    loss = exact_loss(costs, node, -1, -1)
    supports.log_part[0] = _log_bound(target, tightened, _log_prior(target, columns, size), loss, number * (m + 1))
    if supports.rule.active and not extend(supports.rule, columns, size, supports.room):
        supports.log_part[0] = -np.inf
    start = supports.moments.child_start[number] - sums.first_row
    for j in range(after, m):
        supports.log_part[1 + j - after] = sums.row[start + j]
    return 1 + m - after


@compiled
def _parts_of_row(costs, supports, target, tightened, columns, size, j):
    """Into `log_support`: `T ∪ {j}`, then `T ∪ {j, k}` for the later k. Returns how many."""
    node, m, mask = supports.node, len(supports.flip), supports.mask
    for w in range(len(mask)):
        both = supports.columns[w, j]
        for i in range(size):
            both &= supports.columns[w, columns[i]]
        mask[w] = both
    count_bits(supports.columns, supports.start, supports.weight, mask, j + 1, supports.counted)
    copy_row(node.both[len(node.cell) - 1, : m - 1 - j], supports.counted[j + 1 :])
    if j < m - 1:
        enter_rows(supports.moments, node, j, m - 1 - j)
    key = (supports.moments.child_start[node.number[len(node.cell) - 1]] + j) * (m + 1)
    log_prior = _log_prior(target, columns, size) + target.log_mass[j]
    known = tightened.key[_place(tightened, _mark(key))] != EMPTY
    supports.log_support[0] = _log_bound(target, tightened, log_prior, exact_loss(costs, node, j, -1), key, known)
    for k in range(j + 1, m):
        log_mass, loss = log_prior + target.log_mass[k], exact_loss(costs, node, j, k)
        supports.log_support[k - j] = _log_bound(target, tightened, log_mass, loss, key + k + 1, known)
    if supports.rule.active:
        _leave_out_supports(supports, columns, size, j)
    return m - j


@compiled
def _leave_out_supports(supports, columns, size, j):
    """Supports of a row that are not allowed have no weight."""
    whole = np.empty(size + 1, np.int64)
    whole[:size] = columns[:size]
    whole[size] = j
    if not extend(supports.rule, whole, size + 1, supports.room):
        supports.log_support[0] = -np.inf
    for k in range(j + 1, len(supports.flip)):
        if not supports.room.alive[k]:
            supports.log_support[k - j] = -np.inf


@compiled
def _choose_part(stream, log_parts, log_bound, scratch):
    """A part in proportion to its bound, or -1 with what the bound is more; -2 if it is less."""
    part, total = choose_of_many(stream, log_parts, len(log_parts), scratch)
    if total > log_bound:
        return -2
    return part if coin(stream, total - log_bound) else -1


class Chosen(NamedTuple):
    """The support that an attempt has come to: its size and key, and its place among the parts of its block and row."""

    size: int
    key: int
    part: int
    parts: int
    member: int
    members: int


@compiled
def _descend(costs, supports, target, sums, tightened, now, entry, stream):
    """From an entry down to one of its supports, which is left in `now`: LOST, GREW or KEPT, and the support."""
    moments, node, m = supports.moments, supports.node, len(supports.flip)
    size = columns_of(moments, entry, now.columns)
    key, parts, members = entry * (m + 1), 0, 0
    if entry < sums.first_block:
        cells_of(moments, now.columns, size, now.scratch, now.cells)
        loss = target.offset + sum_of_least(costs, now.cells[: 1 << size])
        supports.log_part[0] = _log_prior(target, now.columns, size) - target.kappa * loss
        _turn_cells(supports.flip, now, size)
        return KEPT, Chosen(size, key, 0, parts, 0, members)
    parts = _parts_of_block(costs, supports, target, sums, tightened, now.columns, size)
    part = _choose_part(stream, supports.log_part[:parts], sums.block[entry], supports.choice)
    if part <= 0:
        if part == 0:
            name_cells(node, now.columns, size, -1, -1, supports.flip, now.cells)
        return _outcome(part), Chosen(size, key, part, parts, 0, members)
    j = (now.columns[size - 1] if size > 0 else -1) + part
    members = _parts_of_row(costs, supports, target, tightened, now.columns, size, j)
    member = _choose_part(stream, supports.log_support[:members], supports.log_part[part], supports.choice)
    now.columns[size] = j
    key, size = (moments.child_start[entry] + j) * (m + 1), size + 1
    k = -1
    if member > 0:
        k = j + member
        now.columns[size] = k
        key, size = key + k + 1, size + 1
    if member >= 0:
        name_cells(node, now.columns, size, j, k, supports.flip, now.cells)
    return _outcome(member), Chosen(size, key, part, parts, member, members)


@compiled
def _outcome(part):
    """What a choice of `_choose_part` means."""
    if part >= 0:
        return KEPT
    return GREW if part == -2 else LOST


@compiled
def _turn_cells(flip, now, size):
    """Name the cells in `now` by the columns as they are."""
    turn = np.int64(0)
    for i in range(size):
        turn |= np.int64(flip[now.columns[i]]) << i
    for c in range(1 << size):
        if c < c ^ turn:
            now.cells[c], now.cells[c ^ turn] = now.cells[c ^ turn], now.cells[c]


@compiled
def put_in_force(supports, sums, tightened, tree, entry, chosen, step, log_bound):
    """The new bound of the support that an attempt has come to: in the hash table, its row, its block and the tree."""
    before = look_up(tightened, chosen.key)[1]
    keep(tightened, chosen.key, step, log_bound)
    if chosen.parts == 0:
        sums.block[entry] = supports.log_part[0] + log_bound
        set_weight(tree, entry, sums.block[entry])
        return
    if chosen.part == 0:
        supports.log_part[0] += log_bound - before
    else:
        row = chosen.key // (len(supports.flip) + 1) * (len(supports.flip) + 1)
        keep(tightened, _mark(row), LISTED, FIRST)
        supports.log_support[chosen.member] += log_bound - before
    _renew_sums(supports, sums, tree, entry, chosen)


@compiled
def _renew_sums(supports, sums, tree, entry, chosen):
    """Sum up the row and the block that an attempt has opened."""
    if chosen.part > 0:
        supports.log_part[chosen.part] = log_sum(supports.log_support[: chosen.members]) + FINE
        sums.row[chosen.key // (len(supports.flip) + 1) - sums.first_row] = supports.log_part[chosen.part]
    sums.block[entry] = log_sum(supports.log_part[: chosen.parts]) + FINE
    set_weight(tree, entry, sums.block[entry])


@compiled
def attempt_in_blocks(law, grid, supports, target, sums, tightened, tree, stream, fold, now, counts, attempts, reserve):
    """Attempts until one is not lost, or uniforms or room run low: the last outcome, its entry and its support."""
    chosen, entry = Chosen(0, 0, 0, 0, 0, 0), 0
    for _ in range(attempts):
        if len(stream.uniforms) - stream.used[0] < reserve or 2 * tightened.used[0] >= len(tightened.key):
            break
        counts[0] += 1
        entry = propose(stream, tree)
        outcome, chosen = _descend(grid.costs, supports, target, sums, tightened, now, entry, stream)
        if outcome == KEPT:
            before, log_bound = look_up(tightened, chosen.key)
            outcome, step, log_bound = attempt(law, grid, fold, now, chosen.size, before, stream, log_bound)
            # the attempt used the bounds of the proposal to its end; only now are they renewed
            if step != before:
                counts[1 + step] += 1
                put_in_force(supports, sums, tightened, tree, entry, chosen, step, log_bound)
        elif chosen.members > 0:
            _renew_sums(supports, sums, tree, entry, chosen)  # the row weighs less than was thought
        if outcome != LOST:
            return outcome, entry, chosen
    return LOST, entry, chosen
