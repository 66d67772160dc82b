"""The formulas of the theory page, against closed forms, other integrals and simulation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from math import exp, expm1, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from parity_pair import (
    parity_odd_probabilities,
    parity_scale_separator,
    parity_scale_sphere,
    parity_true_delta,
    parity_true_epsilon,
)
from privsolve.noise.entropy import Randomness
from privsolve.noise.laws import Gaussian, L2Gamma, Laplace, LinfGamma, NoiseLaw, Shift
from privsolve.privacy.calibration import (
    check_beta,
    check_delta,
    check_epsilon,
    effective_range,
    gaussian_delta,
    gaussian_sigma,
    gaussian_sigma_published,
    rounding_error,
    separator_sigma_published,
    sphere_shift,
)

ADULT_DELTA = 15682.0**-2  # the paper's experiment: d = 23, D² = 23, τ = 1, G = 1


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, inf, nan])
def test_positive_numbers_are_checked_by_name(bad: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be finite and positive"):
        check_epsilon(bad)
    with pytest.raises(ValueError, match="separation_sq"):
        sphere_shift(2, 23, bad)
    with pytest.raises(ValueError, match="shift"):
        gaussian_sigma(3, bad, 1.0, 1e-6)
    with pytest.raises(ValueError, match="rounding"):
        effective_range(2, bad)  # without rounding there would be no strict margin


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-9, 2.0, nan])
@pytest.mark.parametrize(("name", "check"), [("delta", check_delta), ("beta", check_beta)])
def test_probabilities_are_checked_by_name(name: str, check: Callable[[float], float], bad: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must lie strictly between 0 and 1"):
        check(bad)


# --- sensitivity and rounding ---------------------------------------------------------------------


def test_rounding_and_effective_range() -> None:
    r = rounding_error(23)
    assert r == 24 * 2.0**-21
    assert effective_range(2, r) == 2 + 5 * r
    assert effective_range(2, r, solver_tolerance=0.01) == pytest.approx(2.02 + 5 * r, rel=1e-15)
    with pytest.raises(ValueError, match="solver_tolerance"):
        effective_range(2, r, -0.1)


@given(st.integers(1, 10**4), st.floats(0, 10), st.sampled_from([1, 2]))
def test_effective_range_is_strictly_above_the_lemma(dim: int, solver: float, delta_range: int) -> None:
    r = rounding_error(dim)
    assert effective_range(delta_range, r, solver) > delta_range + 2 * (solver + 2 * r)


# --- OPDisc ---------------------------------------------------------------------------------------


def test_sphere_shift_satisfies_the_perturbation_lemma() -> None:
    """<cπ(w), π(w)-π(u)> >= Δ for all pairs, with equality for some: integer points of a ball."""
    radius_sq = 5
    points = np.array([w for w in product(range(-2, 3), repeat=3) if np.dot(w, w) <= radius_sq])
    last = np.sqrt(radius_sq - (points**2).sum(axis=1))
    lifted = np.column_stack([points, last]) / sqrt(radius_sq)
    gram = lifted @ lifted.T
    c = sphere_shift(2, radius_sq, 1)
    gaps = c * (1 - gram[~np.eye(len(points), dtype=bool)])
    assert gaps.min() >= 2 * (1 - 1e-12)
    # Sign vectors attain the bound: τ = 2, no lift.
    signs = np.array(list(product((-1, 1), repeat=4))) / 2.0
    gaps = sphere_shift(2, 4, 4) * (1 - (signs @ signs.T)[~np.eye(16, dtype=bool)])
    assert gaps.min() == pytest.approx(2, rel=1e-12)


def test_numbers_of_the_paper() -> None:
    scale = L2Gamma.scale_for(Shift(24, 0, 92, 0), 1.0, 0.0)
    assert scale == 92
    assert 2 * L2Gamma(24, scale).l2_quantile(0.05) == pytest.approx(5996, abs=0.5)  # printed in section 4


@pytest.mark.parametrize(
    ("law", "norm", "dim", "shift"), [(L2Gamma, 2, 24, 92.0), (LinfGamma, np.inf, 10, 2.0), (Laplace, 1, 10, 20.0)]
)
def test_density_ratios_are_bounded(law: type[NoiseLaw], norm: float, dim: int, shift: float) -> None:
    """log p(η) - log p(η+v) <= ε for |v| <= c, at drawn noise and in its worst direction."""
    epsilon, worst = 0.3, 0.0
    scale = law.scale_for(Shift(dim, shift, shift, shift), epsilon, 0.0)
    directions = np.random.default_rng(2)
    for eta in law(dim, scale).draws(Randomness.seeded(1), 300):
        for direction in (directions.standard_normal(dim), eta, np.sign(eta)):
            v = shift * direction / np.linalg.norm(direction, norm)
            ratio = (np.linalg.norm(eta + v, norm) - np.linalg.norm(eta, norm)) / scale
            assert ratio <= epsilon * (1 + 1e-9)
            worst = max(worst, ratio)
    assert worst == pytest.approx(epsilon, rel=1e-9)  # nothing is wasted either


# --- Gaussian noise -------------------------------------------------------------------------------


def delta_by_parts(dim: int, shift: float, sigma: float, epsilon: float) -> float:
    """δ(ε) by parts: E[Pr(χ > t + Y)], Y exponential of rate a. No density, no factor 1 - exp."""
    a = shift / sigma
    t = epsilon / a - a / 2
    survival = stats.chi(dim).sf
    # In the units of the survival function at the start, so that quad sees numbers of order one.
    start = max(t, 0.0)
    unit = survival(start)

    def f(y: float) -> float:
        return a * exp(-a * y) * survival(start + y) / unit

    step = min(1 / a, 1 / (1 + start))
    edges = [0.0, step, 4 * step, 16 * step, 64 * step, 256 * step, 1024 * step]
    total = sum(integrate.quad(f, p, q, epsabs=0, epsrel=1e-11)[0] for p, q in pairwise(edges))
    total *= unit
    return total if t >= 0 else -expm1(a * t) + exp(a * t) * total


@pytest.mark.parametrize("dim", [1, 2, 24, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-15, 1e-100])
def test_gaussian_delta_against_another_integral(dim: int, epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(dim, 3.0, epsilon, delta)
    assert gaussian_delta(dim, 3.0, sigma, epsilon) == pytest.approx(delta_by_parts(dim, 3.0, sigma, epsilon), rel=1e-9)


@pytest.mark.parametrize(("dim", "epsilon", "a"), [(1, 0.5, 2.0), (3, 0.2, 5.0), (24, 1.0, 3.0)])
def test_gaussian_delta_when_the_threshold_is_negative(dim: int, epsilon: float, a: float) -> None:
    assert epsilon / a < a / 2
    assert gaussian_delta(dim, a, 1.0, epsilon) == pytest.approx(delta_by_parts(dim, a, 1.0, epsilon), rel=1e-9)


@pytest.mark.parametrize(("a", "epsilon"), [(0.3, 1.0), (1.0, 2.0), (10.0, 60.0), (140.0, 9900.0), (1000.0, 500001.0)])
def test_gaussian_delta_in_one_dimension(a: float, epsilon: float) -> None:
    """k = 1 in closed form, also where 1 - exp(-a(x-t)) rises far more steeply than the density falls."""
    t = epsilon / a - a / 2
    closed = 2 * (stats.norm.sf(t) - exp(epsilon + stats.norm.logsf(t + a)))
    rounding = 1e-15 * epsilon  # of the exponent above
    assert gaussian_delta(1, a, 1.0, epsilon) == pytest.approx(closed, rel=1e-11, abs=rounding * 1e-2)


def test_gaussian_delta_in_two_dimensions() -> None:
    """k = 2: χ has survival exp(-x²/2), and by parts δ is a normal tail: no integral at all."""
    a, epsilon = 0.3, 1.0
    t = epsilon / a - a / 2
    closed = a * sqrt(2 * np.pi) * exp(a * t + a * a / 2) * stats.norm.sf(t + a)
    assert gaussian_delta(2, a, 1.0, epsilon) == pytest.approx(closed, rel=1e-12)


def test_gaussian_delta_against_simulation() -> None:
    dim, shift, sigma, epsilon = 6, 1.5, 2.0, 1.5
    rng = Randomness.seeded(4)
    norm = np.linalg.norm(Gaussian(dim, sigma).draws(rng, 20_000), axis=1)
    loss = (2 * shift * norm + shift**2) / (2 * sigma**2)
    gain = np.maximum(0, -np.expm1(epsilon - loss))
    error = gain.std() / sqrt(norm.size)
    assert error < 0.05 * gain.mean()
    assert abs(gain.mean() - gaussian_delta(dim, shift, sigma, epsilon)) < 4 * error


def test_gaussian_delta_at_the_extremes() -> None:
    assert gaussian_delta(24, 92, 1e-3, 1.0) == pytest.approx(1, abs=1e-12)
    assert gaussian_delta(24, 92, 1e9, 1.0) == 0.0  # below the smallest float, without a warning
    assert 0 < gaussian_delta(1, 1.0, 37.0, 1.0) < 1e-290
    assert 0 < gaussian_delta(10**5, 1.0, 340.0, 1.0) < 1


def test_gaussian_numbers_of_the_theory_page() -> None:
    assert gaussian_sigma(24, 92, 1.0, ADULT_DELTA) == pytest.approx(808.725, abs=0.001)
    published = gaussian_sigma_published(23, 1.0, 1.0, 1.0, ADULT_DELTA)
    assert published * stats.chi(24).mean() == pytest.approx(3431, abs=0.5)
    # The epsilons that are proved for the published scale and half of it are printed rounded up.
    for sigma, below, above in ((published, 1.146, 1.147), (published / 2, 2.33, 2.34)):
        assert gaussian_delta(24, 92, sigma, above) < ADULT_DELTA < gaussian_delta(24, 92, sigma, below)


@pytest.mark.parametrize("delta", [0.5, 1e-6, 1e-200])
@pytest.mark.parametrize("dim", [1, 24, 1000])
def test_gaussian_sigma_is_proved_and_tight(dim: int, delta: float) -> None:
    sigma = gaussian_sigma(dim, 5.0, 0.7, delta)
    assert delta * (1 - 1e-7) < gaussian_delta(dim, 5.0, sigma, 0.7) < delta
    assert gaussian_delta(dim, 5.0, sigma * (1 - 1e-8), 0.7) > delta


positive = st.floats(0.05, 20)


@given(st.integers(1, 200), positive, positive, positive, st.floats(1.001, 3))
@settings(max_examples=60, deadline=None)
def test_gaussian_delta_is_monotone(dim: int, shift: float, sigma: float, epsilon: float, more: float) -> None:
    delta = gaussian_delta(dim, shift, sigma, epsilon)
    slack = 1 + 1e-10
    assert 0 <= delta <= 1
    assert gaussian_delta(dim, shift, sigma * more, epsilon) <= delta * slack
    assert gaussian_delta(dim, shift, sigma, epsilon * more) <= delta * slack
    assert gaussian_delta(dim, shift * more, sigma, epsilon) * slack >= delta
    assert gaussian_delta(dim + 1, shift, sigma, epsilon) * slack >= delta
    scaled = gaussian_delta(dim, shift * more, sigma * more, epsilon)  # only r/σ matters
    assert scaled == pytest.approx(delta, rel=1e-9, abs=1e-300)


def test_published_sigma() -> None:
    assert gaussian_sigma_published(4, 0.5, 2, 0.5, exp(-9)) == pytest.approx(7 * 0.5 * 4 * 3 / (2 * 0.5))
    assert separator_sigma_published(16, 0.5, exp(-9)) == pytest.approx(7 * 4 * 3 / 0.5)


# --- utility --------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-12])
def test_utility_bounds_are_quantiles(beta: float) -> None:
    assert L2Gamma(7, 3.0).l2_quantile(beta) == pytest.approx(stats.gamma(7, scale=3.0).isf(beta))
    assert Gaussian(7, 3.0).l2_quantile(beta) == pytest.approx(3.0 * stats.chi(7).isf(beta))


# --- RSPM -----------------------------------------------------------------------------------------


# --- the parity counterexample --------------------------------------------------------------------


def published_sphere_scale(dim: int, delta: float = 1e-6, epsilon: float = 1.0) -> float:
    return parity_scale_sphere(dim, gaussian_sigma_published(dim, 0.5, 2.0, epsilon, delta))


def test_parity_scale_of_the_theory_page() -> None:
    expected = 1.75 * sqrt(50 * log(1e6)) / 0.3
    assert published_sphere_scale(50, epsilon=0.3) == pytest.approx(expected, rel=1e-12)


def test_parity_closed_forms_agree() -> None:
    for dim, scale in ((10, 0.3), (10, 2.0), (1000, 50.0)):
        p_d, p_neighbour = parity_odd_probabilities(dim, scale)
        direct = max(0.0, p_d - exp(0.4) * p_neighbour)
        assert parity_true_delta(dim, 0.4, scale) == pytest.approx(direct, abs=1e-14)
        epsilon = parity_true_epsilon(dim, 1e-3, scale)
        assert epsilon == pytest.approx(max(0.0, log((p_d - 1e-3) / p_neighbour)), rel=1e-12)
        assert epsilon == 0 or parity_true_delta(dim, epsilon, scale) == pytest.approx(1e-3, rel=1e-9)


def test_parity_loses_no_precision() -> None:
    # A tiny flip probability: ε ≈ 2·d·Pr[|z| < 1/2s], 1e-16 of which a plain 1 - p/2 would lose.
    tiny = 1e12
    first_order = 2 * 3 * (1 / (2 * tiny)) * 2 * stats.norm.pdf(0)
    assert parity_true_epsilon(3, 1e-300, tiny) == pytest.approx(first_order, rel=1e-10)
    # A hopeless mechanism: p underflows, the logarithm does not.
    assert parity_true_epsilon(100, 1e-6, 0.01) == pytest.approx(-100 * stats.norm.logsf(50), rel=0.01)
    assert parity_true_delta(100, 800.0, 0.01) == 1.0
    assert parity_true_epsilon(3, 0.9, 1e3) == 0.0


def test_parity_breaks_the_published_scales_where_the_theory_says() -> None:
    assert parity_true_delta(101, 1.0, published_sphere_scale(101)) <= 1e-6
    assert all(parity_true_delta(d, 1.0, published_sphere_scale(d)) > 1e-6 for d in range(102, 300))
    assert 2.5 < parity_true_epsilon(1000, 1e-6, published_sphere_scale(1000)) < 2.6
    assert parity_true_epsilon(23, ADULT_DELTA, published_sphere_scale(23, ADULT_DELTA)) < 1  # not refuted

    def separator(m: int) -> float:
        return parity_scale_separator(separator_sigma_published(m, 1.0, 1e-6))

    assert parity_true_delta(408, 1.0, separator(408)) <= 1e-6
    assert all(parity_true_delta(m, 1.0, separator(m)) > 1e-6 for m in range(409, 900))


@pytest.mark.parametrize("dim", [1, 10, 102, 409, 3000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (5.0, 1e-2)])
def test_parity_does_not_break_the_proved_gaussians(dim: int, epsilon: float, delta: float) -> None:
    sphere = gaussian_sigma(dim, sphere_shift(2, dim, 4), epsilon, delta)
    separator = gaussian_sigma(dim, 2 * sqrt(dim), epsilon, delta)
    assert parity_true_epsilon(dim, delta, parity_scale_sphere(dim, sphere)) <= epsilon
    assert parity_true_epsilon(dim, delta, parity_scale_separator(separator)) <= epsilon


@pytest.mark.parametrize("dim", [1, 10, 102, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_parity_does_not_break_the_gamma_law(dim: int, epsilon: float) -> None:
    """The ℓ2-gamma law is a Gaussian of random scale c/ε·χ_{k+1}; p is linear in the mixture, and δ is 0."""
    scale = sphere_shift(2, dim, 4) / epsilon
    law = stats.chi(dim + 1)

    def odd_on_neighbour(chi: float) -> float:
        return law.pdf(chi) * parity_odd_probabilities(dim, parity_scale_sphere(dim, scale * chi))[1]

    low, high = law.ppf(1e-13), law.isf(1e-13)
    half_p = integrate.quad(odd_on_neighbour, low, high, points=[law.median()], epsrel=1e-10)[0]
    assert log((1 - half_p) / half_p) <= epsilon
