"""RSPM: separator sets, calibration, audit, and the whole path."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privsolve as ps
from privsolve import audit
from privsolve.domains import Domain
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration
from privsolve.privacy.guarantee import Proof
from privsolve.problems.perturbation import count_thresholds
from random_problems import DOMAIN_KINDS, random_problem

LAWS = ("linf-gamma", "laplace", "gaussian")


def matrix(domain: Domain) -> np.ndarray:
    """The thresholds of every member, column by column as noise is laid out."""
    members = domain.members()
    return np.stack([members[:, j] <= t for j in range(domain.dim) for t in domain.values(j)[:-1]], axis=1)


@pytest.mark.parametrize("kind", DOMAIN_KINDS)
def test_thresholds_separate_and_perturb(kind: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng([seed, *kind.encode()])
        domain = random_problem(rng, kind, 3).domain
        indicators = matrix(domain)
        assert count_thresholds(domain) == indicators.shape[1]
        assert len(np.unique(indicators, axis=0)) == domain.size
        eta = rng.normal(size=indicators.shape[1]) * 10
        exact = indicators @ eta
        rounded = ps.Perturbation.of_thresholds(domain, eta).of_members(domain.members()) / 2**20
        assert np.abs(rounded - exact).max() <= (domain.dim + 1) * 2**-21


def test_counts_of_the_theory_page() -> None:
    assert count_thresholds(ps.SignCube(7)) == 7
    assert count_thresholds(ps.TernaryCube(7)) == 14
    assert count_thresholds(ps.IntegerBall(5, 9)) == 2 * 3 * 5


def test_calibration_follows_the_theory() -> None:
    domain = ps.TernaryCube(6)
    spread = 2 + 5 * calibration.rounding_error(6)
    assert ps.separator_noise(domain, 0.5).scale == pytest.approx(spread / 0.5)
    assert ps.separator_noise(domain, 0.5, noise="laplace").scale == pytest.approx(12 * spread / 0.5)
    gaussian = ps.separator_noise(domain, 0.5, noise="gaussian", delta=1e-6)
    assert gaussian.scale == pytest.approx(calibration.gaussian_sigma(12, spread * math.sqrt(12), 0.5, 1e-6))
    with pytest.warns(ps.PrivacyWarning, match="no valid proof"):
        published = ps.separator_noise(domain, 0.5, noise="gaussian-published", delta=1e-6)
    assert published.scale == pytest.approx(7 * math.sqrt(12 * math.log(1e6)) / 0.5)
    assert published.proof is Proof.NONE


def test_shift_of_the_lemma_moves_any_minimiser() -> None:
    """Theory, section 1: the minimiser on D under η is the minimiser on any neighbour under η + v_w."""
    rng = np.random.default_rng(0)
    domain = ps.TernaryCube(3)
    indicators = matrix(domain)
    for _ in range(200):
        loss = rng.integers(0, 10, size=domain.size)
        neighbour = loss - rng.integers(0, 2, size=domain.size) + rng.integers(0, 2, size=domain.size)
        eta = rng.normal(size=indicators.shape[1]) * 5
        best = int(np.argmin(loss + indicators @ eta))
        shift = np.where(indicators[best], -2.0001, 2.0001)
        assert np.argmin(neighbour + indicators @ (eta + shift)) == best


@pytest.mark.parametrize("law", LAWS)
def test_a_run(law: str) -> None:
    problem = random_problem(np.random.default_rng(3), "ternary-cube", 4)
    run = ps.rspm(problem, 1.0, noise=law, random_state=0)
    guarantee = run.release.guarantee
    assert guarantee.mechanism == "RSPM"
    assert guarantee.theory == "3"
    assert guarantee.proved
    assert guarantee.delta == (problem.table.n**-2.0 if law == "gaussian" else 0.0)
    assert run.diagnostics.certified
    assert ps.rspm(problem, 1.0, noise=law, random_state=0).release.to_json() == run.release.to_json()


def test_utility_bounds_hold() -> None:
    problem = random_problem(np.random.default_rng(8), "ternary-cube", 3)
    losses = problem.losses_of(problem.domain.members())
    for law in LAWS:
        noise = ps.separator_noise(
            problem.domain, 2.0, noise=law, loss=problem.loss, delta=1e-3 if law == "gaussian" else None
        )
        chosen = audit.perturbed_draws(problem, noise, 3000, Randomness.seeded(1))
        assert (losses[chosen] - losses.min() > noise.utility_bound(0.1)).mean() < 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 1.0, "noise": "uniform"}, "noise must be one of"),
        ({"epsilon": 1.0, "delta": 1e-6}, "leave delta=None"),
        ({"epsilon": 1.0, "noise": "gaussian", "adjacency": "add-remove"}, "needs delta"),
        ({"epsilon": 1.0, "noise": "gaussian", "delta": 1.5}, "delta"),
        ({"epsilon": 1e-12}, "beyond the exact integer range"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    problem = random_problem(np.random.default_rng(2), "ternary-cube", 2)
    with pytest.raises(ValueError, match=message):
        ps.rspm(problem, **arguments)  # type: ignore[arg-type]
