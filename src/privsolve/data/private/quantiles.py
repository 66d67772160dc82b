"""Cut points that divide records evenly, all of a column in one exact draw of the exponential mechanism (theory, 12.2).

A tuple of cut points `g_1 < ... < g_(k-1)` cuts N records into k intervals with `n_1, ..., n_k`; its cost is the integer
`C = Σ |k·n_i - N|`. The law is `p₀·exp(-κC)`, with the product of the grid's weights for a prior.
"""

from __future__ import annotations

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.errors import PrivsolveError
from privsolve.noise.coins import LOG_STEP, Uniforms, coin
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

MARGIN = 1e-6
"""Taken off epsilon for rounding: four times the largest relative error of a weight (theory, 12.3)."""

LEAST_EPSILON = 1e-4
UNIT = 2.0**-53
NEVER = -np.inf


def inverse_temperature(epsilon: float, intervals: int, adjacency: Adjacency) -> float:
    """`κ = ε/Δ`, with `Δ = 4k` where a record is replaced and `4(k-1)` where one is added or removed (theory, 12.2)."""
    if epsilon < LEAST_EPSILON:
        raise ValueError(
            f"epsilon leaves {epsilon:.3g} for a column, less than {LEAST_EPSILON:g}: use more, or fewer columns"
        )
    moves = 4 * intervals if adjacency is Adjacency.REPLACE else 4 * (intervals - 1)
    return (epsilon - MARGIN) / moves


def draw_cuts(
    counts: Int64Array, weights: Floats, intervals: int, epsilon: float, adjacency: Adjacency, rng: Randomness
) -> list[int]:
    """The places of `intervals - 1` different cut points on a grid, in order.

    `counts[c]` records lie in cell c, that is, at or above exactly c points. Points without a record between them are one
    region, which is weighed at once, so the work depends on the number of occupied cells and not on the grid.
    """
    kappa = inverse_temperature(epsilon, intervals, adjacency)
    regions = _Regions(counts, weights, intervals, kappa)
    return regions.draw(Uniforms(rng))


