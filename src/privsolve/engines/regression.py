"""A clipped regression with a linear term, minimised by Newton's method and certified (theory, section 19).

The records are rows of 0/1 features with their losses, which are functions of the row's score: convex, and linear where the
slope would exceed a cap, a public function of the row (sections 19.1 and 20.1). A row is centred at public numbers, gets a
constant for the intercept, and is shrunk if it is longer than a public radius; all of that looks at one row at a time. The
certificate is an upper bound on the length of the gradient that counts every rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import ceil, fsum, inf, sqrt

import numpy as np
from scipy.special import expit
from threadpoolctl import ThreadpoolController

from privsolve.arrays import Floats, Int64Array
from privsolve.data.patterns import HeldRows, blocks_of
from privsolve.errors import OracleNotCertified

CENTRE_BITS = 10
"""Centres are multiples of `2^-10`, so that the length of a row is computed without rounding."""

UNIT_ROUNDOFF = 2.0**-53
EXPIT_ERROR = 2.0**-48
"""Allowed for SciPy's logistic function; `privsolve.noise.accuracy` checks it before anything is paid for."""

SUMMED = 64
"""Rows whose gradients are added in floating point; such sums are then added exactly."""

ADDED = 64
"""Blocks of rows whose sums are added exactly at once: their sum is rounded, and such sums are added exactly again."""

CURVED = 2**16
"""Rows that second derivatives are taken from, so that a step costs hardly more than a gradient."""

_STEPS = 200
_SAMPLED_STEPS = 40
"""After so many steps all rows are taken."""

_FAST = 10.0
"""Second derivatives are kept as long as every step makes the gradient so many times shorter."""

_SHORTEST = 2.0**-30
_ROUNDING = 2.0**-36


