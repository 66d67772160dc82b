"""Noise scales, and what they prove: plain functions, one per formula of the theory page.

Notation of the theory: `delta_range` is the Δ of section 0 (how far one record can move the difference
of two objective values), `shift` is the length c or r of the vectors v_w of section 1, `epsilon` and
`delta` are the privacy parameters. Functions with `published` in their name reproduce the paper and are
*not proved*.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import erf, exp, expm1, lgamma, log, log1p, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv, log_ndtr

from privsolve.checks import check_above_zero, check_error, check_positive, check_share
from privsolve.privacy.adjacency import Adjacency

__all__ = [
    "check_beta",
    "check_delta",
    "check_epsilon",
    "effective_range",
    "exact_tolerance",
    "gamma_length",
    "gamma_mean_norm",
    "gamma_scale",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_length",
    "gaussian_sigma",
    "gaussian_sigma_published",
    "parity_odd_probabilities",
    "parity_scale_separator",
    "parity_scale_sphere",
    "parity_true_delta",
    "parity_true_epsilon",
    "range_sensitivity",
    "rounding_error",
    "separator_shift_l1",
    "separator_shift_l2",
    "separator_sigma_published",
    "sphere_shift",
]

# Section 6: table entries are multiples of 2^-20, so rounding moves each of them by at most 2^-21.
_ENTRY_ERROR = 2.0**-21

# gaussian_sigma and gaussian_epsilon aim this far (relatively) below delta, well above the error of the
# integral, so that what they return is proved and not only very nearly proved. It costs about 1e-10 of sigma.
_INTEGRAL_ALLOWANCE = 1e-9

_BRACKET = 1e-12  # relative width at which a bisection stops
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_PANELS = 8
_NEGLIGIBLE = 50.0  # exp(-50) of the peak: where an integrand is cut off


# --- arguments ------------------------------------------------------------------------------------


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
        check_above_zero(name, value)


def _check_count(**arguments: int) -> None:
    for name, value in arguments.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


# --- sensitivity and rounding (sections 0, 1, 6) --------------------------------------------------


def range_sensitivity(adjacency: Adjacency | str) -> int:
    """Δ for losses in [0, 1] (section 0): 2 if one record is replaced, 1 if one is added or removed."""
    return Adjacency.of(adjacency).range_factor


def rounding_error(dim: int) -> float:
    """r = (d+1)·2^-21: how far rounding the perturbation tables moves any objective value (section 6)."""
    _check_count(dim=dim)
    return (dim + 1) * _ENTRY_ERROR


def exact_tolerance(dim: int) -> float:
    """A = 2r: how far from optimal the minimiser of the rounded objective can be (section 6)."""
    return 2 * rounding_error(dim)


def effective_range(delta_range: float, rounding: float, solver_tolerance: float = 0.0) -> float:
    """The Δ to calibrate with when the oracle is approximate: Δ + 2·A_s + 5r (sections 1 and 6).

    An oracle that minimises the rounded objective up to `solver_tolerance` A_s (in mistakes; 0 if exact) is
    within A = A_s + 2r of the true optimum, with r = `rounding` from `rounding_error`. The
    approximate-oracle lemma asks for more than Δ + 2A = Δ + 2·A_s + 4r. The fifth r makes the inequality
    strict and absorbs the floating point error of the noise.
    """
    _check_positive(delta_range=delta_range, rounding=rounding)
    return delta_range + 2 * check_error("solver_tolerance", solver_tolerance) + 5 * rounding


# --- OPDisc, pure privacy (sections 2, 2.1) -------------------------------------------------------


def sphere_shift(delta_range: float, radius_sq: float, separation_sq: float) -> float:
    """c = 2ΔD²/τ², the length of v_w = c·π(w) under the sphere lift (section 2).

    `radius_sq` is D² and `separation_sq` is τ². For G-Lipschitz losses pass `delta_range = 2Gτ`
    (replace) or `Gτ` (add-remove): the worst pair is then the closest one, also with a tolerance added.
    """
    _check_positive(delta_range=delta_range, radius_sq=radius_sq, separation_sq=separation_sq)
    return 2 * delta_range * radius_sq / separation_sq


def gamma_scale(shift: float, epsilon: float) -> float:
    """Scale ‖v‖/ε of a law with density ∝ exp(-‖η‖/scale), in the same norm: pure ε-DP (section 1, any norm).

    c/ε for ℓ2-gamma noise on the sphere (2.1), Δ/ε for ℓ∞-gamma and mΔ/ε for Laplace noise on separators (3).
    """
    _check_positive(shift=shift)
    epsilon = check_epsilon(epsilon)
    return shift / epsilon


def gamma_mean_norm(dim: int, scale: float) -> float:
    """E‖η‖₂ = k·scale of the ℓ2-gamma law on R^k (section 2.1)."""
    _check_count(dim=dim)
    _check_positive(scale=scale)
    return dim * scale


# --- Gaussian noise (sections 1, 2.2, 2.3) --------------------------------------------------------


def gaussian_delta(dim: int, shift: float, sigma: float, epsilon: float) -> float:
    """δ(ε) = E[(1 - exp(ε-Λ))_+] with Λ = (2rσχ_k + r²)/2σ² (section 1); k = `dim`, r = `shift`."""
    _check_count(dim=dim)
    _check_positive(shift=shift, sigma=sigma)
    epsilon = check_epsilon(epsilon)
    return exp(_log_gaussian_delta(dim, shift / sigma, epsilon))


def gaussian_sigma(dim: int, shift: float, epsilon: float, delta: float) -> float:
    """The smallest σ whose δ(ε) is at most `delta` (sections 1 and 2.2): upper end of a tight bracket."""
    _check_count(dim=dim)
    _check_positive(shift=shift)
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    target = log(delta) + log1p(-_INTEGRAL_ALLOWANCE)

    def proves(sigma: float) -> bool:
        return _log_gaussian_delta(dim, shift / sigma, epsilon) <= target

    low = high = shift * sqrt(dim) / epsilon
    while proves(low):
        low /= 2
    while not proves(high):
        high *= 2
    return _smallest(proves, low, high)


def gaussian_epsilon(dim: int, shift: float, sigma: float, delta: float) -> float:
    """The smallest ε that section 1 proves for a given σ at `delta` (0.0 if every ε is proved)."""
    _check_count(dim=dim)
    _check_positive(shift=shift, sigma=sigma)
    delta = check_delta(delta)
    a = shift / sigma
    target = log(delta) + log1p(-_INTEGRAL_ALLOWANCE)

    def proves(epsilon: float) -> bool:
        return _log_gaussian_delta(dim, a, epsilon) <= target

    if proves(0.0):
        return 0.0
    high = a * sqrt(dim) + a * a / 2
    while not proves(high):
        high *= 2
    return _smallest(proves, 0.0, high)


def gaussian_sigma_published(
    radius_sq: float, lipschitz: float, separation: float, epsilon: float, delta: float
) -> float:
    """σ = 7GD²·sqrt(ln(1/δ))/(τε), as published. NOT PROVED, and false in high dimension (section 2.3).

    For reproducing the paper only; `gaussian_sigma` is the proved counterpart.
    """
    _check_positive(radius_sq=radius_sq, lipschitz=lipschitz, separation=separation)
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
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
    peak = _smallest(falls, 1e-9 / (1 + start), _double_until(falls, 1.0))
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


def _smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Bisection for the point where `holds` turns true: `holds` is true at what is returned."""
    while high - low > _BRACKET * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _double_until(holds: Callable[[float], bool], step: float) -> float:
    while not holds(step):
        step *= 2
    return step


