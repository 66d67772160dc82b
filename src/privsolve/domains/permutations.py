"""Permutation matrices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.domains.zero_one import ZeroOneDomain


@dataclass(frozen=True)
class Permutations(ZeroOneDomain):
    """Permutation matrices of order `k`, row by row: entry `k·i + j` is 1 iff row i is assigned column j."""

    k: int
    kind: ClassVar[str] = "permutations"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer("k", self.k, 2, 1000))

    @property
    def dim(self) -> int:  # type: ignore[override]
        """`k²`."""
        return self.k**2

    @property
    def radius_sq_bound(self) -> int:
        """`k` ones."""
        return self.k

    @property
    def separation_sq(self) -> int:
        """Two permutations differ in at least two rows, each in two entries."""
        return 4

    @property
    def size(self) -> int:
        """`k!`."""
        return math.factorial(self.k)

    def has(self, vector: Int64Array) -> bool:
        """Whether every row and every column has a single 1."""
        matrix = vector.reshape(self.k, self.k)
        zero_one = np.isin(vector, (0, 1)).all()
        return bool(zero_one and (matrix.sum(axis=0) == 1).all() and (matrix.sum(axis=1) == 1).all())

    def sets(self) -> Iterable[tuple[int, ...]]:
        """The assigned pairs, for every permutation."""
        for order in itertools.permutations(range(self.k)):
            yield tuple(self.k * i + j for i, j in enumerate(order))

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """An upper bound on `<c, w>`: the largest cost of every row."""
        return np.asarray(costs.reshape(len(costs), self.k, self.k).max(axis=2).sum(axis=1))
