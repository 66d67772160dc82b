"""Budgets against adversaries and against dp-accounting; refusals before any noise."""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privsolve as ps
from oracle_conformance import Raises
from privsolve.continuous.problem import absolute_deviation
from privsolve.errors import BudgetExceeded, OracleFailed, PrivacyWarning
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Accountant, Budget, Totals, promised, zcdp_limit
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange, group_privacy
from promises import bounded_range as exponential
from promises import promise as pure

# --- numbers as they are written ---------------------------------------------------------------------


def test_ten_tenths_are_one() -> None:
    accountant = Accountant(1.0)
    for _ in range(10):
        accountant.spend(pure(0.1))
    assert accountant.totals.epsilon == 1
    with pytest.raises(BudgetExceeded, match="before any noise was drawn"):
        accountant.spend(pure(1e-300))
    assert len(accountant.history) == 10


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_sums_are_exact_and_rounded_up(epsilons: list[float]) -> None:
    total = sum((exact(e) for e in epsilons), Fraction())
    assert Totals.of(map(pure, epsilons)).epsilon == total
    assert exact(at_most(total)) <= total <= exact(at_least(total))
    assert at_least(total) == pytest.approx(math.fsum(epsilons), rel=1e-15)
    assert at_least(exact(epsilons[0])) == at_most(exact(epsilons[0])) == epsilons[0]


@given(st.floats(1e-6, 20), st.floats(1e-12, 0.1))
@settings(deadline=None)
def test_the_zcdp_limit_is_that_of_the_best_order(rho: float, delta: float) -> None:
    def epsilon(rho: float) -> float:
        logs = np.linspace(-12, 18, 6_001)
        for _ in range(2):  # a grid, and a finer one around its best order
            orders = 1 + np.exp(logs)
            every = orders * rho + np.log(1 / (orders * delta)) / (orders - 1) + np.log1p(-1 / orders)
            logs = logs[every.argmin()] + np.linspace(-0.01, 0.01, 6_001)
        return max(0.0, float(every.min()))

    if (best := epsilon(rho)) > 1e-3:
        limit = zcdp_limit(best, delta)
        assert limit == pytest.approx(rho, rel=1e-4)
        assert epsilon(limit) <= best * (1 + 1e-9)


def test_releases_compose_in_dp_accounting_as_the_guide_says() -> None:
    from dp_accounting import ZCDpEvent
    from dp_accounting.pld import common, privacy_loss_distribution
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant().compose(ZCDpEvent(exponential(1.0).zcdp), 3).compose(ZCDpEvent(pure(0.5).zcdp))
    rho = float(Totals.of([exponential(1.0)] * 3 + [pure(0.5)]).rho)
    assert 0.98 * zcdp_limit(theirs.get_epsilon(1e-6), 1e-6) <= rho <= zcdp_limit(theirs.get_epsilon(1e-6), 1e-6)
    stated = common.DifferentialPrivacyParameters(pure(0.5).epsilon, pure(0.5).delta)
    once = privacy_loss_distribution.from_privacy_parameters(stated)
    assert once.self_compose(2).get_epsilon_for_delta(1e-9) == pytest.approx(1.0, abs=1e-3)
    assert pure(0.5, 1e-6).zcdp is None


# --- adjacency ----------------------------------------------------------------------------------------


def test_adjacencies_are_converted_on_request_only() -> None:
    one = exponential(0.5, adjacency="add-remove")
    with pytest.raises(ValueError, match=r"guarantee.under\('replace'\)"):
        Accountant(2.0).spend(one)
    with pytest.raises(ValueError, match="run it with adjacency='add-remove'"):
        Accountant(2.0, adjacency="add-remove").spend(pure(0.5))
    replaced = one.under("replace")
    assert (replaced.epsilon, replaced.zcdp, replaced.adjacency) == (1.0, 4 * 0.5**2 / 8, "replace")
    assert one.under("add-remove") is one
    with pytest.raises(ValueError, match="says nothing"):
        pure(0.5).under("add-remove")
    Accountant(1.0).spend(replaced)


