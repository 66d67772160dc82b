"""Exact draws from the exponential mechanism over sparse scorecards (theory, section 4).

    P(S, v, t)  ∝  Π_{j ∈ S} weight[j, v_j] · weight_t[t] · exp(-κ·loss(S, v, t))

Supports are listed with the bound `U0(S) = (prior mass of S)·exp(-κ·Bayes(S))`. An attempt proposes one in proportion
to its current bound and walks down its chain of bounds (`chain`); whatever was tightened before, the accepted draws are
independent with exactly the target law.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_count
from privsolve.compiled import compiled
from privsolve.engines.card_priors import LARGEST_SPREAD, CardPrior, CardShape
from privsolve.engines.card_rules import Rule, required_first, rule_of
from privsolve.engines.compiling import compile_for, compile_once
from privsolve.engines.helping import helped_with
from privsolve.engines.rejection import (
    GREW,
    KEPT,
    LOST,
    NEEDS_LOGS,
    SPARE_UNIFORMS,
    RejectionSampler,
    SamplingCallback,
    SamplingProgress,
)
from privsolve.engines.semirings import WEIGHTS
from privsolve.engines.supports.bits import turned
from privsolve.engines.supports.blocks import (
    MAX_ROWS,
    BlockFrontier,
    Chosen,
    attempt_in_blocks,
    look_up,
    move,
    put_in_force,
    shape_of,
)
from privsolve.engines.supports.cells import NOT_ALLOWED, cells_of, columns_of, list_supports, sum_over_supports
from privsolve.engines.supports.chain import (
    EXACT,
    EXACT_IN_LOGS,
    INFLATION,
    LISTED,
    STEPS,
    TOO_LIGHT,
    Law,
    attempt,
    new_current,
    next_bound,
    parts_of_attempt,
)
from privsolve.engines.supports.fold import fill_up, folding_order, load, new_fold
from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.lazy import NODE, LazyFrontier, check_shrinks, count_cells, tree_order
from privsolve.engines.supports.logs import draw_in_logs, log_sum, nested_levels
from privsolve.engines.supports.moments import fits
from privsolve.engines.supports.work import estimate
from privsolve.errors import WorkLimitReached
from privsolve.losses import ScoreLoss
from privsolve.noise.coins import SumTree, choose_log, coin, log_total, new_sum_tree, propose, set_weight
from privsolve.noise.entropy import Randomness

if TYPE_CHECKING:
    from privsolve.domains.constrained import ConstrainedPoints

REFILL = 4
"""Uniforms are drawn for so many attempts at their longest."""

FLAT = 100.0
"""Up to this exponent between the best and the worst scorecard one can think of, the law counts as nearly flat."""

OPENING, OPENING_EACH = 2.5e-4, 1.5e-9
"""Seconds that opening a prefix takes, and for each record and column more; equal records are one row, so often less."""

SHORT = 6.0
"""CPU seconds of blocks that may come after the payment."""


class ListedFrontier(NamedTuple):
    """Where every listed support stands: its step, its bound relative to `U0`, and `log U0`."""

    step: Int64Array
    log_bound: Floats
    log_top: Floats


@compiled
def _attempt_until_kept(law, grid, listing, frontier, tree, stream, fold, now, counts, attempts, reserve):
    """Attempts until one is not lost, or uniforms run low: returns the last outcome, the support and its size."""
    for _ in range(attempts):
        if len(stream.uniforms) - stream.used[0] < reserve:
            break
        counts[0] += 1
        support = propose(stream, tree)
        size = columns_of(listing, support, now.columns)
        cells_of(listing, now.columns, size, now.scratch, now.cells)
        before = frontier.step[support]
        outcome, step, log_bound = attempt(law, grid, fold, now, size, before, stream, frontier.log_bound[support])
        # the attempt used the bounds of the proposal to its end; only now is the tree refreshed
        if step != before:
            counts[1 + step] += 1
            frontier.step[support], frontier.log_bound[support] = step, log_bound
            set_weight(tree, support, frontier.log_top[support] + log_bound)
        if outcome != LOST:
            return outcome, support, size
    return LOST, 0, 0


@compiled
def _log_bound_of(law, grid, listing, fold, now, support, last):
    """Size of one support, and the step and `log` of its bound at step `last` of its chain or at its end."""
    size = columns_of(listing, support, now.columns)
    cells_of(listing, now.columns, size, now.scratch, now.cells)
    needed = folding_order(grid.costs, now.cells, size, fold)
    load(WEIGHTS, grid, fold, size, now.cells, -law.kappa, now.columns, law.weight)
    step, log_bound = LISTED, (EXACT - LISTED) * INFLATION
    while step < last and step < TOO_LIGHT:
        step, log_bound = next_bound(law, grid, fold, now, size, step, needed)
    return size, step, log_bound


class SupportSampler(RejectionSampler):
    """Independent exact draws of sparse scorecards from the exponential mechanism.

    `rows` are distinct 0/1 rows, `positives` and `negatives` the records of each. A scorecard has points from `points` on
    at most `max_features` columns and an intercept from `intercepts`; a record's score is the sum of those it has, and
    `loss` what it loses there. `log_weight[j, i]` is the log of the prior weight of
    `points[i]` on column j relative to no points, minus infinity where it is not allowed, `log_weight_intercept` that of the
    intercepts. `kappa` is `κ = ε/Δ`. With `constraints` only the supports that they permit have weight (theory, section 16).

    Up to `max_listed` supports are listed one by one, beyond that in blocks of up to `max_rows` rows (twelve bytes each; a
    row holds the supports that differ in their last column), and where even those are too many the tree is opened lazily.
    Where the number of `records` is public and says that the law is nearly flat, the tree is tried before blocks are made.
    The frontier has up to `max_supports` entries (about a hundred bytes each). `max_attempts` caps the attempts of all
    draws. Limits are checked between attempts only; reaching one raises `WorkLimitReached` and returns nothing.

    Guarantee: `P(S, v, t)` as above up to a relative error of `relative_error` per scorecard, which adds at most four
    times as much to ε (theory, section 4), for data of at most `2^40` total cost, if `rng` is the operating system's.
    Running time and failures depend on the data and are not covered (theory, section 7).
    """

    def __init__(
        self,
        rows: ArrayLike,
        positives: ArrayLike,
        negatives: ArrayLike,
        loss: ScoreLoss,
        max_features: int,
        points: ArrayLike,
        intercepts: ArrayLike,
        log_weight: ArrayLike,
        log_weight_intercept: ArrayLike,
        kappa: float,
        rng: Randomness,
        max_attempts: int = 10_000_000,
        max_supports: int = 4_000_000,
        max_listed: int = 1_000_000,
        max_rows: int = MAX_ROWS,
        progress: SamplingCallback | None = None,
        constraints: ConstrainedPoints | None = None,
        records: int | None = None,
    ) -> None:
        table, weights = np.asarray(rows), np.asarray(log_weight, dtype=np.float64)
        self._width = table.shape[1] if table.ndim == 2 else 0
        usable = _usable(table, weights, constraints)
        if usable is not None:
            table = table[:, usable]
        self.instance = inst = CardInstance.of(table, positives, negatives, loss, max_features, points, intercepts)
        if not (math.isfinite(kappa) and kappa >= 0):
            raise ValueError(f"kappa must be finite and not negative, got {kappa}")
        max_supports = check_count("max_supports", max_supports)
        self._max_supports = max_supports
        path = _path(inst, min(max_listed, max_supports), max_rows)
        # the most uniforms that one attempt can use: a choice among n takes up to n - 1
        choices = inst.max_features * (inst.n_columns + 2 * len(inst.points)) + 2 * len(inst.intercepts)
        reserve = choices + SPARE_UNIFORMS
        super().__init__(rng, reserve, REFILL * reserve, max_attempts, progress)
        order = _column_order(inst, path)
        self._rule: Rule | None = None
        if constraints is not None:
            assert usable is not None
            order = required_first(rule_of(constraints, usable, inst.max_features), order)
            self._rule = rule_of(constraints, usable[order], inst.max_features)
        if path != "listed" or constraints is not None:
            inst = self.instance = replace(inst, rows=np.ascontiguousarray(inst.rows[:, order]))
        self._order = order if usable is None else usable[order]
        cards = CardShape(self._width, len(inst.points), len(inst.intercepts), inst.max_features)
        prior = CardPrior.of(weights, log_weight_intercept, cards, self._order)
        self._law = Law(float(kappa), fill_up(prior.points, 0.0), prior.intercepts)
        self._log_mass, self._log_mass_intercept = prior.log_mass, prior.log_mass_intercept
        self._grid, self._fold = new_fold(inst, self._law.prior_intercept)
        self._now = new_current(inst)
        self._counts, self._size = np.zeros(1 + len(STEPS), dtype=np.int64), 0
        helped_with(parts_of_attempt(self._law, self._grid, self._fold, self._now, self._uniforms.stream))
        self._lazy: LazyFrontier | None = None
        self._blocks: BlockFrontier | None = None
        self._trial = 0
        if path == "blocks":
            self._trial = _trial(inst, self._law.kappa, loss.largest, records)
        if path == "lazy" or self._trial:
            self._lazy = LazyFrontier(
                inst, self._law.kappa, self._log_mass, self._log_mass_intercept, max_supports, self._rule
            )
            self.reference = self._lazy.reference
        elif path == "blocks":
            self._blocks = self._in_blocks(inst, self._report_listing)
            self.reference = self._blocks.reference
        else:
            self._list()
        compile_once((SupportSampler, type(inst.costs), path, self._trial > 0), self._compile)

    def _in_blocks(self, inst: CardInstance, progress: Callable[[int], None] | None = None) -> BlockFrontier:
        rule = self._rule if inst is self.instance else None
        mass = self._log_mass[: inst.n_columns]
        return BlockFrontier(inst, turned(inst), self._law.kappa, mass, self._log_mass_intercept, progress, rule)

    def _compile(self) -> None:
        """Everything that `draw` runs, so that whoever has paid does not wait for the compiler."""
        stream, law, blocks = self._uniforms.stream, self._law, self._blocks
        if self._trial:  # what comes after the trial, on so few columns that it takes no time
            few = np.ascontiguousarray(self.instance.rows[:, : self.instance.max_features])
            blocks = self._in_blocks(replace(self.instance, rows=few))
        tree = self._frontier_tree
        compile_for(coin, stream, 0.0)
        compile_for(choose_log, stream, np.zeros(1), 1)
        compile_for(propose, stream, tree)
        compile_for(log_total, tree)
        compile_for(set_weight, tree, 0, 0.0)
        if self._lazy:
            self._lazy.compile()
            compile_for(attempt, law, self._grid, self._fold, self._now, 0, 0, stream, 0.0)
        if blocks:
            chosen = Chosen(0, 0, 0, 0, 0, 0)
            compile_for(
                attempt_in_blocks, law, self._grid, blocks.supports, blocks.target, blocks.sums, blocks.tightened, tree,
                stream, self._fold, self._now, self._counts, 0, 0,
            )  # fmt: skip
            compile_for(look_up, blocks.tightened, 0)
            compile_for(move, blocks.tightened, blocks.tightened)
            compile_for(put_in_force, blocks.supports, blocks.sums, blocks.tightened, tree, 0, chosen, 0, 0.0)
        if not self._lazy and not blocks:
            compile_for(
                _attempt_until_kept, law, self._grid, self._listing, self._frontier, tree, stream, self._fold, self._now,
                self._counts, 0, 0,
            )  # fmt: skip

    def _list(self) -> None:
        """List all supports with their first bounds."""
        inst, kappa = self.instance, self._law.kappa
        self._listing = list_supports(inst, self._rule)
        self.reference = int(self._listing.bayes.min())
        log_top = sum_over_supports(inst, self._listing, self._log_mass) + self._log_mass_intercept
        log_top -= kappa * (self._listing.bayes - self.reference)
        if self._rule:
            log_top[self._listing.bayes == NOT_ALLOWED] = -np.inf
        n, first = inst.n_supports, (EXACT - LISTED) * INFLATION
        self._frontier = ListedFrontier(np.full(n, LISTED), np.full(n, first), log_top)
        self._tree = new_sum_tree(log_top + first, n)

    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every scorecard's probability, from public numbers only.

        `largest_difference` bounds every loss, and so what two of them differ by. The count is that of "Rounding" in
        `docs/theory/supports.md`: few roundings are in proportion to a logarithm as large as `κ·largest_difference`,
        all others to one that the cut and the prior keep small.
        """
        inst, most = self.instance, self.instance.max_features
        small = LARGEST_SPREAD + float(np.abs(self._log_mass).sum()) + abs(self._log_mass_intercept)
        small += 1000.0 + inst.n_columns
        operations = (1 << most) + most * len(inst.points) + len(inst.intercepts) + 64
        in_large_logs = 13 + 2 * nested_levels(inst, most) + (2 + 3 * most if self._lazy or self._blocks else 0)
        large = self._law.kappa * largest_difference + small
        return 2.0**-52 * operations * small + 2.0**-53 * in_large_logs * large

    def draw(self, size: int) -> Int64Array:
        """`size` independent scorecards as rows: the points of every column, then the intercept."""
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        result = np.zeros((size, self._width + 1), dtype=np.int64)
        for scorecard in result:
            scorecard[:] = self._until_kept(self.drawn)
        return result

    def drawn(self) -> Int64Array:
        """The scorecard of the attempt that was kept last."""
        inst, now = self.instance, self._now
        scorecard = np.zeros(self._width + 1, dtype=np.int64)
        scorecard[self._order[now.columns[: self._size]]] = inst.points[now.chosen[: self._size]]
        scorecard[-1] = inst.intercepts[now.chosen[self._size]]
        return scorecard

    def _attempt(self, most: int) -> tuple[int, int]:
        before = int(self._counts[0])
        if self._lazy and 0 < self._trial <= self._lazy.opened:  # the law of an attempt is the same on any frontier
            self._lazy, self._blocks = None, self._in_blocks(self.instance, self._report_listing)
        if self._lazy:
            outcome, self._size = self._attempt_lazily()
        else:
            outcome, self._size = self._attempt_in_blocks(most) if self._blocks else self._attempt_listed(most)
        return outcome, int(self._counts[0]) - before

    def _frontier_size(self) -> int:
        frontier = self._lazy or self._blocks
        return len(frontier) if frontier else self.instance.n_supports

    @property
    def _frontier_tree(self) -> SumTree:
        frontier = self._lazy or self._blocks
        return frontier.tree if frontier else self._tree

    def _report_listing(self, done: int) -> None:
        if self._progress is not None:
            self._progress(SamplingProgress(0, done, time.monotonic() - self._start))

    def _engine_statistics(self) -> dict[str, Any]:
        opened = {name: int(n) for name, n in zip(STEPS[1:], self._counts[2:], strict=True)}
        nodes = self._lazy.opened if self._lazy else len(self._blocks.sums.block) if self._blocks else 0
        return {"nodes": nodes, "log_frontier": self.log_bound(), "opened": opened}

    def _attempt_listed(self, attempts: int) -> tuple[int, int]:
        """Attempts over the listing until one is kept or the uniforms run low: its outcome and the support's size."""
        outcome, support, size = _attempt_until_kept(
            self._law, self._grid, self._listing, self._frontier, self._tree, self._uniforms.stream, self._fold, self._now,
            self._counts, attempts, self._reserve,
        )  # fmt: skip
        if outcome == NEEDS_LOGS:
            frontier = self._frontier
            step, log_bound = int(frontier.step[support]), float(frontier.log_bound[support])
            outcome, log_bound = self._finish_in_logs(size, step, log_bound)
            frontier.step[support], frontier.log_bound[support] = EXACT_IN_LOGS, log_bound
            set_weight(self._tree, support, frontier.log_top[support] + log_bound)
        return outcome, size

    def _attempt_in_blocks(self, attempts: int) -> tuple[int, int]:
        """Attempts over the blocks until one is kept or something runs low: its outcome and the support's size."""
        blocks = self._blocks
        assert blocks is not None
        blocks.make_room()
        if len(blocks) + self.instance.max_features * self.instance.n_columns > self._max_supports:
            raise WorkLimitReached(
                f"the frontier over supports has grown to max_supports = {self._max_supports:,} entries: nothing was "
                "released; raise max_supports or lower max_features"
            )
        outcome, entry, chosen = attempt_in_blocks(
            self._law, self._grid, blocks.supports, blocks.target, blocks.sums, blocks.tightened, blocks.tree,
            self._uniforms.stream, self._fold, self._now, self._counts, attempts, self._reserve,
        )  # fmt: skip
        if outcome == NEEDS_LOGS:
            step, log_bound = look_up(blocks.tightened, chosen.key)
            outcome, log_bound = self._finish_in_logs(chosen.size, int(step), float(log_bound))
            put_in_force(
                blocks.supports,
                blocks.sums,
                blocks.tightened,
                blocks.tree,
                entry,
                Chosen(*chosen),
                EXACT_IN_LOGS,
                log_bound,
            )
        return outcome, chosen.size

    def _finish_in_logs(self, size: int, step: int, log_bound: float) -> tuple[int, float]:
        """The end of an attempt whose weights leave the floats: its outcome and the exact bound."""
        survives = True
        if step == TOO_LIGHT:
            exact = log_sum(self.instance, self._law, self._now, size)
            if exact > log_bound:
                return GREW, exact
            survives = coin(self._uniforms.stream, exact - log_bound)
            log_bound = exact
            self._counts[1 + EXACT_IN_LOGS] += 1
        if survives:
            draw_in_logs(self.instance, self._law, self._now, size, self._uniforms.stream)
        return (KEPT if survives else LOST), log_bound

    def _attempt_lazily(self) -> tuple[int, int]:
        """One attempt over the lazy tree: open prefixes down to a support, then its chain; commit all at the end."""
        lazy = self._lazy
        assert lazy is not None
        lazy.check_room()
        self._counts[0] += 1
        entry = int(propose(self._uniforms.stream, lazy.tree))
        columns, step, log_bound = lazy.columns[entry], int(lazy.step[entry]), float(lazy.log_bound[entry])
        parent, path = lazy.parent(entry), []
        outcome = KEPT
        while step == NODE and outcome == KEPT:
            opened = lazy.open(columns, parent)
            total = float(logsumexp(opened.log_parts))  # shifting by it keeps the choice's own rounding small
            check_shrinks(total, log_bound, columns)
            part = int(choose_log(self._uniforms.stream, opened.log_parts - total, len(opened.log_parts)))
            outcome = KEPT if coin(self._uniforms.stream, total - log_bound) else LOST
            path.append((opened, part))
            parent, log_bound = opened.caps, float(opened.log_parts[part])
            if part == 0 or len(columns) + 1 == self.instance.max_features:
                step, log_bound = LISTED, (EXACT - LISTED) * INFLATION
            if part > 0:
                columns = (*columns, int(opened.later[part - 1]))
        size = len(columns)
        if outcome == KEPT:
            self._now.columns[:size] = columns
            count_cells(lazy.table, self._now.columns, size, self._now.cells)
            outcome, step, log_bound = attempt(
                self._law, self._grid, self._fold, self._now, size, step, self._uniforms.stream, log_bound
            )
            self._counts[1 + min(step, EXACT)] += 1
            if outcome == NEEDS_LOGS:
                outcome, log_bound = self._finish_in_logs(size, step, log_bound)
                step = EXACT_IN_LOGS
        for opened, part in path:  # the bounds used above stay in force to the end of the attempt
            first = lazy.commit(entry, opened)
            entry = entry if part == 0 else first + part - 1
        if step > LISTED:
            lazy.tighten(entry, step, log_bound)
        return outcome, size

    def log_bounds(self, step: int = EXACT) -> Floats:
        """`log` of the bound of every support at a step of the chain (`chain.STEPS`), for small problems and tests."""
        if self._lazy or self._blocks:
            raise ValueError("the supports are not listed: raise max_supports")
        return np.array([self._log_bound(support, step) for support in range(self.instance.n_supports)])

    def _log_bound(self, support: int, step: int) -> float:
        if self._frontier.log_top[support] == -np.inf:
            return -np.inf
        size, reached, log_bound = _log_bound_of(
            self._law, self._grid, self._listing, self._fold, self._now, support, step
        )
        if reached == TOO_LIGHT and step >= EXACT:
            log_bound = log_sum(self.instance, self._law, self._now, size)
        return float(self._frontier.log_top[support] + log_bound)

    def log_partition(self) -> float:
        """`log Σ weight·exp(-κ·(loss - reference))` over all scorecards, exactly. For small problems and tests."""
        return float(logsumexp(self.log_bounds()))

    def log_bound(self) -> float:
        """`log` of the sum of the current bounds: `log_partition() - log_bound()` is the log of the acceptance rate."""
        return float(log_total(self._frontier_tree))