# --- utility (section 2.4) ------------------------------------------------------------------------


def gamma_length(dim: int, scale: float, beta: float) -> float:
    """scale·Γ⁻¹_k(1-β): what the length of ℓ2-gamma noise on R^k exceeds with probability β (section 2.4)."""
    _check_count(dim=dim)
    _check_positive(scale=scale)
    beta = check_beta(beta)
    return scale * float(gammainccinv(dim, beta))


def gaussian_length(dim: int, sigma: float, beta: float) -> float:
    """σ·χ⁻¹_k(1-β): what the length of Gaussian noise on R^k exceeds with probability β (section 2.4)."""
    _check_count(dim=dim)
    _check_positive(sigma=sigma)
    beta = check_beta(beta)
    return sigma * sqrt(2 * float(gammainccinv(dim / 2, beta)))  # χ² is Gamma(k/2, scale 2)


# --- RSPM (section 3) -----------------------------------------------------------------------------


def separator_shift_l1(delta_range: float, m: int) -> float:
    """‖v_w‖₁ = mΔ on `m` separators, for Laplace noise (section 3)."""
    _check_positive(delta_range=delta_range)
    _check_count(m=m)
    return m * delta_range


def separator_shift_l2(delta_range: float, m: int) -> float:
    """‖v_w‖₂ = Δ√m, the r of section 1 for Gaussian noise on `m` separators (section 3)."""
    _check_positive(delta_range=delta_range)
    _check_count(m=m)
    return delta_range * sqrt(m)


