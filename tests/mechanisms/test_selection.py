"""Choosing one of k candidates: exact laws, privacy on neighbours, accuracy, rounding, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

import privsolve as ps
from privsolve.audit import exact_epsilon, lower_bound
from privsolve.noise.discrete import exp_coin
from privsolve.noise.entropy import Randomness

METHODS = tuple(ps.Selection)
SCORES = [7, 10, 9, 9, 4]


def enumerated(coins: np.ndarray) -> np.ndarray:
    """The law of permute-and-flip by its definition: all orders, all coins."""
    law = np.zeros(len(coins))
    orders = list(permutations(range(len(coins))))
    for order in orders:
        going = 1.0
        for r in order:
            law[r] += going * coins[r] / len(orders)
            going *= 1.0 - coins[r]
    return law


def law_of(selector: ps.Selector) -> np.ndarray:
    return np.exp(selector.log_law())


def chi_square(drawn: np.ndarray, law: np.ndarray) -> float:
    counts, expected = np.bincount(drawn, minlength=len(law)), len(drawn) * law
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_is_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, size=int(rng.integers(2, 7))).tolist()
    selector = ps.Selector(scores, 2, 1.5)
    coins = np.exp(-1.5 / 4 * (max(scores) - np.array(scores)))
    assert np.allclose(np.exp(selector.log_law()), enumerated(coins), atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_draws_have_the_exact_law_and_another_temperature_is_caught(method: ps.Selection) -> None:
    runs, level = 20_000, 1e-4
    selector = ps.Selector(SCORES, 1, 2.0, method=method, random_state=3)
    law = law_of(selector)
    limit = chi2.ppf(1 - level, len(law) - 1)
    drawn = selector.draw(runs)
    assert chi_square(drawn, law) < limit
    hotter = law_of(ps.Selector(SCORES, 1, 1.8, method=method))  # temperature off by 10%
    power = ncx2.sf(limit, len(law) - 1, runs * ((hotter - law) ** 2 / hotter).sum())
    assert power > 0.999
    assert chi_square(drawn, hotter) > limit


def test_permute_and_flip_never_expects_to_lose_more_than_the_exponential_mechanism() -> None:
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(100):
        scores = rng.integers(0, int(rng.integers(2, 60)), size=int(rng.integers(2, 30))).tolist()
        epsilon, gaps = float(rng.uniform(0.05, 5)), max(scores) - np.array(scores)
        flip, exponential = (law_of(ps.Selector(scores, 1, epsilon, method=method)) for method in METHODS)
        assert abs(flip.sum() - 1) < 1e-12
        for gap in range(1, int(gaps.max()) + 1):  # every tail, not only the mean
            assert flip[gaps >= gap].sum() <= exponential[gaps >= gap].sum() + 1e-12
        gains.append(exponential @ gaps - flip @ gaps)
    assert min(gains) >= -1e-12
    assert max(gains) > 0.5


NEIGHBOURS = [
    ("replace", False, [10, 10, 10], [11, 9, 9]),
    ("replace", False, [3, 0, 7, 7], [2, 1, 6, 8]),
    ("add-remove", True, [5, 5, 2], [6, 5, 2]),
    ("add-remove", True, [5, 5, 2, 9], [5, 6, 2, 10]),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("adjacency", "monotone", "scores", "neighbour"), NEIGHBOURS)
def test_neighbours_lose_at_most_epsilon(
    method: ps.Selection, adjacency: str, monotone: bool, scores: list[int], neighbour: list[int]
) -> None:
    options: dict[str, Any] = {"method": method, "adjacency": adjacency, "monotone": monotone}
    laws = [np.log(law_of(ps.Selector(s, 1, 1.0, **options))) for s in (scores, neighbour)]
    assert exact_epsilon(*laws) <= 1.0 + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_an_understated_sensitivity_or_a_false_monotone_is_caught(method: ps.Selection) -> None:
    far, near = [20] + [0] * 2, [18] + [2] * 2  # moved by 2, stated as 1
    laws = [np.log(law_of(ps.Selector(s, 1, 1.0, method=method))) for s in (far, near)]
    assert exact_epsilon(*laws) > 1.5
    both_ways = {"monotone": True, "adjacency": "add-remove", "method": method}
    laws = [np.log(law_of(ps.Selector(s, 1, 1.0, **both_ways))) for s in ([20, 0], [19, 1])]
    assert exact_epsilon(*laws) > 1.5


def test_an_audit_by_draws_passes_and_catches_an_understated_sensitivity() -> None:
    def draws(scores: list[int], runs: int) -> np.ndarray:
        return ps.Selector(scores, 1, 2.0, random_state=sum(scores)).draw(runs)

    assert not lower_bound(draws, [5, 5], [6, 4], 4000).refutes(2.0)
    assert lower_bound(draws, [0, 0], [8, -8], 4000).refutes(2.0)


def test_monotone_halves_the_noise() -> None:
    plain = ps.Selector(SCORES, 1, 2.0, adjacency="add-remove")
    half = ps.Selector(SCORES, 1, 1.0, monotone=True, adjacency="add-remove")
    assert np.allclose(plain.log_law(), half.log_law())
    with pytest.raises(ValueError, match="monotone=True needs adjacency='add-remove'"):
        ps.choose(SCORES, 1, 1.0, monotone=True)


def test_rounding_is_public_and_pays_for_itself() -> None:
    selector = ps.Selector([0.24, 0.26, -0.25, 0.75], 0.3, 1.0, step=0.5)
    assert selector.scores == [Fraction(0), Fraction(1, 2), Fraction(0), Fraction(1)]  # halves up
    assert selector.sensitivity.of_score == Fraction(1, 2)
    rng = np.random.default_rng(1)
    sensitivity = ps.Selector([0, 1], Fraction(7, 10), 1.0, step=Fraction(1, 2)).sensitivity
    for _ in range(300):
        score = Fraction(int(rng.integers(-50, 50)), 20)
        other = score + Fraction(int(rng.integers(-14, 15)), 20)
        assert abs(sensitivity.rounded(score) - sensitivity.rounded(other)) <= sensitivity.of_score == 1


def test_exact_numbers_are_taken_as_they_are() -> None:
    selector = ps.Selector([Fraction(1, 3), Decimal("0.1"), np.int64(2)], Decimal("0.1"), 0.1)
    assert selector.scores == [Fraction(1, 3), Fraction(1, 10), Fraction(2)]
    assert selector.kappa == Fraction(1, 2)


def test_coins_of_large_exponents_are_exact() -> None:
    rng = Randomness.seeded(1)
    assert abs(np.mean([exp_coin(rng, Fraction(5, 2)) for _ in range(20_000)]) - np.exp(-2.5)) < 0.008
    assert all(exp_coin(rng, Fraction(0)) for _ in range(50))
    assert not exp_coin(rng, Fraction(10**30))


@pytest.mark.parametrize("method", METHODS)
def test_the_release_is_paid_for_and_comes_back_from_its_file(method: ps.Selection) -> None:
    budget = ps.Accountant(epsilon=1.5)
    run = ps.choose({"north": 3, "south": 30}, 1, 1.0, method=method, random_state=5, budget=budget)
    assert run.release.guarantee.seeded
    assert run.release.guarantee.epsilon == 1.0
    assert (run.release.guarantee.zcdp == 0.125) == (method is ps.Selection.EXPONENTIAL)
    again = ps.Release.from_json(run.release.to_json())
    assert again.model == run.release.model
    assert again.setting["method"] == method
    assert "score" not in again.to_json()
    with pytest.raises(ps.BudgetExceeded):
        ps.choose([1, 2], 1, 1.0, budget=budget)
    assert not ps.promised(ps.choose, [1, 2], 1, 1.0).seeded


def test_the_bound_holds_and_looks_at_no_data() -> None:
    bound = ps.choice_utility_bound(6, 1, 0.5)
    assert bound == pytest.approx(4 * np.log(120))
    gaps = np.array([0, 30, 30, 30, 30, 30])
    assert np.exp(ps.Selector((-gaps).tolist(), 1, 0.5).log_law())[gaps > bound].sum() <= 0.05


WRONG = [
    ({"scores": [0.5, 1.5]}, "floats need step="),
    ({"scores": [1, float("nan")], "step": 1}, "scores must be finite"),
    ({"scores": [True, False]}, "scores must be finite"),
    ({"scores": [1]}, "at least 2 candidates"),
    ({"scores": "12"}, "scores must be a list"),
    ({"scores": np.ones((2, 2))}, "one number per candidate"),
    ({"scores": [1, 10**60]}, "scores must lie within"),
    ({"sensitivity": 0}, "sensitivity must be a positive number"),
    ({"sensitivity": float("inf")}, "sensitivity must be a positive number"),
    ({"epsilon": -1.0}, "epsilon must be"),
    ({"method": "best"}, "method must be one of"),
    ({"step": -1}, "step must be a positive number"),
    ({"monotone": 1}, "monotone must be True or False"),
    ({"names": ["a", "a"]}, "names must be 2 different"),
    ({"names": []}, "names must be 2 different"),
    ({"adjacency": "swap"}, "adjacency must be one of"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_wrong_input_is_refused_before_anything_is_paid(wrong: dict[str, Any], says: str) -> None:
    budget = ps.Accountant(epsilon=1.0)
    with pytest.raises(ValueError, match=says):
        ps.choose(**({"scores": [1, 2], "sensitivity": 1, "epsilon": 1.0, "budget": budget} | wrong))
    assert budget.remaining().epsilon == 1.0
