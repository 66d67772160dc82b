"""Cards in stages through the public interface: the law of the sum, what is promised, and what is refused before paying."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

import privsolve as ps
from chi_square import deviation
from privsolve.losses import ScoreLoss
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.mechanisms.stages import READABLE, columns_of_a_stage
from privsolve.privacy.profiles import BoundedRange, Pure


def table_of(seed: int = 0, rows: int = 12) -> ps.PatternTable:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, 2, size=(rows, 2)), np.ones(rows, dtype=np.int64)])
    return ps.PatternTable(features, *rng.integers(0, 9, size=(2, rows)))


def plan_of(dim: int = 3, count: int = 2, most: int = 1) -> ps.Stages:
    return ps.Stages.of(dim, count, max_features=most, max_points=1, intercept=(-1, 1))


def exact_law(problem: ps.Problem, plan: ps.Stages, epsilon: float, heat: float = 1.0) -> dict[tuple[int, ...], float]:
    """The probability of every sum, stage after stage, by listing the cards of each."""
    law = {(0,) * problem.domain.dim: 1.0}
    for domain, share in zip(plan.domains, plan.epsilons(epsilon), strict=True):
        kappa = heat * inverse_temperature(share, "replace", problem.loss)
        members = domain.members()
        prior = np.array([plan.prior.log_probability(domain, member) for member in members])
        following: Counter[tuple[int, ...]] = Counter()
        for start, probability in law.items():
            sums = np.array(start) + members
            logs = prior - kappa * np.array([problem.total_loss(w) for w in sums])
            weights = np.exp(logs - logs.max())
            for w, share_of in zip(sums.tolist(), weights / weights.sum(), strict=True):
                following[tuple(w)] += probability * share_of
        law = dict(following)
    return law


@pytest.mark.parametrize("loss", [ps.BrierLoss(0.7), ps.ZeroOneLoss(1, 2)], ids=["brier", "mistakes"])
def test_the_sum_of_two_stages_has_the_exact_law(loss: ScoreLoss) -> None:
    plan, table = plan_of(), table_of()
    problem = ps.Problem(table, plan.domain, loss)
    epsilon, runs = 1.2, 800
    law = exact_law(problem, plan, epsilon)
    assert sum(law.values()) == pytest.approx(1)
    found = Counter(
        tuple(ps.staged(problem, epsilon, plan, random_state=seed).release.weights.tolist()) for seed in range(runs)
    )
    assert set(found) <= set(law)
    assert abs(deviation(found, law, runs)) < 5
    assert deviation(found, exact_law(problem, plan_of(most=2), epsilon), runs) > 5


def test_the_promise_of_the_sum() -> None:
    plan = plan_of(count=3)
    problem = ps.Problem(table_of(), plan.domain, ps.BrierLoss())
    guarantee = ps.staged(problem, 0.9, plan, random_state=0).release.guarantee
    assert isinstance(guarantee.profile, Pure)
    assert guarantee.epsilon == 0.9
    assert guarantee.rho == pytest.approx(Fraction(27, 100) / 8, rel=1e-6)
    assert "3 stages" in guarantee.mechanism
    assert guarantee.theory == "13"
    assert guarantee.seeded
    assert sum(Fraction(repr(e)) for e in plan.epsilons(0.7)) <= Fraction("0.7")
    one = plan_of(count=1)
    alone = ps.staged(ps.Problem(table_of(), one.domain, ps.BrierLoss()), 0.9, one, random_state=0).release.guarantee
    assert isinstance(alone.profile, BoundedRange)


def test_no_pair_of_neighbours_is_told_apart_by_more_than_epsilon() -> None:
    """The exact law on neighbouring tables; the broken copy spends epsilon in every stage."""
    plan, epsilon = plan_of(), 0.5
    table = table_of(3, 5)
    other = ps.PatternTable(table.features, *_moved(table))
    for loss in (ps.BrierLoss(0.7), ps.BrierLoss(0.5, 1.5), ps.LogLoss(0.5, 2.0), ps.ZeroOneLoss()):
        here, there = (ps.Problem(t, plan.domain, loss) for t in (table, other))
        laws = [exact_law(problem, plan, epsilon) for problem in (here, there)]
        worst = max(abs(log(laws[0][w] / laws[1][w])) for w in laws[0])
        assert 0.05 < worst <= epsilon
        broken = [exact_law(problem, plan, epsilon, heat=10.0) for problem in (here, there)]
        assert max(abs(log(broken[0][w] / broken[1][w])) for w in broken[0]) > epsilon


def _moved(table: ps.PatternTable) -> tuple[np.ndarray, np.ndarray]:
    """One record with another label and other features."""
    positives, negatives = table.positives.copy(), table.negatives.copy()
    positives[int(np.argmax(positives))] -= 1
    negatives[-1] += 1
    return positives, negatives


def test_a_budget_pays_for_all_stages_once_or_refuses_before_anything_is_drawn() -> None:
    plan = plan_of()
    problem = ps.Problem(table_of(), plan.domain, ps.BrierLoss())
    account = ps.Accountant(1.0)
    ps.staged(problem, 0.6, plan, budget=account)
    assert account.totals.releases == 1
    with pytest.raises(ps.BudgetExceeded):
        ps.staged(problem, 0.6, plan, budget=account)
    assert account.totals.releases == 1


def test_what_cannot_be_done_is_refused_before_paying() -> None:
    plan, account = plan_of(), ps.Accountant(1.0)
    wrong = ps.Problem(table_of(), ps.SparsePoints(3, 1, 1, (-1, 1)), ps.BrierLoss())
    with pytest.raises(ValueError, match=r"plan\.domain"):
        ps.staged(wrong, 0.5, plan, budget=account)
    with pytest.raises(ValueError, match="stages must be between 1 and"):
        plan_of(count=7)
    with pytest.raises(ValueError, match="use at most 2 and more stages"):
        ps.Stages.of(700, 2, max_features=4, max_points=3, intercept=(-8, 8))
    numbers = ps.PatternTable(np.array([[2, 0, 1], [1, 1, 1]]), [3, 1], [0, 2])
    with pytest.raises(ValueError, match="0/1 features"):
        ps.staged(ps.Problem(numbers, plan.domain, ps.BrierLoss()), 0.5, plan, budget=account)
    assert account.totals.releases == 0


def test_a_plan_of_ones_own_is_checked() -> None:
    prior, one = ps.SparsePrior(0.5), ps.SparsePoints(3, 1, 1, (-1, 1))
    with pytest.raises(ValueError, match="the same columns"):
        ps.Stages((one, ps.SparsePoints(2, 1, 1, (-1, 1))), prior)
    with pytest.raises(ValueError, match="all an intercept or none"):
        ps.Stages((one, ps.SparsePoints(3, 1, 1)), prior)
    with pytest.raises(ValueError, match="stages must be between"):
        ps.Stages((), prior)
    with pytest.raises(ValueError, match="ways to give points"):
        ps.Stages.of(9, 1, max_features=5, max_points=14, intercept=(-8, 8))


def test_what_a_later_stage_would_refuse_is_refused_before_paying() -> None:
    """The intercept of later stages has more values than that of the first, so more is left to the prior there."""
    account = ps.Accountant(1.0)
    first, later = (ps.SparsePoints(3, 2, 81, (-ends, ends)) for ends in (0, 3))
    plan = ps.Stages((first, later), ps.SparsePrior(0.5))
    problem = ps.Problem(table_of(), plan.domain, ps.BrierLoss())
    with pytest.raises(ValueError, match="flatter prior"):
        ps.staged(problem, 1.0, plan, budget=account)
    assert account.totals.releases == 0


def test_the_range_of_the_intercept_is_kept() -> None:
    plan = ps.Stages.of(9, 3, max_features=2, max_points=1, intercept=(0, 0))
    assert plan.domain.intercept == (0, 0)


def test_the_public_rules() -> None:
    assert [columns_of_a_stage(m) for m in (1, 3, 20, 33, 50, 100, 500, 5000)] == [1, 3, 4, 4, 4, 3, 2, 1]
    assert [ps.number_of_stages(1.0, n) for n in (100, 1_399, 1_400, 7_999, 8_000, 10**9)] == [1, 1, 2, 2, 3, 3]
    halves = [ps.number_of_stages(1.0, n, "add-remove") for n in (-50, 100, 699, 700, 3_999, 4_000, 10**9)]
    assert halves == [1, 1, 1, 2, 2, 3, 3]
    for m in (5, 33, 90):
        for count in range(1, 7):
            plan = ps.Stages.of(m + 1, count, max_features=None, max_points=3, intercept=(-8, 8))
            assert plan.domain.max_features <= READABLE


def test_the_utility_bound_holds_for_one_stage() -> None:
    """A single stage is the exponential mechanism: the share of runs beyond the bound is at most beta."""
    plan = plan_of(count=1)
    problem = ps.Problem(table_of(), plan.domain, ps.ZeroOneLoss())
    bound = ps.stages_utility_bound(plan, 1.0, loss=problem.loss, beta=0.1)
    short = [w for w in plan.domain.members() if w[0] == 1 and w[1] == 0]
    best = min(problem.total_loss(w) for w in short)
    law = exact_law(problem, plan, 1.0)
    assert sum(p for w, p in law.items() if problem.total_loss(np.array(w)) > best + bound) <= 0.1
    assert bound < exp(5)
