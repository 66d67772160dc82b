"""Subsets of a given size."""

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
class Subsets(KnapsackDomain):
    """Indicators of the subsets of `k` out of `dim` items."""

    dim: int
    k: int
    kind: ClassVar[str] = "subsets"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 2, 100_000))
        object.__setattr__(self, "k", check_integer("k", self.k, 1, self.dim - 1))

    @property
    def radius_sq_bound(self) -> int:
        """`k` ones."""
        return self.k

    @property
    def separation_sq(self) -> int:
        """Exchanging one item changes two entries."""
        return 2

    @property
    def equal_norms(self) -> bool:
        """Every member has `k` ones."""
        return True

    @property
    def norms_sq(self) -> Int64Array:
        """The one squared norm."""
        return np.array([self.k])

    @property
    def size(self) -> int:
        """`C(dim, k)`."""
        return math.comb(self.dim, self.k)

    def values(self, j: int) -> Int64Array:
        """0 and 1."""
        return np.array([0, 1])

    def knapsack(self) -> Knapsack:
        """Cost `v`, total exactly `k`."""
        return Knapsack.between((self.values(0),) * self.dim, self.k, self.k, norm_sq=np.arange(self.k + 1))

    def has(self, vector: Int64Array) -> bool:
        """Whether `k` entries are 1 and the others 0."""
        return bool(np.isin(vector, (0, 1)).all() and int(vector.sum()) == self.k)

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """The sum of the `k` largest costs."""
        return np.asarray(np.sort(costs, axis=1)[:, -self.k :].sum(axis=1))
