"""Oracles that are exact in integers: branch and bound (the default), enumeration, and linear costs over sets.

Scorecards over columns that are declared to be 0/1 are solved by the supports-first tree, everything else by the coordinate
tree.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, FiniteSet, KnapsackDomain, Permutations, SpanningTrees, Subsets
from privsolve.engines.coordinates.instance import Layout, lay_out, perturbed, weights_of
from privsolve.engines.coordinates.minimise import ProgressCallback, compile_search, minimise
from privsolve.engines.supports.minimise import compile_minimiser
from privsolve.engines.supports.problems import Columns, can_minimise, columns_of
from privsolve.engines.supports.problems import minimise as minimise_scorecard
from privsolve.errors import OracleNotCertified
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.oracles.base import EXACT, Oracle, Solution, Solve, Solver, check_limits
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, LinearProblem, Problem

EXACT_IN_FLOATS = 2**52
"""Sums and differences of integers below this are exact in double precision."""


class EnumerationOracle(Oracle):
    """Exact minimum over a domain small enough to list (ten million members at most): the reference for all others."""

    about: ClassVar[Solver | None] = Solver("enumeration", "MIT", EXACT, "domains of at most 10,000,000 members")

    def check(self, problem: BaseProblem) -> None:
        """Raise `ValueError` before any noise is drawn if the domain cannot be listed."""
        super().check(problem)
        problem.domain.check_listable()

    def minimise(
        self, problem: BaseProblem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The first minimiser in lexicographic order."""
        problem.check_perturbation(perturbation)
        members = problem.domain.members()
        values = problem.losses_of(members) * UNIT + perturbation.of_members(members)
        best = int(np.argmin(values))
        return Solution(members[best], int(values[best]), int(values[best]), work={"nodes": len(members)})


@dataclass(frozen=True)
class TreeOracle(Oracle):
    """Certified minimum by the coordinate tree, or by the supports-first tree where that applies.

    `node_limit` and `time_limit` (seconds) end the search with `WorkLimitReached`; no uncertified answer is ever
    returned. `threads` defaults to the number of cores and does not change the answer.
    """

    node_limit: int | None = None
    time_limit: float | None = None
    threads: int | None = None
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (Problem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (KnapsackDomain, FiniteSet)
    losses: ClassVar[tuple[type[Loss], ...]] = (ZeroOneLoss,)
    about: ClassVar[Solver | None] = Solver("tree", "MIT", EXACT, "the default: certified by privsolve itself")

    def __post_init__(self) -> None:
        check_limits(self, "node_limit", "time_limit", "threads")

    def prepare(self, problem: Problem, template: Perturbation) -> Solve:
        """Lay the problem out and compile the search, so that nothing is compiled after the payment."""
        self.check(problem)
        if isinstance(problem.domain, FiniteSet):  # a list is a tree of depth one: every point is a leaf
            return EnumerationOracle().prepare(problem, template)
        if can_minimise(problem, template):
            columns = columns_of(problem)
            compile_minimiser()
            return partial(self._by_supports, problem, columns)
        layout = lay_out(problem, template)
        compile_search(layout)
        return partial(self._by_coordinates, problem, layout)

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The certified minimiser; the same one whatever the number of threads."""
        solution: Solution = self.prepare(problem, perturbation)(perturbation, progress)
        return solution

    def _by_supports(
        self, problem: Problem, columns: Columns, perturbation: Perturbation, progress: ProgressCallback | None
    ) -> Solution:
        problem.check_perturbation(perturbation)
        best = minimise_scorecard(problem, columns, perturbation, self.node_limit, self.time_limit)
        weights = best.weights[: problem.domain.dim]  # without an intercept column its 0 is left out
        return Solution(weights, best.value, best.value, work={"supports": best.work.supports})

    def _by_coordinates(
        self, problem: Problem, layout: Layout, perturbation: Perturbation, progress: ProgressCallback | None
    ) -> Solution:
        problem.check_perturbation(perturbation)
        inst = perturbed(layout, perturbation)
        best = minimise(
            inst, node_limit=self.node_limit, time_limit=self.time_limit, threads=self.threads, progress=progress
        )
        return Solution(weights_of(inst, best.indices), best.value, best.value, work={"nodes": best.nodes})


class _LinearOracle(Oracle):
    """Finds the best member of its domain for given coordinate costs, in integers: the answer is its own certificate."""

    problems: ClassVar[tuple[type[BaseProblem], ...]] = (LinearProblem,)

    @abstractmethod
    def best(self, domain: Any, costs: Int64Array) -> Int64Array:
        """Indices of the coordinates that are 1 in the best member."""

    def minimise(
        self, problem: LinearProblem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The exact minimum."""
        self.check(problem)
        problem.check_perturbation(perturbation)
        steps = np.array([int(table[1]) - int(table[0]) for table in perturbation.coordinate])
        weights = np.zeros(problem.domain.dim, dtype=np.int64)
        weights[self.best(problem.domain, problem.total * UNIT + steps)] = 1
        value = problem.objective(weights, perturbation)
        return Solution(weights, value, value)


class AssignmentOracle(_LinearOracle):
    """The best assignment by SciPy's shortest augmenting paths, which only adds and subtracts costs."""

    domains: ClassVar[tuple[type[Domain], ...]] = (Permutations,)
    about: ClassVar[Solver | None] = Solver("assignment", "MIT", EXACT, "permutations with linear costs")

    def best(self, domain: Permutations, costs: Int64Array) -> Int64Array:
        """Indices of the assigned pairs."""
        if int(np.abs(costs).max()) * 4 * domain.k >= EXACT_IN_FLOATS:
            raise OracleNotCertified(
                "costs plus noise leave the integers that doubles hold exactly: retry with another oracle"
            )
        from scipy.optimize import linear_sum_assignment  # takes a while to import

        rows, columns = linear_sum_assignment(costs.reshape(domain.k, domain.k).astype(np.float64))
        return np.asarray(rows * domain.k + columns)


class SpanningTreeOracle(_LinearOracle):
    """The cheapest spanning tree by Kruskal's algorithm on integers."""

    domains: ClassVar[tuple[type[Domain], ...]] = (SpanningTrees,)
    about: ClassVar[Solver | None] = Solver("spanning-tree", "MIT", EXACT, "spanning trees with linear costs")

    def best(self, domain: SpanningTrees, costs: Int64Array) -> Int64Array:
        """Indices of the tree's edges."""
        return np.array(domain.joining(np.argsort(costs, kind="stable").tolist()))


class SubsetOracle(_LinearOracle):
    """The `k` cheapest items."""

    domains: ClassVar[tuple[type[Domain], ...]] = (Subsets,)
    about: ClassVar[Solver | None] = Solver("subset", "MIT", EXACT, "subsets with linear costs")

    def best(self, domain: Subsets, costs: Int64Array) -> Int64Array:
        """Indices of the chosen items."""
        return np.asarray(np.argsort(costs, kind="stable")[: domain.k])
