"""Vectors with entries -1, 0 and 1."""

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
class SignCube(KnapsackDomain):
    """The sign vectors `{-1, 1}^dim`."""

    dim: int
    kind: ClassVar[str] = "sign-cube"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, 10_000))

    @property
    def radius_sq_bound(self) -> int:
        """`dim`."""
        return self.dim

    @property
    def separation_sq(self) -> int:
        """Two sign vectors differ by 2 in some coordinate."""
        return 4

    @property
    def equal_norms(self) -> bool:
        """Every member has squared norm `dim`."""
        return True

    @property
    def size(self) -> int:
        """`2^dim`."""
        return int(2**self.dim)

    def values(self, j: int) -> Int64Array:
        """-1 and 1."""
        return np.array([-1, 1])

    def knapsack(self) -> Knapsack:
        """`dim` entries that are not zero."""
        return _nonzeros_between(self.values(0), self.dim, self.dim, self.dim)


@dataclass(frozen=True)
class TernaryCube(KnapsackDomain):
    """The vectors `{-1, 0, 1}^dim`."""

    dim: int
    kind: ClassVar[str] = "ternary-cube"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, 10_000))

    @property
    def radius_sq_bound(self) -> int:
        """`dim`, of a vector without zeros."""
        return self.dim

    @property
    def equal_norms(self) -> bool:
        """Zero and a unit vector are members, so no."""
        return False

    @property
    def size(self) -> int:
        """`3^dim`."""
        return int(3**self.dim)

    def values(self, j: int) -> Int64Array:
        """-1, 0 and 1."""
        return np.array([-1, 0, 1])

    def knapsack(self) -> Knapsack:
        """Any number of entries that are not zero."""
        return _nonzeros_between(self.values(0), self.dim, 0, self.dim)


@dataclass(frozen=True)
class SparseSigns(KnapsackDomain):
    """Vectors with *exactly* `k` entries -1 or 1 and the others 0."""

    dim: int
    k: int
    kind: ClassVar[str] = "sparse-signs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, 10_000))
        object.__setattr__(self, "k", check_integer("k", self.k, 1, self.dim))

    @property
    def radius_sq_bound(self) -> int:
        """`k`."""
        return self.k

    @property
    def separation_sq(self) -> int:
        """Moving one non-zero changes two coordinates by one; with no room to move, a sign flips by 2."""
        return 2 if self.k < self.dim else 4

    @property
    def equal_norms(self) -> bool:
        """Every member has squared norm `k`."""
        return True

    @property
    def size(self) -> int:
        """`C(dim, k) 2^k`."""
        return int(math.comb(self.dim, self.k) * 2**self.k)

    def values(self, j: int) -> Int64Array:
        """-1, 0 and 1."""
        return np.array([-1, 0, 1])

    def knapsack(self) -> Knapsack:
        """`k` entries that are not zero."""
        return _nonzeros_between(self.values(0), self.dim, self.k, self.k)


def _nonzeros_between(values: Int64Array, dim: int, low: int, high: int) -> Knapsack:
    """Cost `1[v != 0]`, which is `v²` here, so that the total is the squared norm."""
    return Knapsack.between((np.abs(values),) * dim, low, high, norm_sq=np.arange(high + 1))
