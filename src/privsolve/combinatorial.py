"""Combinatorial domains as 0/1 vectors, and exact oracles for linear costs over them.

All members of each domain have the same norm, so the sphere lift needs no extra coordinate (theory, section 2).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from privsolve.data.patterns import Int64Array
from privsolve.domains import DOMAINS, Budget, Domain, _check_integer
from privsolve.errors import OracleNotCertified
from privsolve.oracles.base import Solution, solution_of
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import LinearProblem

EXACT_IN_FLOATS = 2**52
"""Sums and differences of integers below this are exact in double precision."""


class _ZeroOne(Domain):
    """0/1 vectors of one norm."""

    def values(self, j: int) -> Int64Array:
        """0 and 1."""
        return np.array([0, 1])

    @property
    def equal_norms(self) -> bool:
        """Every member has the same number of ones."""
        return True

    @property
    def norms_sq(self) -> Int64Array:
        """The one squared norm."""
        return np.array([self.radius_sq_bound])

    def budget(self, track_norm: bool = True) -> Budget:
        """Membership is more than a sum of costs."""
        raise ValueError(f"{type(self).__name__} has no additive budget: use its own oracle or oracle='enumeration'")

    def _all(self) -> Iterator[tuple[int, ...]]:
        raise NotImplementedError

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order, where they are few enough."""
        self.check_listable()
        return np.array(sorted(self._all()), dtype=np.int64).reshape(-1, self.dim)


@dataclass(frozen=True)
class Permutations(_ZeroOne):
    """Permutation matrices of order `k`, row by row: entry `k·i + j` is 1 iff row i is assigned column j."""

    k: int
    kind: ClassVar[str] = "permutations"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _check_integer(self.k, "k", 2, 1000))

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

    def contains(self, weights: ArrayLike) -> bool:
        """Whether every row and every column has a single 1."""
        w = np.asarray(weights)
        if w.shape != (self.dim,) or w.dtype.kind not in "iu" or not np.isin(w, (0, 1)).all():
            return False
        matrix = w.reshape(self.k, self.k)
        return bool((matrix.sum(axis=0) == 1).all() and (matrix.sum(axis=1) == 1).all())

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """An upper bound on `<c, w>`: the largest cost of every row."""
        return np.asarray(costs.reshape(len(costs), self.k, self.k).max(axis=2).sum(axis=1))

    def _all(self) -> Iterator[tuple[int, ...]]:
        for order in itertools.permutations(range(self.k)):
            yield tuple(int(order[i] == j) for i in range(self.k) for j in range(self.k))

    def to_dict(self) -> dict[str, Any]:
        """Kind and order."""
        return {"kind": self.kind, "k": self.k}


@dataclass(frozen=True)
class Subsets(_ZeroOne):
    """Indicators of the subsets of `k` out of `dim` items."""

    dim: int
    k: int
    kind: ClassVar[str] = "subsets"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check_integer(self.dim, "dim", 2, 100_000))
        object.__setattr__(self, "k", _check_integer(self.k, "k", 1, self.dim - 1))

    @property
    def radius_sq_bound(self) -> int:
        """`k` ones."""
        return self.k

    @property
    def separation_sq(self) -> int:
        """Exchanging one item changes two entries."""
        return 2

    @property
    def size(self) -> int:
        """`C(dim, k)`."""
        return math.comb(self.dim, self.k)

    def budget(self, track_norm: bool = True) -> Budget:
        """Cost `v`, total exactly `k`."""
        norm_sq = np.full(self.k + 1, -1)
        norm_sq[self.k] = self.k
        return Budget((np.array([0, 1]),) * self.dim, norm_sq, tracks_norm=True)

    def contains(self, weights: ArrayLike) -> bool:
        """Whether `k` entries are 1 and the others 0."""
        w = np.asarray(weights)
        return (
            w.shape == (self.dim,)
            and w.dtype.kind in "iu"
            and bool(np.isin(w, (0, 1)).all() and int(w.sum()) == self.k)
        )

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """The sum of the `k` largest costs."""
        return np.asarray(np.sort(costs, axis=1)[:, -self.k :].sum(axis=1))

    def _all(self) -> Iterator[tuple[int, ...]]:
        for chosen in itertools.combinations(range(self.dim), self.k):
            yield tuple(int(j in chosen) for j in range(self.dim))

    def to_dict(self) -> dict[str, Any]:
        """Kind, number of items and size."""
        return {"kind": self.kind, "dim": self.dim, "k": self.k}


