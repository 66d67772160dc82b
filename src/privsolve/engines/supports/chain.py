"""The chain of bounds of one support, and the exact draw at its end (theory, section 4).

Every support carries an upper bound on its total weight, relative to `U0`: 1, then the bound after 0, 1 or 2, ...
folds, then the exact sum. An attempt that has proposed a support in proportion to its current bound tightens it step by
step and survives each step with probability new/old, so it ends in the exact sum with probability exact/(sum of the
bounds that the proposal used). Tightened bounds stay.

Numbers. Within a support weights are relative to `exp(-κ·Bayes(S))` and to the prior mass of the support. A scorecard
is *heavy* if `κ·(loss - Bayes(S)) <= CUT`: the products of the fold are then far above the least float and precise. The
light ones are not clipped: the last step of the chain is the envelope `sum + exp(-CUT)`. With the share of the sum a
scorecard is drawn from the fold and kept if heavy; with the share `exp(-CUT)` one is drawn from the prior and kept, if
light, with probability `exp(CUT - κ·(loss - Bayes(S)))`. Both ways it is returned in proportion to its exact weight. A
support whose sum is not well above `exp(-CUT)` is summed once more in logarithms, where nothing is light.

A bound that stands h steps before the exact sum is inflated by `(1 + 1e-9)^h`; a bound that grows is an error.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import helper
from privsolve.engines.rejection import GREW, KEPT, LOST, NEEDS_LOGS
from privsolve.engines.semirings import WEIGHTS
from privsolve.engines.supports.fold import Fold, Grid, evaluate, fix_column, folding_order, load, sketch
from privsolve.engines.supports.instance import CardInstance
from privsolve.noise.coins import Stream, SumTree, Uniforms, choose, choose_log, coin, new_sum_tree, propose

LARGEST_SPREAD = 150.0
"""The prior weights of the cards of one support differ by at most a factor of e to this: their sums stay precise."""


class CardPrior(NamedTuple):
    """The prior of points (by column) and of intercepts, each of sum 1, and the logarithms of their masses."""

    points: Floats
    intercepts: Floats
    log_mass: Floats
    log_mass_intercept: float

    @classmethod
    def of(
        cls, inst: CardInstance, width: int, order: Int64Array, log_weight: ArrayLike, log_weight_intercept: ArrayLike
    ) -> CardPrior:
        """Normalise log weights of `width` columns, taken in this order for the instance; raise for what is too uneven.

        `log_weight[j, i]` is that of the i-th points on column j relative to no points, minus infinity for points that are
        not allowed there. Of the columns in this order, each must have points that are allowed.
        """
        columns, starts = (np.asarray(w, dtype=np.float64) for w in (log_weight, log_weight_intercept))
        wanted = (width, len(inst.points)), (len(inst.intercepts),)
        if (columns.shape, starts.shape) != wanted:
            raise ValueError(
                f"log_weight must have shape {wanted[0]} and log_weight_intercept {wanted[1]}, got {columns.shape} and "
                f"{starts.shape}"
            )
        columns = columns[order]
        never = np.isneginf(columns)
        if not (np.isfinite(columns[~never]).all() and np.isfinite(starts).all()) or never.all(axis=1).any():
            raise ValueError("log weights must be finite, or minus infinity for points that are not allowed")
        mass, mass_intercept = np.asarray(logsumexp(columns, axis=1)), float(logsumexp(starts))
        points, intercepts = columns - mass[:, None], starts - mass_intercept
        least = np.where(never, 0.0, points).min(axis=1, initial=0.0)
        spread = np.sort(-least)[::-1][: inst.max_features].sum() - intercepts.min()
        if spread > LARGEST_SPREAD:
            raise ValueError(
                f"the prior weights of one support differ by more than exp({LARGEST_SPREAD:g}): use a flatter prior, or "
                "smaller points"
            )
        return cls(np.exp(points), np.exp(intercepts), mass, mass_intercept)


CUT = 500.0
SAFE = 400.0
LIGHT = math.exp(-CUT)
INFLATION = math.log1p(1e-9)

# Steps of the chain. A support stands at the last step that its bound has reached.
LISTED, SKETCHED, FOLDED, TOO_LIGHT, EXACT, EXACT_IN_LOGS = range(6)
STEPS = ("listed", "sketched", "folded", "too light", "exact", "exact in logs")
FOLDS = np.array([0, 0, 2])
"""Folds before the bound of a step; the exact sum takes as many as it needs."""


class Law(NamedTuple):
    """The target law: `κ`, and the prior of points and intercepts normalised to sum 1 per column."""

    kappa: float
    weight: Floats
    prior_intercept: Floats


class Current(NamedTuple):
    """The support at hand: columns, cells, and the positions of the chosen points and, last, of the intercept."""

    columns: Int64Array
    cells: Int64Array
    scratch: Int64Array
    chosen: Int64Array


def new_current(inst: CardInstance) -> Current:
    """Room for any support."""
    most = inst.max_features
    cells = np.zeros(1 << most, dtype=np.int64)
    return Current(np.zeros(most, dtype=np.int64), cells, cells.copy(), np.zeros(most + 1, dtype=np.int64))


@helper
def next_bound(law, grid, fold, now, size, step, needed):
    """The step after `step` (which is before EXACT) and the logarithm of its bound; `load` is due before FOLDED."""
    if step == LISTED:
        folds = 0
        value = sketch(WEIGHTS, grid, fold, size, now.cells, -law.kappa, now.columns, law.weight)
    else:
        folds = needed if step == FOLDED else min(FOLDS[step + 1], needed)
        value = evaluate(WEIGHTS, grid, fold, size, np.int64(0), folds)  # a literal would be compiled once more
    if folds < needed:
        return step + 1, math.log(value + LIGHT) + (EXACT - step - 1) * INFLATION
    if value < math.exp(-SAFE):
        return TOO_LIGHT, math.log(value + LIGHT) + INFLATION
    return EXACT, math.log(value + LIGHT)


@helper
def attempt(law, grid, fold, now, size, step, stream, log_bound):
    """One attempt at the support in `now`: down its chain from `step` on, then the draw.

    Returns the outcome, the step reached and the logarithm of the bound there.
    """
    needed = folding_order(now.cells, size, fold)
    loaded = False
    while step < TOO_LIGHT:
        if step > LISTED and not loaded:
            load(WEIGHTS, grid, fold, size, now.cells, -law.kappa, now.columns, law.weight)
            loaded = True
        step, new = next_bound(law, grid, fold, now, size, step, needed)
        if new > log_bound:
            return GREW, step, new
        survives = coin(stream, new - log_bound)
        log_bound = new
        if not survives:
            return LOST, step, log_bound
    if step != EXACT:
        return NEEDS_LOGS, step, log_bound
    if coin(stream, -CUT - log_bound):
        draw_prior(law, now, size, stream)
        excess = law.kappa * excess_loss(grid, now, size)
        kept = excess > CUT and coin(stream, CUT - excess)
    else:
        load(WEIGHTS, grid, fold, size, now.cells, -law.kappa, now.columns, law.weight)
        draw_points(grid, fold, now, size, needed, stream)
        kept = law.kappa * excess_loss(grid, now, size) <= CUT
    return KEPT if kept else LOST, step, log_bound


@helper
def draw_points(grid, fold, now, size, needed, stream):
    """The fold run backwards: a point for each folded column, the intercept, then the columns of the closed form."""
    for depth in range(needed + 1):
        evaluate(WEIGHTS, grid, fold, size, depth, needed)
        if depth == needed:
            now.chosen[size] = choose(stream, fold.terms, grid.n_intercepts)
            break
        p = choose(stream, fold.terms, grid.n_points)
        now.chosen[fold.order[depth]] = p
        fix_column(WEIGHTS, grid, fold, size, depth, grid.points[p])
    for i in range(size - needed):  # no row has two of these, so given the intercept they are independent
        score, weight = now.chosen[size] - grid.most * grid.low, fold.weight[size - 1 - i]
        for p in range(grid.n_points):
            fold.terms[p] = weight[p] * fold.base[1 << i, score + grid.points[p]]
        now.chosen[fold.order[size - 1 - i]] = choose(stream, fold.terms, grid.n_points)


@helper
def draw_prior(law, now, size, stream):
    """Points and intercept from the prior of the support."""
    for i in range(size):
        now.chosen[i] = choose(stream, law.weight[now.columns[i]], law.weight.shape[1])
    now.chosen[size] = choose(stream, law.prior_intercept, len(law.prior_intercept))


@helper
def excess_loss(grid, now, size):
    """`loss - Bayes(S)` of the chosen points, exactly."""
    total = 0
    for c in range(1 << size):
        score = grid.least_intercept + now.chosen[size]
        for i in range(size):
            if c >> i & 1:
                score += grid.points[now.chosen[i]]
        total += regret(now.cells[c], score)
    return total


@helper
def regret(cell, score):
    """What a cell costs at a score, or at many, beyond its least."""
    return (score > 0) * max(cell, 0) + (score <= 0) * max(-cell, 0)


# --- the same in logarithms ------------------------------------------------------------------------
#
# Sums and draws within one support for weights beyond the range of floats. All scorecards of the support are tabulated, so
# this is slow; it is reached only where the best of them is more than `exp(-400)` below the support's bound, which takes a
# large `κ` or very many records. The least excess loss is subtracted in integers first, so that a scorecard's logarithm is
# rounded in proportion to its own distance from the best.


LARGEST_TABLE = 2**22


def log_sum(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...] = ()) -> float:
    """`log` of the support's total weight relative to `U0`, the first columns being fixed to the points `fixed`."""
    if len(fixed) < nested_levels(inst, size):
        return float(logsumexp(_by_next_point(inst, law, now, size, fixed)))
    table, least = _table(inst, law, now, size, fixed)
    return float(logsumexp(table)) - law.kappa * least


