"""Public grids of cut points, and exact draws of points that divide records evenly (theory, 12.2)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_finite
from privsolve.data.columns import Real, tidy
from privsolve.errors import PrivsolveError
from privsolve.noise.coins import LOG_STEP, Uniforms, coin
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

LOWEST, HIGHEST = -6, 9
"""Powers of ten between which the default grid lies."""

BEYOND = 10.0 ** (HIGHEST + 1)
"""Larger sizes count as this one: engines turn rounded numbers into integers."""

COMMON = (-2, 5)
"""Powers of ten that most measurements have: four times as likely beforehand as others."""

MOST_POINTS = 100_000
TOUCHING = 1e-12
"""A number that is so close to a point, relative to its size, counts as being there: decimals are not exact in binary."""


class Grid(ABC):
    """Candidates for cut points in ascending order, and how likely each is before the data is seen.

    A number x is in cell c if exactly c points are at most x.
    """

    @property
    @abstractmethod
    def points(self) -> tuple[Real, ...]:
        """The candidates."""

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """Positive weights, one per candidate; only their ratios matter."""

    @abstractmethod
    def cell(self, number: Any) -> Any:
        """The cell of a number that is not null, as an expression of Ibis."""

    @property
    def zero(self) -> int | None:
        """The cell that begins at 0, if 0 is a candidate."""
        return self.points.index(0) + 1 if 0 in self.points else None

    def only_whole(self, number: int) -> int | None:
        """The cell in which this is the only whole number, if there is one."""
        place = bisect_left(self.points, number)
        if self.points[place : place + 1] != (number,) or self.points[place + 1 : place + 2] > (number + 1,):
            return None
        return place + 1 if place + 1 < len(self.points) else None


def _roundness(digits: int) -> float:
    """How likely a number of three digits is beforehand."""
    if digits % 100 == 0 or digits in (150, 250):
        return 8.0 if digits in (100, 200, 500) else 4.0
    return 2.0 if digits % 50 == 0 else 1.0 if digits % 10 == 0 else 0.2 if digits % 5 == 0 else 0.1


@dataclass(frozen=True)
class DecimalGrid(Grid):
    """Numbers of three digits times a power of ten, of both signs, and 0: from 0.000001 to 9.99 thousand millions.

    Round ones are likelier: among numbers of two digits 1, 2 and 5 count eight times, other single digits, 1.5 and 2.5 four
    times, halves twice; numbers of three digits count a tenth, or a fifth if they end in 5.
    """

    @cached_property
    def _sizes(self) -> list[tuple[Real, float]]:
        found: list[tuple[Real, float]] = []
        for power in range(LOWEST, HIGHEST + 1):
            common = 4.0 if COMMON[0] <= power <= COMMON[1] else 1.0
            for digits in range(100, 1000):
                found.append((tidy(float(f"{digits}e{power - 2}")), common * _roundness(digits)))
        return found

    @cached_property
    def points(self) -> tuple[Real, ...]:  # type: ignore[override]
        """All candidates."""
        sizes = [size for size, _ in self._sizes]
        return (*(-size for size in reversed(sizes)), 0, *sizes)

    @cached_property
    def weights(self) -> Floats:  # type: ignore[override]
        """Negative ones count a quarter."""
        sizes = np.array([weight for _, weight in self._sizes])
        return np.concatenate([sizes[::-1] / 4, [32.0], sizes])

    def cell(self, number: Any) -> Any:
        """By the power of ten, then the three digits."""
        import ibis

        size, half = number.abs(), len(self._sizes)
        near = size * (1 + TOUCHING)
        first = _stepwise(near, _POWERS, [0.0, *(900.0 * power for power in range(len(_POWERS)))])
        scaled = ibis.least(size, BEYOND) * _stepwise(near, _POWERS, [0.0, *map(float, _SCALES)])
        up = first + (scaled * (1 + TOUCHING)).floor() - 100
        down = first + (scaled * (1 - TOUCHING)).ceil() - 100
        tiny = near < float(_POWERS[0])
        return ibis.cases(
            (tiny & (number < 0), float(half)),
            (tiny, float(half + 1)),
            (number < 0, half - ibis.least(down, float(half))),
            else_=half + 2 + ibis.least(up, float(half - 1)),
        ).cast("int64")


_POWERS = np.array([float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)])
_SCALES = np.array([float(f"1e{2 - power}") for power in range(LOWEST, HIGHEST + 1)])


def _stepwise(size: Any, steps: Floats, values: Sequence[float]) -> Any:
    """The value that belongs to the number of steps up to `size`, by halving: few comparisons per value in an engine."""
    import ibis

    def between(low: int, high: int) -> Any:
        if low == high:
            return ibis.literal(values[low])
        middle = (low + high + 1) // 2
        return ibis.ifelse(size >= float(steps[middle - 1]), between(middle, high), between(low, middle - 1))

    return between(0, len(steps))


@dataclass(frozen=True)
class StepGrid(Grid):
    """Equally distant points between public bounds, all equally likely."""

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        low, high, step = (check_finite(name, getattr(self, name)) for name in ("low", "high", "step"))
        if not low < high or not step > 0:
            raise ValueError(f"bounds must have low below high and a positive step, got {low:g}, {high:g} and {step:g}")
        if (high - low) / step > MOST_POINTS:
            raise ValueError(
                f"bounds must have at most {MOST_POINTS:,} steps, got a step of {step:g}: use a larger one"
            )

    @classmethod
    def between(cls, low: float, high: float, step: float | None = None) -> StepGrid:
        """With a step of its own if none is given: 1, 2 or 5 times a power of ten, two hundred or more of them."""
        spread = check_finite("high", high) - check_finite("low", low)
        if step is not None or not spread > 0:
            return cls(low, high, 1.0 if step is None else step)
        power = 10.0 ** math.floor(math.log10(spread / 200))
        return cls(low, high, max(m * power for m in (1, 2, 5) if m * power <= spread / 200 * (1 + TOUCHING)))

    @property
    def count(self) -> int:
        """Number of points."""
        return math.floor((self.high - self.low) / self.step + 1e-9) + 1

    @cached_property
    def points(self) -> tuple[Real, ...]:  # type: ignore[override]
        """From low on, to twelve digits: 0.3 and not 0.30000000000000004."""
        return tuple(tidy(float(f"{self.low + i * self.step:.12g}")) for i in range(self.count))

    @property
    def weights(self) -> Floats:
        """All the same."""
        return np.ones(self.count)

    def cell(self, number: Any) -> Any:
        """Clipped to the bounds, then divided."""
        import ibis

        inside = ibis.least(ibis.greatest(number, self.low - self.step), self.high + self.step)
        steps = ((inside - self.low) / self.step + 1e-9).floor() + 1
        return ibis.least(ibis.greatest(steps, 0.0), float(self.count)).cast("int64")


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