@dataclass(frozen=True)
class SpanningTrees(_ZeroOne):
    """Indicators of the edge sets that are spanning trees of a connected public graph."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    kind: ClassVar[str] = "spanning-trees"

    def __init__(self, nodes: int, edges: Sequence[Sequence[int]]) -> None:
        count = _check_integer(nodes, "nodes", 2, 10_000)
        try:
            pairs = tuple((operator.index(a), operator.index(b)) for a, b in edges)
        except (TypeError, ValueError):
            raise ValueError("edges must be pairs of node numbers") from None
        if any(a == b or not (0 <= a < count and 0 <= b < count) for a, b in pairs) or len(set(pairs)) < len(pairs):
            raise ValueError(f"edges must be different pairs of two different nodes in 0..{count - 1}")
        object.__setattr__(self, "nodes", count)
        object.__setattr__(self, "edges", pairs)
        if len(_spanning(count, pairs, range(len(pairs)))) < count - 1:
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
    def separation_sq(self) -> int:
        """Exchanging one edge changes two entries."""
        return 2

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

    def contains(self, weights: ArrayLike) -> bool:
        """Whether the chosen edges connect all nodes without a cycle."""
        w = np.asarray(weights)
        if w.shape != (self.dim,) or w.dtype.kind not in "iu" or not np.isin(w, (0, 1)).all():
            return False
        chosen = np.flatnonzero(w)
        return len(chosen) == self.nodes - 1 == len(_spanning(self.nodes, self.edges, chosen))

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """An upper bound on `<c, w>`: the sum of the largest `nodes - 1` costs."""
        return np.asarray(np.sort(costs, axis=1)[:, -(self.nodes - 1) :].sum(axis=1))

    def _all(self) -> Iterator[tuple[int, ...]]:
        for chosen in itertools.combinations(range(self.dim), self.nodes - 1):
            if len(_spanning(self.nodes, self.edges, chosen)) == self.nodes - 1:
                yield tuple(int(j in chosen) for j in range(self.dim))

    def to_dict(self) -> dict[str, Any]:
        """Kind and graph."""
        return {"kind": self.kind, "nodes": self.nodes, "edges": [list(edge) for edge in self.edges]}


def _spanning(nodes: int, edges: Sequence[tuple[int, int]], order: Any) -> list[int]:
    """Kruskal: the edges, taken in `order`, that join two components."""
    root = list(range(nodes))

    def find(a: int) -> int:
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        return a

    kept = []
    for edge in order:
        a, b = (find(end) for end in edges[edge])
        if a != b:
            root[a] = b
            kept.append(int(edge))
    return kept


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


for _domain in (Permutations, Subsets, SpanningTrees):
    DOMAINS[_domain.kind] = _domain


def perturbed_costs(problem: LinearProblem, perturbation: Perturbation) -> Int64Array:
    """What one more unit of each coordinate adds to the perturbed total, in units of `2^-20`."""
    problem.check_perturbation(perturbation)
    steps = np.array([int(table[1]) - int(table[0]) for table in perturbation.coordinate])
    return np.asarray(problem.total * UNIT + steps)


class _ExactOracle:
    """An oracle that finds the best member of its domain for given coordinate costs, exactly."""

    name: ClassVar[str]
    domain: ClassVar[type[Domain]]
    tolerance: ClassVar[float] = 0.0

    def check(self, problem: LinearProblem) -> None:
        """Raise before any noise is drawn if this oracle does not fit the problem."""
        if not isinstance(problem, LinearProblem) or not isinstance(problem.domain, self.domain):
            raise ValueError(f"the {self.name} oracle solves a LinearProblem over {self.domain.__name__} only")

    def best(self, domain: Any, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the coordinates that are 1 in the best member."""
        raise NotImplementedError

    def minimise(self, problem: LinearProblem, perturbation: Perturbation) -> Solution:
        """The exact minimum: every step works in integers, so the answer is its own certificate."""
        self.check(problem)
        weights = np.zeros(problem.domain.dim, dtype=np.int64)
        weights[self.best(problem.domain, perturbed_costs(problem, perturbation))] = 1
        return solution_of(problem, perturbation, weights, problem.objective(weights, perturbation))


class AssignmentOracle(_ExactOracle):
    """The best assignment by SciPy's shortest augmenting paths, which only adds and subtracts costs."""

    name = "assignment"
    domain = Permutations

    def best(self, domain: Permutations, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the assigned pairs."""
        if int(np.abs(costs).max()) * 4 * domain.k >= EXACT_IN_FLOATS:
            raise OracleNotCertified(
                "costs plus noise leave the integers that doubles hold exactly: retry with another oracle"
            )
        rows, columns = linear_sum_assignment(costs.reshape(domain.k, domain.k).astype(np.float64))
        return np.asarray(rows * domain.k + columns)


class SpanningTreeOracle(_ExactOracle):
    """The cheapest spanning tree by Kruskal's algorithm on integers."""

    name = "spanning-tree"
    domain = SpanningTrees

    def best(self, domain: SpanningTrees, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the tree's edges."""
        return np.array(_spanning(domain.nodes, domain.edges, np.argsort(costs, kind="stable")))


class SubsetOracle(_ExactOracle):
    """The `k` cheapest items."""

    name = "subset"
    domain = Subsets

    def best(self, domain: Subsets, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the chosen items."""
        return np.asarray(np.argsort(costs, kind="stable")[: domain.k])
