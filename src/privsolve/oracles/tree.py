"""The default oracle: privsolve's own branch and bound, exact in integers.

Scorecards over columns that are declared to be 0/1 are solved by the supports-first tree, everything else by the coordinate
tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privsolve.domains import FiniteSet
from privsolve.engines.coordinates.instance import lay_out, weights_of
from privsolve.engines.coordinates.minimise import ProgressCallback, compile_search, minimise
from privsolve.engines.supports.minimise import compile_minimiser
from privsolve.engines.supports.problems import can_minimise, columns_of
from privsolve.engines.supports.problems import minimise as minimise_scorecard
from privsolve.oracles.base import Solution, solution_of
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import Problem


@dataclass(frozen=True)
class TreeOracle:
    """Certified minimum by the coordinate tree, or by the supports-first tree where that applies.

    `node_limit` and `time_limit` (seconds) end the search with `WorkLimitReached`; no uncertified answer is ever
    returned. `threads` defaults to the number of cores and does not change the answer.
    """

    node_limit: int | None = None
    time_limit: float | None = None
    threads: int | None = None
    name: ClassVar[str] = "tree"
    tolerance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        for field in ("node_limit", "time_limit", "threads"):
            value = getattr(self, field)
            if value is not None and not value > 0:
                raise ValueError(f"{field} must be positive or None, got {value!r}")

    def check(self, problem: Problem, template: Perturbation | None = None) -> None:
        """Raise before any noise is drawn if the tree cannot hold the problem with a perturbation like `template`.

        Everything that solving it takes is compiled here, so that whoever has paid does not wait for the compiler.
        """
        if not isinstance(problem, Problem):
            raise ValueError("the tree oracle solves classification problems: pass the oracle of your domain")
        like = Perturbation.zero(problem.domain) if template is None else template
        if isinstance(problem.domain, FiniteSet):
            return
        if can_minimise(problem, like):
            compile_minimiser(problem.loss)
        else:
            compile_search(lay_out(problem, like))

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The certified minimiser; the same one whatever the number of threads."""
        problem.check_perturbation(perturbation)
        if isinstance(problem.domain, FiniteSet):  # a list is a tree of depth one: every point is a leaf
            return EnumerationOracle().minimise(problem, perturbation)
        if can_minimise(problem, perturbation):
            best = minimise_scorecard(problem, columns_of(problem), perturbation)
            weights = best.weights[: problem.domain.dim]  # without an intercept column its 0 is left out
            return solution_of(problem, perturbation, weights, best.value, supports=best.work.supports)
        inst = lay_out(problem, perturbation)
        optimum = minimise(
            inst, node_limit=self.node_limit, time_limit=self.time_limit, threads=self.threads, progress=progress
        )
        weights = weights_of(inst, optimum.indices)
        return solution_of(problem, perturbation, weights, optimum.value, nodes=optimum.nodes)
