"""The oracle of last resort and the reference for all others: look at every member."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.oracles.base import Oracle, Solution, solution_of
from privsolve.oracles.catalogue import EXACT, Solver
from privsolve.problems.perturbation import UNIT, AnyPerturbation
from privsolve.problems.problem import BaseProblem


class EnumerationOracle(Oracle):
    """Exact minimum over a domain small enough to list (ten million members at most)."""

    name = "enumeration"
    lists: ClassVar[bool] = True
    about: ClassVar[Solver | None] = Solver(
        "enumeration", "MIT", EXACT, "domains of at most 10,000,000 members", takes=Oracle.domains
    )

    def check(self, problem: BaseProblem) -> None:
        """Raise `ValueError` before any noise is drawn if the domain cannot be listed."""
        super().check(problem)
        problem.domain.check_listable()

    def minimise(
        self, problem: BaseProblem, perturbation: AnyPerturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """The first minimiser in lexicographic order."""
        problem.check_perturbation(perturbation)
        members = problem.domain.members()
        values = problem.losses_of(members) * UNIT + perturbation.of_members(members)
        best = int(np.argmin(values))
        return solution_of(problem, perturbation, members[best], int(values[best]), nodes=len(members))
