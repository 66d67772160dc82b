"""Very many supports, listed without being stored: a frontier of blocks (theory, supports: "Blocks").

An entry of the frontier is a *block*, a prefix T of `max_features - 2` columns with all supports that add up to two later
columns to it, or a single support of fewer columns. A block has *rows*, one for each later column j: the supports
`T ∪ {j}` and `T ∪ {j, k}`. Of all supports only the sum of the bounds of each row is kept. An attempt proposes a block,
then one of its rows, forms the bounds of the row's supports again, proposes one of those, and goes down its chain
(`chain`). Supports that were tightened are kept in a hash table, and the sums of their row and block are renewed.

The first sums are formed in single precision (`block_sums`); all later ones, and all that decide who is chosen, in double
precision.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compile_for, compiled, helper
from privsolve.engines.card_rules import Rule, extend, for_one_thread, is_allowed, no_rule
from privsolve.engines.rejection import GREW, KEPT, LOST, NEEDS_LOGS
from privsolve.engines.supports.bits import Bits, count_bits, pack, turned
from privsolve.engines.supports.block_sums import FINE, FIRST, Sums, first_sums, log_prior_of, log_sum, target_of
from privsolve.engines.supports.cells import cells_of, columns_of
from privsolve.engines.supports.chain import EXACT_IN_LOGS, LISTED, Chain, attempt
from privsolve.engines.supports.instance import CardInstance, sum_of_least
from privsolve.engines.supports.moments import (
    Moments,
    Node,
    copy_row,
    count_moments,
    enter,
    enter_rows,
    exact_loss,
    name_cells,
    new_node,
)
from privsolve.errors import WorkLimitReached
from privsolve.noise.coins import SumTree, choose_of_many, coin, new_sum_tree, propose, set_weight

FIRST_CAPACITY = 1 << 10
EMPTY = -1


class Tightened(NamedTuple):
    """A hash table of the supports that were tightened: their step, and their bound relative to `U0`.

    The key of a support is `number·(columns + 1)`, that of `T ∪ {j, k}` the key of `T ∪ {j}` plus `k + 1`. A row of which any
    support was tightened has an entry as well (`mark_of`), so that nothing has to be looked up for the supports of the others.
    """

    key: Int64Array
    step: Int64Array
    log_bound: Floats
    used: Int64Array


def new_tightened(capacity: int) -> Tightened:
    """An empty table; `capacity` is a power of two."""
    return Tightened(
        np.full(capacity, EMPTY), np.zeros(capacity, dtype=np.int64), np.zeros(capacity), np.zeros(1, dtype=np.int64)
    )


@helper
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


@helper
def keep(tightened, key, step, log_bound):
    """Remember what a support was tightened to."""
    at = _place(tightened, key)
    if tightened.key[at] == EMPTY:
        tightened.used[0] += 1
    tightened.key[at], tightened.step[at], tightened.log_bound[at] = key, step, log_bound


@helper
def mark_of(key):
    """The key of a row, from that of its first support `T ∪ {j}`."""
    return -2 - key


@compiled
def move(old, new):
    """Put what one hash table holds into a larger one."""
    for at in range(len(old.key)):
        if old.key[at] != EMPTY:
            keep(new, old.key[at], old.step[at], old.log_bound[at])


@helper
def is_known(tightened, row):
    """Whether any support of a row was tightened, by the key of its first support."""
    return tightened.key[_place(tightened, mark_of(row))] != EMPTY


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


class BlockFrontier:
    """All supports of an instance in blocks, with their bounds and what was tightened.

    Its columns should stand in the order of `instance.heaviest_first`. `max_entries` limits the memory.
    """

    def __init__(
        self, chain: Chain, rule: Rule | None, max_entries: int, progress: Callable[[int], None] | None = None
    ) -> None:
        inst = chain.inst
        flip = turned(inst)
        bits, kept_to = pack(inst, flip), rule or no_rule(inst.n_columns, inst.max_features)
        self._chain, self._max_entries = chain, max_entries
        self.moments = count_moments(inst, bits)
        self.reference = inst.base + int(sum_of_least(inst.row_cell))  # no scorecard loses less
        prior = chain.prior
        self.target = target_of(inst, chain.law.kappa, prior.log_mass, prior.log_mass_intercept, self.reference)
        self.supports = _supports(inst, bits, self.moments, flip, kept_to)
        self.sums = first_sums(inst, bits, self.moments, self.target, kept_to, progress)
        self.tree: SumTree = new_sum_tree(self.sums.block, len(self.sums.block))
        self.tightened = new_tightened(FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self.sums.block) + int(self.tightened.used[0])

    @property
    def nodes(self) -> int:
        """Blocks, and supports that are entries by themselves."""
        return len(self.sums.block)

    def attempt(self, most: int) -> tuple[int, int]:
        """Attempts until one is kept or something runs low: its outcome and the size of its support."""
        self._make_room()
        outcome, entry, chosen = _attempt_until_kept(*self._arguments(most))
        if outcome == NEEDS_LOGS:
            step, log_bound = look_up(self.tightened, chosen.key)
            outcome, log_bound = self._chain.finish_in_logs(chosen.size, int(step), float(log_bound))
            _put_in_force(*self._tables(), entry, Chosen(*chosen), EXACT_IN_LOGS, log_bound)
        return outcome, chosen.size

    def compile(self) -> None:
        """Compile what `attempt` uses, without running it."""
        compile_for(_attempt_until_kept, *self._arguments(0))
        compile_for(look_up, self.tightened, 0)
        compile_for(move, self.tightened, self.tightened)
        compile_for(_put_in_force, *self._tables(), 0, Chosen(0, 0, 0, 0, 0, 0), 0, 0.0)

    def _arguments(self, most: int) -> tuple[Any, ...]:
        return (*self._chain.arguments, self.target, *self._tables(), most)

    def _tables(self) -> tuple[Supports, Sums, Tightened, SumTree]:
        return self.supports, self.sums, self.tightened, self.tree

    def _make_room(self) -> None:
        """Between attempts: the hash table stays half empty, and the frontier within its limit."""
        old, inst = self.tightened, self._chain.inst
        if 2 * int(old.used[0]) >= len(old.key):
            self.tightened = new_tightened(2 * len(old.key))
            move(old, self.tightened)
        if len(self) + inst.max_features * inst.n_columns > self._max_entries:
            raise WorkLimitReached(
                f"the frontier over supports has grown to max_supports = {self._max_entries:,} entries: nothing was "
                "released; raise max_supports or lower max_features"
            )


def _supports(inst: CardInstance, bits: Bits, moments: Moments, flip: NDArray[np.bool_], rule: Rule) -> Supports:
    m = inst.n_columns
    return Supports(
        moments,
        new_node(inst),
        bits.columns,
        bits.start,
        bits.weight,
        flip,
        np.zeros(len(bits.columns), dtype=np.uint64),
        np.zeros(m, dtype=np.int64),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros(4 * (m + 1)),
        for_one_thread(rule),
    )


@helper
def _log_bound(target, tightened, log_prior, loss, key, known=True):
    """`log` of the current bound of a support; `known` is False if it was never tightened."""
    bound = look_up(tightened, key)[1] if known else FIRST
    return log_prior - target.kappa * (target.offset + loss) + bound


@helper
def _parts_of_block(supports, target, sums, tightened, columns, size):
    """Into `log_part`: the prefix itself, then its rows. Returns how many."""
    node, m = supports.node, len(supports.flip)
    enter(supports.moments, columns[:size], node)
    number = node.number[len(node.cell) - 1]
    after = columns[size - 1] + 1 if size > 0 else 0
    loss = exact_loss(node, -1, -1)
    supports.log_part[0] = _log_bound(target, tightened, log_prior_of(target, columns, size), loss, number * (m + 1))
    if supports.rule.active and not is_allowed(supports.rule, columns, size):
        supports.log_part[0] = -np.inf
    start = supports.moments.child_start[number] - sums.first_row
    for j in range(after, m):
        supports.log_part[1 + j - after] = sums.row[start + j]
    return 1 + m - after


@helper
def _parts_of_row(supports, target, tightened, columns, size, j):
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
    log_prior = log_prior_of(target, columns, size) + target.log_mass[j]
    known = is_known(tightened, key)
    supports.log_support[0] = _log_bound(target, tightened, log_prior, exact_loss(node, j, -1), key, known)
    for k in range(j + 1, m):
        log_mass, loss = log_prior + target.log_mass[k], exact_loss(node, j, k)
        supports.log_support[k - j] = _log_bound(target, tightened, log_mass, loss, key + k + 1, known)
    if supports.rule.active:
        _leave_out_supports(supports, columns, size, j)
    return m - j


@helper
def _leave_out_supports(supports, columns, size, j):
    """Supports of a row that are not allowed have no weight."""
    columns[size] = j
    if not is_allowed(supports.rule, columns, size + 1):
        supports.log_support[0] = -np.inf
    extend(supports.rule, columns, size + 1)
    for k in range(j + 1, len(supports.flip)):
        if not supports.rule.allowed[k]:
            supports.log_support[k - j] = -np.inf


@helper
def _choose_part(stream, log_parts, log_bound, scratch):
    """(KEPT, part), (LOST, 0) if the attempt ends here, or (GREW, 0) if the parts weigh more than their bound."""
    part, total = choose_of_many(stream, log_parts, len(log_parts), scratch)
    if total > log_bound:
        return GREW, 0
    return (KEPT, part) if coin(stream, total - log_bound) else (LOST, 0)


class Chosen(NamedTuple):
    """The support that an attempt has come to: its size and key, and its place among the parts of its block and row."""

    size: int
    key: int
    part: int
    parts: int
    member: int
    members: int


@helper
def _descend(supports, target, sums, tightened, now, entry, stream):
    """From an entry down to one of its supports, which is left in `now`: LOST, GREW or KEPT, and the support."""
    moments, node, m = supports.moments, supports.node, len(supports.flip)
    size = columns_of(moments, entry, now.columns)
    key, parts, members = entry * (m + 1), 0, 0
    if entry < sums.first_block:
        cells_of(moments, now.columns, size, now.scratch, now.cells)
        loss = target.offset + sum_of_least(now.cells[: 1 << size])
        supports.log_part[0] = log_prior_of(target, now.columns, size) - target.kappa * loss
        _turn_cells(supports.flip, now, size)
        return KEPT, Chosen(size, key, 0, parts, 0, members)
    parts = _parts_of_block(supports, target, sums, tightened, now.columns, size)
    outcome, part = _choose_part(stream, supports.log_part[:parts], sums.block[entry], supports.choice)
    if outcome != KEPT or part == 0:
        if outcome == KEPT:
            name_cells(node, now.columns, size, -1, -1, supports.flip, now.cells)
        return outcome, Chosen(size, key, part, parts, 0, members)
    j = (now.columns[size - 1] if size > 0 else -1) + part
    members = _parts_of_row(supports, target, tightened, now.columns, size, j)
    outcome, member = _choose_part(stream, supports.log_support[:members], supports.log_part[part], supports.choice)
    now.columns[size] = j
    key, size = (moments.child_start[entry] + j) * (m + 1), size + 1
    k = -1
    if member > 0:
        k = j + member
        now.columns[size] = k
        key, size = key + k + 1, size + 1
    if outcome == KEPT:
        name_cells(node, now.columns, size, j, k, supports.flip, now.cells)
    return outcome, Chosen(size, key, part, parts, member, members)


@helper
def _turn_cells(flip, now, size):
    """Name the cells in `now` by the columns as they are."""
    turn = np.int64(0)
    for i in range(size):
        turn |= np.int64(flip[now.columns[i]]) << i
    for c in range(1 << size):
        if c < c ^ turn:
            now.cells[c], now.cells[c ^ turn] = now.cells[c ^ turn], now.cells[c]


@compiled
def _put_in_force(supports, sums, tightened, tree, entry, chosen, step, log_bound):
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
        keep(tightened, mark_of(row), LISTED, FIRST)
        supports.log_support[chosen.member] += log_bound - before
    _renew_sums(supports, sums, tree, entry, chosen)


@helper
def _renew_sums(supports, sums, tree, entry, chosen):
    """Sum up the row and the block that an attempt has opened."""
    if chosen.part > 0:
        supports.log_part[chosen.part] = log_sum(supports.log_support[: chosen.members]) + FINE
        sums.row[chosen.key // (len(supports.flip) + 1) - sums.first_row] = supports.log_part[chosen.part]
    sums.block[entry] = log_sum(supports.log_part[: chosen.parts]) + FINE
    set_weight(tree, entry, sums.block[entry])


@compiled
def _attempt_until_kept(
    law, grid, fold, now, stream, counts, reserve, target, supports, sums, tightened, tree, attempts
):
    """Attempts until one is not lost, or uniforms or room run low: the last outcome, its entry and its support."""
    chosen, entry = Chosen(0, 0, 0, 0, 0, 0), 0
    for _ in range(attempts):
        if len(stream.uniforms) - stream.used[0] < reserve or 2 * tightened.used[0] >= len(tightened.key):
            break
        counts[0] += 1
        entry = propose(stream, tree)
        outcome, chosen = _descend(supports, target, sums, tightened, now, entry, stream)
        if outcome == KEPT:
            before, log_bound = look_up(tightened, chosen.key)
            outcome, step, log_bound = attempt(law, grid, fold, now, chosen.size, before, stream, log_bound)
            # the attempt used the bounds of the proposal to its end; only now are they renewed
            if step != before:
                counts[1 + step] += 1
                _put_in_force(supports, sums, tightened, tree, entry, chosen, step, log_bound)
        elif chosen.members > 0:
            _renew_sums(supports, sums, tree, entry, chosen)  # the row weighs less than was thought
        if outcome != LOST:
            return outcome, entry, chosen
    return LOST, entry, chosen