def test_what_is_outside_a_proof_grows_with_the_group() -> None:
    """Two steps of `P(S) <= e^ε P'(S) + ν` leave `(1 + e^ε)ν`."""
    one = replace(exponential(0.5, adjacency="add-remove"), negligible=2.0**-100)
    assert one.under("replace").negligible == pytest.approx((1 + math.exp(0.5)) * 2.0**-100)
    assert one.under("replace").negligible >= (1 + math.exp(0.5)) * 2.0**-100


@given(st.floats(0.01, 3), st.floats(1e-9, 1e-3), st.integers(1, 6))
def test_group_privacy_is_repeated_neighbouring(epsilon: float, delta: float, size: int) -> None:
    total, disclosed = group_privacy(epsilon, delta, size)
    steps = 0.0
    for _ in range(size):
        steps = math.exp(epsilon) * steps + delta
    assert total == pytest.approx(size * epsilon)
    assert min(1.0, steps) * (1 - 1e-13) <= disclosed <= steps * (1 + 1e-9)


# --- budgets ------------------------------------------------------------------------------------------


def test_many_small_releases_fit_by_their_zcdp() -> None:
    accountant = Accountant(1.0, 1e-6)
    while accountant.remaining().exponential >= 0.1:
        accountant.spend(exponential(0.1))
    with pytest.raises(BudgetExceeded, match="with the exponential mechanism"):
        accountant.spend(exponential(0.1))
    made = len(accountant.history)
    assert 10 < made < 100
    assert (
        float(accountant.totals.rho)
        <= accountant.budget.rho_limit
        < float(accountant.totals.plus(exponential(0.1)).rho)
    )
    left = accountant.remaining()
    assert 0 < left.epsilon < left.exponential < 0.1
    accountant.spend(exponential(left.exponential))
    assert accountant.remaining().exponential < 1e-4 * left.exponential


@given(
    st.floats(0.1, 5),
    st.sampled_from([0.0, 1e-9, 1e-3]),
    st.lists(st.tuples(st.floats(0.01, 1), st.booleans(), st.sampled_from([0.0, 1e-10, 1e-4])), max_size=20),
)
@settings(deadline=None)
def test_what_remains_is_accepted_and_no_more(
    epsilon: float, delta: float, wanted: list[tuple[float, bool, float]]
) -> None:
    budget, totals = Budget(epsilon, delta), Totals()
    for e, with_range, d in wanted:
        guarantee = exponential(e) if with_range else pure(e, d)
        try:
            totals = budget.check(totals, guarantee)
        except BudgetExceeded:
            assert not budget.allows(totals.plus(guarantee))
    left = budget.remaining(totals)
    if left.epsilon:
        budget.check(totals, pure(left.epsilon, left.delta))
    if left.exponential:
        budget.check(totals, exponential(left.exponential))
    with pytest.raises(BudgetExceeded):
        budget.check(totals, pure(left.epsilon * (1 + 1e-6) + 1e-12))
    with pytest.raises(BudgetExceeded):
        budget.check(totals, exponential(left.exponential * (1 + 1e-6) + 1e-12))
    with pytest.raises(BudgetExceeded):
        budget.check(totals, pure(1e-6 * epsilon, left.delta * (1 + 1e-9) + 1e-15))


GRID = 0.01


def two_point_laws(guarantee: Guarantee) -> list[list[tuple[int, float]]]:
    """The most revealing mechanisms: losses in steps of GRID, and their probabilities."""
    e = guarantee.epsilon
    if not isinstance(guarantee.profile, BoundedRange):
        return [[(round(e / GRID), 1 / (1 + math.exp(-e))), (-round(e / GRID), 1 / (1 + math.exp(e)))]]
    laws = []
    for t in (0.3 * e, 0.4 * e, 0.5 * e, 0.6 * e, 0.7 * e):  # losses t and t - ε
        high = -math.expm1(t - e) / -math.expm1(-e)
        laws.append([(round(t / GRID), high), (round((t - e) / GRID), 1 - high)])
    return laws


