import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.special import ndtr

from privsolve.baselines.accountants import _orders, dp_sgd_epsilon, dp_sgd_event, noise_multiplier
from privsolve.privacy.adjacency import Adjacency

DELTA = 1 / 15682**2
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE
ADD_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
SENSITIVITY = {"replace": 2, "add-remove": 1}


def analytic_epsilon(sensitivity, sigma, delta):
    """The exact epsilon of one Gaussian mechanism (Balle and Wang 2018)."""
    a = sensitivity / sigma
    return brentq(lambda e: ndtr(a / 2 - e / a) - math.exp(e) * ndtr(-a / 2 - e / a) - delta, 0, 100, xtol=1e-14)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "steps"), [(0.01, 50), (0.1, 1000), (1.0, 1), (3.0, 100)])
def test_full_batch_is_the_analytic_gaussian_mechanism(adjacency, epsilon, steps):
    z = noise_multiplier(1.0, steps, epsilon, DELTA, adjacency)
    exact = analytic_epsilon(SENSITIVITY[adjacency], z / math.sqrt(steps), DELTA)
    assert epsilon * (1 - 2e-3) < exact <= epsilon
    proved = dp_sgd_epsilon(z, 1.0, steps, DELTA, adjacency=adjacency)
    assert exact * (1 - 1e-9) <= proved <= exact * (1 + 1e-3)


@pytest.mark.parametrize(("adjacency", "relation"), [("replace", REPLACE), ("add-remove", ADD_REMOVE)])
@pytest.mark.parametrize(
    ("rate", "steps", "epsilon"), [(0.1, 64, 0.01), (0.1, 300, 1.0), (0.02, 500, 3.0), (1.0, 30, 0.3)]
)
def test_pld_epsilon_is_dp_accountings_for_the_exact_event(adjacency, relation, rate, steps, epsilon):
    z = noise_multiplier(rate, steps, epsilon, DELTA, adjacency)
    gaussian = dp_accounting.GaussianDpEvent(z)
    step = gaussian if rate == 1 else dp_accounting.PoissonSampledDpEvent(rate, gaussian)
    event = dp_accounting.SelfComposedDpEvent(step, steps)
    assert dp_sgd_event(z, rate, steps) == event
    finer = PLDAccountant(relation, value_discretization_interval=epsilon * 2e-4).compose(event).get_epsilon(DELTA)
    assert finer <= epsilon
    assert finer == pytest.approx(epsilon, rel=4e-3)  # the grid of our own choice costs no more
    assert dp_sgd_epsilon(z, rate, steps, DELTA, adjacency=adjacency) == pytest.approx(finer, rel=3e-3)


@pytest.mark.parametrize(("rate", "steps", "z"), [(0.1, 64, 5.0), (0.02, 500, 1.5), (1.0, 30, 20.0)])
def test_rdp_add_remove_is_dp_accountings_for_the_exact_event(rate, steps, z):
    orders = _orders(z, rate, steps, DELTA, Adjacency.ADD_REMOVE)
    theirs = RdpAccountant(orders).compose(dp_sgd_event(z, rate, steps)).get_epsilon(DELTA)
    ours = dp_sgd_epsilon(z, rate, steps, DELTA, adjacency="add-remove", accountant="rdp")
    assert ours == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize(("rate", "steps"), [(1.0, 100), (0.1, 100), (0.02, 200)])
def test_rdp_is_valid_and_a_little_looser_than_pld(adjacency, rate, steps):
    pld, rdp = (noise_multiplier(rate, steps, 1.0, DELTA, adjacency, accountant) for accountant in ("pld", "rdp"))
    assert pld < rdp < 1.2 * pld
    assert dp_sgd_epsilon(rdp, rate, steps, DELTA, adjacency=adjacency, accountant="rdp") <= 1.0


def test_replace_one_needs_about_twice_the_noise_of_add_remove():
    for accountant in ("pld", "rdp"):
        ratio = [noise_multiplier(1.0, 10, 0.5, DELTA, a, accountant) for a in ("replace", "add-remove")]
        assert ratio[0] / ratio[1] == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(("rate", "z"), [(0.3, 1.0), (0.7, 0.8), (0.1, 1.5)])
def test_opposite_gradients_dominate_all_pairs(rate, z):
    """The pair of mixtures on a line against pairs of gradients in the unit disc, by integration in the plane."""
    step = 0.1
    x, y = np.meshgrid(np.arange(-10, 10, step), np.arange(-10, 10, step))

    def mixture(g):
        parts = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * z * z)) for a, b in ((0, 0), g)]
        return ((1 - rate) * parts[0] + rate * parts[1]) / (2 * math.pi * z * z)

    def hockey_stick(p, q, epsilon):
        return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0)) * step**2)

    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(15, 2, 2))
    pairs /= np.maximum(1, np.linalg.norm(pairs, axis=2, keepdims=True))
    mixtures = [(mixture(g), mixture(h)) for g, h in pairs]
    worst = (mixture((1, 0)), mixture((-1, 0)))
    accountant = PLDAccountant(REPLACE, value_discretization_interval=1e-3).compose(dp_sgd_event(z, rate, 1))
    for epsilon in (-0.3, 0.0, 0.1, 0.3):
        bound = hockey_stick(*worst, epsilon)
        assert bound > 1e-4
        assert max(hockey_stick(*pair, epsilon) for pair in mixtures) < bound
        if epsilon > 0:  # one step of the accountant is this pair
            assert accountant.get_delta(epsilon) == pytest.approx(bound, rel=5e-3)


def test_multiplier_is_the_smallest_that_is_proved():
    z = noise_multiplier(0.1, 100, 1.0, DELTA)
    assert dp_sgd_epsilon(z, 0.1, 100, DELTA) <= 1.0 < dp_sgd_epsilon(0.998 * z, 0.1, 100, DELTA)
