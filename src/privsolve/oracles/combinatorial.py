"""Exact oracles for linear costs over assignments, subsets and spanning trees."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, Permutations, SpanningTrees, Subsets
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import OracleNotCertified
from privsolve.oracles.base import Oracle, Solution, solution_of
from privsolve.oracles.catalogue import EXACT, Solver
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, LinearProblem

EXACT_IN_FLOATS = 2**52
"""Sums and differences of integers below this are exact in double precision."""


def perturbed_costs(problem: LinearProblem, perturbation: Perturbation) -> Int64Array:
    """What one more unit of each coordinate adds to the perturbed total, in units of `2^-20`."""
    problem.check_perturbation(perturbation)
    steps = np.array([int(table[1]) - int(table[0]) for table in perturbation.coordinate])
    return np.asarray(problem.total * UNIT + steps)


class _ExactOracle(Oracle):
    """An oracle that finds the best member of its domain for given coordinate costs, exactly."""

    problems: ClassVar[tuple[type[BaseProblem], ...]] = (LinearProblem,)

    def unsupported(self, problem: BaseProblem) -> str:
        """Linear costs over one kind of domain."""
        if not super().unsupported(problem):
            return ""
        return f"the {self.name} oracle solves a LinearProblem over {self.domains[0].__name__} only"

    def best(self, domain: Any, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the coordinates that are 1 in the best member."""
        raise NotImplementedError

    def minimise(
        self, problem: LinearProblem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The exact minimum: every step works in integers, so the answer is its own certificate."""
        self.check(problem)
        weights = np.zeros(problem.domain.dim, dtype=np.int64)
        weights[self.best(problem.domain, perturbed_costs(problem, perturbation))] = 1
        return solution_of(problem, perturbation, weights, problem.objective(weights, perturbation))


class AssignmentOracle(_ExactOracle):
    """The best assignment by SciPy's shortest augmenting paths, which only adds and subtracts costs."""

    name = "assignment"
    domains: ClassVar[tuple[type[Domain], ...]] = (Permutations,)
    about: ClassVar[Solver | None] = Solver("assignment", "MIT", EXACT, "permutations with linear costs", takes=domains)

    def best(self, domain: Permutations, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the assigned pairs."""
        if int(np.abs(costs).max()) * 4 * domain.k >= EXACT_IN_FLOATS:
            raise OracleNotCertified(
                "costs plus noise leave the integers that doubles hold exactly: retry with another oracle"
            )
        from scipy.optimize import linear_sum_assignment  # takes a while to import

        rows, columns = linear_sum_assignment(costs.reshape(domain.k, domain.k).astype(np.float64))
        return np.asarray(rows * domain.k + columns)


class SpanningTreeOracle(_ExactOracle):
    """The cheapest spanning tree by Kruskal's algorithm on integers."""

    name = "spanning-tree"
    domains: ClassVar[tuple[type[Domain], ...]] = (SpanningTrees,)
    about: ClassVar[Solver | None] = Solver(
        "spanning-tree", "MIT", EXACT, "spanning trees with linear costs", takes=domains
    )

    def best(self, domain: SpanningTrees, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the tree's edges."""
        return np.array(domain.joining(np.argsort(costs, kind="stable").tolist()))


class SubsetOracle(_ExactOracle):
    """The `k` cheapest items."""

    name = "subset"
    domains: ClassVar[tuple[type[Domain], ...]] = (Subsets,)
    about: ClassVar[Solver | None] = Solver("subset", "MIT", EXACT, "subsets with linear costs", takes=domains)

    def best(self, domain: Subsets, costs: Int64Array) -> NDArray[np.int64]:
        """Indices of the chosen items."""
        return np.asarray(np.argsort(costs, kind="stable")[: domain.k])
