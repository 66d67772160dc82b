"""Exact draws from the exponential mechanism over sparse scorecards (theory, section 4).

    P(S, v, t)  ∝  Π_{j ∈ S} weight[j, v_j] · weight_t[t] · exp(-κ·loss(S, v, t))

Every support has an upper bound on its weight. An attempt proposes one in proportion to its current bound and walks down its
chain of bounds (`chain`); whatever was tightened before, the accepted draws are independent with exactly the target law. Few
supports are listed one by one (`listed`), many are gone through in blocks (`blocks`): both are a `Frontier`.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_count
from privsolve.compiled import compile_for
from privsolve.engines.card_rules import Rule, rule_of
from privsolve.engines.rejection import SPARE_UNIFORMS, RejectionSampler, SamplingCallback, SamplingProgress
from privsolve.engines.supports.block_sums import MAX_ROWS, shape_of
from privsolve.engines.supports.blocks import BlockFrontier
from privsolve.engines.supports.chain import (
    EXACT,
    LARGEST_SPREAD,
    STEPS,
    CardPrior,
    Chain,
    Frontier,
    Law,
    nested_levels,
    new_current,
)
from privsolve.engines.supports.fold import fill_up, new_fold
from privsolve.engines.supports.instance import CardInstance, heaviest_first
from privsolve.engines.supports.listed import ListedFrontier
from privsolve.errors import WorkLimitReached
from privsolve.losses import ZeroOneLoss
from privsolve.noise.coins import choose_log, coin, log_total, propose, set_weight
from privsolve.noise.entropy import Randomness

if TYPE_CHECKING:
    from privsolve.domains.scorecards import ConstrainedPoints

REFILL = 4
"""Uniforms are drawn for so many attempts at their longest."""

IN_BLOCKS = 8
"""Roundings of large logarithms that blocks have beyond those of listed supports (theory, supports: "Blocks")."""

MAX_LISTED = 1_000_000
"""Supports that are listed one by one; more are gone through in blocks."""


_READY: set[tuple[bool, bool]] = set()
"""In blocks or listed, wide or not: what is compiled already. Asking numba takes milliseconds, as long as a small draw."""


class SupportSampler(RejectionSampler):
    """Independent exact draws of sparse scorecards from the exponential mechanism.

    `rows` are distinct 0/1 rows, `positives` and `negatives` the records of each. A scorecard has points from `points` on
    at most `max_features` columns and an intercept from `intercepts`; a record's score is the sum of those it has, and
    `loss` what it loses there. `log_weight[j, i]` is the log of the prior weight of
    `points[i]` on column j relative to no points, minus infinity where it is not allowed, `log_weight_intercept` that of the
    intercepts. `kappa` is `κ = ε/Δ`. With `constraints` only the supports that they permit have weight (theory, section 16).

    Up to `max_listed` supports are listed one by one, more are gone through in blocks. The frontier has up to `max_supports`
    entries (about a hundred bytes each). `max_attempts` caps the attempts of all draws. Limits are checked between attempts
    only; reaching one raises `WorkLimitReached` and returns nothing.

    Guarantee: `P(S, v, t)` as above up to a relative error of `relative_error` per scorecard, which adds at most four
    times as much to ε (theory, section 4), for data of at most `2^40` total cost, if `rng` is the operating system's.
    Running time and failures depend on the data and are not covered (theory, section 7).
    """

    def __init__(
        self,
        rows: ArrayLike,
        positives: ArrayLike,
        negatives: ArrayLike,
        loss: ZeroOneLoss,
        max_features: int,
        points: ArrayLike,
        intercepts: ArrayLike,
        log_weight: ArrayLike,
        log_weight_intercept: ArrayLike,
        kappa: float,
        rng: Randomness,
        max_attempts: int = 10_000_000,
        max_supports: int = 4_000_000,
        max_listed: int = MAX_LISTED,
        progress: SamplingCallback | None = None,
        constraints: ConstrainedPoints | None = None,
    ) -> None:
        table, weights = np.asarray(rows), np.asarray(log_weight, dtype=np.float64)
        self._width = table.shape[1] if table.ndim == 2 else 0
        usable = _usable(table, weights, constraints)
        if usable is not None:
            table = table[:, usable]
        inst = CardInstance.of(table, positives, negatives, loss, max_features, points, intercepts)
        if not (math.isfinite(kappa) and kappa >= 0):
            raise ValueError(f"kappa must be finite and not negative, got {kappa}")
        max_supports = check_count("max_supports", max_supports)
        in_blocks = _in_blocks(inst, min(max_listed, max_supports))
        # the most uniforms that one attempt can use: a choice among n takes up to n - 1
        choices = inst.max_features * (inst.n_columns + 2 * len(inst.points)) + 2 * len(inst.intercepts)
        reserve = choices + SPARE_UNIFORMS
        super().__init__(rng, reserve, REFILL * reserve, max_attempts, progress)
        order = heaviest_first(inst) if in_blocks else np.arange(inst.n_columns)
        rule: Rule | None = None
        if constraints is not None:
            assert usable is not None
            first, rule = rule_of(constraints, usable[order], inst.max_features)
            order = order[first]
        self.instance = inst = replace(inst, rows=np.ascontiguousarray(inst.rows[:, order]))
        self._order = order if usable is None else usable[order]
        prior = CardPrior.of(inst, self._width, self._order, weights, log_weight_intercept)
        law = Law(float(kappa), fill_up(prior.points, 0.0), prior.intercepts)
        counts = np.zeros(1 + len(STEPS), dtype=np.int64)
        self._chain = Chain(
            inst, law, prior, *new_fold(inst, law.prior_intercept), new_current(inst), self._uniforms, reserve, counts
        )
        self.frontier: Frontier = (
            BlockFrontier(self._chain, rule, max_supports, self._report_listing)
            if in_blocks
            else ListedFrontier(self._chain, rule)
        )
        self.reference, self._size = self.frontier.reference, 0
        if (in_blocks, inst.is_wide) not in _READY:
            self._compile()
            _READY.add((in_blocks, inst.is_wide))

    def _compile(self) -> None:
        """Compile everything that `draw` uses before the budget is charged."""
        stream, tree = self._uniforms.stream, self.frontier.tree
        compile_for(coin, stream, 0.0)
        compile_for(choose_log, stream, np.zeros(1), 1)
        compile_for(propose, stream, tree)
        compile_for(log_total, tree)
        compile_for(set_weight, tree, 0, 0.0)
        self.frontier.compile()

    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every scorecard's probability, from public numbers and the number of records.

        `largest_difference` bounds every loss, and so what two of them differ by. The count is that of "Rounding" in
        `docs/theory/04-short-cards.md`: few roundings are in proportion to a logarithm as large as `κ·largest_difference`,
        all others to one that the cut and the prior keep small.
        """
        inst, most = self.instance, self.instance.max_features
        prior = self._chain.prior
        small = LARGEST_SPREAD + float(np.abs(prior.log_mass).sum()) + abs(prior.log_mass_intercept)
        small += 1000.0 + inst.n_columns
        operations = (1 << most) + most * len(inst.points) + len(inst.intercepts) + 64
        in_large_logs = 13 + 2 * nested_levels(inst, most) + (IN_BLOCKS if self.frontier.nodes else 0)
        large = self._chain.law.kappa * largest_difference + small
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
        inst, now = self.instance, self._chain.now
        scorecard = np.zeros(self._width + 1, dtype=np.int64)
        scorecard[self._order[now.columns[: self._size]]] = inst.points[now.chosen[: self._size]]
        scorecard[-1] = inst.intercepts[now.chosen[self._size]]
        return scorecard

    def _attempt(self, most: int) -> tuple[int, int]:
        counts = self._chain.counts
        before = int(counts[0])
        outcome, self._size = self.frontier.attempt(most)
        return outcome, int(counts[0]) - before

    def _frontier_size(self) -> int:
        return len(self.frontier)

    def _report_listing(self, done: int) -> None:
        if self._progress is not None:
            self._progress(SamplingProgress(0, done, time.monotonic() - self._start))

    def _engine_statistics(self) -> dict[str, Any]:
        opened = {name: int(n) for name, n in zip(STEPS[1:], self._chain.counts[2:], strict=True)}
        return {"nodes": self.frontier.nodes, "log_frontier": self.log_bound(), "opened": opened}

    def log_bounds(self, step: int = EXACT) -> Floats:
        """`log` of the bound of every support at a step of the chain (`chain.STEPS`), for small problems and tests."""
        frontier = self.frontier
        if not isinstance(frontier, ListedFrontier):
            raise ValueError("the supports are not listed: raise max_supports")
        return np.array([frontier.log_bound(support, step) for support in range(self.instance.n_supports)])

    def log_partition(self) -> float:
        """`log Σ weight·exp(-κ·(loss - reference))` over all scorecards, exactly. For small problems and tests."""
        return float(logsumexp(self.log_bounds()))

    def log_bound(self) -> float:
        """`log` of the sum of the current bounds: `log_partition() - log_bound()` is the log of the acceptance rate."""
        return float(log_total(self.frontier.tree))


def _usable(rows: Int64Array, log_weight: Floats, constraints: ConstrainedPoints | None) -> Int64Array | None:
    """The columns that may have points; None for all, where nothing is stated."""
    if constraints is None or rows.ndim != 2 or len(log_weight) != rows.shape[1]:
        return None  # wrong shapes are refused in the usual words
    if constraints.columns != rows.shape[1]:
        raise ValueError(f"constraints are on {constraints.columns} columns, but rows has {rows.shape[1]}")
    return np.array(constraints.usable, dtype=np.int64)


def _in_blocks(inst: CardInstance, max_listed: int) -> bool:
    """Whether the supports are gone through in blocks; raise where even those would not fit into the memory."""
    if inst.max_features < 2 or inst.n_supports <= max_listed:
        return False
    if shape_of(inst.n_columns, inst.max_features).rows > MAX_ROWS:
        raise WorkLimitReached(
            f"{inst.n_supports:.2g} supports of at most {inst.max_features} of {inst.n_columns:,} columns are more than can be "
            "gone through: use a smaller max_features or fewer columns"
        )
    return True
