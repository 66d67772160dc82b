"""What several releases promise together, when their parameters were fixed before the first of them ran.

Three bounds are computed and the smallest epsilon is reported: all three hold for the same plan, so choosing is free. For
parameters that were chosen on the way see `privsolve.privacy.accounting`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from privsolve.checks import check_below_one, check_items
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import LARGEST_LOSS, Guarantee, Proof
from privsolve.privacy.profiles import Profile, Pure, profile_of

METHODS = {
    "basic": "sum of the epsilons",
    "pld": "privacy loss distributions",
    "zcdp": "zero-concentrated privacy",
}

CELLS = 10_000
"""Largest number of grid steps for the sum of all epsilons; the work grows with its square."""

STEPS = 64
"""Grid steps for the smallest epsilon with a continuous loss, if `CELLS` allows."""

LARGEST_RHO = 1e9
"""Beyond this ρ the conversion to epsilon is not attempted; it would exceed 10^9."""

ROUNDING = 1e-9
"""Relative allowance for floating point: sums of positive terms, a few units in the last place per release."""


@dataclass(frozen=True)
class Composition:
    """`(epsilon, delta)`-differential privacy of a whole plan, and the bound (`method`) that gave it.

    `answers` has the epsilon of each bound at this delta. `unproved` and `seeded` count the releases whose own
    guarantee is not proved or is for testing only: the total is no better than they are.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    method: str
    answers: dict[str, float]
    plan: tuple[Guarantee, ...]

    @property
    def unproved(self) -> int:
        """How many of the releases are not proved."""
        return sum(not g.proved for g in self.plan)

    @property
    def seeded(self) -> int:
        """How many of the releases are seeded."""
        return sum(g.seeded for g in self.plan)

    @property
    def profile(self) -> Profile:
        """What the plan loses as a whole."""
        if self.delta:
            return profile_of(self.epsilon, self.delta)
        return Pure(self.epsilon, at_least(sum((g.rho for g in self.plan), Fraction())))

    def guarantee(self) -> Guarantee:
        """The plan as one release, to be spent from a budget at once."""
        return Guarantee(
            profile=self.profile,
            adjacency=self.adjacency,
            mechanism=f"composition of {len(self.plan)} releases fixed in advance",
            noise=METHODS[self.method],
            theory=_list(g.theory for g in self.plan),
            oracle=_list(g.oracle for g in self.plan),
            proof=max((g.proof for g in self.plan), key=list(Proof).index),  # the weakest of them
            seeded=self.seeded > 0,
            negligible=at_least(sum((Fraction(g.negligible) for g in self.plan), Fraction())),
        )


def compose(plan: Sequence[Guarantee], delta: float = 0.0) -> Composition:
    """The smallest epsilon that is proved for the whole plan at `delta`.

    The releases may use each other's outputs, but their parameters (epsilon, delta, mechanism) and their order must have
    been fixed before the first one ran.

    Guarantee:
        The plan is `(epsilon, delta)`-DP under the common adjacency if every release keeps its own guarantee. `basic` adds
        up; `pld` convolves the privacy losses of the most revealing mechanisms with these guarantees, `zcdp` adds
        zero-concentrated bounds and converts. Proofs are in theory section 9.
    """
    releases = check_items("plan", plan, "be a list of at least one Guarantee")
    if not releases or not all(isinstance(g, Guarantee) for g in releases):
        raise ValueError("plan must be a list of at least one Guarantee")
    adjacency = releases[0].adjacency
    if any(g.adjacency != adjacency for g in releases):
        raise ValueError("the releases have different adjacencies: state them all under replace with guarantee.under()")
    target = exact(check_total_delta(delta))
    own = sum((exact(g.delta) for g in releases), Fraction())
    if own > target:
        raise ValueError(
            f"delta must be at least {at_least(own):g}, the sum of the releases' own deltas, got {delta:g}"
        )
    answers = {"basic": at_least(sum((exact(g.epsilon) for g in releases), Fraction()))}
    if target > 0:
        answers["pld"] = min(loss_epsilon(releases, delta), answers["basic"])
        spare = at_most(target - own)
        if spare > 0:
            answers["zcdp"] = zcdp_epsilon(at_least(sum((g.rho for g in releases), Fraction())), spare)
    method = min(answers, key=lambda name: answers[name])
    smallest = max(answers[method], sys.float_info.min)  # a guarantee is of a positive epsilon
    return Composition(smallest, float(delta), adjacency, method, answers, releases)


