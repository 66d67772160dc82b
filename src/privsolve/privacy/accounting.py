"""Privacy budgets: what may still be released, when each release may be chosen after seeing the ones before.

A budget is a privacy filter. It accepts a release while one of two running sums stays within a limit fixed in advance, which
holds for parameters chosen on the way; theory section 9 has the proof.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, NoReturn, Protocol, TypedDict, Unpack

from scipy.optimize import minimize_scalar

from privsolve.checks import check_finite, check_number
from privsolve.errors import BudgetExceeded
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee, Paid, Proof
from privsolve.privacy.profiles import Approximate, Profile, Pure

LARGEST_RHO = 1e9
"""Beyond this ρ the conversion from epsilon is not attempted: the epsilon is above 30,000."""


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
        return reduce(cls.plus, guarantees, cls())

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
        parts = ((self.unproved, "not proved"), (self.seeded, "seeded: for testing only"))
        of = "1 release" if self.releases == 1 else f"{self.releases} releases"
        found = [f"{count} of {of} {words}" for count, words in parts if count]
        if self.negligible:
            found.append(f"events of probability {at_least(self.negligible):.1g} in all are outside the proofs")
        return "; ".join(found)


@dataclass(frozen=True)
class Remaining:
    """What the next release may ask for at most, by kind: one of these, not all.

    `epsilon` is for any mechanism, `exponential` for the exponential mechanism, whose zero-concentrated bound is smaller;
    `delta` is what is left for the releases' own deltas.
    """

    epsilon: float
    exponential: float
    delta: float


@dataclass(frozen=True)
class Budget:
    """`(epsilon, delta)`-differential privacy for everything that is ever released from one data set.

    Args:
        epsilon: of all releases together.
        delta: of all releases together.
        adjacency: `"replace"` or `"add-remove"`, the same for all releases.
        composition_delta: the part of `delta` that pays for zero-concentrated composition, half of it by default; the rest
            is for the deltas of the releases themselves. 0 leaves plain sums.

    Guarantee:
        Releases that `check` accepts one after another, each with parameters that may depend on all earlier outputs, are
        together `(epsilon, delta)`-DP under `adjacency`, if each keeps its own guarantee: the deltas of the releases sum
        to at most `delta - composition_delta`, and either the epsilons sum to at most `epsilon`, or the zero-concentrated
        bounds to at most the ρ that gives `epsilon` at `composition_delta` (theory, section 9). Whether a release was
        refused is public; times, failures and diagnostics are not covered.
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = Adjacency.REPLACE
    composition_delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "adjacency", Adjacency.of(self.adjacency))
        advice = "; choose it far below 1/n, for example 1e-9"
        delta = check_number("delta", self.delta, lambda d: 0 <= d < 1, "be at least 0 and below 1", advice)
        object.__setattr__(self, "delta", delta)
        given = self.composition_delta
        part = at_most(exact(self.delta) / 2) if given is None else check_finite("composition_delta", given)
        if not 0 <= part <= self.delta:
            raise ValueError(f"composition_delta must be between 0 and delta={self.delta:g}, got {part}")
        object.__setattr__(self, "composition_delta", float(part))

    @property
    def release_delta(self) -> Fraction:
        """What the deltas of the releases may sum to."""
        return exact(self.delta) - exact(self.composition_delta or 0.0)

    @cached_property
    def rho_limit(self) -> float:
        """What the zero-concentrated bounds may sum to when the epsilons sum to more than `epsilon`."""
        return zcdp_limit(self.epsilon, self.composition_delta or 0.0)

    def allows(self, totals: Totals) -> bool:
        """Whether these sums are within the budget."""
        within = totals.epsilon <= exact(self.epsilon) or totals.rho <= Fraction(self.rho_limit)
        return within and totals.delta <= self.release_delta

    def check(self, totals: Totals, guarantee: Guarantee) -> Totals:
        """The sums after one more release; refuses one of another adjacency or beyond the budget."""
        check_adjacency(guarantee, self.adjacency)
        after = totals.plus(guarantee)
        if self.allows(after):
            return after
        left = self.remaining(totals)
        if after.delta > self.release_delta:
            if not self.delta:
                raise BudgetExceeded(
                    "refused before any noise was drawn: the budget has no delta, and the release has "
                    f"delta={guarantee.delta:g}: use delta 0, also for the draft of the schema, or a budget with a delta"
                )
            raise BudgetExceeded(
                f"refused before any noise was drawn: a release with delta={guarantee.delta:g} exceeds the "
                f"{left.delta:.6g} that is left for the deltas of releases (of delta={self.delta:g}, "
                f"{self.composition_delta:g} is kept for composition: see composition_delta); use a smaller delta or a pure law"
            )
        raise BudgetExceeded(
            f"refused before any noise was drawn: epsilon={guarantee.epsilon:g} would bring the sum to "
            f"{at_least(after.epsilon):.12g}, the budget is {self.epsilon:g}; the next release may have at most "
            f"epsilon={left.epsilon:.6g} ({left.exponential:.6g} with the exponential mechanism)"
        )

    def check_with_draft(self, totals: Totals, guarantee: Guarantee, draft: Paid | None) -> None:
        """Refuse a release that is beyond the budget together with the draft that it rests on."""
        if draft is None:
            self.check(totals, guarantee)
            return
        try:
            self.check(self.check(totals, draft.guarantee), guarantee)
        except BudgetExceeded as error:
            raise BudgetExceeded(
                f"{error}; the private draft of the schema (epsilon={draft.guarantee.epsilon:g}) is paid for with the first "
                "release that uses it"
            ) from None

    def remaining(self, totals: Totals) -> Remaining:
        """What the next release may ask for at most."""
        by_sum = max(Fraction(), exact(self.epsilon) - totals.epsilon)
        rho = max(0.0, float(Fraction(self.rho_limit) - totals.rho)) * (1 - 1e-9)  # leaves room for rounding ε²/8
        by_rho, by_range = math.sqrt(2 * rho), math.sqrt(8 * rho)
        largest = at_most(by_sum)
        return Remaining(
            max(largest, by_rho), max(largest, by_range), at_most(max(Fraction(), self.release_delta - totals.delta))
        )


