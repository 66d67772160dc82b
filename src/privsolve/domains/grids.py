"""Integer points of a box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer, check_items
from privsolve.domains.finite import LARGEST_VALUE
from privsolve.domains.knapsack import Knapsack
from privsolve.domains.knapsack_domain import KnapsackDomain


@dataclass(frozen=True)
class IntegerGrid(KnapsackDomain):
    """Integer vectors from `low` to `high` in every coordinate, both included.

    OPDisc's noise grows with the largest norm: put the zero into the middle.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    kind: ClassVar[str] = "integer-grid"

    def __init__(self, low: Sequence[int], high: Sequence[int]) -> None:
        ends = {}
        for name, values in (("low", low), ("high", high)):
            if not isinstance(values, Sequence | np.ndarray):
                raise ValueError(f"{name} must be a list of whole numbers, one per coordinate")
            listed = check_items(name, values, "be a list of whole numbers, one per coordinate")
            ends[name] = tuple(check_integer(name, v, -LARGEST_VALUE, LARGEST_VALUE) for v in listed)
        if not 1 <= len(ends["low"]) == len(ends["high"]) <= 10_000:
            raise ValueError("low and high must be lists of one length, one number per coordinate")
        if any(a > b for a, b in zip(ends["low"], ends["high"], strict=True)):
            raise ValueError("low must not be above high in any coordinate")
        for name, found in ends.items():
            object.__setattr__(self, name, found)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return len(self.low)

    @property
    def size(self) -> int:
        """The product of the numbers of values."""
        return math.prod(b - a + 1 for a, b in zip(self.low, self.high, strict=True))

    @property
    def radius_sq_bound(self) -> int:
        """The squared norm of the farthest corner."""
        return sum(max(a * a, b * b) for a, b in zip(self.low, self.high, strict=True))

    def values(self, j: int) -> Int64Array:
        """All whole numbers from the low to the high end."""
        return np.arange(self.low[j], self.high[j] + 1)

    def knapsack(self) -> Knapsack:
        """Every vector costs nothing and is allowed."""
        costs = tuple(np.zeros(b - a + 1, dtype=np.int64) for a, b in zip(self.low, self.high, strict=True))
        return Knapsack.between(costs, 0, 0)
