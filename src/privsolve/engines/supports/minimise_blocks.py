"""The certified best scorecard where the supports are too many to list: best first over rows of blocks.

As in `blocks`, all supports are gone through and only the least bound of every row is kept. Then the most promising row or
support is opened, over and over: a row into those of its supports whose sketched bound may beat the best scorecard found, a
support into its best points. When nothing is left that could beat it, the best scorecard is certified.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import heapq
import math
import time
from typing import Any, NamedTuple, Protocol

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper
from privsolve.engines.card_rules import Room, Rule, dead_at, extend, new_room, no_rule
from privsolve.engines.semirings import COSTS, INFINITE_COST
from privsolve.engines.supports.bits import Bits, Walk, advance, advance_at, begin, count_bits, new_walk, pack, turned
from privsolve.engines.supports.block_sums import count_rows, shape_of
from privsolve.engines.supports.cells import cells_of, columns_of
from privsolve.engines.supports.chain import Current
from privsolve.engines.supports.costs import Step, sum_of_least
from privsolve.engines.supports.fold import Fold, Grid, folding_order, sketch
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
from privsolve.errors import WorkLimitReached
from privsolve.problems.perturbation import UNIT_BITS

SCALE = np.int64(1 << UNIT_BITS)


Support = tuple[int, int, tuple[int, ...]]
"""A lower bound, the number of columns, the columns."""


class Solver(Protocol):
    """What opens supports and keeps the best scorecard."""

    best: int
    solved: int
    grid: Grid
    fold: Fold
    now: Current
    weight: Int64Array

    def beats(self, lower: int, support: Any) -> bool: ...  # noqa: D102

    def open(self, columns: Any) -> None: ...  # noqa: D102


class Limits:
    """When to give up: after so many supports or seconds."""

    def __init__(self, supports: int | None, seconds: float | None) -> None:
        self._supports, self._seconds, self._start = supports, seconds, time.monotonic()

    def check(self, supports: int) -> None:
        """Raise if a limit is reached."""
        if self._supports is not None and supports > self._supports:
            raise WorkLimitReached(
                f"not certified within {self._supports:,} supports: nothing was released; raise node_limit or lower "
                "max_features"
            )
        if self._seconds is not None and time.monotonic() - self._start > self._seconds:
            raise WorkLimitReached(
                f"not certified within {self._seconds:g} seconds: nothing was released; raise time_limit or lower "
                "max_features"
            )


class Bounds(NamedTuple):
    """Lower bounds in units of `2^-20`: of supports of up to `max_features - 2` columns by number, and of all rows.

    `least` is the least perturbation of every column, `constant` that of the intercept with the `base` of all losses; `slack`
    is taken off the sums over cells that are not exact.
    """

    own: Int64Array
    row: Int64Array
    first_row: int
    least: Int64Array
    base: int
    constant: int
    slack: int


def new_bounds(inst: CardInstance, least: Int64Array, least_intercept: int) -> Bounds:
    """Room for the bounds."""
    base = inst.base << UNIT_BITS
    shape = shape_of(inst.n_columns, inst.max_features)
    slack = 0 if isinstance(inst.costs, Step) else 1 + int(inst.largest_loss * 2.0**-36) + (1 << inst.max_features)
    own, row = (np.full(n, INFINITE_COST, dtype=np.int64) for n in shape)
    return Bounds(own, row, shape.entries, least, base, base + least_intercept, slack)


@helper
def _price(bounds, columns, size):
    """What the columns of a support cost at least, beside its cells."""
    total = bounds.constant
    for i in range(size):
        total += bounds.least[columns[i]]
    return total


@compiled
def _bound_small(costs, moments, bounds, columns, cells, scratch, rule, room):
    for number in range(bounds.first_row):
        size = columns_of(moments, number, columns)
        if rule.active and not (dead_at(rule, room, columns[:size]) == size and extend(rule, columns, size, room)):
            continue
        cells_of(moments, columns, size, scratch, cells)
        bounds.own[number] = (sum_of_least(costs, cells[: 1 << size]) << UNIT_BITS) + _price(bounds, columns, size)


@compiled
def _bound_from(costs, moments, unit, bounds, walk, node, first, rule, room):
    """Bounds of the rows of the blocks that start with column `first`; dead ones are passed over."""
    m, size = walk.n_columns, len(walk.path)
    more, columns = begin(walk, first), np.empty(len(walk.path) + 1, np.int64)
    while more:
        if rule.active:
            dead = dead_at(rule, room, walk.path)
            if dead < size:
                more = advance_at(walk, dead)
                continue
            columns[:size] = walk.path
            extend(rule, columns, size, room)
            node.live[:] = room.alive
        enter(moments, walk.path, node)
        price = _price(bounds, walk.path, size)
        after = walk.path[size - 1] + 1 if size > 0 else 0
        rows = bounds.row[moments.child_start[node.number[len(node.cell) - 1]] - bounds.first_row + after :]
        if after < m:
            least_of_singles(costs, node, after)
        for j in range(after, m):
            rows[j - after] = (np.int64(math.floor(node.single[j])) - bounds.slack) << UNIT_BITS
            columns[size] = j
            if rule.active and not (node.live[j] and extend(rule, columns, size + 1, room)):
                rows[j - after] = INFINITE_COST
        j = after
        while j < m - 1:
            if not node.live[j]:
                j += 1
                continue
            stop, pairs = next_rows(node, j)
            count_rows(walk, unit, node, j, stop, pairs)
            enter_rows(moments, node, j, pairs)
            least_of_rows(costs, node, pairs)
            at = 0
            for i in range(j, stop):
                if rule.active:
                    columns[size] = i
                    extend(rule, columns, size + 1, room)
                for k in range(i + 1, m):
                    if rule.active and not room.alive[k]:
                        at += 1
                        continue
                    here = ((np.int64(math.floor(node.loss[at])) - bounds.slack) << UNIT_BITS) + bounds.least[k]
                    rows[i - after] = min(rows[i - after], here)
                    at += 1
            j = stop
        for j in range(after, m):
            rows[j - after] += price + bounds.least[j]
        more = advance(walk)


@compiled
def _sketch_row(
    grid, fold, now, moments, node, bits, flip, bounds, weight, mask, counted, size, best, lower, rule, room
):
    """Into `lower`, for `T ∪ {j}` and `T ∪ {j, k}`: the sketched bounds of those that may beat `best`, else infinite.

    `now.columns` holds T and j.
    """
    m, j, costs = len(flip), now.columns[size], grid.costs
    enter(moments, now.columns[:size], node)
    for w in range(len(mask)):
        both = bits.columns[w, j]
        for i in range(size):
            both &= bits.columns[w, now.columns[i]]
        mask[w] = both
    count_bits(bits.columns, bits.start, bits.weight, mask, j + 1, counted)
    copy_row(node.both[len(node.cell) - 1, : m - 1 - j], counted[j + 1 :])
    if j < m - 1:
        enter_rows(moments, node, j, m - 1 - j)
    price, own = _price(bounds, now.columns, size + 1), True
    if rule.active:
        own = extend(rule, now.columns, size + 1, room)
    for x in range(m - j):
        k = j + x if x > 0 else -1
        lower[x] = INFINITE_COST
        if rule.active and not (own if k < 0 else room.alive[k]):
            continue
        loss = exact_loss(costs, node, j, k)
        bound = (loss << UNIT_BITS) + price + (bounds.least[k] if k >= 0 else 0)
        if bound <= best:
            columns = size + 1
            if k >= 0:
                now.columns[columns] = k
                columns += 1
            name_cells(node, now.columns, columns, j, k, flip, now.cells)
            folding_order(costs, now.cells, columns, fold)
            value = sketch(COSTS, grid, fold, columns, now.cells, SCALE, now.columns, weight)
            bound = max(bound, bounds.base + (loss << UNIT_BITS) + value)
            if bound <= best:
                lower[x] = bound
    return m - j


class BlockSearch:
    """Rows and supports of an instance, the most promising first."""

    def __init__(
        self, inst: CardInstance, least: Int64Array, least_intercept: int, limits: Limits, rule: Rule | None = None
    ) -> None:
        m, most = inst.n_columns, inst.max_features
        kept_to = self._rule = rule or no_rule(m, most)
        self._room = new_room(kept_to)
        self.inst, self._limits = inst, limits
        self._flip = turned(inst)
        self._bits: Bits = pack(inst, self._flip)
        self._moments: Moments = count_moments(inst, self._bits)
        self._bounds = new_bounds(inst, least, least_intercept)
        cells = np.zeros(1 << most, dtype=np.int64)
        _bound_small(
            inst.costs,
            self._moments,
            self._bounds,
            np.zeros(most, dtype=np.int64),
            cells,
            cells.copy(),
            kept_to,
            self._room,
        )

        def bound_from(own: tuple[Walk, Node, Room], first: int) -> None:
            walk, node, room = own
            _bound_from(inst.costs, self._moments, self._bits.weight, self._bounds, walk, node, first, kept_to, room)

        scratch = Workers(lambda: (new_walk(self._bits, m, most - 2), new_node(inst), new_room(kept_to)))
        scratch.run(bound_from, firsts(m, most - 2), lambda done: limits.check(0))
        self._node = new_node(inst)
        words = len(self._bits.columns)
        self._scratch = np.zeros(words, dtype=np.uint64), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        self.sketched = 0

    def run(self, solver: Solver) -> None:
        """Open what may beat the solver's best until nothing is left."""
        own, row = self._bounds.own, self._bounds.row
        waiting: list[Support] = []  # a heap: equal bounds in the order of ties
        if own.min(initial=INFINITE_COST) < INFINITE_COST:
            solver.open(self._columns(int(np.argmin(own))))
        if row.min(initial=INFINITE_COST) < INFINITE_COST // 2:  # of dead rows it is infinite, or near
            self._open_row(int(np.argmin(row)), solver, waiting)
        for number in np.flatnonzero(own <= min(solver.best, INFINITE_COST - 1)).tolist():
            columns = self._columns(number)
            heapq.heappush(waiting, (int(own[number]), len(columns), columns))
        rows = np.flatnonzero(row <= min(solver.best, INFINITE_COST // 2))
        for at in rows[np.argsort(row[rows], kind="stable")].tolist():
            lower = int(row[at])
            while waiting and waiting[0][0] < lower:
                self._open_first(solver, waiting)
            if lower > solver.best:
                break
            self._open_row(at, solver, waiting)
        while waiting:
            self._open_first(solver, waiting)

    def _open_first(self, solver: Solver, waiting: list[Support]) -> None:
        """Open the most promising of the supports that wait; all go if even that one is above the best."""
        lower, size, columns = heapq.heappop(waiting)
        if lower > solver.best:
            waiting.clear()
        elif solver.beats(lower, (size, columns)):
            self._limits.check(solver.solved)
            solver.open(columns)

    def _open_row(self, row: int, solver: Solver, waiting: list[Support]) -> None:
        columns = self._columns(self._bounds.first_row + row)
        solver.now.columns[: len(columns)] = columns
        mask, counted, lower = self._scratch
        members = int(
            _sketch_row(
                solver.grid,
                solver.fold,
                solver.now,
                self._moments,
                self._node,
                self._bits,
                self._flip,
                self._bounds,
                solver.weight,
                mask,
                counted,
                len(columns) - 1,
                solver.best,
                lower,
                self._rule,
                self._room,
            )
        )
        self.sketched += members
        self._limits.check(self.sketched)
        for x in np.flatnonzero(lower[:members] < INFINITE_COST).tolist():
            support = (*columns, columns[-1] + x) if x > 0 else columns
            heapq.heappush(waiting, (int(lower[x]), len(support), support))

    def _columns(self, number: int) -> tuple[int, ...]:
        columns = np.zeros(self.inst.max_features, dtype=np.int64)
        size = int(columns_of(self._moments, number, columns))
        return tuple(columns[:size].tolist())
