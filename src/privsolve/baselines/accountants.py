"""How much noise DP-SGD needs: its exact event, two accountants, and the noise multiplier (docs, baselines, section B1).

A step adds `N(0, (zC)² I)` to the sum of gradients clipped to norm C over a Poisson sample of rate q; `z` is the noise
multiplier. One record then decides between two mixtures on a line, in units of C:

* replace: `(1-q)·N(0, z²) + q·N(1, z²)` against `(1-q)·N(0, z²) + q·N(-1, z²)`;
* add-remove: `(1-q)·N(0, z²) + q·N(1, z²)` against `N(0, z²)`, in both orders.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from math import expm1, log, log1p, sqrt
from typing import Any

import numpy as np
from scipy.special import logsumexp

from privsolve.checks import check_choice, check_count, check_positive
from privsolve.extras import from_extra
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon

with from_extra("experiments"):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon


class AccountantKind(StrEnum):
    """How the steps of DP-SGD are added up."""

    PLD = "pld"
    RDP = "rdp"


SMALLEST_DELTA = 1e-11
"""Below this the rounding errors of the Fourier transforms in the PLD accountant could matter."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 100.0
"""Beyond these the accountants run out of floating point range or of time."""

_SHARE = 0.99  # of delta that is aimed at: the rest covers rounding in the accountants and in the clipping
_BRACKET = 1e-4  # relative width at which the bisection for the noise multiplier stops
_ORDERS = 64
_REACH = 12.0  # standard deviations at which an integrand is cut off

_RELATIONS = {
    Adjacency.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
    Adjacency.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}


def dp_sgd_event(multiplier: float, rate: float, steps: int) -> Any:
    """The dp-accounting event of all steps. `multiplier` is noise over *clip norm*, whatever the adjacency."""
    step = dp_accounting.GaussianDpEvent(multiplier)
    if rate < 1:
        step = dp_accounting.PoissonSampledDpEvent(rate, step)
    return dp_accounting.SelfComposedDpEvent(step, steps)


def dp_sgd_epsilon(
    multiplier: float,
    rate: float,
    steps: int,
    delta: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    accountant: AccountantKind | str = AccountantKind.PLD,
) -> float:
    """The epsilon that the accountant proves at `delta`."""
    kind, neighbours = _checked(rate, steps, delta, adjacency, accountant)
    check_positive("multiplier", multiplier)
    if kind is AccountantKind.PLD:
        return float(_pld(multiplier, rate, steps, neighbours).get_epsilon(delta))
    orders = _orders(multiplier, rate, steps, delta, neighbours)
    return float(compute_epsilon(orders, _renyi(orders, multiplier, rate, steps, neighbours), delta)[0])


def noise_multiplier(
    rate: float,
    steps: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    accountant: AccountantKind | str = AccountantKind.PLD,
) -> float:
    """The smallest noise multiplier that the accountant proves `(epsilon, delta)` for: upper end of a tight bracket."""
    kind, neighbours = _checked(rate, steps, delta, adjacency, accountant)
    epsilon = check_epsilon(epsilon)
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ValueError(
            f"epsilon must lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g} for DP-SGD, where its accountants are "
            f"accurate, got {epsilon:g}"
        )
    return _smallest_multiplier(rate, steps, epsilon, delta, neighbours, kind)


@cache
def _smallest_multiplier(
    rate: float, steps: int, epsilon: float, delta: float, adjacency: Adjacency, accountant: AccountantKind
) -> float:
    def proves(z: float) -> bool:
        if accountant is AccountantKind.PLD:
            return float(_pld(z, rate, steps, adjacency).get_delta(epsilon)) <= _SHARE * delta
        orders = _orders(z, rate, steps, delta, adjacency)
        return float(compute_delta(orders, _renyi(orders, z, rate, steps, adjacency), epsilon)[0]) <= _SHARE * delta

    high = adjacency.range_factor * rate * sqrt(-2 * steps * log(delta)) / epsilon
    while not proves(high):
        high *= 2
    low = high / 2
    while proves(low):
        low, high = low / 2, low
    while high - low > _BRACKET * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def _checked(
    rate: float, steps: int, delta: float, adjacency: Adjacency | str, accountant: AccountantKind | str
) -> tuple[AccountantKind, Adjacency]:
    check_rate(rate)
    check_count("steps", steps)
    check_delta(delta)
    neighbours, kind = Adjacency.of(adjacency), check_choice("accountant", accountant, AccountantKind)
    if kind is AccountantKind.PLD and delta < SMALLEST_DELTA:
        raise ValueError(f"delta must be at least {SMALLEST_DELTA:g} for accountant='pld', got {delta:g}: use 'rdp'")
    return kind, neighbours


def check_rate(rate: float) -> float:
    """`rate` as a float; raise unless it is in (0, 1]."""
    if check_positive("rate", rate) > 1:
        raise ValueError(f"rate must be at most 1 (1 is the full batch), got {rate!r}")
    return float(rate)


def _pld(z: float, rate: float, steps: int, adjacency: Adjacency) -> PLDAccountant:
    """The privacy loss distribution, rounded up on a grid that suits the size of one step's loss."""
    s = adjacency.range_factor
    typical = s * rate / z
    if rate == 1:
        typical *= sqrt(steps)  # the accountant composes plain Gaussians in closed form
    largest = log1p(rate * expm1(min(10 * s / z, 700.0)))
    accountant = PLDAccountant(_RELATIONS[adjacency], max(0.05 * typical, 1e-4 * largest))
    return accountant.compose(dp_sgd_event(z, rate, steps))


def _orders(z: float, rate: float, steps: int, delta: float, adjacency: Adjacency) -> Any:
    """Rényi orders up to well above the best one for a Gaussian of the same size; any set of orders is valid."""
    typical = adjacency.range_factor * rate * sqrt(steps) / z
    best = 1 + sqrt(-2 * log(delta)) / typical
    return 1 + np.geomspace(0.25, 4 * best, _ORDERS)


def _renyi(orders: Any, z: float, rate: float, steps: int, adjacency: Adjacency) -> Any:
    """Rényi divergences of all steps: those of the pair of mixtures above, by quadrature."""
    if rate == 1:
        return steps * orders * (adjacency.range_factor / z) ** 2 / 2
    other = rate if adjacency is Adjacency.REPLACE else 0.0
    return steps * np.array([_renyi_step(float(a), z, rate, other) for a in orders])


def _renyi_step(order: float, z: float, rate: float, other: float) -> float:
    """`D_a(P‖Q)`, `P = (1-rate)·N(0, z²) + rate·N(1, z²)`, `Q = (1-other)·N(0, z²) + other·N(-1, z²)`.

    The integrand is analytic with Gaussian tails: beyond -1 and 2a it falls like a Gaussian of deviation z, and it is
    nowhere sharper than a fraction of z²/√a, so the trapezium rule is exact to rounding.
    """
    step = min(z, z * z, 2 * z * z / sqrt(order)) / 8
    x = np.arange(-1 - _REACH * z, 2 * order + _REACH * z, step)
    base = -x * x / (2 * z * z)
    # relative to N(0, z²): 1 + rate·(e^{...} - 1), without cancellation
    p = np.logaddexp(log1p(-rate), log(rate) + (x - 0.5) / (z * z))
    q = np.logaddexp(log1p(-other), log(other) + (-x - 0.5) / (z * z)) if other else 0.0
    integral = logsumexp(base + order * p - (order - 1) * q) + log(step) - log(z * sqrt(2 * np.pi))
    return max(0.0, float(integral) / (order - 1))
