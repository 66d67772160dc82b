"""Exact draws, and the certified best, of a small card on top of the scores that records have (theory, stages).

    P(S, v, t)  ∝  Π_{j ∈ S} weight[j, v_j] · weight_t[t] · exp(-κ·loss(S, v, t))

All supports are listed with a floor below their losses, which bounds their weight: `U(S) = (prior mass of S)·exp(-κ·floor(S))`.
An attempt proposes a support in proportion to its bound, tightens it by a sketch and then to the exact sum, and survives each
step with probability new/old. Tightened bounds stay, so the work is bounded by public numbers.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled
from privsolve.engines.card_priors import LARGEST_SPREAD, CardPrior, CardShape
from privsolve.engines.card_rules import Rule, listed_rows
from privsolve.engines.compiling import compile_for, compile_once
from privsolve.engines.numbering import count_supports, number_supports
from privsolve.engines.rejection import GREW, KEPT, LOST, SPARE_UNIFORMS, RejectionSampler, SamplingCallback
from privsolve.engines.stages.groups import groups_of
from privsolve.engines.stages.moments import moments_of
from privsolve.engines.stages.points import (
    Law,
    Scratch,
    Shape,
    fix_last,
    floors_of,
    least,
    load,
    new_scratch,
    sketch,
    take,
    weigh,
)
from privsolve.engines.workers import Workers
from privsolve.losses import ScoreLoss
from privsolve.noise.coins import SumTree, choose, coin, log_total, new_sum_tree, propose, set_weight
from privsolve.noise.entropy import Randomness

CUT = 500.0
"""Cards with `κ(loss - least)` beyond this are light: floats could not hold their weights, so they are drawn from the prior.
Every bound has `e^-CUT` on top for them."""

INFLATION = math.log1p(1e-9)
REFILL = 4
PARTS = 16
"""The floors are computed in so many parts, by as many threads as there are cores."""

LARGEST_SUPPORT = 16
"""No support is as large; only its points count in the error."""

FLOOR, SKETCHED, EXACT = range(3)
LEAST_SKETCH = math.exp(-600.0)
"""Below this a sketch is not precise, and not used."""


@dataclass(frozen=True)
class StageInstance:
    """Records as rows with numbers of either label and the score they already have, and the cards that may be added."""

    rows: Int64Array
    positives: Int64Array
    negatives: Int64Array
    earlier: Int64Array
    loss: ScoreLoss
    most: int
    points: Int64Array
    intercepts: Int64Array

    @property
    def columns(self) -> int:
        """Number of 0/1 columns."""
        return int(self.rows.shape[1])

    @property
    def shape(self) -> Shape:
        """The public shape."""
        low, high = min(int(self.points.min()), 0), max(int(self.points.max()), 0)
        return Shape(self.points, low, high, len(self.intercepts), self.most)

    @property
    def scores(self) -> Int64Array:
        """All scores that a card can add."""
        shape = self.shape
        first = int(self.intercepts[0]) + shape.most * shape.low
        return np.arange(first, int(self.intercepts[-1]) + shape.most * shape.high + 1)


class Listed(NamedTuple):
    """All supports: their moments, and where the numbers of their extensions start."""

    child_start: Int64Array
    moment: Int64Array


def list_moments(inst: StageInstance) -> Listed:
    """The moments of every support."""
    groups = groups_of(inst.rows, inst.positives, inst.negatives, inst.earlier, inst.loss, inst.scores)
    starts, _ = number_supports(inst.columns, max(inst.most, 1))
    return Listed(starts, moments_of(groups, starts, inst.most))


def list_floors(inst: StageInstance, listed: Listed, supports: Int64Array, sizes: Int64Array) -> Int64Array:
    """The floor of every support, on all cores."""
    shape, found = inst.shape, np.empty(len(supports), dtype=np.int64)
    Workers(lambda: new_scratch(shape, terms=False)).run(
        lambda scratch, part: floors_of(shape, listed, supports, sizes, scratch, part, PARTS, found), range(PARTS)
    )
    return found


def supports_of(columns: int, most: int) -> Int64Array:
    """All supports in the order of their numbers, filled up with -1."""
    found = np.full((count_supports(columns, most), max(most, 1)), -1, dtype=np.int64)
    first, level = 1, np.empty((1, 0), dtype=np.int64)
    for size in range(1, most + 1):
        last = level[:, -1] if size > 1 else np.array([-1])
        repeats = columns - 1 - last
        parents = np.repeat(np.arange(len(level)), repeats)
        offset = np.arange(len(parents)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        level = np.column_stack([level[parents], last[parents] + 1 + offset])
        found[first : first + len(level), :size] = level
        first += len(level)
    return found


def allowed_supports(inst: StageInstance, rule: Rule | None) -> tuple[Int64Array, Int64Array]:
    """The supports that a rule allows, all without one, and their sizes."""
    supports = supports_of(inst.columns, inst.most)
    sizes = (supports >= 0).sum(axis=1)
    if rule is None:
        return supports, sizes
    kept = listed_rows(rule, supports, sizes)
    return np.ascontiguousarray(supports[kept]), sizes[kept]


class Frontier(NamedTuple):
    """Where every support stands: its columns, the log of its prior mass times `exp(-κ·floor)` (`top`), its bound relative to
    that and how far it is known; once it is, its least loss and the sum relative to that."""

    supports: Int64Array
    sizes: Int64Array
    floor: Int64Array
    top: Floats
    log_bound: Floats
    known: Int64Array
    least: Int64Array
    log_sum: Floats


@compiled
def _attempt_until_kept(shape, law, listed, frontier, tree, stream, scratch, counts, attempts, reserve):
    """Attempts until one is not lost, or uniforms run low: how the last one ended, and its size."""
    for _ in range(attempts):
        if len(stream.uniforms) - stream.used[0] < reserve:
            break
        counts[0] += 1
        s = propose(stream, tree)
        size, before = frontier.sizes[s], frontier.known[s]
        take(frontier.supports, s, scratch)
        outcome = _tighten(shape, law, listed, frontier, s, size, stream, scratch, counts)
        if outcome == KEPT and not draw(shape, law, listed, frontier, s, size, before < EXACT, stream, scratch):
            outcome = LOST
        # the attempt used the bounds of the proposal to its end; only now is the tree refreshed
        if frontier.known[s] != before:
            set_weight(tree, s, frontier.top[s] + frontier.log_bound[s])
        if outcome != LOST:
            return outcome, size
    return LOST, 0


@compiled
def _tighten(shape, law, listed, frontier, s, size, stream, scratch, counts):
    """Bring a proposed support to its exact sum, step by step; whether the attempt survives."""
    if frontier.known[s] == EXACT:
        return KEPT
    load(listed.moment, listed.child_start, scratch, size)
    if frontier.known[s] == FLOOR:
        counts[1] += 1
        bound, before = sketch(shape, law, scratch, size), frontier.log_bound[s]
        frontier.known[s] = SKETCHED
        if bound > LEAST_SKETCH:
            frontier.log_bound[s] = math.log(bound + math.exp(-law.cut)) + INFLATION
            if frontier.log_bound[s] > before:
                return GREW
            if not coin(stream, frontier.log_bound[s] - before):
                return LOST
    counts[2] += 1
    before = frontier.log_bound[s]
    frontier.least[s] = least(shape, law, scratch, size)
    frontier.log_sum[s] = math.log(weigh(shape, law, scratch, size, frontier.least[s]) + math.exp(-law.cut))
    frontier.log_bound[s] = frontier.log_sum[s] - law.kappa * (frontier.least[s] - frontier.floor[s])
    frontier.known[s] = EXACT
    if frontier.log_bound[s] > before:
        return GREW
    return KEPT if coin(stream, frontier.log_bound[s] - before) else LOST


@compiled
def draw(shape, law, listed, frontier, s, size, weighed, stream, scratch):
    """One card of the support: a heavy one from the sums, or a light one from the prior; whether it is kept."""
    if coin(stream, -law.cut - frontier.log_sum[s]):
        load(listed.moment, listed.child_start, scratch, size)
        for depth in range(size):
            column = scratch.support[size - depth - 1]
            p = choose(stream, law.points[column], len(shape.points))
            fix_last(shape, scratch, size, depth, shape.points[p])
            scratch.at[depth] = p
        scratch.at[size] = choose(stream, law.intercepts, shape.intercepts)
        loss = scratch.cost[size, 0, scratch.at[size] - shape.most * shape.low]
        excess = law.kappa * (loss - frontier.least[s])
        return excess > law.cut and coin(stream, law.cut - excess)
    if not weighed:
        load(listed.moment, listed.child_start, scratch, size)
        weigh(shape, law, scratch, size, frontier.least[s])
    first, n_points = 0, len(shape.points)
    block = n_points**size * shape.intercepts
    for depth in range(size):
        block //= n_points
        for p in range(n_points):
            scratch.parts[p] = add_up(scratch.terms[first + p * block : first + (p + 1) * block])
        scratch.at[depth] = choose(stream, scratch.parts, n_points)
        first += scratch.at[depth] * block
    scratch.at[size] = choose(stream, scratch.terms[first : first + block], block)
    return True


@compiled
def add_up(terms):
    """Their sum."""
    total = 0.0
    for term in terms:
        total += term
    return total


def public_logs(prior: CardPrior) -> float:
    """More than any logarithm that does not depend on the data: of the prior, and of what floats can hold."""
    return 1000.0 + LARGEST_SPREAD + float(np.abs(prior.log_mass).sum()) + abs(prior.log_mass_intercept)


def relative_error(prior: CardPrior, largest_exponent: float, choices: int) -> float:
    """A bound on the relative error of every card's probability, from public numbers only (theory, section 13.3).

    `largest_exponent` bounds `κ` times the difference of any two losses, `choices` is how many terms a sum has at most.
    """
    small = public_logs(prior)
    operations = choices + prior.points.shape[1] * LARGEST_SUPPORT + len(prior.intercepts) + 64
    return float(2.0**-53 * 8 * (largest_exponent + small) + 2.0**-52 * 2 * operations)


class StageSampler(RejectionSampler):
    """Independent exact draws of a small card on top of earlier scores.

    `log_weight[j, i]` is the log of the prior weight of `points[i]` on column j relative to no points, minus infinity where
    it is not allowed, `log_weight_intercept` that of the intercepts. `kappa` is `κ = ε/Δ`. With a `rule` only the supports that
    it allows are listed; columns without allowed points must be in none of them (theory, section 16).

    Guarantee: `P(S, v, t)` as above up to a relative error of `relative_error` per card, which adds at most four times as much
    to ε (theory, stages). Running time and failures depend on the data and are not covered.
    """

    def __init__(
        self,
        inst: StageInstance,
        log_weight: Floats,
        log_weight_intercept: Floats,
        kappa: float,
        rng: Randomness,
        max_attempts: int = 100_000_000,
        progress: SamplingCallback | None = None,
        cut: float = CUT,
        rule: Rule | None = None,
    ) -> None:
        self.instance, shape = inst, inst.shape
        choices = (inst.most + 1) * (len(inst.points) + len(inst.intercepts))
        reserve = 2 * choices + SPARE_UNIFORMS
        super().__init__(rng, reserve, REFILL * reserve, max_attempts, progress)
        cards = CardShape(inst.columns, len(inst.points), len(inst.intercepts), inst.most)
        self._prior = CardPrior.of(log_weight, log_weight_intercept, cards)
        self._shape, self._law = shape, Law(float(kappa), self._prior.points, self._prior.intercepts, float(cut))
        self._scratch: Scratch = new_scratch(shape)
        self._counts, self._size = np.zeros(3, dtype=np.int64), 0
        self._list(rule)
        compile_once(StageSampler, self._compile)

    def _list(self, rule: Rule | None) -> None:
        inst = self.instance
        self._listed = list_moments(inst)
        supports, sizes = allowed_supports(inst, rule)
        floors = list_floors(inst, self._listed, supports, sizes)
        self.reference = int(floors.min())
        mass = np.append(self._prior.log_mass, 0.0)[supports].sum(axis=1) + self._prior.log_mass_intercept
        top = mass - self._law.kappa * (floors - self.reference)
        n, first = len(floors), math.log1p(math.exp(-self._law.cut)) + 2 * INFLATION
        empty = np.zeros(n, dtype=np.int64), np.zeros(n)
        self._frontier = Frontier(supports, sizes, floors, top, np.full(n, first), np.full(n, FLOOR), *empty)
        self._tree: SumTree = new_sum_tree(top + first, n)

    def _compile(self) -> None:
        compile_for(
            _attempt_until_kept, self._shape, self._law, self._listed, self._frontier, self._tree, self._uniforms.stream,
            self._scratch, self._counts, 0, 0,
        )  # fmt: skip

    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every card's probability, from public numbers only (theory, stages)."""
        return relative_error(self._prior, self._law.kappa * largest_difference, len(self._scratch.terms))

    def draw(self) -> Int64Array:
        """Points of every column, and the intercept at the end."""
        return self._until_kept(self.drawn)

    def drawn(self) -> Int64Array:
        """The card of the attempt that was kept last."""
        inst, at = self.instance, self._scratch.at
        weights = np.zeros(inst.columns + 1, dtype=np.int64)
        for depth in range(self._size):
            weights[self._scratch.support[self._size - depth - 1]] = inst.points[at[depth]]
        weights[-1] = inst.intercepts[at[self._size]]
        return weights

    def _attempt(self, most: int) -> tuple[int, int]:
        before = int(self._counts[0])
        outcome, self._size = _attempt_until_kept(
            self._shape, self._law, self._listed, self._frontier, self._tree, self._uniforms.stream, self._scratch,
            self._counts, most, self._reserve,
        )  # fmt: skip
        return int(outcome), int(self._counts[0]) - before

    def _frontier_size(self) -> int:
        return len(self._frontier.top)

    def _engine_statistics(self) -> dict[str, Any]:
        return {
            "nodes": int(self._counts[1:].sum()),
            "log_frontier": self.log_bound(),
            "opened": {"sketched": int(self._counts[1]), "summed": int(self._counts[2])},
        }

    def log_bound(self) -> float:
        """The logarithm of the sum of all current bounds, relative to the reference."""
        return float(log_total(self._tree))

    def log_partition(self) -> float:
        """`log Σ weight·exp(-κ·(loss - reference))`, by summing every support; what is lighter than `exp(-500)` is left out."""
        return float(logsumexp([self._log_sum(s) for s in range(self._frontier_size())]))

    def _log_sum(self, s: int) -> float:
        frontier, size = self._frontier, int(self._frontier.sizes[s])
        take(frontier.supports, s, self._scratch)
        load(self._listed.moment, self._listed.child_start, self._scratch, size)
        smallest = int(least(self._shape, self._law, self._scratch, size))
        total = weigh(self._shape, self._law, self._scratch, size, smallest)
        return float(frontier.top[s]) - self._law.kappa * (smallest - int(frontier.floor[s])) + math.log(total)


