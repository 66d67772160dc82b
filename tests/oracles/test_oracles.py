"""The oracles, held to the conformance suite, and what a mechanism demands of an oracle it does not know."""

from __future__ import annotations

import numpy as np
import pytest

import privsolve as ps
from oracle_conformance import OracleConformance
from privsolve.engines.coordinates.minimise import Progress
from privsolve.oracles import EnumerationOracle, Oracle, TreeOracle
from random_problems import random_problem


class TestTree(OracleConformance):
    def oracle(self) -> Oracle:
        return TreeOracle()


class TestEnumeration(OracleConformance):
    problems_per_domain = 20

    def oracle(self) -> Oracle:
        return EnumerationOracle()


def test_tree_equals_enumeration_on_slices_of_adult() -> None:
    adult = ps.datasets.adult_paper(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        columns = np.sort(rng.choice(adult.dim, size=7, replace=False))
        table = ps.PatternTable(
            adult.features[:, columns], adult.positives, adult.negatives, scales=[adult.scales[j] for j in columns]
        )
        problem = ps.Problem(table, ps.IntegerBall(7, 5))
        sigma = float(rng.choice([0.0, 30.0, 300.0, 3000.0]))
        perturbation = ps.Perturbation.lifted(problem.domain, rng.normal(size=8) * sigma)
        tree = TreeOracle().minimise(problem, perturbation)
        assert tree.value == EnumerationOracle().minimise(problem, perturbation).value


def test_threads_do_not_change_the_answer() -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(23, 4))
    for seed in range(3):
        eta = np.random.default_rng(seed).normal(size=24) * 100.0 * seed  # seed 0: no noise, many ties
        perturbation = ps.Perturbation.lifted(problem.domain, eta)
        answers = {tuple(TreeOracle(threads=t).minimise(problem, perturbation).weights.tolist()) for t in (1, 2, 3, 2)}
        assert len(answers) == 1


def test_limits_raise_and_progress_is_reported() -> None:
    problem = ps.Problem(ps.datasets.adult_categorical(seed=0), ps.IntegerBall(59, 59))
    perturbation = ps.Perturbation.zero(problem.domain)
    seen: list[Progress] = []
    with pytest.raises(ps.WorkLimitReached, match=r"time limit.*nothing is released"):
        TreeOracle(time_limit=0.8).minimise(problem, perturbation, progress=seen.append)
    assert seen
    assert all(p.bound <= p.objective for p in seen)
    with pytest.raises(ps.WorkLimitReached, match="node limit of 50"):
        TreeOracle(node_limit=50).minimise(problem, perturbation)
    with pytest.raises(ValueError, match="node_limit must be positive"):
        TreeOracle(node_limit=0)


class _Answers:
    """An oracle that says what it is told to."""

    def __init__(self, weights: object, bound: object, tolerance: float = 0.0) -> None:
        self.weights, self.bound, self.tolerance = weights, bound, tolerance

    def minimise(self, problem: ps.Problem, perturbation: ps.Perturbation) -> object:
        return self


@pytest.fixture
def small() -> ps.Problem:
    return random_problem(np.random.default_rng(11), "sign-cube", 3)


@pytest.mark.parametrize(
    ("weights", "bound", "message"),
    [
        (np.array([1, 1, 2]), 0.0, "outside the domain"),
        (np.array([1.0, 1.0, 1.0]), 0.0, "outside the domain"),
        (np.array([1, 1, 1]), -1e9, "left a gap"),
        (np.array([1, 1, 1]), 1e9, "above the objective"),
        (np.array([1, 1, 1]), float("nan"), "no finite lower"),
        (np.array([1, 1, 1]), None, "no finite lower"),
    ],
)
def test_unproved_answers_release_nothing(small: ps.Problem, weights: object, bound: object, message: str) -> None:
    with pytest.raises(ps.OracleNotCertified, match=message):
        ps.opdisc(small, epsilon=1.0, oracle=_Answers(weights, bound), random_state=0)


def test_tolerance_is_paid_for_in_noise(small: ps.Problem) -> None:
    exact = ps.sphere_noise(small.domain, 1.0, loss=small.loss)
    loose = ps.sphere_noise(small.domain, 1.0, loss=small.loss, solver_tolerance=0.5)
    delta = 2 * small.loss.largest
    assert loose.scale / exact.scale == pytest.approx((delta + 1.0) / delta, rel=1e-4)


def test_a_retry_takes_no_less_exact_solver(small: ps.Problem) -> None:
    with pytest.raises(ps.OracleNotCertified) as caught:
        ps.opdisc(small, epsilon=1.0, oracle=_Answers(small.domain.members()[0], -1e9))
    assert caught.value.retry is not None
    with pytest.raises(ValueError, match="at least as exact"):
        caught.value.retry(_Answers(None, 0.0, tolerance=0.5))
