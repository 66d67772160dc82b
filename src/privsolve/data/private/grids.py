"""Public grids of cut points. A number becomes the cell between two of them, by a rule that looks at that number only."""

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
    def cells(self, numbers: Floats) -> Int64Array:
        """The cell of every number; none of them is NaN."""

    @abstractmethod
    def cell(self, number: Any) -> Any:
        """The same as an expression of Ibis, of a number that is not null."""

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

    def cells(self, numbers: Floats) -> Int64Array:
        """By the power of ten, then the three digits: the same operations as in an engine, bit by bit."""
        size = np.abs(numbers)
        power = np.searchsorted(_POWERS, size * (1 + TOUCHING), side="right") - 1  # -1: below the least one
        scaled = np.minimum(size, BEYOND) * _SCALES[np.clip(power, 0, None)]
        up = np.floor(scaled * (1 + TOUCHING)) - 100
        down = np.ceil(scaled * (1 - TOUCHING)) - 100
        half = len(self._sizes)
        from_zero = np.where(power < 0, -1, np.minimum(900 * power + up, half - 1)).astype(np.int64)
        to_zero = np.where(power < 0, 0, np.minimum(900 * power + down, half)).astype(np.int64)
        return np.where(numbers < 0, half - to_zero, half + 2 + from_zero)

    def cell(self, number: Any) -> Any:
        """The same in an engine."""
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

    def cells(self, numbers: Floats) -> Int64Array:
        """Clipped to the bounds, then divided."""
        inside = np.clip(numbers, self.low - self.step, self.high + self.step)
        steps = np.floor((inside - self.low) / self.step + 1e-9) + 1
        return np.asarray(np.clip(steps, 0, self.count), dtype=np.int64)

    def cell(self, number: Any) -> Any:
        """The same in an engine."""
        import ibis

        inside = ibis.least(ibis.greatest(number, self.low - self.step), self.high + self.step)
        steps = ((inside - self.low) / self.step + 1e-9).floor() + 1
        return ibis.least(ibis.greatest(steps, 0.0), float(self.count)).cast("int64")
