"""What every oracle must do: one suite, inherited by a test class for each oracle; and one that fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.oracles import EnumerationOracle, Oracle
from random_problems import DOMAIN_KINDS, random_perturbation, random_problem


class Raises:
    """An oracle that fails in its own way."""

    name, tolerance = "raises", 0.0

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def minimise(self, problem: object, perturbation: object) -> Any:
        raise self.error


class OracleConformance:
    """Subclasses give the oracle, the domains it takes and how many random problems each is tried on."""

    domains: tuple[str, ...] = DOMAIN_KINDS
    problems_per_domain = 400

    def oracle(self) -> Oracle:
        raise NotImplementedError

    @pytest.mark.parametrize("batch", [0, *(pytest.param(batch, marks=pytest.mark.nightly) for batch in range(1, 5))])
    @pytest.mark.parametrize("kind", DOMAIN_KINDS)
    def test_equals_enumeration_exactly(self, kind: str, batch: int) -> None:
        if kind not in self.domains:
            pytest.skip(f"{kind} is not offered by this oracle")
        for seed in range(batch, self.problems_per_domain, 5):
            rng = np.random.default_rng([seed, *kind.encode()])
            problem = random_problem(rng, kind)
            perturbation = random_perturbation(rng, problem)
            expected = EnumerationOracle().minimise(problem, perturbation)
            solution = self.oracle().minimise(problem, perturbation)
            message = f"{kind} seed {seed}"
            assert problem.domain.contains(solution.weights), message
            assert solution.value == problem.objective(solution.weights, perturbation), message
            assert solution.certified, message
            slack = int(solution.tolerance * 2**20)
            assert solution.lower <= expected.value <= solution.value <= expected.value + slack, message

    def test_same_answer_every_time(self) -> None:
        rng = np.random.default_rng(5)
        problem = random_problem(rng, self.domains[0], 5)
        perturbation = ps.Perturbation.zero(problem.domain)
        answers = {tuple(self.oracle().minimise(problem, perturbation).weights.tolist()) for _ in range(5)}
        assert len(answers) == 1
