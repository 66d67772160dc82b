"""Combinatorial domains and oracles: against brute force, and through OPDisc and the exponential mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import privsolve as ps
from privsolve.domains import Domain, Permutations, SpanningTrees, Subsets
from privsolve.oracles import EnumerationOracle

WHEEL = SpanningTrees(5, [(0, i) for i in range(1, 5)] + [(1, 2), (2, 3), (3, 4), (4, 1)])
CASES: list[tuple[Domain, str]] = [
    (Permutations(4), "assignment"),
    (Subsets(6, 1), "subset"),
    (Subsets(7, 3), "subset"),
    (WHEEL, "spanning-tree"),
]

SMALL = ps.LinearProblem([[1, 0]], Subsets(2, 1), 1)


@pytest.mark.parametrize(("domain", "oracle"), CASES, ids=lambda x: getattr(x, "kind", ""))
def test_mechanisms(domain: Domain, oracle: str) -> None:
    """The conformance suite has smaller ones of these, against brute force."""
    costs = np.random.default_rng(1).integers(0, 3, size=(50, domain.dim))
    problem = ps.LinearProblem(costs, domain, largest=2 * domain.dim)
    run = ps.opdisc(problem, 1.0, oracle=oracle, random_state=0)
    assert domain.contains(run.release.weights)
    assert run.release.guarantee.oracle == oracle
    assert run.diagnostics.total_cost == costs.sum(axis=0) @ run.release.weights
    assert ps.Release.from_json(run.release.to_json()).to_json() == run.release.to_json()
    assert ps.rspm(problem, 1.0, oracle=oracle, random_state=0).release.guarantee.proved
    drawn = ps.exponential(problem, 1000.0, random_state=0).release.weights
    best = EnumerationOracle().minimise(problem, ps.Perturbation.zero(domain)).objective
    assert problem.total_loss(drawn) - best < 3 * domain.dim


def test_sensitivity_is_the_spread_of_a_record() -> None:
    """Noise follows the public `largest`, and records that could matter more are refused."""
    domain = Subsets(4, 2)
    small, large = (ps.sphere_noise(domain, 1.0, loss=ps.LinearProblem([[0, 0, 1, 1]], domain, n).loss) for n in (2, 6))
    assert large.scale / small.scale == pytest.approx(3, rel=1e-5)
    with pytest.raises(ValueError, match=r"a record's costs can make a difference of more than largest=2"):
        ps.LinearProblem([[0, 0, 1, 1], [0, 0, 3, 3]], domain, 2)
    shifted = ps.LinearProblem([[100, 100, 101, 101]], domain, 2)  # a constant offset is free
    assert shifted.total_loss([0, 0, 1, 1]) == 202


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Permutations(1), "k must be"),
        (lambda: Subsets(3, 3), "k must be between 1 and 2"),
        (lambda: SpanningTrees(3, [(0, 1)]), "not connected"),
        (lambda: SpanningTrees(3, [(0, 0), (1, 2)]), "edges must be"),
        (lambda: SpanningTrees(3, [(0, 1, 2)]), "edges must be pairs"),
        (lambda: ps.LinearProblem([[0.5, 1]], Subsets(2, 1), 1), "costs must be integers"),
        (lambda: ps.LinearProblem([[1, 1, 1]], Subsets(2, 1), 1), "2 columns"),
        (lambda: ps.LinearProblem([[1, 1]], Subsets(2, 1), 0), "largest must be"),
        (lambda: ps.LinearProblem([[2**61, 2**61]], Subsets(2, 1), 1), "exact integer range"),
        (lambda: ps.LinearProblem([[2**62] * 2 + [0], [-(2**62)] * 2 + [0]], Subsets(3, 2), 1), "exact integer range"),
        (lambda: SpanningTrees(2, [(0.0, 1.0)]), "edges must be pairs"),
        (lambda: ps.opdisc(SMALL, 1.0), "oracle 'tree' does not take LinearProblem"),
        (lambda: ps.opdisc(SMALL, 1.0, oracle="assignment"), "it takes domains of Permutations"),
        (lambda: ps.exponential(SMALL, 1.0, method="tree"), "needs a classification Problem"),
    ],
)
def test_wrong_input_is_named(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()
