"""As many stages as a noisy count says: shares of epsilon, the law of count and card together, and what is promised."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

import privsolve as ps
from chi_square import deviation
from privsolve.engines.stages.sampler import StageSampler
from privsolve.mechanisms.counted import SHARE, count_and_stages
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.mechanisms.stages import ENOUGH_RECORDS
from privsolve.privacy.profiles import Pure

EPSILON = 4.0
PLAN = ps.CountedStages.of(2, max_features=1, max_points=1, intercept=(-1, 1))


def table_of(positives: list[int], negatives: list[int]) -> ps.PatternTable:
    return ps.PatternTable([[0, 1], [1, 1]], positives, negatives)


NEAR = table_of([44, 44], [43, 44])
"""175 records: at epsilon = 4 as many as the first step of the rule takes."""


def problem_of(table: ps.PatternTable) -> ps.Problem:
    return ps.Problem(table, PLAN.domain, ps.ZeroOneLoss())


def law_of_stages(table: ps.PatternTable, epsilon: float, share: Fraction = SHARE) -> dict[int, float]:
    """How likely each number of stages is: the tails of the discrete Laplace law, in closed form."""
    step = float(share) * epsilon

    def at_least(noise: int) -> float:
        tail = exp(-step * (noise if noise > 0 else 1 - noise)) / (1 + exp(-step))
        return tail if noise > 0 else 1 - tail

    second, third = (at_least(int(np.ceil(enough / epsilon)) - table.n) for enough in ENOUGH_RECORDS)
    return {1: 1 - second, 2: second - third, 3: third}


def log_law(table: ps.PatternTable, epsilon: float, heat: float = 1.0) -> dict[tuple[int, ...], float]:
    """The log probability of every pair of a number of stages and a sum, by listing the cards of each stage."""
    problem, law = problem_of(table), {}
    left = count_and_stages(epsilon)[1]
    for count, probability in law_of_stages(table, epsilon).items():
        plan = PLAN.plans[count - 1]
        sums: dict[tuple[int, ...], float] = {(0, 0): log(probability)}
        for domain, share in zip(plan.domains, plan.epsilons(left), strict=True):
            kappa = heat * inverse_temperature(share, "add-remove", problem.loss)
            members = domain.members()
            prior = np.array([plan.prior.log_probability(domain, member) for member in members])
            following: dict[tuple[int, ...], float] = {}
            for start, log_p in sums.items():
                reached = np.array(start) + members
                logs = prior - kappa * np.array([problem.total_loss(w) for w in reached])
                for w, of in zip(map(tuple, reached.tolist()), logs - np.logaddexp.reduce(logs), strict=True):
                    following[w] = float(np.logaddexp(following.get(w, -np.inf), log_p + of))
            sums = following
        law |= {(count, *w): p for w, p in sums.items()}
    return law


def exact_law(table: ps.PatternTable, epsilon: float, heat: float = 1.0) -> dict[tuple[int, ...], float]:
    return {key: exp(log_p) for key, log_p in log_law(table, epsilon, heat).items()}


def test_count_and_card_have_the_exact_law_together() -> None:
    law, runs = exact_law(NEAR, EPSILON), 1_500
    assert sum(law.values()) == pytest.approx(1)
    assert 0.4 < law_of_stages(NEAR, EPSILON)[1] < 0.6
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(runs):
        release = ps.staged_by_count(problem_of(NEAR), EPSILON, PLAN, random_state=seed).release
        found[(len(release.setting["stages"]["domains"]), *release.weights.tolist())] += 1
    assert set(found) <= set(law)
    assert abs(deviation(found, law, runs)) < 5
    assert deviation(found, exact_law(NEAR, EPSILON, heat=1.5), runs) > 5
    doubled = law_of_stages(table_of([57, 44], [43, 44]), EPSILON)  # 13 records more, half a scale of the noise
    counts = Counter({(key[0],): 0 for key in law})
    for key, number in found.items():
        counts[(key[0],)] += number
    assert deviation(counts, {(k,): p for k, p in doubled.items()}, runs) > 5


@pytest.mark.parametrize("place", range(4))
def test_no_record_more_or_less_is_told_by_more_than_epsilon(place: int) -> None:
    """The exact law of stages and card with one record more; the broken copy has three times the heat."""
    counts = np.array([44, 44, 43, 44])
    counts[place] += 1
    other = table_of(counts[:2].tolist(), counts[2:].tolist())
    laws = [log_law(table, EPSILON) for table in (NEAR, other)]
    assert EPSILON / 2 < max(abs(laws[0][w] - laws[1][w]) for w in laws[0]) <= EPSILON
    broken = [log_law(table, EPSILON, heat=3.0) for table in (NEAR, other)]
    assert max(abs(broken[0][w] - broken[1][w]) for w in broken[0]) > EPSILON


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.0, 3.0, 1 / 3])
def test_the_shares_add_up_to_epsilon_exactly(epsilon: float) -> None:
    own, left = count_and_stages(epsilon)
    for plan in PLAN.plans:
        total = Fraction(repr(own)) + sum(Fraction(repr(share)) for share in plan.epsilons(left))
        assert Fraction(99, 100) * Fraction(repr(epsilon)) < total <= Fraction(repr(epsilon))
    assert own == pytest.approx(epsilon / 100)
    guarantee = ps.promised(ps.staged_by_count, problem_of(NEAR), epsilon, PLAN)
    assert isinstance(guarantee.profile, Pure)
    assert guarantee.epsilon == epsilon
    assert guarantee.rho >= Fraction(repr(own)) ** 2 / 2 + Fraction(repr(left)) ** 2 / 8
    assert guarantee.rho == pytest.approx(own**2 / 2 + left**2 / 8)
    assert (guarantee.adjacency, guarantee.theory) == ("add-remove", "13")


def test_one_payment_whatever_is_chosen_and_the_release_says_what_was() -> None:
    account = ps.Accountant(10.0, adjacency="add-remove")
    run = ps.staged_by_count(problem_of(NEAR), EPSILON, PLAN, budget=account)
    assert account.history == (run.release.guarantee,)
    stages = run.release.setting["stages"]
    chosen = PLAN.plans[len(stages["domains"]) - 1]
    assert run.release.domain == chosen.domain
    own, left = count_and_stages(EPSILON)
    assert stages["epsilons"] == list(chosen.epsilons(left))
    assert stages["prior"] == chosen.prior.to_dict()
    assert stages["count"]["epsilon"] == own
    assert ps.number_of_stages(EPSILON, stages["count"]["records"], "add-remove") == chosen.count
    again = ps.Release.from_json(run.release.to_json())
    assert again.to_json() == run.release.to_json()
    assert "noisy count" in run.release.guarantee.sentence()
    with pytest.raises(ps.BudgetExceeded):
        ps.staged_by_count(problem_of(NEAR), 9.0, PLAN, budget=account)
    assert len(account.history) == 1


def test_what_is_wrong_is_refused_before_anything_is_paid() -> None:
    account = ps.Accountant(10.0, adjacency="add-remove")
    with pytest.raises(ValueError, match=r"plan\.domain"):
        ps.staged_by_count(ps.Problem(NEAR, PLAN.plans[0].domain), 1.0, PLAN, budget=account)
    with pytest.raises(ValueError, match="1 to 3 stages"):
        ps.CountedStages(PLAN.plans[:2])
    assert account.history == ()


def test_stages_of_a_public_number_are_in_the_release_too() -> None:
    plan = PLAN.plans[1]
    problem = ps.Problem(NEAR, plan.domain, ps.BrierLoss())
    setting = ps.staged(problem, 0.5, plan, random_state=0).release.setting["stages"]
    assert setting == {
        "domains": [domain.to_dict() for domain in plan.domains],
        "epsilons": [0.25, 0.25],
        "prior": plan.prior.to_dict(),
    }
    release = ps.staged(problem, 0.5, plan, random_state=0).release
    with pytest.raises(ValueError, match="what domains, epsilons and prior"):
        ps.Release(release.model, release.guarantee, {**release.setting, "stages": {"domains": []}})


def test_the_estimator_counts_under_add_remove_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    draw = StageSampler.draw
    monkeypatch.setattr(StageSampler, "draw", lambda sampler: (drawn.append(1), draw(sampler))[1])
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (3_000, 3)).astype(float)
    y = (X[:, 0] + rng.random(3_000) > 1).astype(int)
    schema = ps.Schema([ps.data.Bins(f"x{j}", [1], "intervals") for j in range(3)])
    for epsilon, expected in ((0.1, 1), (1.0, 2), (9.0, 3)):
        drawn.clear()
        model = ps.PrivateScorecard(
            epsilon, objective="risk", adjacency="add-remove", max_features=1, schema=schema, random_state=0
        ).fit(X, y)
        assert len(drawn) == expected
        stages = model.release_.setting["stages"]
        assert abs(stages["count"]["records"] - 3_000) < 30 * 100 / epsilon
        assert model.privacy_.epsilon == epsilon
    drawn.clear()
    model = ps.PrivateScorecard(1.0, objective="risk", max_features=1, schema=schema, random_state=0).fit(X, y)
    assert "count" not in model.release_.setting["stages"]