@dataclass(frozen=True)
class BestAddition:
    """The certified best card to add (points, intercept last), its loss, and how many supports had to be looked into."""

    weights: Int64Array
    loss: int
    opened: int


def best_addition(inst: StageInstance, rule: Rule | None = None, allowed: Floats | None = None) -> BestAddition:
    """The certified best card to add; the first of a fixed order if several are best.

    `allowed[j, i]` is 0 where column j must not have `points[i]`, and 1 elsewhere.
    """
    shape, listed = inst.shape, list_moments(inst)
    supports, sizes = allowed_supports(inst, rule)
    law = _plain_law(inst, allowed)
    floors, scratch = list_floors(inst, listed, supports, sizes), new_scratch(inst.shape)
    best, winner, opened = 2**62, 0, 0
    for s in np.lexsort((np.arange(len(floors)), floors)):
        if floors[s] > best or (floors[s] == best and s > winner):
            break
        take(supports, s, scratch)
        load(listed.moment, listed.child_start, scratch, sizes[s])
        found, opened = int(least(shape, law, scratch, sizes[s])), opened + 1
        if (found, s) < (best, winner):
            best, winner = found, int(s)
    return BestAddition(_first_best(inst, law, listed, supports[winner], int(sizes[winner]), best), best, opened)


def _plain_law(inst: StageInstance, allowed: Floats | None) -> Law:
    """Only the best have weight: with a cut of 0."""
    points = np.ones((inst.columns, len(inst.points))) if allowed is None else allowed
    return Law(1.0, points, np.ones(len(inst.intercepts)), 0.0)


def _first_best(inst: StageInstance, law: Law, listed: Listed, support: Int64Array, size: int, best: int) -> Int64Array:
    """The first card of the support that has the least loss: with a cut of 0 only the best have terms."""
    shape, scratch = inst.shape, new_scratch(inst.shape)
    take(support[None, :], 0, scratch)
    load(listed.moment, listed.child_start, scratch, size)
    weigh(shape, law, scratch, size, best)
    terms = scratch.terms[: len(inst.points) ** size * len(inst.intercepts)]
    places = np.unravel_index(int(np.argmax(terms)), (len(inst.points),) * size + (len(inst.intercepts),))
    weights = np.zeros(inst.columns + 1, dtype=np.int64)
    for depth in range(size):
        weights[support[size - depth - 1]] = inst.points[places[depth]]
    weights[-1] = inst.intercepts[places[size]]
    return weights