def zcdp_limit(epsilon: float, delta: float) -> float:
    """The largest ρ such that ρ-zCDP implies `(epsilon, delta)`-DP, up to the choice of the order; 0 at delta 0.

    Canonne, Kamath and Steinke (2020): every order α > 1 is a proof of its own. The best is searched for on a logarithmic
    scale around the textbook choice.
    """
    if delta == 0:
        return 0.0
    epsilon = min(epsilon, math.sqrt(LARGEST_RHO))
    typical = epsilon**2 / (4 * (epsilon - math.log(delta)))
    middle = 0.5 * math.log(-math.log(delta) / max(typical, 1 / LARGEST_RHO**4))

    def excess(log_above_one: float) -> float:
        above_one = math.exp(log_above_one)  # α - 1
        slack = -(math.log1p(above_one) + math.log(delta)) / above_one + math.log(above_one / (1 + above_one))
        return (slack - epsilon) / (1 + above_one)

    best = float(minimize_scalar(excess, bounds=(middle - 6, middle + 6), method="bounded").fun)
    return max(0.0, -best) * (1 - 1e-12)


def check_adjacency(guarantee: Guarantee, adjacency: Adjacency) -> None:
    """Refuse a release under another adjacency: nothing is converted silently."""
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"guarantee must be a Guarantee, got {type(guarantee).__name__}")
    if guarantee.adjacency != adjacency:
        way = (
            "spend guarantee.under('replace'), at twice the epsilon"
            if adjacency is Adjacency.REPLACE
            else "run it with adjacency='add-remove'"
        )
        raise ValueError(f"the budget is under {adjacency} and the release under {guarantee.adjacency}: {way}")


