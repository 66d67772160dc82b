"""Sets of 0/1 vectors that stand for combinatorial objects: subsets, permutations, spanning trees."""

from __future__ import annotations

import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.domains.base import Domain, KnapsackDomain
from privsolve.domains.knapsack import Knapsack


class ZeroOneDomain(Domain):
    """Indicators of sets of the same number of coordinates, so that the sphere lift needs no extra one (section 2)."""

    @property
    @override
    def equal_norms(self) -> bool:
        return True

    @property
    @override
    def norms_sq(self) -> Int64Array:
        return np.array([self.radius_sq_bound])

    @property
    def separation_sq(self) -> int:
        """Exchanging one coordinate for another changes two entries."""
        return 2

    def values(self, j: int) -> Int64Array:
        """0 and 1."""
        return np.array([0, 1])

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """An upper bound on `<c, w>`: the sum of as many of the largest costs as a member has ones."""
        return np.asarray(np.sort(costs, axis=1)[:, -self.radius_sq_bound :].sum(axis=1))


@dataclass(frozen=True)
class Subsets(ZeroOneDomain, KnapsackDomain):
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
    def size(self) -> int:
        """`C(dim, k)`."""
        return math.comb(self.dim, self.k)

    def knapsack(self) -> Knapsack:
        """Cost `v`, total exactly `k`."""
        return Knapsack.between((self.values(0),) * self.dim, self.k, self.k, norm_sq=np.arange(self.k + 1))

    def has(self, vector: Int64Array) -> bool:
        """Whether `k` entries are 1 and the others 0."""
        return bool(np.isin(vector, (0, 1)).all() and int(vector.sum()) == self.k)


class _ListedSets(ZeroOneDomain):
    """Members that are listed by the coordinates that are 1."""

    @abstractmethod
    def sets(self) -> Iterable[tuple[int, ...]]:
        """The coordinates that are 1, for every member."""

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order, where they are few enough."""
        self.check_listable()
        result = np.zeros((self.size, self.dim), dtype=np.int64)
        result[np.arange(self.size)[:, None], list(self.sets())] = 1
        return result[np.lexsort(result.T[::-1])]


@dataclass(frozen=True)
class Permutations(_ListedSets):
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


@dataclass(frozen=True)
class SpanningTrees(_ListedSets):
    """Indicators of the edge sets that are spanning trees of a connected public graph."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    kind: ClassVar[str] = "spanning-trees"

    def __init__(self, nodes: int, edges: Sequence[Sequence[int]]) -> None:
        count = check_integer("nodes", nodes, 2, 10_000)
        try:
            pairs = tuple((operator.index(a), operator.index(b)) for a, b in edges)
        except (TypeError, ValueError):
            raise ValueError("edges must be pairs of node numbers") from None
        if any(a == b or not (0 <= a < count and 0 <= b < count) for a, b in pairs) or len(set(pairs)) < len(pairs):
            raise ValueError(f"edges must be different pairs of two different nodes in 0..{count - 1}")
        object.__setattr__(self, "nodes", count)
        object.__setattr__(self, "edges", pairs)
        if len(self.joining(range(len(pairs)))) < count - 1:
            raise ValueError("the graph is not connected: it has no spanning tree")

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Number of edges."""
        return len(self.edges)

    @property
    def radius_sq_bound(self) -> int:
        """A tree has one edge less than there are nodes."""
        return self.nodes - 1

    @property
    def size(self) -> int:
        """Number of spanning trees: a determinant (Kirchhoff), in exact fractions."""
        laplacian = [[Fraction(0)] * self.nodes for _ in range(self.nodes)]
        for a, b in self.edges:
            laplacian[a][a] += 1
            laplacian[b][b] += 1
            laplacian[a][b] -= 1
            laplacian[b][a] -= 1
        return int(_determinant([row[1:] for row in laplacian[1:]]))

    def has(self, vector: Int64Array) -> bool:
        """Whether the chosen edges connect all nodes without a cycle."""
        chosen = np.flatnonzero(vector).tolist()
        zero_one = bool(np.isin(vector, (0, 1)).all())
        return zero_one and len(chosen) == self.nodes - 1 == len(self.joining(chosen))

    def sets(self) -> Iterable[tuple[int, ...]]:
        """The edges of every spanning tree."""
        for chosen in itertools.combinations(range(self.dim), self.nodes - 1):
            if len(self.joining(chosen)) == self.nodes - 1:
                yield chosen

    def joining(self, order: Iterable[int]) -> list[int]:
        """Kruskal: those edges, taken in `order`, that join two components."""
        root = list(range(self.nodes))
        kept = []
        for edge in order:
            a, b = (_find(root, end) for end in self.edges[edge])
            if a != b:
                root[a] = b
                kept.append(edge)
        return kept


def _find(root: list[int], node: int) -> int:
    """The representative of the node's component; halves the way for the next time."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def _determinant(matrix: list[list[Fraction]]) -> Fraction:
    """Gaussian elimination in fractions; the matrix is positive definite, so no pivoting is needed."""
    result = Fraction(1)
    for i, pivot_row in enumerate(matrix):
        result *= pivot_row[i]
        for row in matrix[i + 1 :]:
            factor = row[i] / pivot_row[i]
            for j in range(i, len(matrix)):
                row[j] -= factor * pivot_row[j]
    return result