@dataclass(frozen=True)
class Logistic:
    """`log(1 + e^-u)` with the margin u: labels. A sample of rows has numbers that stand for all records."""

    positives: Int64Array | Floats
    negatives: Int64Array | Floats

    def counts(self, place: slice) -> Int64Array | Floats:
        """Number of records of some rows, or the sum of their weights, multiples of `2^-10`."""
        return np.asarray(self.positives[place] + self.negatives[place])

    def sampled(self, some: slice, share: float) -> Logistic:
        """The losses of some rows only, times a share."""
        return Logistic(*(np.asarray(counts[some] * share) for counts in (self.positives, self.negatives)))

    def value(self, scores: Floats, cap: Floats, place: slice) -> float:
        """The total loss of some rows: linear beyond the score against the label at which the slope is the cap."""
        safe = np.where(cap < 1, cap, 0.5)
        kink = np.where(cap < 1, np.log(safe / (1 - safe)), np.finfo(float).max)
        total = 0.0
        for count, against in ((self.negatives[place], scores), (self.positives[place], -scores)):
            inside = np.minimum(against, kink)
            total += float(count @ (np.logaddexp(0.0, inside) + cap * (against - inside)))
        return total

    def slopes(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(
            self.negatives[place] * np.minimum(expit(scores), cap)
            - self.positives[place] * np.minimum(expit(-scores), cap)
        )

    def curvatures(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The second derivative of the loss of every row by its score, summed over its records."""
        risk = expit(scores)
        count = self.negatives[place] * (risk <= cap) + self.positives[place] * (1 - risk <= cap)
        return np.asarray(count * risk * (1 - risk))

    def slope_error(self, score_error: float) -> float:
        """The slope changes by a quarter of the score at most."""
        return score_error / 4 + EXPIT_ERROR + 8 * UNIT_ROUNDOFF


@dataclass(frozen=True)
class Huber:
    """`r²/2` with the residual r, linear where |r| is above the cap: numbers. Each row has one target."""

    targets: Floats
    records: Int64Array | Floats

    def counts(self, place: slice) -> Int64Array | Floats:
        """Number of records of some rows."""
        return self.records[place]

    def sampled(self, some: slice, share: float) -> Huber:
        """The losses of some rows only, times a share."""
        return Huber(self.targets[some], np.asarray(self.records[some] * share))

    def value(self, scores: Floats, cap: Floats, place: slice) -> float:
        """The total loss of some rows."""
        off = np.abs(scores - self.targets[place])
        inside = np.minimum(off, cap)
        return float(self.records[place] @ (inside**2 / 2 + cap * (off - inside)))

    def slopes(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(self.records[place] * np.clip(scores - self.targets[place], -cap, cap))

    def curvatures(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The second derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(self.records[place] * (np.abs(scores - self.targets[place]) <= cap), dtype=np.float64)

    def slope_error(self, score_error: float) -> float:
        """The slope changes as much as the score does; caps are at most 1 (section 20)."""
        return score_error + 8 * UNIT_ROUNDOFF


RowLosses = Logistic | Huber


@dataclass(frozen=True)
class Rows:
    """0/1 rows with the losses of their records, and the public numbers that make vectors of them, the last entry being 1.

    Args:
        features: one row of 0/1 features each, without a constant.
        losses: what the records of each row cost, by its score.
        centre: what is taken off each feature; multiples of `2^-10` between 0 and 1.
        radius: vectors that are longer are shrunk to this length.
        clip: the largest length of a record's gradient.
        offset: a public number that is added to every score.
    """

    features: HeldRows
    losses: RowLosses
    centre: Floats
    radius: float = inf
    clip: float = 1.0
    offset: float = 0.0

    @property
    def dim(self) -> int:
        """Number of weights, the intercept's among them; it is the last."""
        return int(self.features.shape[1]) + 1

    @cached_property
    def lengths(self) -> Floats:
        """The length of every centred row before it is shrunk; its square is computed without rounding."""
        taken, squares = 1 - 2 * self.centre, float(self.centre @ self.centre) + 1.0
        return np.asarray(np.sqrt(np.concatenate([block @ taken + squares for _, block in self.blocks()])))

    def shrink(self, place: slice) -> Floats:
        """The factor of some rows: 1, or less where the vector is longer than the radius."""
        return np.asarray(np.minimum(1.0, self.radius / self.lengths[place]))

    def slope(self, place: slice) -> Floats:
        """The largest slope of the loss of some rows, `min(1, clip / ‖x‖)`."""
        return np.asarray(np.minimum(1.0, self.clip / np.minimum(self.lengths[place], self.radius)))

    @property
    def records(self) -> int:
        """Number of records, or the sum of their weights, rounded up."""
        return ceil(float(self.losses.counts(slice(None)).sum()))  # exact: whole, or multiples of 2^-10

    def sampled(self, most: int) -> Rows:
        """Every k-th row, so that there are at most `most`, with counts that stand for all records."""
        every = -(-len(self.features) // most)
        if every == 1:
            return self
        some = slice(None, None, every)
        share = self.records / max(int(self.losses.counts(some).sum()), 1)
        return replace(self, features=self.features[some], losses=self.losses.sampled(some, share))

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """The 0/1 rows as floating point numbers, some at a time."""
        for place, block in blocks_of(self.features):
            yield place, block.astype(np.float64)

    def scores(self, block: Floats, place: slice, weights: Floats) -> Floats:
        """`<x, w>` plus the offset, for the rows of a block."""
        inner = block @ weights[:-1] + (weights[-1] - self.centre @ weights[:-1])
        return np.asarray(self.shrink(place) * inner + self.offset)

    def vectors(self, block: Floats, place: slice) -> Floats:
        """The vectors of a block of rows."""
        full = np.hstack([block - self.centre, np.ones((len(block), 1))])
        return np.asarray(full * self.shrink(place)[:, None])

    def pulls(self, scores: Floats, place: slice) -> Floats:
        """What every row adds to the gradient, in multiples of its vector before it is shrunk."""
        return np.asarray(self.losses.slopes(scores, self.slope(place), place) * self.shrink(place))


@dataclass(frozen=True)
class Objective:
    """`Σ f(w; x, y) + penalty/2·‖w‖² + <linear, w> + sparsity·‖w‖₁`, with signs of weights if they are stated.

    `sparsity` and `signs` (+1: not negative, -1: not positive, 0: free) are for all weights but the intercept's.
    """

    rows: Rows
    penalty: float
    linear: Floats
    sparsity: float = 0.0
    signs: Int64Array | None = None

    @cached_property
    def bound_signs(self) -> Int64Array:
        """The signs of all weights, the intercept's free."""
        stated = np.zeros(self.rows.dim - 1, dtype=np.int64) if self.signs is None else self.signs
        return np.append(stated, 0)

    @cached_property
    def prices(self) -> Floats:
        """What one unit of each weight costs by `sparsity`."""
        return np.append(np.full(self.rows.dim - 1, self.sparsity), 0.0)

    def remaining(self, weights: Floats, gradient: Floats) -> Floats:
        """The subgradient of least length: zero exactly at the minimiser (section 19.7)."""
        side = np.sign(weights)
        pulled = gradient + self.prices * side
        soft = np.sign(gradient) * np.maximum(np.abs(gradient) - self.prices, 0.0)
        soft = np.where(self.bound_signs > 0, np.minimum(gradient + self.prices, 0.0), soft)
        soft = np.where(self.bound_signs < 0, np.maximum(gradient - self.prices, 0.0), soft)
        return np.where(side != 0, pulled, soft)

    def value_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The value and the gradient of the smooth part."""
        rows = self.rows
        value = 0.5 * self.penalty * float(weights @ weights) + float(self.linear @ weights)
        value += float(self.prices @ np.abs(weights))
        gradient = self.penalty * weights + self.linear
        for place, block in rows.blocks():
            scores = rows.scores(block, place, weights)
            value += rows.losses.value(scores, rows.slope(place), place)
            pulls = rows.pulls(scores, place)
            gradient = gradient + np.append(pulls @ block - pulls.sum() * rows.centre, pulls.sum())
        return value, gradient


def _second_derivatives(rows: Rows, weights: Floats) -> Floats:
    """The matrix of second derivatives of the losses of all rows."""
    total = np.zeros((rows.dim, rows.dim))
    for place, block in rows.blocks():
        scores, vectors = rows.scores(block, place, weights), rows.vectors(block, place)
        total += (vectors * rows.losses.curvatures(scores, rows.slope(place), place)[:, None]).T @ vectors
    return total


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of linear algebra that this process has loaded; to look for them takes a while."""
    return ThreadpoolController()


def minimise(objective: Objective, tolerance: float) -> tuple[Floats, float]:
    """The minimiser up to a certified length of the remaining gradient.

    Args:
        objective: what is minimised; strongly convex because its penalty is positive.
        tolerance: the length that is allowed.

    Returns:
        The weights and an upper bound on the length of the least subgradient at them, all roundings counted. The minimiser
        lies within `bound / penalty` of the weights (theory, section 19.6).

    Raises:
        OracleNotCertified: if the bound is above the tolerance.
    """
    some = objective.rows.sampled(CURVED)
    weights = np.zeros(objective.rows.dim)
    # one thread: the order of sums, and so the last bits, do not depend on the machine; more threads are slower on a busy one
    with _libraries().limit(limits=1, user_api="blas"):
        if some is not objective.rows:  # a good start, from some of the rows
            weights = _newton(replace(objective, rows=some), tolerance / 8, weights, some)
        weights = _newton(objective, tolerance / 8, weights, some)
        for summed in (SUMMED, 1):  # of very many records sums of single rows, which take longer, show more
            if (bound := gradient_bound(objective, weights, summed)) <= tolerance:
                return weights, bound
    raise OracleNotCertified(
        f"Newton's method reached a gradient of length {bound:.3g}, and {tolerance:.3g} is needed: nothing is released; there "
        "are too many records for this epsilon: use a smaller epsilon, or read a share of them (sample_rate)"
    )


def _newton(objective: Objective, tolerance: float, weights: Floats, curved: Rows) -> Floats:
    """Newton's method from given weights, with second derivatives from some of the rows."""
    kept = (objective.prices > 0) | (objective.bound_signs != 0)
    value, gradient = objective.value_gradient(weights)
    start, before, curvature = value, 0.0, np.empty((0, 0))
    for number in range(_STEPS):
        left = objective.remaining(weights, gradient)
        length = float(np.linalg.norm(left))
        if length <= tolerance:
            break
        if number == _SAMPLED_STEPS:
            curved = objective.rows
        if length > before / _FAST or number >= _SAMPLED_STEPS:
            curvature = objective.penalty * np.eye(len(weights)) + _second_derivatives(curved, weights)
        free = (weights != 0) | (left != 0)
        direction = np.zeros_like(weights)
        direction[free] = np.linalg.solve(curvature[np.ix_(free, free)], -left[free])
        side = np.where(weights != 0, np.sign(weights), -np.sign(left))
        step = 1.0
        while step > _SHORTEST:
            moved = weights + step * direction
            moved = np.where(kept & (moved * side < 0), 0.0, moved)
            new_value, new_gradient = objective.value_gradient(moved)
            lower = new_value <= value + 1e-4 * float(left @ (moved - weights))
            shorter = float(np.linalg.norm(objective.remaining(moved, new_gradient))) <= (1 - 1e-4 * step) * length
            # a shorter gradient counts only where values differ by no more than rounding: else steps go back and forth
            if lower or (shorter and new_value <= value + _ROUNDING * (start + abs(value))):
                break
            step /= 2
        else:
            break  # only rounding is left to gain
        weights, value, gradient, before = moved, new_value, new_gradient, length
    return weights


def gradient_bound(objective: Objective, weights: Floats, summed: int = SUMMED) -> float:
    """An upper bound on the length of the least subgradient, with every rounding counted (theory, section 19.6).

    Scores are computed from the leading bits of the weights, which add up without rounding, and from the rest. Gradients of so
    many rows are `summed` in floating point, and these sums exactly.
    """
    rows, dim = objective.rows, objective.rows.dim
    leading = np.round(weights * 2.0**20) / 2.0**20
    rest = weights - leading
    parts: list[Floats] = []
    sums: list[Floats] = []
    pulled, farthest = 0.0, 0.0
    for place, block in rows.blocks():
        inner = (block @ leading[:-1] + (leading[-1] - rows.centre @ leading[:-1])) + (
            block @ rest[:-1] + (rest[-1] - rows.centre @ rest[:-1])
        )
        scores = rows.shrink(place) * inner + rows.offset
        pulls = rows.pulls(scores, place)
        pulled += float(np.abs(pulls).sum())
        farthest = max(farthest, float(np.abs(scores).max(initial=0.0)))
        parts.append(_summed(pulls, block, summed))
        if len(parts) == ADDED or place.stop == len(rows.features):
            sums.append(_added_exactly(parts))
            parts.clear()
    total = _added_exactly([np.array(sums)]) if sums else np.zeros(dim)
    gradient = np.append(total[:-1] - total[-1] * rows.centre, total[-1])
    gradient = gradient + objective.penalty * weights + objective.linear
    left = float(np.linalg.norm(objective.remaining(weights, gradient)))
    small = UNIT_ROUNDOFF
    score_error = 8 * small * (farthest + abs(rows.offset)) + 4 * dim * small * float(np.abs(rest).sum())
    of_residuals = rows.records * rows.radius * rows.losses.slope_error(score_error)
    of_sums = 2 * sqrt(dim) * (summed + 8) * small * pulled
    of_rest = 8 * small * (objective.penalty * float(np.linalg.norm(weights)) + float(np.linalg.norm(objective.linear)))
    return (left + of_residuals + of_sums + of_rest) * (1 + 2.0**-40)


def _added_exactly(parts: list[Floats]) -> Floats:
    """The sum of every column, rounded once."""
    return np.array([fsum(column.tolist()) for column in np.concatenate(parts).T])


def _summed(pulls: Floats, block: Floats, summed: int) -> Floats:
    """Sums over each so many rows of the pulls times the features, and of the pulls themselves."""
    missing = -len(pulls) % summed
    pulls = np.append(pulls, np.zeros(missing))
    full = np.hstack([block, np.ones((len(block), 1))])
    full = np.vstack([full, np.zeros((missing, full.shape[1]))])
    groups = len(pulls) // summed
    return np.asarray(np.matmul(pulls.reshape(groups, 1, summed), full.reshape(groups, summed, -1))[:, 0, :])
