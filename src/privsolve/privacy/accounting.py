"""Privacy budgets: what may still be released, when each release may be chosen after seeing the ones before.

A budget is a privacy filter. It accepts a release while one of two running sums stays within a limit fixed in advance, which
holds for parameters chosen on the way; theory section 9 has the proof. A plan declared in advance may use the tighter
`privsolve.privacy.composition`.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, Protocol

from privsolve.checks import check_finite, check_items
from privsolve.errors import BudgetExceeded
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.composition import Composition, Totals, check_total_delta, compose, zcdp_limit
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee, Paid


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
        object.__setattr__(self, "delta", check_total_delta(self.delta))
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


class Account(Protocol):
    """What pays for releases: an `Accountant`, or a `Ledger`."""

    def spending(
        self, guarantee: Guarantee, note: str = "", *, names: Sequence[str] = (), draft: Paid | None = None
    ) -> AbstractContextManager[object]:
        """Pay for one release, or refuse, on entering; the mechanism draws its noise inside.

        `names` and `draft` are as in `Ledger.spend`.
        """


class Accountant:
    """A budget in memory that refuses a release before its noise is drawn; see `Ledger` for one on disk.

    Pass it to a mechanism, `ps.exponential(problem, 0.1, budget=accountant)`, or enclose your own in
    `with accountant.spending(guarantee): ...`.

    Args:
        epsilon, delta, adjacency, composition_delta: as in `Budget`.
        plan: the guarantees of all releases in their order, if they are fixed before the first. The plan must fit the
            budget by its tightest bound (`compose`), and then each release may ask for at most what was planned.

    Guarantee:
        Without a plan, that of `Budget`, with it, that of `compose`: everything accepted is together `(epsilon, delta)`-DP.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        *,
        composition_delta: float | None = None,
        plan: Sequence[Guarantee] | None = None,
    ) -> None:
        self.budget = Budget(epsilon, delta, Adjacency.of(adjacency), composition_delta)
        self.plan = None if plan is None else _checked_plan(self.budget, plan)
        self.history: tuple[Guarantee, ...] = ()
        self._names: set[str] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an Accountant cannot be copied or pickled, the copy could be spent once more: use a Ledger")

    @property
    def totals(self) -> Totals:
        """Exact sums over the releases so far."""
        return Totals.of(self.history)

    def spend(self, guarantee: Guarantee, *, names: Sequence[str] = (), draft: Paid | None = None) -> None:
        """Record a release that is about to be made, or raise `BudgetExceeded` and record nothing.

        `names` and `draft` are as in `Ledger.spend`. In a plan a draft that is not paid for takes a place of its own.
        """
        if os.getpid() != self._process:
            raise BudgetExceeded("an Accountant cannot be spent in a forked process, which has a copy: use a Ledger")
        with self._lock:
            if not self._names.isdisjoint(names):
                return
            owed = draft if draft is not None and draft.note not in self._names else None
            paid = (guarantee,) if owed is None else (owed.guarantee, guarantee)
            if self.plan is None:
                self.budget.check_with_draft(self.totals, guarantee, owed)
            else:
                for place, one in enumerate(paid, len(self.history)):
                    _check_planned(self.plan, place, one)
            self.history = (*self.history, *paid)
            self._names.update(names, [owed.note] if owed is not None else [])

    @contextmanager
    def spending(
        self, guarantee: Guarantee, note: str = "", *, names: Sequence[str] = (), draft: Paid | None = None
    ) -> Iterator[Guarantee]:
        """`spend`, then run the block; whatever happens in it, the release stays paid for."""
        self.spend(guarantee, names=names, draft=draft)
        yield guarantee

    def remaining(self) -> Remaining:
        """What the next release may ask for at most; with a plan, what is planned next."""
        if self.plan is None:
            return self.budget.remaining(self.totals)
        if len(self.history) == len(self.plan):
            return Remaining(0.0, 0.0, 0.0)
        following = self.plan[len(self.history)]
        spread = following.profile.spread_losses
        return Remaining(0.0 if spread else following.epsilon, following.epsilon, following.delta)

    def composition(self) -> Composition:
        """The tightest bound for the releases so far, *if* their parameters and number did not depend on outputs.

        If they did, what holds is the budget itself.
        """
        return compose(self.history, self.budget.delta)


def _checked_plan(budget: Budget, plan: Sequence[Guarantee]) -> tuple[Guarantee, ...]:
    releases = check_items("plan", plan, "be a list of at least one Guarantee")
    for guarantee in releases:
        check_adjacency(guarantee, budget.adjacency)
    total = compose(releases, budget.delta)
    if total.epsilon > budget.epsilon:
        raise BudgetExceeded(
            f"the plan costs epsilon={total.epsilon:.6g} at delta={budget.delta:g} ({total.method}), above the budget of "
            f"{budget.epsilon:g}: plan fewer or smaller releases"
        )
    return total.plan


def _check_planned(plan: tuple[Guarantee, ...], done: int, guarantee: Guarantee) -> None:
    """A release may ask for at most what was planned in its place: then the planned one is at least as revealing."""
    if done == len(plan):
        raise BudgetExceeded(f"refused before any noise was drawn: all {done} planned releases have been made")
    planned = plan[done]
    check_adjacency(guarantee, planned.adjacency)
    if not planned.profile.covers(guarantee.profile):
        raise BudgetExceeded(
            f"refused before any noise was drawn: release {done + 1} was planned as {planned.mechanism} with "
            f"epsilon={planned.epsilon:g}, delta={planned.delta:g}; ask for at most that, with the same mechanism"
        )


def charged(
    budget: Account | None,
    guarantee: Guarantee,
    note: str = "",
    *,
    names: Sequence[str] = (),
    draft: Paid | None = None,
) -> AbstractContextManager[object]:
    """For mechanisms: pay from `budget`, if there is one, on entering the block that draws the noise.

    `names` and `draft` are as in `Ledger.spend`. A budget of the user's own need not take what is not given.
    """
    if budget is None:
        return nullcontext()
    if not callable(getattr(budget, "spending", None)):
        raise TypeError(f"budget must be an Accountant or a Ledger, got {type(budget).__name__}")
    given = {"note": note, "names": names, "draft": draft}
    return budget.spending(guarantee, **{name: value for name, value in given.items() if value})  # type: ignore[arg-type]


class _Promise(BaseException):
    """Carries a guarantee out of a mechanism that was about to draw its noise."""

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee


class _AskOnly:
    def spending(
        self, guarantee: Guarantee, note: str = "", *, names: Sequence[str] = (), draft: Paid | None = None
    ) -> NoReturn:
        raise _Promise(guarantee)


def promised(mechanism: Callable[..., Any], *args: Any, **options: Any) -> Guarantee:
    """What `mechanism(*args, **options)` would promise; it is stopped before it draws any noise. For plans."""
    try:
        mechanism(*args, **options, budget=_AskOnly())
    except _Promise as promise:
        return promise.guarantee
    raise TypeError(f"{mechanism!r} did not pay for its release: it must take budget= and spend before it draws noise")