def draw_in_logs(inst: CardInstance, law: Law, now: Current, size: int, stream: Stream) -> None:
    """Choose points and intercept of the support: all at once, after the columns that make its table small enough."""
    fixed: tuple[int, ...] = ()
    for _ in range(nested_levels(inst, size)):
        terms = _by_next_point(inst, law, now, size, fixed)
        fixed = (*fixed, int(choose_log(stream, terms - terms.max(), len(terms))))
    table, _ = _table(inst, law, now, size, fixed)
    chosen = np.unravel_index(int(propose(stream, new_sum_tree(table.ravel(), table.size))), table.shape)
    now.chosen[: size + 1] = np.array([*fixed, *chosen])


def nested_levels(inst: CardInstance, size: int) -> int:
    """Columns of a support that are fixed one by one because a table of all its scorecards would be too large."""
    for levels in range(size):
        if len(inst.points) ** (size - levels) * len(inst.intercepts) <= LARGEST_TABLE:
            return levels
    return size


def _by_next_point(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> Floats:
    return np.array([log_sum(inst, law, now, size, (*fixed, p)) for p in range(len(inst.points))])


def _table(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> tuple[Floats, int]:
    """`log` weight of every completion relative to the least excess loss, which is returned too.

    One axis per free column, the intercept last.
    """
    dims = size - len(fixed) + 1
    intercept = _along(inst.intercepts, dims - 1, dims)
    excess: Int64Array = np.zeros((len(inst.points),) * (dims - 1) + (len(inst.intercepts),), dtype=np.int64)
    for c in np.flatnonzero(now.cells[: 1 << size]):
        score = intercept + sum(int(inst.points[p]) for i, p in enumerate(fixed) if c >> i & 1)
        for i in range(len(fixed), size):
            if c >> i & 1:
                score = score + _along(inst.points, i - len(fixed), dims)
        excess += regret(int(now.cells[c]), score)
    prior = _along(np.log(law.prior_intercept), dims - 1, dims)
    for i in range(size):
        with np.errstate(divide="ignore"):  # points that are not allowed have no weight
            column = np.log(law.weight[now.columns[i], : len(inst.points)])
        prior = prior + (column[fixed[i]] if i < len(fixed) else _along(column, i - len(fixed), dims))
    least = int(excess.min())
    return np.asarray(prior - law.kappa * (excess - least), dtype=np.float64), least


def _along(values: NDArray[Any], axis: int, dims: int) -> NDArray[Any]:
    return values.reshape([-1 if i == axis else 1 for i in range(dims)])


# --- what frontiers share --------------------------------------------------------------------------


class Frontier(Protocol):
    """All supports of an instance, each under an upper bound on its weight: the bounds of `tree` add up.

    Guarantee: given everything that happened before, an attempt returns a scorecard with probability `f / Σ U`, where f is
    its exact weight and U are the bounds of the frontier when the attempt begins (theory, section 4). So accepted
    scorecards have the law `f / Z` whatever was tightened before.
    """

    @property
    def reference(self) -> int:
        """The loss that is subtracted before exponentials are taken."""
        ...

    @property
    def tree(self) -> SumTree:
        """The current bounds of the entries."""
        ...

    @property
    def nodes(self) -> int:
        """Prefixes that have a bound beside the supports themselves."""
        ...

    def __len__(self) -> int: ...

    def attempt(self, most: int) -> tuple[int, int]:
        """Up to `most` attempts, to the first that is not lost: its outcome, and the size of the support in `Chain.now`."""
        ...

    def compile(self) -> None:
        """Compile everything that `attempt` uses, before the budget is charged."""
        ...


@dataclass(frozen=True)
class Chain:
    """The law, the fold, the support at hand, uniforms, and counts of attempts and of the steps that were reached."""

    inst: CardInstance
    law: Law
    prior: CardPrior
    grid: Grid
    fold: Fold
    now: Current
    uniforms: Uniforms
    reserve: int
    counts: Int64Array

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the compiled attempts of all frontiers begin with."""
        return self.law, self.grid, self.fold, self.now, self.uniforms.stream, self.counts, self.reserve

    def finish_in_logs(self, size: int, step: int, log_bound: float) -> tuple[int, float]:
        """The end of an attempt whose weights leave the floats: its outcome and the exact bound."""
        survives = True
        if step == TOO_LIGHT:
            exact = log_sum(self.inst, self.law, self.now, size)
            if exact > log_bound:
                return GREW, exact
            survives = coin(self.uniforms.stream, exact - log_bound)
            log_bound = exact
            self.counts[1 + EXACT_IN_LOGS] += 1
        if survives:
            draw_in_logs(self.inst, self.law, self.now, size, self.uniforms.stream)
        return (KEPT if survives else LOST), log_bound
