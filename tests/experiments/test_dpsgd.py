"""DP-SGD, the baseline: gradients, noise and accounting against independent computations."""

from __future__ import annotations

import math
from itertools import pairwise

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq
from scipy.special import ndtr

import privsolve as ps
from privsolve.experiments.dpsgd import (
    Accounting,
    DPSGDSettings,
    accuracy,
    descend,
    dp_sgd,
    event,
    features,
    logistic_regression,
    noise_multiplier,
)
from privsolve.privacy.adjacency import Adjacency

DELTA = 1 / 15682**2


@pytest.fixture(scope="module")
def small() -> ps.PatternTable:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 4, size=(300, 3))
    return ps.PatternTable.from_records(rows, rows @ [1, -1, 1] + rng.normal(size=300) > 2, scales=(2, 1, 3))


def clipped(x: np.ndarray, label: int, w: np.ndarray, clip: float) -> np.ndarray:
    gradient = (1 / (1 + math.exp(-x @ w)) - label) * x
    return gradient * min(1, clip / max(float(np.linalg.norm(gradient)), 1e-300))


@pytest.mark.parametrize("clip", [0.05, 0.4, 100.0])
def test_without_noise_a_step_is_the_sum_of_clipped_gradients(small: ps.PatternTable, clip: float) -> None:
    settings = DPSGDSettings(clip, 1.0, 3, 0.01)
    iterates = list(descend(small, settings, 0.0, np.random.default_rng(0)))
    for before, after in pairwise([np.zeros(3), *iterates]):
        total = np.zeros(3)
        for x, positives, negatives in zip(features(small), small.positives, small.negatives, strict=True):
            total += positives * clipped(x, 1, before, clip) + negatives * clipped(x, 0, before, clip)
        np.testing.assert_allclose(after, before - 0.01 * total, atol=1e-12)


def test_noise_and_samples_have_the_stated_law() -> None:
    """One step at w = 0 of records whose gradient is ±1/2: mean and variance of sampling and noise."""
    table = ps.PatternTable([[1]], [400], [200])
    rng, settings = np.random.default_rng(1), DPSGDSettings(1.0, 0.3, 1, 1.0)
    steps = np.array([next(descend(table, settings, 5.0, rng))[0] for _ in range(4000)])
    variance = (600 * 0.3 * 0.7 / 4 + 25) / 0.09
    assert steps.mean() == pytest.approx(100, abs=4 * math.sqrt(variance / 4000))
    assert steps.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("epsilon", "steps"), [(0.01, 50), (1.0, 1), (3.0, 100)])
def test_the_full_batch_is_the_analytic_gaussian_mechanism(adjacency: Adjacency, epsilon: float, steps: int) -> None:
    """Against the exact epsilon of one Gaussian mechanism (Balle and Wang 2018); replacing moves a sum by two clip norms."""
    z = noise_multiplier(Accounting(epsilon, DELTA, adjacency), 1.0, steps)
    a = (2 if adjacency is Adjacency.REPLACE else 1) * math.sqrt(steps) / z
    exact = brentq(lambda e: ndtr(a / 2 - e / a) - math.exp(e) * ndtr(-a / 2 - e / a) - DELTA, 0, 100, xtol=1e-14)
    assert epsilon * (1 - 2e-3) < exact <= epsilon


def test_sampling_is_accounted_for_by_a_finer_grid_too() -> None:
    z = noise_multiplier(Accounting(0.3, DELTA), 0.1, 64)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    finer = PLDAccountant(relation, 0.3 / 20_000).compose(event(z, 0.1, 64)).get_epsilon(DELTA)
    assert finer == pytest.approx(0.3, rel=4e-3)
    assert finer <= 0.3


def test_moments_are_for_add_remove_only() -> None:
    with pytest.raises(ValueError, match="add-remove"):
        Accounting(1.0, DELTA, Adjacency.REPLACE, moments=True)
    tight, loose = (Accounting(1.0, DELTA, Adjacency.ADD_REMOVE, moments=m) for m in (False, True))
    ratio = noise_multiplier(loose, 0.02, 300) / noise_multiplier(tight, 0.02, 300)
    assert 1 < ratio < 1.2


def test_a_fit_repeats_by_its_seed_and_learns(small: ps.PatternTable) -> None:
    accounting, settings = Accounting(50.0, 1e-3), DPSGDSettings(1.0, 1.0, 40, 0.02)
    weights = dp_sgd(small, accounting, settings, 3)
    assert (weights == dp_sgd(small, accounting, settings, 3)).all()
    assert 0.8 < accuracy(small, weights) <= accuracy(small, logistic_regression(small)) + 0.02
