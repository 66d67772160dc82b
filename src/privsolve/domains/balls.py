"""Integer points of a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.domains.knapsack import Knapsack
from privsolve.domains.knapsack_domain import KnapsackDomain


@dataclass(frozen=True)
class IntegerBall(KnapsackDomain):
    """Integer vectors with squared norm at most `radius_sq`: the paper's weight space."""

    dim: int
    radius_sq: int
    kind: ClassVar[str] = "integer-ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, 10_000))
        object.__setattr__(self, "radius_sq", check_integer("radius_sq", self.radius_sq, 1, 10_000))

    @property
    def radius_sq_bound(self) -> int:
        """The largest squared norm that is attained; it may be below `radius_sq` in fewer than four dimensions."""
        return _largest_sum_of_squares(self.dim, self.radius_sq)

    @property
    def equal_norms(self) -> bool:
        """Zero and a unit vector are members, so no."""
        return False

    def values(self, j: int) -> Int64Array:
        """`-B..B` with `B = floor(radius)`."""
        largest = math.isqrt(self.radius_sq)
        return np.arange(-largest, largest + 1)

    def knapsack(self) -> Knapsack:
        """Cost `v²`, any total up to `radius_sq`."""
        limit = self.radius_sq_bound
        return Knapsack.between((self.values(0) ** 2,) * self.dim, 0, limit, norm_sq=np.arange(limit + 1))


def _largest_sum_of_squares(terms: int, limit: int) -> int:
    """The largest sum of `terms` squares that is at most `limit`; four squares reach every integer (Lagrange)."""
    if terms >= 4:
        return limit
    if terms == 1:
        return math.isqrt(limit) ** 2
    return max(v * v + _largest_sum_of_squares(terms - 1, limit - v * v) for v in range(math.isqrt(limit) + 1))
