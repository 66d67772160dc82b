"""The hooks of an oracle: what is checked and laid out before the noise, what a user's own oracle is asked, and by whom."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import privsolve as ps
from privsolve.domains import Domain
from privsolve.noise.entropy import Randomness
from privsolve.oracles import EnumerationOracle, Oracle, TreeOracle
from random_problems import DOMAIN_KINDS, TABLES, random_perturbation, random_problem

PROBLEM = random_problem(np.random.default_rng(4), "integer-ball", 4)
COSTS = ps.LinearProblem([[0, 1, 1], [1, 0, 0]], ps.Subsets(3, 1), 1)


def untouched() -> Randomness:
    return Randomness(lambda size: pytest.fail("noise was drawn"), seeded=False)


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
    with pytest.raises(
        ValueError, match="'hooked' does not take SignCube: it takes domains of IntegerBall; use another"
    ):
        ps.opdisc(ps.Problem(PROBLEM.table, ps.SignCube(4)), 1.0, oracle=Hooked(), random_state=untouched())


def test_a_plain_object_is_asked_for_no_more_than_it_offers() -> None:
    class Plain:
        def minimise(self, problem: Any, perturbation: Any) -> Any:
            return EnumerationOracle().minimise(problem, perturbation)

    run = ps.opdisc(PROBLEM, 1.0, oracle=Plain(), progress=lambda state: None, random_state=0)
    assert run.release.guarantee.oracle == "Plain"


@pytest.mark.parametrize("name", ["tree", "assignment", "spanning-tree"])
def test_capabilities_are_checked_before_the_noise(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"oracle {name!r} does not take \w+: it takes (problems|domains) of \w+; use another"
    ):
        ps.opdisc(COSTS, 1.0, oracle=name, random_state=untouched())


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_losses_beyond_a_solver_are_refused_before_the_noise(name: str) -> None:
    loss = next(table for table in TABLES.values() if not table.is_step)
    problem = ps.Problem(PROBLEM.table, PROBLEM.domain, loss)
    with pytest.raises(ValueError, match="cannot solve a loss of several steps: use oracle='tree'"):
        ps.opdisc(problem, 1.0, oracle=name, random_state=untouched())
