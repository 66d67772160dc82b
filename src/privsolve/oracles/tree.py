"""The default oracle: privsolve's own branch and bound, exact in integers.

Scorecards over columns that are declared to be 0/1 are solved by the supports-first tree, everything else by the coordinate
tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from privsolve.domains import Domain, FiniteSet, KnapsackDomain
from privsolve.engines.coordinates.instance import Layout, lay_out, perturbed, weights_of
from privsolve.engines.coordinates.minimise import ProgressCallback, compile_search, minimise
from privsolve.engines.supports.minimise import compile_minimiser
from privsolve.engines.supports.problems import Columns, can_minimise, columns_of, supports_in
from privsolve.engines.supports.problems import minimise as minimise_scorecard
from privsolve.losses import Loss, ScoreLoss
from privsolve.oracles.base import Oracle, Solution, Solve, solution_of
from privsolve.oracles.catalogue import EXACT, Solver
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.problems.perturbation import AnyPerturbation, Perturbation
from privsolve.problems.problem import BaseProblem, Problem


@dataclass(frozen=True)
class TreeOracle(Oracle):
    """Certified minimum by the coordinate tree, or by the supports-first tree where that applies.

    `node_limit` and `time_limit` (seconds) end the search with `WorkLimitReached`; no uncertified answer is ever
    returned. `threads` defaults to the number of cores and does not change the answer.
    """

    node_limit: int | None = None
    time_limit: float | None = None
    threads: int | None = None
    name = "tree"
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (Problem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (KnapsackDomain, FiniteSet)
    losses: ClassVar[tuple[type[Loss], ...]] = (ScoreLoss,)
    about: ClassVar[Solver | None] = Solver(
        "tree", "MIT", EXACT, "the default: certified by privsolve itself", takes=domains
    )

    def __post_init__(self) -> None:
        for field in ("node_limit", "time_limit", "threads"):
            value = getattr(self, field)
            if value is not None and not value > 0:
                raise ValueError(f"{field} must be positive or None, got {value!r}")

    def unsupported(self, problem: BaseProblem) -> str:
        """Classification problems only."""
        if not isinstance(problem, Problem):
            return (
                "the tree oracle solves classification problems: pass the oracle of your domain, or "
                "'enumeration' for a DiscreteProblem"
            )
        return super().unsupported(problem)

    def prepare(self, problem: Problem, template: AnyPerturbation) -> Solve:
        """Lay the problem out and compile what solving it takes, so that whoever has paid does not wait for it."""
        self.check(problem)
        if isinstance(problem.domain, FiniteSet):  # a list is a tree of depth one: every point is a leaf
            return EnumerationOracle().prepare(problem, template)
        like = _separable(template)
        if can_minimise(problem, like):
            columns = columns_of(problem)
            compile_minimiser(problem.loss, supports_in(problem))
            return partial(self._by_supports, problem, columns)
        layout = lay_out(problem, like)
        compile_search(layout)
        return partial(self._by_coordinates, problem, layout)

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The certified minimiser; the same one whatever the number of threads."""
        solution: Solution = self.prepare(problem, perturbation)(perturbation, progress)
        return solution

    def _by_supports(
        self, problem: Problem, columns: Columns, perturbation: AnyPerturbation, progress: ProgressCallback | None
    ) -> Solution:
        separable = _separable(perturbation)
        problem.check_perturbation(separable)
        best = minimise_scorecard(problem, columns, separable, self.node_limit, self.time_limit)
        weights = best.weights[: problem.domain.dim]  # without an intercept column its 0 is left out
        return solution_of(problem, separable, weights, best.value, supports=best.work.supports)

    def _by_coordinates(
        self, problem: Problem, layout: Layout, perturbation: AnyPerturbation, progress: ProgressCallback | None
    ) -> Solution:
        separable = _separable(perturbation)
        problem.check_perturbation(separable)
        inst = perturbed(layout, separable)
        optimum = minimise(
            inst, node_limit=self.node_limit, time_limit=self.time_limit, threads=self.threads, progress=progress
        )
        weights = weights_of(inst, optimum.indices)
        return solution_of(problem, separable, weights, optimum.value, nodes=optimum.nodes)


def _separable(perturbation: AnyPerturbation) -> Perturbation:
    if not isinstance(perturbation, Perturbation):
        raise ValueError("the tree takes separable perturbations: use oracle='enumeration' for one that is listed")
    return perturbation