def worst_delta(epsilon: float, menu: Sequence[Guarantee], allows: Callable[[Totals], bool]) -> float:
    """The delta at `epsilon` of the best adversary, who picks each release after seeing the loss so far."""
    laws = [two_point_laws(guarantee) for guarantee in menu]

    @cache
    def total(counts: tuple[int, ...]) -> Totals:
        last = next((i for i, count in enumerate(counts) if count), None)
        if last is None:
            return Totals()
        return total(tuple(count - (i == last) for i, count in enumerate(counts))).plus(menu[last])

    @cache
    def allowed(counts: tuple[int, ...]) -> bool:
        return allows(total(counts))

    @cache
    def value(counts: tuple[int, ...], loss: int) -> float:
        best = max(0.0, -math.expm1(epsilon - loss * GRID)) if loss * GRID > epsilon else 0.0
        for j, guarantee in enumerate(menu):
            after = tuple(count + (j == i) for i, count in enumerate(counts))
            if allowed(after):
                for law in laws[j]:
                    hidden = sum(p * value(after, loss + step) for step, p in law)
                    best = max(best, guarantee.delta + (1 - guarantee.delta) * hidden)
        return best

    return value((0,) * len(menu), 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (0.5, 1e-2), (0.8, 1e-2)])
def test_an_adversary_who_chooses_on_the_way_stays_within_the_budget(epsilon: float, delta: float) -> None:
    """Every choice depends on the outputs so far; the best strategy is found by backward induction."""
    budget = Budget(epsilon, delta)
    menu = (exponential(0.1), pure(0.1, delta / 8))
    worst = worst_delta(epsilon, menu, budget.allows)
    assert delta / 2 < worst <= delta
    looser = Budget(epsilon, delta)
    looser.__dict__["rho_limit"] = 1.5 * budget.rho_limit
    assert worst_delta(epsilon, menu, looser.allows) > delta


def test_without_the_split_of_delta_an_adversary_wins() -> None:
    budget, menu = Budget(0.8, 1e-2), (exponential(0.1), pure(0.1, 1e-2 / 8))

    def allows(totals: Totals) -> bool:
        by_sum, by_rho = totals.epsilon <= exact(0.8), totals.rho <= budget.rho_limit
        return (by_sum or by_rho) and totals.delta <= exact(budget.delta)

    assert worst_delta(0.8, menu, allows) > 1e-2


def test_delta_is_split_between_composition_and_releases() -> None:
    budget = Budget(1.0, 1e-6)
    assert (budget.composition_delta, budget.release_delta) == (5e-7, exact(5e-7))
    with pytest.raises(BudgetExceeded, match="kept for composition: see composition_delta"):
        budget.check(Totals(), pure(0.5, 1e-6))
    plain = Budget(1.0, 1e-6, composition_delta=0.0)
    assert plain.rho_limit == 0
    plain.check(Totals(), pure(1.0, 1e-6))
    for part in (-1e-9, 2e-6, math.nan):
        with pytest.raises(ValueError, match="composition_delta"):
            Budget(1.0, 1e-6, composition_delta=part)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "epsilon"),
        ((math.inf,), "epsilon"),
        ((1.0, -1e-9), "delta"),
        ((1.0, 1.0), "delta"),
        ((1.0, 0.0, "swap"), "adjacency"),
    ],
)
def test_wrong_budgets_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Accountant(*arguments)  # type: ignore[arg-type]


# --- mechanisms pay before they draw ------------------------------------------------------------------


class CountedNoise(Randomness):
    """Seeded randomness that counts the words it gave."""

    def __init__(self) -> None:
        self.drawn = 0
        words = Randomness.seeded(0).words

        def draw(size: int) -> NDArray[np.uint64]:
            self.drawn += size
            return words(size)

        super().__init__(draw, seeded=True)


