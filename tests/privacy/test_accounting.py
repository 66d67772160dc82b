"""Composition against closed forms and enumeration; budgets against adversaries; refusals before any noise."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privsolve as ps
from privsolve.continuous.problem import absolute_deviation
from privsolve.errors import BudgetExceeded, OracleFailed, PrivacyWarning
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Accountant, Budget, promised
from privsolve.privacy.composition import Totals, compose, loss_epsilon, zcdp_epsilon, zcdp_limit
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import BoundedRange, Pure, group_privacy
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
    answer = compose([pure(e) for e in epsilons])
    assert answer.method == "basic"
    assert exact(answer.epsilon) >= total
    assert exact(at_most(total)) <= total
    assert answer.epsilon == pytest.approx(math.fsum(epsilons), rel=1e-15)
    assert at_least(exact(epsilons[0])) == at_most(exact(epsilons[0])) == epsilons[0]


# --- plans fixed in advance --------------------------------------------------------------------------


@given(st.integers(1, 40), st.sampled_from([0.01, 0.1, 0.25, 1.0, 0.123456]), st.sampled_from([0.0, 1e-7]), st.data())
@settings(deadline=None, max_examples=60)
def test_pld_is_the_optimal_composition_of_equal_guarantees(
    k: int, epsilon: float, delta: float, data: st.DataObject
) -> None:
    """Kairouz, Oh and Viswanath (2015), theorem 3.3: the corners of the region have a closed form."""
    i = data.draw(st.integers(0, k // 2))
    terms = [math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon)) for j in range(i)]
    inner = math.fsum(terms) / (1 + math.exp(epsilon)) ** k
    total = -math.expm1(k * math.log1p(-delta)) + (1 - delta) ** k * inner
    if not 0 < total < 0.999 or total < k * delta:
        return
    answer = loss_epsilon([pure(epsilon, delta)] * k, total * (1 + 1e-7))
    assert answer <= (k - 2 * i) * epsilon * (1 + 1e-9) + 1e-15
    if inner >= 1e-3 * total:  # elsewhere δ says little about ε, and its last digits decide
        assert answer == pytest.approx((k - 2 * i) * epsilon, abs=1e-3 * epsilon)


def enumerated_delta(losses: list[dict[float, float]], epsilon: float) -> float:
    """`E(1 - e^(ε-L))_+` over every combination of the given laws of the loss."""
    total = 0.0
    for combination in itertools.product(*(law.items() for law in losses)):
        loss = math.fsum(x for x, _ in combination)
        if loss > epsilon:
            total += math.prod(p for _, p in combination) * -math.expm1(epsilon - loss)
    return total


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=7), st.floats(1e-6, 0.2))
@settings(deadline=None, max_examples=60)
def test_pld_of_different_guarantees_is_valid_and_tight(epsilons: list[float], delta: float) -> None:
    laws = [{e: 1 / (1 + math.exp(-e)), -e: 1 / (1 + math.exp(e))} for e in epsilons]
    answer = loss_epsilon([pure(e) for e in epsilons], delta)
    assert enumerated_delta(laws, answer) <= delta
    if answer > 0.01:
        assert enumerated_delta(laws, answer - 0.002 * sum(epsilons)) > delta


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.01])
def test_one_bounded_range_release_has_a_closed_form(epsilon: float, delta: float) -> None:
    answer = loss_epsilon([exponential(epsilon)], delta)
    root = math.exp(epsilon / 2) - math.sqrt(delta * math.expm1(epsilon))
    expected = max(0.0, 2 * math.log(root)) if root > 0 else 0.0
    assert answer >= expected - 1e-12
    assert answer == pytest.approx(expected, abs=0.02 * epsilon)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.floats(0.05, 1.5), st.floats(1e-4, 0.1))
@settings(deadline=None, max_examples=80)
def test_exponential_mechanisms_stay_below_their_bound(seed: int, k: int, epsilon: float, delta: float) -> None:
    """Each mechanism may look at the outputs before it; only its epsilon is fixed."""
    rng = np.random.default_rng(seed)

    def leaves(depth: int) -> Iterator[tuple[float, float]]:
        if depth == 0:
            yield 1.0, 1.0
            return
        score = rng.uniform(0, 8, 3)
        change = rng.choice([-1.0, 1.0], 3) if rng.random() < 0.7 else rng.uniform(-1, 1, 3)
        one, other = (softmax(epsilon / 2 * s) for s in (score, score + change))
        for a, b in zip(one, other, strict=True):
            for p, q in leaves(depth - 1):
                yield a * p, b * q

    answer = loss_epsilon([exponential(epsilon)] * k, delta)
    pairs = list(leaves(k))
    for one, other in ((0, 1), (1, 0)):
        assert math.fsum(max(0.0, pair[one] - math.exp(answer) * pair[other]) for pair in pairs) <= delta + 1e-12


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


@given(st.floats(1e-6, 20), st.floats(1e-12, 0.1))
@settings(deadline=None)
def test_zcdp_conversion_is_numerically_optimal(rho: float, delta: float) -> None:
    orders = 1 + np.exp(np.linspace(-12, 18, 60_001))
    every = orders * rho + np.log(1 / (orders * delta)) / (orders - 1) + np.log1p(-1 / orders)
    best = max(0.0, float(every.min()))
    assert zcdp_epsilon(rho, delta) == pytest.approx(best, rel=1e-5, abs=1e-7)
    assert zcdp_epsilon(rho, delta) >= 0
    if best > 1e-3:
        limit = zcdp_limit(best, delta)
        assert limit == pytest.approx(rho, rel=1e-4)
        assert zcdp_epsilon(limit, delta) <= best * (1 + 1e-9)


def test_the_tightest_answer_is_reported_with_its_method() -> None:
    few = compose([exponential(0.1)] * 5, 1e-6)
    many = compose([exponential(0.1)] * 100, 1e-6)
    assert (few.method, many.method) == ("pld", "zcdp")
    assert few.epsilon == min(few.answers.values()) < few.answers["zcdp"] < few.answers["basic"]
    assert many.epsilon < 0.25 * many.answers["basic"]
    assert compose([pure(0.5), pure(0.25)]).answers == {"basic": 0.75}
    assert compose([pure(300.0)] * 3, 1e-6).method == "basic"  # beyond the range of the distributions


@pytest.mark.parametrize("plan", [[(0.1, 0.0)] * 20, [(0.5, 1e-8), (0.25, 0.0), (1.0, 2e-7)]])
def test_dp_accounting_agrees(plan: list[tuple[float, float]]) -> None:
    guarantees = [pure(*parameters) for parameters in plan]
    theirs = guarantees[0].to_pld()
    for guarantee in guarantees[1:]:
        theirs = theirs.compose(guarantee.to_pld())
    ours = loss_epsilon(guarantees, 1e-6)
    assert ours <= theirs.get_epsilon_for_delta(1e-6) + 1e-6
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=0.002)


def test_events_are_accepted_by_dp_accounting() -> None:
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import UnsupportedEventError
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant().compose(exponential(1.0).to_event(), 3).compose(pure(0.5).to_event())
    ours = compose([exponential(1.0)] * 3 + [pure(0.5)], 1e-6).answers["zcdp"]
    assert ours <= theirs.get_epsilon(1e-6) <= 1.01 * ours
    with pytest.raises(UnsupportedEventError):  # refused rather than counted wrongly
        PLDAccountant().compose(pure(0.5).to_event(), 2)
    assert pure(0.5).to_pld().self_compose(2).get_epsilon_for_delta(1e-9) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(ValueError, match="to_pld"):
        pure(0.5, 1e-6).to_event()


def test_a_plan_is_one_guarantee() -> None:
    plan = [exponential(0.1), pure(0.2, seeded=True), pure(0.1, 1e-9, proof=Proof.NONE)]
    total = compose(plan, 1e-6)
    one = total.guarantee()
    assert (one.epsilon, one.delta, one.proved, one.seeded, one.zcdp) == (total.epsilon, 1e-6, False, True, None)
    assert "NOT PROVED" in one.sentence()
    assert "composition of 3 releases fixed in advance" in one.sentence()
    both = compose(plan[:2]).guarantee()
    assert (both.epsilon, both.delta, both.zcdp) == (0.3, 0.0, pytest.approx(0.1**2 / 8 + 0.2**2 / 2))


@pytest.mark.parametrize(
    ("plan", "delta", "message"),
    [
        ([], 0.0, "at least one"),
        ([pure(1.0), "x"], 0.0, "Guarantee"),
        ([pure(1.0), pure(1.0, adjacency="add-remove")], 0.0, "different adjacencies"),
        ([pure(1.0, 1e-6)], 1e-7, "at least 1e-06"),
        ([pure(1.0)], 1.0, "below 1"),
        ([pure(1.0)], math.nan, "below 1"),
    ],
)
def test_wrong_plans_are_refused(plan: list[Guarantee], delta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compose(plan, delta)


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
    assert accountant.composition().epsilon <= 1.0
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


def test_what_is_not_proved_or_seeded_is_counted() -> None:
    accountant = Accountant(1.0)
    accountant.spend(pure(0.1))
    assert accountant.totals.caveat() == ""
    accountant.spend(pure(0.1, proof=Proof.NONE))
    accountant.spend(pure(0.1, seeded=True))
    assert accountant.totals.caveat() == "1 of 3 releases not proved; 1 of 3 releases seeded: for testing only"
    composition = accountant.composition()
    assert (composition.unproved, composition.seeded) == (1, 1)


# --- plans as budgets ---------------------------------------------------------------------------------


def test_a_declared_plan_may_use_the_tighter_bound() -> None:
    plan = [exponential(0.25)] * 5
    free = Accountant(1.15, 1e-6)
    for guarantee in plan[:4]:
        free.spend(guarantee)
    with pytest.raises(BudgetExceeded):
        free.spend(plan[4])
    planned = Accountant(1.15, 1e-6, plan=plan)
    planned.spend(exponential(0.25))
    planned.spend(exponential(0.1))  # less than planned is fine
    assert planned.remaining().exponential == 0.25
    for other in (exponential(0.26), pure(0.25), pure(0.1, 1e-9)):
        with pytest.raises(BudgetExceeded, match="release 3 was planned as exponential mechanism"):
            planned.spend(other)
    for guarantee in plan[2:]:
        planned.spend(guarantee)
    with pytest.raises(BudgetExceeded, match="all 5 planned releases"):
        planned.spend(exponential(0.01))
    assert planned.remaining().exponential == 0.0
    with pytest.raises(BudgetExceeded, match="the plan costs epsilon="):
        Accountant(1.0, 1e-6, plan=plan)


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

    class Fails:
        def minimise(self, problem: object, perturbation: object) -> object:
            raise RuntimeError("solver crashed")

    with pytest.raises(OracleFailed, match="noise is kept"):
        ps.opdisc(PROBLEM, 0.5, oracle=Fails(), budget=accountant)  # type: ignore[arg-type]
    assert accountant.totals.epsilon == Fraction(1, 2)


def test_what_is_published_but_not_proved_is_paid_for_as_such() -> None:
    accountant = Accountant(1.0, 1e-5)
    with pytest.warns(PrivacyWarning):
        ps.opdisc(PROBLEM, 0.5, delta=1e-6, noise="gaussian-published", oracle="enumeration", budget=accountant)
    assert "not proved" in accountant.totals.caveat()


def test_promised_needs_a_mechanism_that_pays() -> None:
    with pytest.raises(TypeError, match="did not pay"):
        promised(lambda budget: None)


def test_rho_of_a_pure_guarantee() -> None:
    assert pure(0.5).rho == pure(0.5, 1e-9).rho == Fraction(1, 8)
    assert Pure(0.5, 0.01).rho == Fraction(1, 100)
    assert exponential(0.5).rho == Fraction(1, 32)


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
