"""Noise scales, and what they prove: plain functions, one per formula of the theory pages.

Notation of the theory: `delta_range` is the Δ of section 0 (how far one record can move the difference
of two objective values), `shift` is the length c or r of the vectors v_w of section 1, `epsilon` and
`delta` are the privacy parameters. Functions with `published` in their name reproduce the paper and are
*not proved*.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import exp, expm1, lgamma, log, log1p, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv

from privsolve.checks import check_between, check_positive, check_share

# Section 6: table entries are multiples of 2^-20, so rounding moves each of them by at most 2^-21.
_ENTRY_ERROR = 2.0**-21

# gaussian_sigma aims this far (relatively) below delta, well above the error of the
# integral, so that what it returns is proved and not only very nearly proved. It costs about 1e-10 of sigma.
_INTEGRAL_ALLOWANCE = 1e-9

_BRACKET = 1e-12  # relative width at which a bisection stops
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_PANELS = 8
_NEGLIGIBLE = 50.0  # exp(-50) of the peak: where an integrand is cut off


def check_epsilon(epsilon: float) -> float:
    """`epsilon` as a float; raise unless it is finite, positive and within reason."""
    return check_positive("epsilon", epsilon, "; choose for example epsilon=1.0")


def check_delta(delta: float) -> float:
    """`delta` as a float; raise unless `0 < delta < 1`."""
    return check_share("delta", delta, "; choose it far below 1/n, or use a gamma or Laplace law, which needs no delta")


def check_beta(beta: float) -> float:
    """`beta` as a float; raise unless `0 < beta < 1`."""
    return check_share("beta", beta, "; it is the probability that the bound fails, for example beta=0.05")


def _check_positive(**arguments: float) -> None:
    for name, value in arguments.items():
        check_positive(name, value, bounded=False)


def rounding_error(dim: int) -> float:
    """r = (d+1)·2^-21: how far rounding the perturbation tables moves any objective value (section 6)."""
    return (dim + 1) * _ENTRY_ERROR


def effective_range(delta_range: float, rounding: float, solver_tolerance: float = 0.0) -> float:
    """The Δ to calibrate with when the oracle is approximate: Δ + 2·A_s + 5r (sections 1 and 6).

    An oracle that minimises the rounded objective up to `solver_tolerance` A_s (in mistakes; 0 if exact) is
    within A = A_s + 2r of the true optimum, with r = `rounding` from `rounding_error`. The
    approximate-oracle lemma asks for more than Δ + 2A = Δ + 2·A_s + 4r. The fifth r makes the inequality
    strict and absorbs the floating point error of the noise.
    """
    _check_positive(delta_range=delta_range, rounding=rounding)
    return delta_range + 2 * check_between("solver_tolerance", solver_tolerance, 0) + 5 * rounding


def sphere_shift(delta_range: float, radius_sq: float, separation_sq: float) -> float:
    """c = 2ΔD²/τ², the length of v_w = c·π(w) under the sphere lift (section 2).

    `radius_sq` is D² and `separation_sq` is τ². For G-Lipschitz losses pass `delta_range = 2Gτ`
    (replace) or `Gτ` (add-remove): the worst pair is then the closest one, also with a tolerance added.
    """
    _check_positive(delta_range=delta_range, radius_sq=radius_sq, separation_sq=separation_sq)
    return 2 * delta_range * radius_sq / separation_sq


def gaussian_delta(dim: int, shift: float, sigma: float, epsilon: float) -> float:
    """δ(ε) = E[(1 - exp(ε-Λ))_+] with Λ = (2rσχ_k + r²)/2σ² (section 1); k = `dim`, r = `shift`."""
    return exp(_log_gaussian_delta(dim, shift / sigma, epsilon))


def gaussian_sigma(dim: int, shift: float, epsilon: float, delta: float) -> float:
    """The smallest σ whose δ(ε) is at most `delta` (sections 1 and 2.2): upper end of a tight bracket."""
    _check_positive(shift=shift)
    target = log(delta) + log1p(-_INTEGRAL_ALLOWANCE)

    def proves(sigma: float) -> bool:
        return _log_gaussian_delta(dim, shift / sigma, epsilon) <= target

    low = high = shift * sqrt(dim) / epsilon
    while proves(low):
        low /= 2
    while not proves(high):
        high *= 2
    return smallest(proves, low, high)


def gaussian_sigma_published(
    radius_sq: float, lipschitz: float, separation: float, epsilon: float, delta: float
) -> float:
    """σ = 7GD²·sqrt(ln(1/δ))/(τε), as published. NOT PROVED, and false in high dimension (section 2.3).

    For reproducing the paper only; `gaussian_sigma` is the proved counterpart.
    """
    return 7 * lipschitz * radius_sq * sqrt(-log(delta)) / (separation * epsilon)


def _log_gaussian_delta(dim: int, a: float, epsilon: float) -> float:
    """ln δ(ε) for a = r/σ.

    Λ = aχ + a²/2 exceeds ε where χ > t = ε/a - a/2, so δ is the integral of f(x)·(1 - exp(-a(x-t))) over
    x > max(t, 0), f being the density of χ_k. Both factors are log-concave: the integrand has one peak and
    falls off at least exponentially, so it is integrated around its peak, in units of its height. Nothing
    underflows.
    """
    t = epsilon / a - a / 2
    start = max(t, 0.0)
    gap = a * (start - t)  # 0 if t > 0; y = x - start keeps a(x-t) = a·y + gap free of cancellation

    def log_integrand(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        x = start + y
        return (dim - 1) * np.log(x) - x * x / 2 + np.log(-np.expm1(-a * y - gap))

    def height(y: float) -> float:
        return float(log_integrand(np.array([y]))[0])

    def falls(y: float) -> bool:
        x, z = start + y, a * y + gap
        return (dim - 1) / x + a * exp(-z) / -expm1(-z) <= x

    # The peak may be at y = 0 (k = 1), where x vanishes; nothing is lost by staying just above.
    peak = smallest(falls, 1e-9 / (1 + start), _double_until(falls, 1.0))
    top = height(peak)
    step = 1 / (1 + start + peak)
    right = peak + _double_until(lambda w: height(peak + w) < top - _NEGLIGIBLE, step)
    left = peak - _double_until(lambda w: w >= peak or height(peak - w) < top - _NEGLIGIBLE, step)
    # The second factor rises within 1/a of the start: give it panels of its own when a is large.
    cuts = sorted({max(left, 0.0), peak, min(40 / a, right), right})
    integral = _integrate(lambda y: np.exp(log_integrand(y) - top), cuts)
    return min(top + log(integral) - (dim / 2 - 1) * log(2) - lgamma(dim / 2), 0.0)


def _integrate(f: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]], cuts: list[float]) -> float:
    """Gauss-Legendre on equal panels between consecutive cuts."""
    edges = np.concatenate([np.linspace(p, q, _PANELS, endpoint=False) for p, q in pairwise(cuts)])
    edges = np.append(edges, cuts[-1])
    half = np.diff(edges)[:, None] / 2
    return float(np.sum(half * _WEIGHTS * f(edges[:-1, None] + half * (1 + _NODES))))


def smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Bisection for the point where `holds` turns true: `holds` is true at what is returned."""
    while high - low > _BRACKET * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _double_until(holds: Callable[[float], bool], step: float) -> float:
    while not holds(step):
        step *= 2
    return step


def gamma_length(dim: int, scale: float, beta: float) -> float:
    """scale·Γ⁻¹_k(1-β): what the length of ℓ2-gamma noise on R^k exceeds with probability β (section 2.4)."""
    return scale * float(gammainccinv(dim, beta))


def gaussian_length(dim: int, sigma: float, beta: float) -> float:
    """σ·χ⁻¹_k(1-β): what the length of Gaussian noise on R^k exceeds with probability β (section 2.4)."""
    return sigma * sqrt(2 * float(gammainccinv(dim / 2, beta)))  # χ² is Gamma(k/2, scale 2)


def separator_sigma_published(m: int, epsilon: float, delta: float) -> float:
    """σ = 7·sqrt(m·ln(1/δ))/ε, as published. NOT PROVED, and false for large m (section 3).

    For reproducing the paper only; `gaussian_sigma` with the shift Δ√m is proved.
    """
    return 7 * sqrt(-m * log(delta)) / epsilon
