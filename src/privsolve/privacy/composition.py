"""What several releases promise together: plans fixed in advance, and releases one after another or side by side.

Of a plan three bounds are computed and the smallest epsilon is reported: all three hold for the same plan, so choosing is
free. For parameters that were chosen on the way see `privsolve.privacy.accounting`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from privsolve.checks import check_below_one, check_items
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import LARGEST_LOSS, Guarantee, Proof
from privsolve.privacy.profiles import Approximate, Profile, Pure

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
class Totals:
    """Exact running sums over the releases so far."""

    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()
    rho: Fraction = Fraction()
    releases: int = 0
    unproved: int = 0
    seeded: int = 0
    negligible: Fraction = Fraction()

    @classmethod
    def of(cls, guarantees: Iterable[Guarantee]) -> Totals:
        """The sums over some releases."""
        totals = cls()
        for guarantee in guarantees:
            totals = totals.plus(guarantee)
        return totals

    def plus(self, guarantee: Guarantee) -> Totals:
        """The sums after one more release."""
        return Totals(
            self.epsilon + exact(guarantee.epsilon),
            self.delta + exact(guarantee.delta),
            self.rho + guarantee.rho,
            self.releases + 1,
            self.unproved + (not guarantee.proved),
            self.seeded + guarantee.seeded,
            self.negligible + Fraction(guarantee.negligible),
        )

    def caveat(self) -> str:
        """What the sums rest on beyond proofs; empty if on nothing."""
        parts = [
            (self.unproved, "not proved"),
            (self.seeded, "seeded: for testing only"),
        ]
        of = "1 release" if self.releases == 1 else f"{self.releases} releases"
        found = [f"{count} of {of} {words}" for count, words in parts if count]
        if self.negligible:
            found.append(f"events of probability {at_least(self.negligible):.1g} in all are outside the proofs")
        return "; ".join(found)


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
        return Totals.of(self.plan).unproved

    @property
    def seeded(self) -> int:
        """How many of the releases are seeded."""
        return Totals.of(self.plan).seeded

    def guarantee(self) -> Guarantee:
        """The plan as one release, to be spent from a budget at once."""
        profile = _profile(self.epsilon, self.delta, Totals.of(self.plan).rho)
        words = f"composition of {len(self.plan)} releases fixed in advance"
        return replace(_joined(self.plan, profile, words), noise=METHODS[self.method])


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
    target, own = exact(check_total_delta(delta)), Totals.of(releases)
    if own.delta > target:
        raise ValueError(
            f"delta must be at least {at_least(own.delta):g}, the sum of the releases' own deltas, got {delta:g}"
        )
    answers = {"basic": at_least(own.epsilon)}
    if target > 0:
        answers["pld"] = min(loss_epsilon(releases, delta), answers["basic"])
        spare = at_most(target - own.delta)
        if spare > 0:
            answers["zcdp"] = zcdp_epsilon(at_least(own.rho), spare)
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


def one_after_another(parts: Sequence[Guarantee]) -> Guarantee:
    """Releases from the same records, in this order: their epsilons, deltas and zero-concentrated bounds add up (section 9)."""
    if len(parts) == 1:
        return parts[0]
    total = Totals.of(parts)
    profile = _profile(at_least(total.epsilon), at_least(total.delta), total.rho)
    return _joined(parts, profile, "; then ".join(map(_named, parts)))


def side_by_side(one: Guarantee, other: Guarantee) -> Guarantee:
    """Releases from two parts of the records, of which each record is in one by a coin that looks at nothing: the worse one.

    The second may depend on what the first published (theory, 11.5).
    """
    epsilon, delta = max(one.epsilon, other.epsilon), max(one.delta, other.delta)
    words = f"{_named(one)} and, on other records, {_named(other)}"
    return _joined((one, other), _profile(epsilon, delta, max(one.rho, other.rho)), words)


def _profile(epsilon: float, delta: float, rho: Fraction) -> Profile:
    return Approximate(epsilon, delta) if delta else Pure(epsilon, at_least(rho))


def _joined(parts: Sequence[Guarantee], profile: Profile, mechanism: str) -> Guarantee:
    """Several guarantees as one: no better proved than the weakest, and seeded if one is."""
    if len({part.adjacency for part in parts}) > 1:
        raise ValueError(
            "guarantees under replace and under add-remove do not add up: use the same adjacency for schema, fit and evaluation"
        )
    noise, theory, oracle = (" and ".join(_different(parts, name)) for name in ("noise", "theory", "oracle"))
    total = Totals.of(parts)
    return Guarantee(
        profile,
        parts[0].adjacency,
        mechanism,
        noise,
        theory,
        oracle,
        max((part.proof for part in parts), key=list(Proof).index),
        total.seeded > 0,
        at_least(total.negligible),
    )


def _named(part: Guarantee) -> str:
    """The mechanism and its epsilon, unless it is several that have said so already."""
    return part.mechanism if "ε = " in part.mechanism else f"{part.mechanism} with ε = {part.epsilon:.12g}"


def _different(parts: Sequence[Guarantee], name: str) -> list[str]:
    found = [text for part in parts for text in str(getattr(part, name)).split(" and ")]
    return list(dict.fromkeys(text for text in found if text != "none")) or ["none"]
