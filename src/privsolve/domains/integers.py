"""Sets of integer vectors: signs, signs and zeros, balls, grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer, check_items
from privsolve.domains.base import LARGEST_VALUE, KnapsackDomain
from privsolve.domains.knapsack import Knapsack


@dataclass(frozen=True)
class _Signs(KnapsackDomain):
    """Vectors of -1, 0 and 1 of which `fewest` to `most` entries are not 0."""

    dim: int
    entries: ClassVar[tuple[int, ...]] = (-1, 0, 1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_integer("dim", self.dim, 1, 10_000))

    @property
    def fewest(self) -> int:
        """The fewest entries that are not 0."""
        return self.most

    @property
    def most(self) -> int:
        """The most entries that are not 0: the largest squared norm."""
        return self.dim

    @property
    @override
    def radius_sq_bound(self) -> int:
        return self.most

    @property
    @override
    def equal_norms(self) -> bool:
        return self.fewest == self.most

    @property
    def size(self) -> int:
        """`C(dim, k) 2^k` for exactly `k` entries that are not 0."""
        return math.comb(self.dim, self.most) << self.most

    def values(self, j: int) -> Int64Array:
        """-1, 1 and, where entries may be 0, 0."""
        return np.array(self.entries)

    def knapsack(self) -> Knapsack:
        """Cost `1[v != 0]`, which is `v²` here, so that the total is the squared norm."""
        costs = (np.abs(self.values(0)),) * self.dim
        return Knapsack.between(costs, self.fewest, self.most, norm_sq=np.arange(self.most + 1))


@dataclass(frozen=True)
class SignCube(_Signs):
    """The sign vectors `{-1, 1}^dim`."""

    kind: ClassVar[str] = "sign-cube"
    entries: ClassVar[tuple[int, ...]] = (-1, 1)

    @property
    def separation_sq(self) -> int:
        """Two sign vectors differ by 2 in some coordinate."""
        return 4


@dataclass(frozen=True)
class TernaryCube(_Signs):
    """The vectors `{-1, 0, 1}^dim`."""

    kind: ClassVar[str] = "ternary-cube"

    @property
    @override
    def fewest(self) -> int:
        return 0

    @property
    def size(self) -> int:
        """`3^dim`."""
        return int(3**self.dim)


@dataclass(frozen=True)
class SparseSigns(_Signs):
    """Vectors with *exactly* `k` entries -1 or 1 and the others 0."""

    k: int
    kind: ClassVar[str] = "sparse-signs"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k", check_integer("k", self.k, 1, self.dim))

    @property
    @override
    def most(self) -> int:
        return self.k

    @property
    def separation_sq(self) -> int:
        """Moving one non-zero changes two coordinates by one; with no room to move, a sign flips by 2."""
        return 2 if self.k < self.dim else 4


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
    @override
    def dim(self) -> int:  # type: ignore[override]
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