def check_total_delta(delta: float) -> float:
    """`delta` if it is a number from 0 up to but without 1."""
    return check_below_one("delta", delta, "; choose it far below 1/n, for example 1e-9")


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon of ρ-zCDP at `delta`: Canonne, Kamath and Steinke (2020), every order α > 1 is a proof of its own."""
    if rho > LARGEST_RHO:
        return math.inf
    best = _minimum(lambda above_one: (1 + above_one) * rho + _slack(above_one, delta), rho, delta)
    return max(0.0, best) * (1 + 1e-12)


def zcdp_limit(epsilon: float, delta: float) -> float:
    """The largest ρ such that ρ-zCDP implies `(epsilon, delta)`-DP, up to the choice of the order; 0 at delta 0."""
    if delta == 0:
        return 0.0
    epsilon = min(epsilon, math.sqrt(LARGEST_RHO))
    typical = epsilon**2 / (4 * (epsilon - math.log(delta)))
    best = _minimum(lambda above_one: (_slack(above_one, delta) - epsilon) / (1 + above_one), typical, delta)
    return max(0.0, -best) * (1 - 1e-12)


def _slack(above_one: float, delta: float) -> float:
    """`log(1/(αδ))/(α-1) + log(1-1/α)`, the part of epsilon that does not depend on ρ, with `α - 1` given."""
    return -(math.log1p(above_one) + math.log(delta)) / above_one + math.log(above_one / (1 + above_one))


def _minimum(value: Callable[[float], float], rho: float, delta: float) -> float:
    """The least `value(α - 1)`, searched for on a logarithmic scale around the textbook choice of the order α."""
    middle = 0.5 * math.log(-math.log(delta) / max(rho, 1 / LARGEST_RHO**4))
    best = minimize_scalar(lambda u: value(math.exp(u)), bounds=(middle - 6, middle + 6), method="bounded")
    return float(best.fun)


def loss_epsilon(plan: Sequence[Guarantee], delta: float) -> float:
    """The smallest epsilon at `delta` for the most revealing mechanisms that have these guarantees.

    A delta is at worst a full disclosure with that probability; the rest of a release is at worst the pair of laws that
    its profile states (`Profile.losses`).
    """
    epsilons = [exact(g.epsilon) for g in plan]
    if sum(epsilons) > LARGEST_LOSS:  # exponentials would overflow; the other bounds remain
        return math.inf
    step = _grid_step(epsilons, [e for e, g in zip(epsilons, plan, strict=True) if g.profile.spread_losses])
    pmf = np.ones(1)
    for g in plan:
        pmf = np.convolve(
            pmf, g.profile.losses(step)
        )  # direct, not by Fourier: small probabilities keep their precision
    disclosed = -math.expm1(math.fsum(math.log1p(-g.delta) for g in plan))
    losses = (np.arange(len(pmf)) - len(pmf) // 2) * float(step)

    def delta_at(epsilon: float) -> float:
        above = losses > epsilon
        hidden = (1 - disclosed) * float(-np.expm1(epsilon - losses[above]) @ pmf[above])
        return (disclosed + hidden) * (1 + ROUNDING)

    low, high = 0.0, float(losses[-1])
    if delta_at(high) > delta:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def _grid_step(epsilons: list[Fraction], continuous: list[Fraction]) -> Fraction:
    """A step that divides every epsilon, if the sum is then at most `CELLS` steps; else one that gives `CELLS` steps."""
    total = sum(epsilons, Fraction())
    step = Fraction(math.gcd(*(e.numerator for e in epsilons)), math.lcm(*(e.denominator for e in epsilons)))
    if total / step > CELLS:
        return total / CELLS
    finer = math.ceil(STEPS * step / min(continuous)) if continuous else 1
    return step / max(1, min(finer, int(CELLS * step / total)))


def _list(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
