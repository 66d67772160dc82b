"""The oracle of last resort and the reference for all others: look at every member."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.oracles.base import Solution, solution_of
from privsolve.problems.perturbation import UNIT, AnyPerturbation
from privsolve.problems.problem import BaseProblem


class EnumerationOracle:
    """Exact minimum over a domain small enough to list (five million members at most)."""

    name: ClassVar[str] = "enumeration"
    tolerance: ClassVar[float] = 0.0

    def check(self, problem: BaseProblem) -> None:
        """Raise `ValueError` before any noise is drawn if the domain cannot be listed."""
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