def separator_sigma_published(m: int, epsilon: float, delta: float) -> float:
    """σ = 7·sqrt(m·ln(1/δ))/ε, as published. NOT PROVED, and false for large m (section 3).

    For reproducing the paper only; `gaussian_sigma` with `shift=separator_shift_l2(...)` is proved.
    """
    _check_count(m=m)
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    return 7 * sqrt(-m * log(delta)) / epsilon


# --- the parity counterexample (sections 2.3 and 3) -----------------------------------------------
#
# W = {-1,1}^d; one record costs 1[even number of -1s] on D and its complement on D'. The perturbation is
# Σ s·z_j·w_j with z standard normal, so its best point has a fair parity, and changing that costs
# 2s·min|z_j| while the record offers 1. With p = Pr[min|z_j| > 1/2s]:
# Pr[odd|D] = 1 - p/2 and Pr[odd|D'] = p/2. By symmetry all odd points are equally likely and so are all
# even ones: "odd" is the worst event, and the δ and ε below are exactly those of this pair of datasets.


def parity_scale_sphere(dim: int, sigma: float) -> float:
    """s for OPDisc on {-1,1}^d: the coefficient of w_j is η_j/D with D = √d (section 2.3)."""
    _check_count(dim=dim)
    _check_positive(sigma=sigma)
    return sigma / sqrt(dim)


def parity_scale_separator(sigma: float) -> float:
    """s for RSPM on {-1,1}^d: 1[w_j<=0] = (1-w_j)/2, so the coefficient of w_j is -η_j/2 (section 3)."""
    _check_positive(sigma=sigma)
    return sigma / 2


def parity_odd_probabilities(dim: int, scale: float) -> tuple[float, float]:
    """(Pr[odd|D], Pr[odd|D']) = (1 - p/2, p/2) for the coefficient scale s = `scale` (section 2.3)."""
    half = exp(_parity_log_p(dim, scale)) / 2
    return 1 - half, half


def parity_true_delta(dim: int, epsilon: float, scale: float) -> float:
    """The smallest δ at `epsilon` on the parity datasets: Pr[odd|D] - e^ε·Pr[odd|D'], at least 0.

    A larger value than the claimed δ refutes a guarantee; a smaller one proves nothing.
    """
    epsilon = check_epsilon(epsilon)
    log_mean = epsilon + log1p(expm1(-epsilon) / 2)  # ln((1+e^ε)/2), without overflow
    return max(0.0, -expm1(min(_parity_log_p(dim, scale) + log_mean, 0.0)))


def parity_true_epsilon(dim: int, delta: float, scale: float) -> float:
    """The smallest ε at `delta` on the parity datasets: ln((1 - p/2 - δ)/(p/2)), at least 0."""
    delta = check_delta(delta)
    log_p = _parity_log_p(dim, scale)
    excess = -expm1(log_p) - 2 * delta  # (2 - p - 2δ) - 1
    return max(0.0, log1p(excess) - log_p) if excess > -1 else 0.0


def _parity_log_p(dim: int, scale: float) -> float:
    """ln p, p = (2Φ(-1/2s))^d."""
    _check_count(dim=dim)
    _check_positive(scale=scale)
    x = 1 / (2 * scale)
    # log1p keeps the relative precision of a small x, log_ndtr that of a large one.
    return dim * (log1p(-erf(x / sqrt(2))) if x < 1 else log(2) + float(log_ndtr(-x)))
