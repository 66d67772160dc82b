"""OPDisc attacked on neighbouring data: the proved scale passes, a quarter of it is caught."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import privsolve as ps
from privsolve import audit
from privsolve.domains import Domain
from privsolve.mechanisms.opdisc import SphereNoise
from privsolve.noise import Randomness

RUNS = 200_000
RECORDS = ([[1, 0], [0, 1], [1, 1]], [True, False, True])


def table(features: list[list[int]], labels: list[bool]) -> ps.PatternTable:
    return ps.PatternTable.from_records(features, labels)


def last_changed() -> tuple[ps.PatternTable, ps.PatternTable]:
    """The last record changes its label, so every prediction on it turns from right to wrong."""
    features, labels = RECORDS
    return table(features, labels), table(features, [*labels[:-1], not labels[-1]])


def last_removed() -> tuple[ps.PatternTable, ps.PatternTable]:
    features, labels = RECORDS
    return table(features, labels), table(features[:-1], labels[:-1])


def one_of_four() -> tuple[ps.PatternTable, ps.PatternTable]:
    """The pair on which OPDisc over {-1, 1} loses all of its budget: both thresholds lie in one Laplace tail."""
    return table([[1]] * 4, [True] * 4), table([[1]] * 4, [True] * 3 + [False])


CASES = [
    ("replace", ps.SignCube(1), one_of_four),
    ("replace", ps.SignCube(2), last_changed),
    ("replace", ps.TernaryCube(2), last_changed),
    ("replace", ps.IntegerBall(2, 4), last_changed),
    ("replace", ps.SparseSigns(2, 1), last_changed),
    ("add-remove", ps.IntegerBall(2, 2), last_removed),
]


def draws(domain: Domain, law: SphereNoise, seed: int):  # type: ignore[no-untyped-def]
    rng = Randomness.seeded(seed)
    return lambda data, runs: audit.opdisc_draws(ps.Problem(data, domain), law, runs, rng)


@pytest.mark.parametrize(("adjacency", "domain", "pair"), CASES)
def test_proved_noise_passes(adjacency: str, domain: Domain, pair) -> None:  # type: ignore[no-untyped-def]
    law = ps.sphere_noise(domain, 1.0, adjacency=adjacency)
    finding = audit.lower_bound(draws(domain, law, 1), *pair(), RUNS)
    assert not finding.refutes(1.0)


@pytest.mark.parametrize("seed", range(2))
def test_proved_gaussian_passes(seed: int) -> None:
    law = ps.sphere_noise(ps.TernaryCube(2), 1.0, delta=1e-3, law="gaussian")
    finding = audit.lower_bound(draws(ps.TernaryCube(2), law, seed), *last_changed(), RUNS, delta=1e-3)
    assert not finding.refutes(1.0)


@pytest.mark.parametrize(("adjacency", "domain", "pair"), CASES)
def test_a_quarter_of_the_noise_is_caught(adjacency: str, domain: Domain, pair) -> None:  # type: ignore[no-untyped-def]
    law = ps.sphere_noise(domain, 1.0, adjacency=adjacency)
    finding = audit.lower_bound(draws(domain, dataclasses.replace(law, scale=law.scale / 4), 1), *pair(), RUNS)
    assert finding.refutes(1.0)


def test_the_budget_is_used_up_on_the_worst_pair() -> None:
    law = ps.sphere_noise(ps.SignCube(1), 1.0)
    finding = audit.lower_bound(draws(ps.SignCube(1), law, 3), *one_of_four(), RUNS)
    assert 0.93 < finding.epsilon <= 1.0


def test_fast_draws_have_the_law_of_the_mechanism() -> None:
    problem = ps.Problem(last_changed()[0], ps.TernaryCube(2))
    members = problem.domain.members()
    law = ps.sphere_noise(problem.domain, 4.0)
    fast = np.bincount(audit.opdisc_draws(problem, law, 40_000, Randomness.seeded(0)), minlength=len(members))
    slow = np.zeros(len(members))
    rng = Randomness.seeded(1)
    for _ in range(4000):
        weights = ps.opdisc(problem, 4.0, oracle="enumeration", random_state=rng).release.weights
        slow[np.flatnonzero((members == weights).all(axis=1))[0]] += 1
    expected = fast / fast.sum() * slow.sum()
    keep = expected > 5
    statistic = ((slow - expected)[keep] ** 2 / (expected[keep] * (1 + slow.sum() / fast.sum()))).sum()
    assert statistic < 35  # chi-square with at most 8 degrees of freedom: probability below 3e-5


def test_arguments() -> None:
    with pytest.raises(ValueError, match="runs must be at least 100"):
        audit.lower_bound(lambda d, n: np.zeros(n, dtype=int), 0, 1, 10)
