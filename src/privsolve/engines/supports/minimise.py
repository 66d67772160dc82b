"""The certified best scorecard: the supports-first tree in (min, +).

No scorecard of a support costs less than `Bayes(S)` plus the least perturbation of its columns. Supports are listed
with that bound, the most promising one is solved to have a first solution, and then only supports whose bound beats it
are opened, step by step along the same chain of bounds that the sampler uses (`fold`). All numbers are exact integers in
units of `2^-20` (theory, section 6).

*Ties* go to the first scorecard in a fixed order that does not depend on the data: the smaller support, then the
support whose sorted columns come first lexicographically, then the points column by column in the order of `points`,
then the intercept in the order of `intercepts`.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled
from privsolve.engines.semirings import COSTS, INFINITE_COST
from privsolve.engines.supports.cells import cells_of, columns_of, list_supports, sum_over_supports
from privsolve.engines.supports.chain import Current, new_current
from privsolve.engines.supports.fold import (
    Fold,
    Grid,
    evaluate,
    fill_up,
    fix_column,
    folding_order,
    load,
    new_fold,
    sketch,
)
from privsolve.engines.supports.instance import CardInstance, sum_of_least
from privsolve.errors import IntegerRangeError, WorkLimitReached
from privsolve.losses import ZeroOneLoss
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT_BITS

SCALE = np.int64(1 << UNIT_BITS)
MAX_SUPPORTS = 30_000_000
"""Each takes about 30 bytes."""

FOLDS = 2
"""Folds of the bound between the sketch and the exact value."""


@dataclass(frozen=True)
class MinimiserWork:
    """Supports listed, and how many were sketched, folded and solved; data-dependent, for the curator only."""

    supports: int
    sketched: int
    folded: int
    solved: int
    seconds: float


@dataclass(frozen=True)
class Minimum:
    """The first best scorecard (points, intercept last), its exact objective in units of `2^-20`, and the work."""

    weights: Int64Array
    value: int
    work: MinimiserWork


@compiled
def _sketch_all(grid, listing, fold, now, weight, supports, lower):
    """Tighten `lower` of each listed support to the bound without folds, which is relative to `Bayes(S)`."""
    for k in range(len(supports)):
        size = columns_of(listing, supports[k], now.columns)
        cells_of(listing, now.columns, size, now.scratch, now.cells)
        folding_order(now.cells, size, fold)
        value = sketch(COSTS, grid, fold, size, now.cells, SCALE, now.columns, weight)
        lower[k] = max(lower[k], (listing.bayes[supports[k]] << UNIT_BITS) + value)


@compiled
def _folding_order(cells, size, fold):
    return folding_order(cells, size, fold)


@compiled
def _load(grid, fold, size, cells, columns, weight):
    load(COSTS, grid, fold, size, cells, SCALE, columns, weight)


@compiled
def _evaluate(grid, fold, size, depth, folds):
    return evaluate(COSTS, grid, fold, size, depth, folds)


@compiled
def _fix_column(grid, fold, size, depth, points):
    fix_column(COSTS, grid, fold, size, depth, points)


class _Solver:
    """Opens listed supports one at a time and keeps the best; values leave out the constant of all columns without points."""

    def __init__(self, inst: CardInstance, weight: Int64Array, weight_intercept: Int64Array) -> None:
        self.inst, self.listing = inst, list_supports(inst)
        self.weight = fill_up(weight, INFINITE_COST)
        self.grid: Grid
        self.fold: Fold
        self.grid, self.fold = new_fold(inst, weight_intercept)
        self.now: Current = new_current(inst)
        self.best, self.best_support = INFINITE_COST, inst.n_supports
        self.folded = self.solved = 0

    def beats(self, lower: int, support: int) -> bool:
        """Whether a support with this bound may hold a scorecard before the best one: supports are listed in that order."""
        return (lower, support) < (self.best, self.best_support)

    def open(self, support: int) -> None:
        """Fold the support as far as its bound still beats the best, and keep its value if it does to the end."""
        size = self._load(support)
        base = (self.inst.base + int(sum_of_least(self.now.cells[: 1 << size]))) << UNIT_BITS
        needed = int(_folding_order(self.now.cells, size, self.fold))
        self._load_fold(size)
        if needed > FOLDS:
            self.folded += 1
            if not self.beats(base + int(_evaluate(self.grid, self.fold, size, 0, FOLDS)), support):
                return
        self.solved += 1
        value = base + int(_evaluate(self.grid, self.fold, size, 0, needed))
        if self.beats(value, support):
            self.best, self.best_support = value, support

    def trace(self) -> Int64Array:
        """The first best scorecard of the best support: column by column, the first point that attains the value."""
        size, inst = self._load(self.best_support), self.inst
        self.fold.order[:size] = np.arange(size)
        self._load_fold(size)
        weights = np.zeros(inst.n_columns + 1, dtype=np.int64)
        for depth in range(size + 1):
            _evaluate(self.grid, self.fold, size, depth, size)
            terms = self.fold.terms[: len(inst.intercepts) if depth == size else len(inst.points)]
            first = int(np.argmin(terms))
            if depth == size:
                weights[-1] = inst.intercepts[first]
            else:
                weights[self.now.columns[depth]] = inst.points[first]
                _fix_column(self.grid, self.fold, size, depth, int(inst.points[first]))
        return weights

    def _load(self, support: int) -> int:
        """Columns and cells of a support into `now`; returns how many columns."""
        size = int(columns_of(self.listing, support, self.now.columns))
        cells_of(self.listing, self.now.columns, size, self.now.scratch, self.now.cells)
        return size

    def _load_fold(self, size: int) -> None:
        _load(self.grid, self.fold, size, self.now.cells, self.now.columns, self.weight)


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


def minimise_supports(
    rows: ArrayLike,
    positives: ArrayLike,
    negatives: ArrayLike,
    loss: ZeroOneLoss,
    max_features: int,
    points: ArrayLike,
    intercepts: ArrayLike,
    table: ArrayLike,
    table_intercept: ArrayLike,
    table_zero: ArrayLike,
    max_supports: int = MAX_SUPPORTS,
    node_limit: int | None = None,
    time_limit: float | None = None,
) -> Minimum:
    """The scorecard of least `loss·2^20 + perturbation`, certified; the first of a fixed order if several are best.

    `table[j, i]` is the perturbation, in units of `2^-20`, of `points[i]` on column j, `table_zero[j]` that of no
    points, and `table_intercept` that of the intercepts. More than `max_supports` supports raise `WorkLimitReached`, and so do
    more than `node_limit` supports that must be sketched or solved, and more than `time_limit` seconds.
    """
    start = time.perf_counter()
    inst = CardInstance.of(rows, positives, negatives, loss, max_features, points, intercepts)
    weight, weight_intercept, constant = _tables(inst, table, table_intercept, table_zero)
    if inst.n_supports > max_supports:
        raise WorkLimitReached(
            f"{inst.n_supports:,} supports are more than max_supports = {max_supports:,}: nothing was released; "
            "raise max_supports or lower max_features"
        )
    limits = Limits(node_limit, time_limit)
    solver = _Solver(inst, weight, weight_intercept)
    lower = sum_over_supports(inst, solver.listing, weight.min(axis=1, initial=INFINITE_COST)) + weight_intercept.min()
    lower += solver.listing.bayes << UNIT_BITS
    solver.open(int(np.argmin(lower)))
    supports = np.flatnonzero(lower <= solver.best)
    sharper = lower[supports]
    limits.check(len(supports))
    _sketch_all(solver.grid, solver.listing, solver.fold, solver.now, solver.weight, supports, sharper)
    for k in np.lexsort((supports, sharper)):
        if sharper[k] > solver.best:
            break
        if solver.beats(int(sharper[k]), int(supports[k])):
            limits.check(solver.solved)
            solver.open(int(supports[k]))
    seconds = time.perf_counter() - start
    work = MinimiserWork(inst.n_supports, len(supports), solver.folded, solver.solved, seconds)
    return Minimum(solver.trace(), solver.best + constant, work)


@cache
def compile_minimiser() -> None:
    """Solve a toy, which compiles everything that any problem needs."""
    rows = [[0, 0], [0, 1], [1, 0], [1, 1]]  # the best has both columns
    arrays = rows, [0, 0, 0, 9], [9, 9, 9, 0], ZeroOneLoss(), 2, [-1, 1], [-1, 0], [[0, 0]] * 2, [0, 0], [0, 0]
    minimise_supports(*arrays)


def _tables(
    inst: CardInstance, table: ArrayLike, table_intercept: ArrayLike, table_zero: ArrayLike
) -> tuple[Int64Array, Int64Array, int]:
    """Perturbation of points relative to no points, of intercepts, and the constant of no points anywhere."""
    columns, zero, starts = (_integers(values) for values in (table, table_zero, table_intercept))
    shapes = (inst.n_columns, len(inst.points)), (inst.n_columns,), (len(inst.intercepts),)
    if (columns.shape, zero.shape, starts.shape) != shapes:
        raise ValueError(
            f"table, table_zero and table_intercept must have shapes {', '.join(map(str, shapes))}, "
            f"got {columns.shape}, {zero.shape} and {starts.shape}"
        )
    largest = sum(int(np.abs(values.astype(object)).max(initial=0)) * len(values) for values in (columns, zero))
    largest += int(np.abs(starts.astype(object)).max(initial=0)) + (inst.largest_loss << UNIT_BITS)
    if largest >= OBJECTIVE_LIMIT:
        raise IntegerRangeError("loss and perturbation leave the exact integer range: the noise scale is too large")
    return columns - zero[:, None], starts, int(zero.sum())


def _integers(values: ArrayLike) -> Int64Array:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError("perturbation tables must hold integers in units of 2^-20: round them first")
    return array.astype(np.int64)
