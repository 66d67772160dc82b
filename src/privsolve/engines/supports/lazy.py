"""Supports too many to list: a lazy tree over prefixes of supports (theory, section 4).

Columns stand in a fixed order. A node is a prefix T and stands for T itself and all supports that add up to `k` later
columns to it. Opening a node splits it into the support T and one child `T ∪ {l}` for each later column l, which holds
the supports whose next column is l. Supports carry the chain of bounds of `chain`, starting at `U0`. A node needs a
bound on the sum of `U0` over its supports, and the bounds of its parts must not exceed its own.

*Gain caps* `γ_l` bound how much less a support can lose than its prefix, `Bayes(T ∪ R) >= Bayes(T) - Σ_{l ∈ R} γ_l`, and
*shares* bound the sum of `U0` over the supports whose next column is l. Both are stated and proved in
`docs/theory/supports.md`, "Supports too many to list". A child takes the caps of its own cells (`B = Bayes`, `F = Bayes`
with all later columns) or inherits its parent's (`B - γ_l`, γ, F), whichever gives the smaller bound; bounds never grow.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled
from privsolve.engines.card_rules import Rule, extend, new_room
from privsolve.engines.compiling import compile_for
from privsolve.engines.supports.chain import EXACT, INFLATION
from privsolve.engines.supports.costs import CellCosts, Step, cost_at, least, masses, sum_of_least
from privsolve.engines.supports.instance import CardInstance
from privsolve.errors import PrivsolveError, WorkLimitReached
from privsolve.noise.coins import SumTree, copy_leaves, new_sum_tree, set_weight, set_weights

FIRST_CAPACITY = 1 << 12
EXACT_BELOW = 2
"""With so few columns left to add, the shares are the exact sums."""

NODE = -1
"""Step of an entry that is a prefix not yet opened; supports stand at the steps of `chain`."""


class SortedRows(NamedTuple):
    """The rows with the columns in tree order, sorted so that rows that agree on all late columns are neighbours.

    `differs[i]` is the last column in which row i differs from the one before it.
    """

    columns: NDArray[np.uint8]
    row_cell: Int64Array
    differs: Int64Array
    ones: Int64Array
    ones_start: Int64Array
    costs: CellCosts


class Caps(NamedTuple):
    """`B` and `F`, relative to the reference loss, and the gains `γ` of the later columns."""

    loss: int
    floor: int
    gain: Int64Array


@dataclass
class Opened:
    """An opened node: what it was, its caps, and the log bounds of its parts (T itself, then each later column)."""

    columns: tuple[int, ...]
    caps: Caps
    log_top: float
    log_parts: Floats
    later: Sequence[int]
    """The columns of the parts after the first."""


def tree_order(inst: CardInstance) -> Int64Array:
    """The order of the columns in the tree: those of the heaviest rows first."""
    return np.argsort(-(masses(inst.costs, inst.row_cell) @ inst.rows), kind="stable")


def sort_rows(inst: CardInstance) -> SortedRows:
    """The rows sorted for the tree."""
    rows = inst.rows
    at = np.lexsort(rows.T) if rows.shape[1] else np.arange(len(rows))  # the last column is the primary key
    rows = np.ascontiguousarray(rows[at])
    changed = rows[1:] != rows[:-1]
    last = [int(np.flatnonzero(change)[-1]) if change.any() else -1 for change in changed]
    differs = np.array([rows.shape[1], *last], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(rows.sum(axis=1))]).astype(np.int64)
    columns = np.ascontiguousarray(rows.T.astype(np.uint8))
    ones = np.nonzero(rows)[1].astype(np.int64)
    return SortedRows(columns, inst.row_cell[at], differs, ones, start, inst.costs)


@compiled
def _cell_numbers(table, columns, size):
    """The cell of every row; bit i is `columns[i]`."""
    cell = np.zeros(len(table.row_cell), np.int64)
    for i in range(size):
        column = table.columns[columns[i]]
        for r in range(len(cell)):
            cell[r] |= np.int64(column[r]) << i
    return cell


@compiled
def count_cells(table, columns, size, cells):
    """`D_c` of every cell of a support, straight from the rows."""
    cell = _cell_numbers(table, columns, size)
    for c in range(1 << size):
        cells[c] = 0
    for r in range(len(cell)):
        cells[cell[r]] += table.row_cell[r]


@compiled
def caps_of_table(table, columns, size, k, cells, gain):
    """`γ_l` of the later columns into `gain`; returns `Σ_c least(D_c)` for T and for T with all later columns."""
    m, n_cells, n, scores = len(table.columns), 1 << size, len(table.row_cell), len(table.costs.hull)
    last = columns[size - 1] if size > 0 else -1
    sums = np.zeros((n_cells, m, scores), np.int64)  # H_l at each score of the hull
    part = np.zeros((n_cells, m), np.int64)
    group, floor = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    regrets = np.empty(scores, np.int64)
    cell = _cell_numbers(table, columns, size)
    for c in range(n_cells):
        cells[c] = 0
    begin = 0
    while begin < n:
        end = begin
        while end == begin or (end < n and table.differs[end] <= last):
            group[cell[end]] += table.row_cell[end]
            end += 1
        for r in range(begin, end):
            c = cell[r]
            d = group[c]
            if d != 0:
                group[c] = 0
                cells[c] += d
                smallest = least(table.costs, d)
                floor[c] += smallest
                for h in range(scores):
                    regrets[h] = cost_at(table.costs, d, table.costs.first + table.costs.hull[h]) - smallest
                for at in range(table.ones_start[r + 1] - 1, table.ones_start[r] - 1, -1):
                    j = table.ones[at]
                    if j <= last:
                        break
                    part[c, j] += d
                    for h in range(scores):
                        sums[c, j, h] += regrets[h]
        begin = end
    here, lowest = np.int64(0), np.int64(0)
    for j in range(m):
        gain[j] = 0
    for c in range(n_cells):
        d = cells[c]
        smallest = least(table.costs, d)
        here += smallest
        lowest += floor[c]
        for h in range(scores):  # A of the page, shared out among k columns
            regrets[h] = (cost_at(table.costs, d, table.costs.first + table.costs.hull[h]) - smallest) // k
        for j in range(last + 1, m):
            if k == 1:
                gain[j] += smallest - least(table.costs, part[c, j]) - least(table.costs, d - part[c, j])
            else:
                cap = np.int64(0)
                for h in range(scores):
                    cap = max(cap, sums[c, j, h] - regrets[h])
                gain[j] += min(smallest - floor[c], cap)
    return here, lowest


@compiled
def caps_of_step(table, columns, size, k, cells, gain):
    """The same for a loss with one step, where only two sums are needed."""
    m, n_cells, n = len(table.columns), 1 << size, len(table.row_cell)
    last = columns[size - 1] if size > 0 else -1
    sums = np.zeros((n_cells, m, 2), np.int64)  # by sign of the group: of |d_g| where d_g > 0, and where d_g < 0
    group, negative = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    cell = _cell_numbers(table, columns, size)
    for c in range(n_cells):
        cells[c] = 0
    begin = 0
    while begin < n:
        end = begin
        while end == begin or (end < n and table.differs[end] <= last):
            group[cell[end]] += table.row_cell[end]
            end += 1
        for r in range(begin, end):
            d = group[cell[r]]
            if d != 0:
                group[cell[r]] = 0
                cells[cell[r]] += d
                negative[cell[r]] += max(-d, 0)
                for at in range(table.ones_start[r + 1] - 1, table.ones_start[r] - 1, -1):
                    if table.ones[at] <= last:
                        break
                    sums[cell[r], table.ones[at], 0 if d > 0 else 1] += abs(d)
        begin = end
    here, lowest = 0, 0
    for j in range(m):
        gain[j] = 0
    for c in range(n_cells):
        d = cells[c]
        here += min(d, 0)
        lowest -= negative[c]
        most = min(d, 0) + negative[c]
        same, opposite = (0, 1) if d >= 0 else (1, 0)
        for j in range(last + 1, m):
            if k == 1:
                part = sums[c, j, 0] - sums[c, j, 1]
                gain[j] += min(d, 0) - min(part, 0) - min(d - part, 0)
            else:
                gain[j] += min(most, max(sums[c, j, opposite], sums[c, j, same] - abs(d) // k))
    return here, lowest


@compiled
def shares(log_mass, gain, last, k, kappa, loss, floor, log_share):
    """`log share_l` of the later columns, without the prior mass of T, by one backward pass in logarithms."""
    with_gain, plain = np.full(k, -np.inf), np.full(k, -np.inf)  # log e_r of the columns after l
    with_gain[0] = plain[0] = 0.0
    for j in range(len(log_mass) - 1, last, -1):
        x = log_mass[j] + kappa * gain[j]
        one, other = -kappa * loss + x, -kappa * floor + log_mass[j]
        log_share[j] = min(one + _log_sum(with_gain), other + _log_sum(plain))
        for r in range(k - 1, 0, -1):
            with_gain[r] = _log_add(with_gain[r], x + with_gain[r - 1])
            plain[r] = _log_add(plain[r], log_mass[j] + plain[r - 1])


@compiled
def pair_shares(table, columns, size, offset, kappa, log_mass, log_share):
    """`log share_l` exactly where two columns may still be added: the sum over l alone and l with each later column.

    Without the prior mass of T; `offset` is what `Σ_c least(D_c)` lacks to a loss relative to the reference.
    """
    m, n_cells = len(table.columns), 1 << size
    last = columns[size - 1] if size > 0 else -1
    cell = _cell_numbers(table, columns, size)
    whole, part = np.zeros(n_cells, np.int64), np.zeros((m, n_cells), np.int64)
    both = np.zeros(((m - last - 1) * (m - last - 1), n_cells), np.int64)
    width = m - last - 1
    for r in range(len(cell)):
        c, d = cell[r], table.row_cell[r]
        whole[c] += d
        for at in range(table.ones_start[r + 1] - 1, table.ones_start[r] - 1, -1):
            j = table.ones[at]
            if j <= last:
                break
            part[j, c] += d
            for other in range(at + 1, table.ones_start[r + 1]):
                both[(j - last - 1) * width + table.ones[other] - last - 1, c] += d
    log_weight = np.zeros(m + 1)
    for j in range(last + 1, m):
        loss = offset
        for c in range(n_cells):
            loss += least(table.costs, part[j, c]) + least(table.costs, whole[c] - part[j, c])
        log_weight[j] = -kappa * loss
        for i in range(j + 1, m):
            pair, one, other = both[(j - last - 1) * width + i - last - 1], part[j], part[i]
            loss = offset
            for c in range(n_cells):
                loss += least(table.costs, pair[c]) + least(table.costs, one[c] - pair[c])
                loss += least(table.costs, other[c] - pair[c])
                loss += least(table.costs, whole[c] - one[c] - other[c] + pair[c])
            log_weight[i] = log_mass[i] - kappa * loss
        highest, total = np.max(log_weight[j:m]), 0.0
        for i in range(j, m):
            total += np.exp(log_weight[i] - highest)
        log_share[j] = log_mass[j] + highest + np.log(total)


@compiled
def _log_add(a, b):
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@compiled
def _log_sum(values):
    total = -np.inf
    for x in values:
        total = _log_add(total, x)
    return total


class LazyFrontier:
    """The frontier of the lazy tree: unopened prefixes and supports, each with its current bound, in a sum tree.

    Columns are those of `inst`, which should stand in `tree_order`. `max_entries` limits the memory.
    """

    def __init__(
        self,
        inst: CardInstance,
        kappa: float,
        log_mass: Floats,
        log_mass_intercept: float,
        max_entries: int,
        rule: Rule | None = None,
    ) -> None:
        self.inst = inst
        self._rule, self._room = rule, new_room(rule) if rule else None
        self.table = sort_rows(inst)
        self._gain_caps = caps_of_step if isinstance(inst.costs, Step) else caps_of_table
        self._kappa = kappa
        self._log_mass, self._log_mass_intercept = log_mass, log_mass_intercept
        self._max_entries = max_entries
        self._gain_caps = caps_of_step if isinstance(inst.costs, Step) else caps_of_table
        # the sums of `shares` take this many roundings of logarithms this large
        roundings = 4 * (inst.n_columns + inst.max_features) * inst.max_features
        self._slack = max(INFLATION, 2.0**-53 * roundings * (kappa * inst.largest_difference + 1.0))
        self._cells = np.zeros(1 << inst.max_features, dtype=np.int64)
        self._scratch = np.zeros(inst.max_features, dtype=np.int64)
        self.reference = inst.base + int(sum_of_least(inst.costs, inst.row_cell))  # no scorecard loses less
        self.columns: list[tuple[int, ...]] = []
        self._parent: list[Caps | None] = []
        self.step: Int64Array = np.zeros(FIRST_CAPACITY, dtype=np.int64)
        self.log_bound: Floats = np.full(FIRST_CAPACITY, -np.inf)
        self.log_top: Floats = np.zeros(FIRST_CAPACITY)
        self.tree: SumTree = new_sum_tree(np.zeros(0), FIRST_CAPACITY)
        self.opened = 0
        self._append([()], [None], NODE, np.zeros(1), 0.0)
        self.commit(0, self.open((), None))

    def __len__(self) -> int:
        return len(self.columns)

    def compile(self) -> None:
        """Everything that opening prefixes runs."""
        table, columns, cells, numbers = self.table, self._scratch, self._cells, np.zeros(1)
        gain = np.zeros(1, dtype=np.int64)
        compile_for(count_cells, table, columns, 0, cells)
        compile_for(self._gain_caps, table, columns, 0, 0, cells, gain)
        compile_for(shares, self._log_mass, gain, 0, 0, self._kappa, 0, 0, numbers)
        compile_for(pair_shares, table, columns, 0, 0, self._kappa, self._log_mass, numbers)
        compile_for(copy_leaves, self.tree, self.tree)
        if self._rule:
            compile_for(extend, self._rule, columns, 0, self._room)

    def _inflation(self, size: int) -> float:
        """What is added to the log bound of a prefix: more for every column it can still add, and never less than rounding."""
        return EXACT * INFLATION + 2 * (self.inst.max_features - size) * self._slack

    def open(self, columns: tuple[int, ...], parent: Caps | None) -> Opened:
        """Caps and parts of a prefix that has room for more columns; `parent` are the caps of the one it extends."""
        own = self._own_caps(columns)
        log_prior = self._log_mass_intercept + float(self._log_mass[list(columns)].sum())
        log_top = log_prior - self._kappa * own.loss
        opened = self._split(columns, own, log_prior, log_top)
        if parent is not None and self.inst.max_features - len(columns) > EXACT_BELOW:
            gain = int(parent.gain[columns[-1]])
            inherited = self._split(columns, parent._replace(loss=parent.loss - gain), log_prior, log_top)
            if np.logaddexp.reduce(inherited.log_parts) < np.logaddexp.reduce(opened.log_parts):
                opened = inherited
        self.opened += 1
        return opened

    def _own_caps(self, columns: tuple[int, ...]) -> Caps:
        """The caps of a prefix's own cells; `loss` is its Bayes loss."""
        size = len(columns)
        self._scratch[:size] = columns
        gain = np.zeros(self.inst.n_columns, dtype=np.int64)
        k, offset = self.inst.max_features - size, self.inst.base - self.reference
        if k == EXACT_BELOW:  # no caps are needed
            count_cells(self.table, self._scratch, size, self._cells)
            here = floor = sum_of_least(self.inst.costs, self._cells[: 1 << size])
        else:
            here, floor = self._gain_caps(self.table, self._scratch, size, k, self._cells, gain)
        return Caps(int(here) + offset, int(floor) + offset, gain)

    def _split(self, columns: tuple[int, ...], caps: Caps, log_prior: float, log_top: float) -> Opened:
        size, m = len(columns), self.inst.n_columns
        last, k = columns[-1] if columns else -1, self.inst.max_features - size
        log_share, log_mass, allowed = np.zeros(m), self._log_mass, True
        later: Sequence[int] = range(last + 1, m)
        if self._rule and self._room:  # columns that no support of this prefix has add nothing
            self._scratch[:size] = columns
            allowed = bool(extend(self._rule, self._scratch, size, self._room))
            log_mass = np.where(self._room.open, log_mass, -np.inf)
            later = [j for j in later if self._room.alive[j]]
        if k == EXACT_BELOW:
            self._scratch[:size] = columns
            offset = self.inst.base - self.reference
            pair_shares(self.table, self._scratch, size, offset, self._kappa, log_mass, log_share)
        else:
            shares(log_mass, caps.gain, last, k, self._kappa, caps.loss, caps.floor, log_share)
        inflation = self._inflation(size + 1)
        own = log_top + EXACT * INFLATION if allowed else -np.inf
        kept = log_share[last + 1 :] if self._rule is None else log_share[later]
        return Opened(columns, caps, log_top, np.concatenate([[own], log_prior + kept + inflation]), later)

    def commit(self, entry: int, opened: Opened) -> int:
        """Replace a prefix in the frontier by its parts; the entries of the later columns start at the returned one."""
        first, size, later = len(self), len(opened.columns), opened.later
        complete = size + 1 == self.inst.max_features
        self.step[entry], self.log_bound[entry], self.log_top[entry] = 0, EXACT * INFLATION, opened.log_top
        set_weight(self.tree, entry, opened.log_parts[0])
        children = [(*opened.columns, j) for j in later]
        parts = opened.log_parts[1:]
        tops = parts - EXACT * INFLATION if complete else np.zeros(len(parts))
        self._append(children, [opened.caps] * len(children), 0 if complete else NODE, parts - tops, tops)
        return first

    def _append(
        self,
        columns: list[tuple[int, ...]],
        parents: list[Caps | None],
        step: int,
        log_bound: Floats,
        log_top: Floats | float,
    ) -> None:
        first, end = len(self), len(self) + len(columns)
        self.columns += columns
        self._parent += parents
        if end > len(self.step):
            self._grow(end)
        self.step[first:end], self.log_bound[first:end], self.log_top[first:end] = step, log_bound, log_top
        set_weights(self.tree, first, self.log_bound[first:end] + self.log_top[first:end])

    def _grow(self, needed: int) -> None:
        capacity = len(self.step)
        while capacity < needed:
            capacity *= 2
        more = capacity - len(self.step)
        self.step = np.concatenate([self.step, np.zeros(more, dtype=np.int64)])
        self.log_bound = np.concatenate([self.log_bound, np.full(more, -np.inf)])
        self.log_top = np.concatenate([self.log_top, np.zeros(more)])
        old = self.tree
        self.tree = new_sum_tree(np.zeros(0), capacity)
        copy_leaves(old, self.tree)

    def check_room(self) -> None:
        """Between attempts: one attempt may open a prefix of every size."""
        if len(self) + self.inst.max_features * self.inst.n_columns > self._max_entries:
            raise WorkLimitReached(
                f"the lazy tree over supports has grown to max_supports = {self._max_entries:,} entries: nothing was "
                "released; raise max_supports or lower max_features"
            )

    def parent(self, entry: int) -> Caps | None:
        """The caps that an unopened prefix inherits."""
        return self._parent[entry]

    def tighten(self, entry: int, step: int, log_bound: float) -> None:
        """Record the step and bound that a support has reached."""
        self.step[entry], self.log_bound[entry] = step, log_bound
        set_weight(self.tree, entry, self.log_top[entry] + log_bound)


def check_shrinks(new: float, old: float, columns: tuple[int, ...]) -> None:
    """A bound that grows when it is tightened is an error."""
    if new > old:
        raise PrivsolveError(f"the bound of prefix {columns} grew by {new - old:.3g} when opened: please report this")