class _Regions:
    """Weights of all ways to place cuts, summed from the left; a draw goes back from the right."""

    def __init__(self, counts: Int64Array, weights: Floats, intervals: int, kappa: float) -> None:
        if len(weights) != len(counts) - 1 or len(weights) < intervals - 1:
            raise ValueError(f"a grid needs at least {intervals - 1} points and one more cell than points")
        self.cuts, self.kappa, self.intervals = intervals - 1, kappa, intervals
        self.records = int(counts.sum())
        below = np.cumsum(counts)[:-1]  # records below each point
        self.starts = np.flatnonzero(np.append(True, np.diff(below) > 0))
        self.ends = np.append(self.starts[1:], len(below))
        self.below = below[self.starts].astype(np.int64)
        self.log_weights = np.log(weights / weights.sum())
        self.inside = [
            _symmetric(self.log_weights[a:b], self.cuts) for a, b in zip(self.starts, self.ends, strict=True)
        ]
        self._check_rounding()
        self.sums = self._summed()

    def _check_rounding(self) -> None:
        largest = 2 * self.kappa * self.cuts * self.records + 200.0  # C <= 2(k-1)N, and the prior
        error = UNIT * (8 * self.intervals * largest + 8 * self.intervals * (len(self.starts) + 100))
        if error > MARGIN / 4:
            raise PrivsolveError(
                "there are more records than exact weights can tell apart: draft from fewer, or with less epsilon"
            )

    def _cost(self, records: Int64Array | int) -> Floats:
        """The logarithm of the weight of an interval with so many records."""
        return np.asarray(-self.kappa * np.abs(self.intervals * records - self.records))

    def _summed(self) -> Floats:
        """`sums[c, r]`: the logarithm of all ways to place c cuts of which the last ones lie in region r."""
        count, numbers = len(self.starts), np.arange(1, self.cuts + 1)
        found = np.full((self.cuts + 1, count), NEVER)
        here = np.array(self.inside)[:, 1:] + (numbers - 1) * float(self._cost(0))  # [region, cuts in it]
        first = self._cost(self.below)
        left = numbers[:, None] - numbers  # of c cuts, j lie in the region
        for r in range(count):
            before = self._before(found, r)
            before[0] = first[r]
            found[1:, r] = _log_sum(np.where(left >= 0, before[left], NEVER) + here[r])
        return found

    def _before(self, sums: Floats, r: int) -> Floats:
        """For every number of cuts to the left of region r, the logarithm of all ways, up to the interval that ends in r."""
        if r == 0:
            return np.full(self.cuts + 1, NEVER)
        steps = self._cost(self.below[r] - self.below[:r])
        return _log_sum(sums[:, :r] + steps)

    def draw(self, uniforms: Uniforms) -> list[int]:
        """Region by region from the right, then points within each."""
        uniforms.claim()
        try:
            return self._draw(uniforms)
        finally:
            uniforms.release()

    def _draw(self, uniforms: Uniforms) -> list[int]:
        last = self.sums[self.cuts] + self._cost(self.records - self.below)
        r, left, empty = _choose(uniforms, last), self.cuts, float(self._cost(0))
        chosen: list[int] = []
        while True:
            inside = self.inside[r]
            # how many cuts lie here, and in which region the one before them; last of all: nothing before them
            steps = self._cost(self.below[r] - self.below[:r])
            rows = [self.sums[left - j, :r] + steps + (inside[j] + (j - 1) * empty) for j in range(1, left)]
            alone = float(self._cost(int(self.below[r]))) + inside[left] + (left - 1) * empty
            terms = np.concatenate([*rows, [alone]])
            pick = _choose(uniforms, terms)
            here = pick // r + 1 if pick < len(terms) - 1 else left
            chosen = self._points(uniforms, r, here) + chosen
            left -= here
            if pick == len(terms) - 1:
                return chosen
            r = pick % r

    def _points(self, uniforms: Uniforms, r: int, count: int) -> list[int]:
        """`count` different points of a region, each set with probability in proportion to the product of its weights."""
        weights = self.log_weights[self.starts[r] : self.ends[r]]
        suffix = np.full((len(weights) + 1, count + 1), NEVER)
        suffix[:, 0] = 0.0
        for i in range(len(weights) - 1, -1, -1):
            suffix[i, 1:] = np.logaddexp(suffix[i + 1, 1:], weights[i] + suffix[i + 1, :-1])
        found, at = [], 0
        for left in range(count, 0, -1):
            at += _choose(uniforms, weights[at:] + suffix[at + 1 :, left - 1])
            found.append(int(self.starts[r]) + at)
            at += 1
        return found


def _log_sum(terms: Floats) -> Floats:
    """`log Σ exp(term)` of every row."""
    largest = terms.max(axis=1)
    largest[largest == NEVER] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))


def _symmetric(log_weights: Floats, most: int) -> Floats:
    """Logarithms of the elementary symmetric sums of order 0, 1, ..., most."""
    sums = np.full(most + 1, NEVER)
    sums[0] = 0.0
    for weight in log_weights:
        sums[1:] = np.logaddexp(sums[1:], weight + sums[:-1])
    return sums


def _choose(uniforms: Uniforms, log_weights: Floats) -> int:
    """An index with probability in proportion to its weight, by coins of full relative precision.

    As `choose_log` does, the lightest first, but all coins at once. Nothing is compiled, unless a coin of `exp(-600)` comes up.
    """
    possible = np.flatnonzero(log_weights > NEVER)
    uniforms.at_least(2 * len(possible) + 1000, 4 * len(possible) + 4000)
    order = possible[np.argsort(log_weights[possible], kind="stable")]
    ascending = log_weights[order]
    rest = ascending[-1] + np.log(np.cumsum(np.exp(ascending - ascending[-1])[::-1])[::-1])
    coins = (ascending - rest)[:-1]
    stream, start = uniforms.stream, 0
    while True:
        at = int(stream.used[0])
        up = np.flatnonzero(
            stream.uniforms[at : at + len(coins) - start] < np.exp(np.maximum(coins[start:], -LOG_STEP))
        )
        if not len(up):
            stream.used[0] = at + len(coins) - start
            return int(order[-1])
        stream.used[0] = at + int(up[0]) + 1
        start += int(up[0]) + 1
        if coins[start - 1] >= -LOG_STEP or coin(stream, coins[start - 1] + LOG_STEP):  # else too unlikely for one coin
            return int(order[start - 1])