TABLE = ps.PatternTable(np.eye(3, dtype=int), [3, 1, 0], [0, 1, 2])
PROBLEM = ps.Problem(TABLE, ps.SignCube(3))


def run_opsamp(epsilon: float, **options: object) -> object:
    box = [(0.0, 1.0)]
    loss = absolute_deviation(np.linspace(0.2, 0.7, 50).reshape(-1, 1), box)
    return ps.opsamp(ps.BoxProblem(loss, box), epsilon, 1e-6, 20, **options)  # type: ignore[arg-type]


MECHANISMS: dict[str, Callable[..., object]] = {
    "opdisc": lambda epsilon, **options: ps.opdisc(PROBLEM, epsilon, oracle="enumeration", **options),
    "rspm": lambda epsilon, **options: ps.rspm(PROBLEM, epsilon, oracle="enumeration", **options),
    "exponential": lambda epsilon, **options: ps.exponential(PROBLEM, epsilon, method="enumeration", **options),
    "opsamp": run_opsamp,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_refused_before_it_draws(name: str) -> None:
    mechanism, noise, accountant = MECHANISMS[name], CountedNoise(), Accountant(1.0, 1e-5)
    with pytest.raises(BudgetExceeded):
        mechanism(1.5, random_state=noise, budget=accountant)
    assert noise.drawn == 0
    assert accountant.history == ()
    stated = promised(mechanism, 0.75, random_state=noise)
    assert noise.drawn == 0
    run = mechanism(0.75, random_state=noise, budget=accountant)
    assert noise.drawn > 0
    assert accountant.history == (run.release.guarantee,) == (stated,)  # type: ignore[attr-defined]
    assert isinstance(stated.profile, BoundedRange) == (name == "exponential")
    with pytest.raises(TypeError, match="Accountant or a Ledger"):
        mechanism(0.1, budget=1.0)


def test_wrong_arguments_spend_nothing_and_failed_runs_stay_paid() -> None:
    accountant = Accountant(1.0)
    with pytest.raises(ValueError, match="delta"):
        ps.opdisc(PROBLEM, 0.5, delta=2.0, noise="gaussian", oracle="enumeration", budget=accountant)
    assert accountant.history == ()

    with pytest.raises(OracleFailed, match="noise is kept"):
        ps.opdisc(PROBLEM, 0.5, oracle=Raises(RuntimeError("solver crashed")), budget=accountant)
    assert accountant.totals.epsilon == Fraction(1, 2)


def test_what_is_published_but_not_proved_is_paid_for_as_such() -> None:
    accountant = Accountant(1.0, 1e-5)
    with pytest.warns(PrivacyWarning):
        ps.opdisc(PROBLEM, 0.5, delta=1e-6, noise="gaussian-published", oracle="enumeration", budget=accountant)
    assert "not proved" in accountant.totals.caveat()


def test_promised_needs_a_mechanism_that_pays() -> None:
    with pytest.raises(TypeError, match="did not pay"):
        promised(lambda budget: None)


def test_an_accountant_cannot_be_multiplied() -> None:
    accountant = Accountant(1.0, 1e-6)
    for multiply in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="use a Ledger"):
            multiply(accountant)
    child = os.fork()
    if child == 0:
        try:
            accountant.spend(pure(0.1))
        except BudgetExceeded:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_half_precision_epsilon_is_not_rounded_up() -> None:
    problem = ps.Problem(ps.PatternTable([[1], [0]], [3, 1], [1, 2]), ps.IntegerBall(1, 1))
    epsilon = np.float16(0.3)
    sampler = ps.ExponentialSampler(problem, epsilon, random_state=0, method="enumeration")
    assert sampler.guarantee.epsilon == float(epsilon)
    assert sampler.guarantee.zcdp == float(epsilon) ** 2 / 8
    assert inverse_temperature(epsilon, "replace", problem.loss) * 2 < float(epsilon)
