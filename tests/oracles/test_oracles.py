"""The oracles, held to the conformance suite, and what a mechanism demands of an oracle it does not know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import privsolve as ps
from oracle_conformance import OracleConformance
from privsolve.domains import Domain
from privsolve.engines.coordinates.minimise import Progress
from privsolve.noise.entropy import Randomness
from privsolve.oracles import EnumerationOracle, Oracle, TreeOracle
from random_problems import DOMAIN_KINDS, random_perturbation, random_problem


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


def answering(weights: object, bound: object, tolerance: float = 0.0) -> SimpleNamespace:
    """An oracle that says what it is told to."""
    answer = SimpleNamespace(weights=weights, bound=bound)
    return SimpleNamespace(tolerance=tolerance, minimise=lambda problem, perturbation: answer)


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
        ps.opdisc(small, epsilon=1.0, oracle=answering(weights, bound), random_state=0)


def test_tolerance_is_paid_for_in_noise(small: ps.Problem) -> None:
    exact = ps.sphere_noise(small.domain, 1.0, loss=small.loss)
    loose = ps.sphere_noise(small.domain, 1.0, loss=small.loss, solver_tolerance=0.5)
    delta = 2 * small.loss.largest
    assert loose.scale / exact.scale == pytest.approx((delta + 1.0) / delta, rel=1e-4)


def test_a_retry_takes_no_less_exact_solver(small: ps.Problem) -> None:
    with pytest.raises(ps.OracleNotCertified) as caught:
        ps.opdisc(small, epsilon=1.0, oracle=answering(small.domain.members()[0], -1e9))
    assert caught.value.retry is not None
    with pytest.raises(ValueError, match="at least as exact"):
        caught.value.retry(answering(None, 0.0, tolerance=0.5))


# --- what is checked and laid out before the noise, and what a user's own oracle is asked ---

PROBLEM = random_problem(np.random.default_rng(4), "integer-ball", 4)
UNTOUCHED = Randomness(lambda size: pytest.fail("noise was drawn"), seeded=False)
COSTS = ps.LinearProblem([[0, 1, 1], [1, 0, 0]], ps.Subsets(3, 1), 1)


@pytest.mark.parametrize("kind", DOMAIN_KINDS)
def test_a_layout_serves_every_perturbation_of_its_kind(kind: str) -> None:
    for seed in range(6):
        rng = np.random.default_rng([seed, *kind.encode()])
        problem = random_problem(rng, kind)
        first = random_perturbation(rng, problem)
        solve = TreeOracle().prepare(problem, first)
        tables = tuple(rng.integers(-(2**22), 2**22, size=len(table)) for table in first.coordinate)
        norm = None if first.norm is None else rng.integers(-(2**22), 2**22, size=len(first.norm))
        for perturbation in (first, ps.Perturbation(problem.domain, tables, norm), first):
            expected = EnumerationOracle().minimise(problem, perturbation)
            assert solve(perturbation, None).value == expected.value


class Hooked(Oracle):
    """Spells out every hook."""

    domains: ClassVar[tuple[type[Domain], ...]] = (ps.IntegerBall,)
    name = "hooked"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check(self, problem: Any) -> None:
        self.asked.append("check")
        super().check(problem)

    def prepare(self, problem: Any, template: Any) -> Any:
        self.asked.append("prepare")
        assert (template.norm is not None) == (not problem.domain.equal_norms)
        assert not template.largest
        return super().prepare(problem, template)

    def minimise(self, problem: Any, perturbation: Any, progress: Any = None) -> Any:
        self.asked.append("minimise")
        if progress is not None:
            progress("half way")
        return EnumerationOracle().minimise(problem, perturbation)


def test_every_hook_is_asked_once_and_in_order() -> None:
    oracle, seen = Hooked(), []
    run = ps.opdisc(PROBLEM, 1.0, oracle=oracle, progress=seen.append, random_state=0)
    assert oracle.asked == ["prepare", "check", "minimise"]
    assert seen == ["half way"]
    assert run.release.guarantee.oracle == "hooked"
    says = "'hooked' does not take SignCube: it takes domains of IntegerBall; use another"
    with pytest.raises(ValueError, match=says):
        ps.opdisc(ps.Problem(PROBLEM.table, ps.SignCube(4)), 1.0, oracle=Hooked(), random_state=UNTOUCHED)


def test_a_plain_object_is_asked_for_no_more_than_it_offers() -> None:
    class Plain:
        def minimise(self, problem: Any, perturbation: Any) -> Any:
            return EnumerationOracle().minimise(problem, perturbation)

    run = ps.opdisc(PROBLEM, 1.0, oracle=Plain(), progress=lambda state: None, random_state=0)
    assert run.release.guarantee.oracle == "Plain"


@pytest.mark.parametrize("name", ["tree", "assignment", "spanning-tree"])
def test_capabilities_are_checked_before_the_noise(name: str) -> None:
    says = rf"oracle {name!r} does not take \w+: it takes (problems|domains) of \w+; use another"
    with pytest.raises(ValueError, match=says):
        ps.opdisc(COSTS, 1.0, oracle=name, random_state=UNTOUCHED)