class Known(TypedDict, total=False):
    """By what a payment is known, and what is owed with it; `Ledger.spend` says what each does."""

    run: str
    names: Sequence[str]
    draft: Paid | None


class Account(Protocol):
    """What pays for releases: an `Accountant`, or a `Ledger`."""

    def spending(self, guarantee: Guarantee, note: str = "", **known: Unpack[Known]) -> AbstractContextManager[object]:
        """Pay for one release, or refuse, on entering; the mechanism draws its noise inside."""


class Accountant:
    """A budget in memory that refuses a release before its noise is drawn; see `Ledger` for one on disk.

    Pass it to a mechanism, `ps.exponential(problem, 0.1, budget=accountant)`, or enclose your own in
    `with accountant.spending(guarantee): ...`.

    Args:
        epsilon, delta, adjacency, composition_delta: as in `Budget`.

    Guarantee:
        That of `Budget`: everything accepted is together `(epsilon, delta)`-DP.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        *,
        composition_delta: float | None = None,
    ) -> None:
        self.budget = Budget(epsilon, delta, Adjacency.of(adjacency), composition_delta)
        self.history: tuple[Guarantee, ...] = ()
        self._names: dict[str, Guarantee] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an Accountant cannot be copied or pickled, the copy could be spent once more: use a Ledger")

    @property
    def totals(self) -> Totals:
        """Exact sums over the releases so far."""
        return Totals.of(self.history)

    def spend(
        self, guarantee: Guarantee, *, run: str = "", names: Sequence[str] = (), draft: Paid | None = None
    ) -> None:
        """Record a release that is about to be made, or raise `BudgetExceeded` and record nothing.

        `run`, `names` and `draft` are as in `Ledger.spend`.
        """
        if os.getpid() != self._process:
            raise BudgetExceeded("an Accountant cannot be spent in a forked process, which has a copy: use a Ledger")
        with self._lock:
            if run in self._names:
                return
            owed = None if draft is None or self._names.get(draft.note) == draft.guarantee else draft
            self.budget.check_with_draft(self.totals, guarantee, owed)
            self.history = (*self.history, *([owed.guarantee] if owed is not None else []), guarantee)
            self._names |= dict.fromkeys([run, *names] if run else names, guarantee)
            if owed is not None:
                self._names[owed.note] = owed.guarantee

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "", **known: Unpack[Known]) -> Iterator[Guarantee]:
        """`spend`, then run the block; whatever happens in it, the release stays paid for."""
        self.spend(guarantee, **known)
        yield guarantee

    def remaining(self) -> Remaining:
        """What the next release may ask for at most."""
        return self.budget.remaining(self.totals)


def charged(
    budget: Account | None, guarantee: Guarantee, note: str = "", **known: Unpack[Known]
) -> AbstractContextManager[object]:
    """For mechanisms: pay from `budget`, if there is one, on entering the block that draws the noise.

    A budget of the user's own need not take what is not given.
    """
    if budget is None:
        return nullcontext()
    if not callable(getattr(budget, "spending", None)):
        raise TypeError(f"budget must be an Accountant or a Ledger, got {type(budget).__name__}")
    given = {"note": note, **known}
    return budget.spending(guarantee, **{name: value for name, value in given.items() if value})  # type: ignore[arg-type]


class _Promise(BaseException):
    """Carries a guarantee out of a mechanism that was about to draw its noise."""

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee


class _AskOnly:
    def spending(self, guarantee: Guarantee, **_: object) -> NoReturn:
        raise _Promise(guarantee)


def promised(mechanism: Callable[..., Any], *args: Any, **options: Any) -> Guarantee:
    """What `mechanism(*args, **options)` would promise; it is stopped before it draws any noise."""
    try:
        mechanism(*args, **options, budget=_AskOnly())
    except _Promise as promise:
        return promise.guarantee
    raise TypeError(f"{mechanism!r} did not pay for its release: it must take budget= and spend before it draws noise")


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
