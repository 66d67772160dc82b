"""Few supports, listed one by one: a frontier with a bound for each (theory, section 4)."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compile_for, compiled
from privsolve.engines.card_rules import Rule
from privsolve.engines.rejection import LOST, NEEDS_LOGS
from privsolve.engines.semirings import WEIGHTS
from privsolve.engines.supports.cells import (
    NOT_ALLOWED,
    cells_of,
    columns_of,
    leave_out,
    list_supports,
    sum_over_supports,
)
from privsolve.engines.supports.chain import (
    EXACT,
    EXACT_IN_LOGS,
    INFLATION,
    LISTED,
    TOO_LIGHT,
    Chain,
    attempt,
    log_sum,
    next_bound,
)
from privsolve.engines.supports.fold import folding_order, load
from privsolve.noise.coins import SumTree, new_sum_tree, propose, set_weight


class Bounds(NamedTuple):
    """Where every listed support stands: its step, its bound relative to `U0`, and `log U0`."""

    step: Int64Array
    log_bound: Floats
    log_top: Floats


class ListedFrontier:
    """Every support with its first bound `U0(S) = (prior mass of S)·exp(-κ·Bayes(S))`, and what it was tightened to."""

    def __init__(self, chain: Chain, rule: Rule | None) -> None:
        inst, prior = chain.inst, chain.prior
        self._chain = chain
        self._listing = list_supports(inst)
        if rule:
            leave_out(rule, self._listing, chain.now.columns)
        self.reference = int(self._listing.bayes.min())
        log_top = sum_over_supports(inst, self._listing, prior.log_mass) + prior.log_mass_intercept
        log_top -= chain.law.kappa * (self._listing.bayes - self.reference)
        log_top[self._listing.bayes == NOT_ALLOWED] = -np.inf
        n, first = inst.n_supports, (EXACT - LISTED) * INFLATION
        self._bounds = Bounds(np.full(n, LISTED), np.full(n, first), log_top)
        self.tree: SumTree = new_sum_tree(log_top + first, n)
        self.nodes = 0

    def __len__(self) -> int:
        return len(self._bounds.step)

    def attempt(self, most: int) -> tuple[int, int]:
        """Attempts until one is kept or the uniforms run low: its outcome and the size of its support."""
        chain, bounds = self._chain, self._bounds
        outcome, support, size = _attempt_until_kept(*self._arguments(most))
        if outcome == NEEDS_LOGS:
            step, log_bound = int(bounds.step[support]), float(bounds.log_bound[support])
            outcome, log_bound = chain.finish_in_logs(size, step, log_bound)
            bounds.step[support], bounds.log_bound[support] = EXACT_IN_LOGS, log_bound
            set_weight(self.tree, support, bounds.log_top[support] + log_bound)
        return outcome, size

    def compile(self) -> None:
        """Compile what `attempt` uses, without running it."""
        compile_for(_attempt_until_kept, *self._arguments(0))

    def _arguments(self, most: int) -> tuple[Any, ...]:
        return (*self._chain.arguments, self._listing, self._bounds, self.tree, most)

    def log_bound(self, support: int, step: int = EXACT) -> float:
        """`log` of the bound of a support at a step of its chain (`chain.STEPS`): for small problems and tests."""
        top, chain = self._bounds.log_top[support], self._chain
        if top == -np.inf:
            return -np.inf
        size, reached, log_bound = _log_bound_of(
            chain.law, chain.grid, self._listing, chain.fold, chain.now, support, step
        )
        if reached == TOO_LIGHT and step >= EXACT:
            log_bound = log_sum(chain.inst, chain.law, chain.now, size)
        return float(top + log_bound)


@compiled
def _attempt_until_kept(law, grid, fold, now, stream, counts, reserve, listing, bounds, tree, attempts):
    """Attempts until one is not lost, or uniforms run low: returns the last outcome, the support and its size."""
    for _ in range(attempts):
        if len(stream.uniforms) - stream.used[0] < reserve:
            break
        counts[0] += 1
        support = propose(stream, tree)
        size = columns_of(listing, support, now.columns)
        cells_of(listing, now.columns, size, now.scratch, now.cells)
        before = bounds.step[support]
        outcome, step, log_bound = attempt(law, grid, fold, now, size, before, stream, bounds.log_bound[support])
        # the attempt used the bounds of the proposal to its end; only now is the tree refreshed
        if step != before:
            counts[1 + step] += 1
            bounds.step[support], bounds.log_bound[support] = step, log_bound
            set_weight(tree, support, bounds.log_top[support] + log_bound)
        if outcome != LOST:
            return outcome, support, size
    return LOST, 0, 0


@compiled
def _log_bound_of(law, grid, listing, fold, now, support, last):
    """Size of one support, and the step and `log` of its bound at step `last` of its chain or at its end."""
    size = columns_of(listing, support, now.columns)
    cells_of(listing, now.columns, size, now.scratch, now.cells)
    needed = folding_order(now.cells, size, fold)
    load(WEIGHTS, grid, fold, size, now.cells, -law.kappa, now.columns, law.weight)
    step, log_bound = LISTED, (EXACT - LISTED) * INFLATION
    while step < last and step < TOO_LIGHT:
        step, log_bound = next_bound(law, grid, fold, now, size, step, needed)
    return size, step, log_bound