def _usable(rows: Int64Array, log_weight: Floats, constraints: ConstrainedPoints | None) -> Int64Array | None:
    """The columns that may have points; None for all, where nothing is stated."""
    if constraints is None or rows.ndim != 2 or len(log_weight) != rows.shape[1]:
        return None  # wrong shapes are refused in the usual words
    if constraints.columns != rows.shape[1]:
        raise ValueError(f"constraints are on {constraints.columns} columns, but rows has {rows.shape[1]}")
    return np.array(constraints.usable, dtype=np.int64)


def _path(inst: CardInstance, max_listed: int, max_rows: int) -> Literal["listed", "blocks", "lazy"]:
    """How the supports are gone through; all ways lead to the same law."""
    if inst.max_features == 0 or inst.n_supports <= max_listed:
        return "listed"
    few = inst.max_features > 1 and shape_of(inst.n_columns, inst.max_features).rows <= max_rows
    return "blocks" if few and fits(inst) else "lazy"


def _column_order(inst: CardInstance, path: str) -> Int64Array:
    """The order of the columns that makes a path short."""
    return np.arange(inst.n_columns) if path == "listed" else tree_order(inst)


def _trial(inst: CardInstance, kappa: float, largest: int, records: int | None) -> int:
    """How many prefixes of the lazy tree are opened before blocks are made, from public numbers: none if n is not public.

    Where all losses weigh about the same few prefixes are enough, and blocks go through all supports. The trial takes half
    of what they are estimated to take, at most, and is left out where they take long: that should come before the payment.
    """
    if records is None or kappa * records * largest > FLAT:
        return 0
    seconds = estimate(inst.n_columns, inst.max_features, records, cores=1)
    return int(seconds / 2 / (OPENING + OPENING_EACH * records * inst.n_columns)) if seconds <= SHORT else 0
