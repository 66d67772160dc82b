"""Scorecards: few columns with points, and an intercept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.domains.knapsack import Knapsack
from privsolve.domains.knapsack_domain import KnapsackDomain


@dataclass(frozen=True)
class SparsePoints(KnapsackDomain):
    """Scorecards: at most `max_features` columns have points, whole numbers in `-max_points..max_points`.

    With `intercept=(low, high)` (or a single number b for `(-b, b)`) the *last* column is an intercept: its weight lies in
    that range and does not count as a feature.
    """

    dim: int
    max_features: int
    max_points: int
    intercept: tuple[int, int] | None = None
    kind: ClassVar[str] = "sparse-points"

    def __init__(
        self, dim: int, max_features: int, max_points: int, intercept: int | Sequence[int] | None = None
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "dim", check_integer("dim", dim, 1 if intercept is None else 2, 10_000))
        set_field(self, "intercept", _intercept_range(intercept))
        set_field(self, "max_features", check_integer("max_features", max_features, 1, self.columns))
        set_field(self, "max_points", check_integer("max_points", max_points, 1, 1000))

    @property
    def columns(self) -> int:
        """Number of columns that may have points: all but the intercept."""
        return self.dim - (self.intercept is not None)

    @property
    def radius_sq_bound(self) -> int:
        """All allowed columns at the largest points, and the intercept at its larger end."""
        low, high = self.intercept or (0, 0)
        return self.max_features * self.max_points**2 + max(low**2, high**2)

    @property
    def equal_norms(self) -> bool:
        """Points of different size are members, so no."""
        return False

    @property
    def size(self) -> int:
        """Supports times points times intercepts."""
        low, high = self.intercept or (0, 0)
        supports = (math.comb(self.columns, k) * (2 * self.max_points) ** k for k in range(self.max_features + 1))
        return int(sum(supports)) * (high - low + 1)

    def values(self, j: int) -> Int64Array:
        """The range of points, or of the intercept in the last column."""
        if self.intercept is not None and j == self.dim - 1:
            return np.arange(self.intercept[0], self.intercept[1] + 1)
        return np.arange(-self.max_points, self.max_points + 1)

    @property
    def points(self) -> Int64Array:
        """The points other than 0 that some column may have."""
        values = np.arange(-self.max_points, self.max_points + 1)
        return np.asarray(values[values != 0])

    def knapsack(self) -> Knapsack:
        """Cost `1[v != 0]` but for the intercept, which is free; any total up to `max_features`."""
        costs = [(self.values(0) != 0).astype(np.int64)] * self.columns
        if self.intercept is not None:
            costs.append(np.zeros(len(self.values(self.columns)), dtype=np.int64))
        return Knapsack.between(costs, 0, self.max_features)

    def knapsack_with_norms(self) -> Knapsack:
        """The same scorecards; every vector whose total is within the limit is one, so `D²` bounds all norms."""
        return self.knapsack().with_norms(self.values, self.radius_sq_bound)


def _intercept_range(intercept: int | Sequence[int] | None) -> tuple[int, int] | None:
    if intercept is None:
        return None
    if isinstance(intercept, (int, Integral)):
        bound = check_integer("intercept", intercept, 0, 100_000)
        return -bound, bound
    try:
        low, high = (check_integer("intercept", v, -100_000, 100_000) for v in intercept)
    except (TypeError, ValueError):
        raise ValueError(f"intercept must be None, a number or a pair (low, high), got {intercept!r}") from None
    if low > high:
        raise ValueError(f"intercept must be a pair (low, high) with low <= high, got {intercept!r}")
    return low, high
