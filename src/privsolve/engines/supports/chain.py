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
from typing import NamedTuple

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import helper
from privsolve.engines.rejection import GREW, KEPT, LOST, NEEDS_LOGS
from privsolve.engines.semirings import WEIGHTS
from privsolve.engines.supports.costs import regret
from privsolve.engines.supports.fold import evaluate, fix_column, folding_order, load, sketch
from privsolve.engines.supports.instance import CardInstance
from privsolve.noise.coins import choose, coin

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
    needed = folding_order(grid.costs, now.cells, size, fold)
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
        total += regret(grid.costs, now.cells[c], score)
    return total
