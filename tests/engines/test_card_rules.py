"""Constraints on cards in the engines: laws and optima against enumeration on every path, and prefixes that are left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.domains import ConstrainedPoints
from privsolve.engines.card_rules import Rule, extend, is_allowed, rule_of
from privsolve.engines.supports import SupportSampler
from privsolve.engines.supports import sample as sampling
from privsolve.engines.supports.blocks import BlockFrontier
from privsolve.noise.entropy import Randomness
from random_constraints import all_cards, random_constraints

PATHS = {"listed": {}, "blocks": {"max_listed": 0}}
LOSSES = (ps.ZeroOneLoss(), ps.ZeroOneLoss(3, 7))
DRAWS = 400


class Case:
    """A small table, constraints, a prior, and all cards that keep to the constraints."""

    def __init__(self, seed: int, columns: int = 5, most: int = 3) -> None:
        rng = np.random.default_rng([seed, 16])
        self.loss = LOSSES[seed % len(LOSSES)]
        self.domain = random_constraints(rng, columns, most, 2, (-1, 1))
        self.rows = rng.integers(0, 2, (int(rng.integers(1, 20)), columns))
        self.positives, self.negatives = rng.integers(0, 30, (2, len(self.rows)))
        self.points, self.intercepts = self.domain.points, np.arange(-1, 2)
        self.log_intercept = rng.normal(size=3)
        free = rng.normal(size=(columns, len(self.points)))
        self.log_weight = np.where(self.domain.allows(self.points), free, -np.inf)
        self.cards = all_cards(self.domain)
        self.losses = self.losses_of(self.cards)
        self.kappa = 6 / max(1, int(np.ptp(self.losses)))

    def losses_of(self, cards: Int64Array) -> Int64Array:
        positive = self.rows @ cards[:, :-1].T + cards[:, -1] > 0
        missed = ~positive.T @ self.positives * self.loss.false_negative
        return np.asarray(missed + positive.T @ self.negatives * self.loss.false_positive)

    @property
    def log_law(self) -> np.ndarray:
        """Up to a constant: the prior times `exp(-κ·loss)`."""
        logs = self.log_intercept[self.cards[:, -1] + 1] - self.kappa * self.losses
        for j, (i, point) in itertools.product(range(self.domain.columns), enumerate(self.points)):
            logs += np.where(self.cards[:, j] == point, self.log_weight[j, i], 0.0)
        return np.asarray(logs)

    @property
    def arrays(self):
        labels = self.rows, self.positives, self.negatives, self.loss
        return *labels, self.domain.max_features, self.points, self.intercepts

    def sampler(self, path: str, seed: int) -> SupportSampler:
        prior = self.log_weight, self.log_intercept
        return SupportSampler(
            *self.arrays, *prior, self.kappa, Randomness.seeded(seed), constraints=self.domain, **PATHS[path]
        )


def surprise(counts: Int64Array, log_law: np.ndarray) -> tuple[float, int]:
    """The chi-square statistic and its degrees of freedom, cards expected fewer than five times taken together."""
    expected = counts.sum() * np.exp(log_law - logsumexp(log_law))
    rare = expected < 5
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    keep = expected >= 5
    return float(((counts - expected)[keep] ** 2 / expected[keep]).sum()), max(int(keep.sum()) - 1, 0)


def counts_of(cards: Int64Array, draws: Int64Array) -> Int64Array:
    """How often every card was drawn; a card that does not keep to the constraints is a KeyError."""
    at = {tuple(card): i for i, card in enumerate(cards.tolist())}
    return np.bincount([at[tuple(card)] for card in draws.tolist()], minlength=len(at))


def total_surprise(path: str, seeds: range) -> float:
    """By how many standard deviations draws of many problems together are away from the restricted laws."""
    statistic, freedom = 0.0, 0
    for seed in seeds:
        case = Case(seed)
        counts = counts_of(case.cards, case.sampler(path, seed).draw(DRAWS))
        found, degrees = surprise(counts, case.log_law)
        statistic, freedom = statistic + found, freedom + degrees
    return abs(statistic - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize("path", PATHS)
def test_draws_keep_to_the_constraints_and_have_the_restricted_law(path: str) -> None:
    assert total_surprise(path, range(30)) < 4.5


@pytest.mark.parametrize("path", PATHS)
def test_what_is_wrong_is_noticed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that forgets a limit lets cards through; one that takes every column for a question leaves cards out."""

    def forgetful(domain: ConstrainedPoints, columns: Int64Array, most: int) -> tuple[Int64Array, Rule]:
        order, rule = rule_of(domain, columns, most)
        return order, rule._replace(questions=9)

    def strict(domain: ConstrainedPoints, columns: Int64Array, most: int) -> tuple[Int64Array, Rule]:
        order, rule = rule_of(domain, columns, most)
        return order, rule._replace(questions=min(rule.questions, max(1, rule.required)))

    monkeypatch.setattr(sampling, "rule_of", forgetful)
    with pytest.raises(KeyError):
        total_surprise(path, range(30))
    monkeypatch.setattr(sampling, "rule_of", strict)
    assert total_surprise(path, range(30)) > 10


def test_sums_are_those_of_enumeration() -> None:
    for seed in range(80):
        case = Case(seed, columns=4 + seed % 2, most=1 + seed % 4)
        sampler = case.sampler("listed", seed)
        wanted = logsumexp(case.log_law + case.kappa * sampler.reference)
        assert sampler.log_partition() == pytest.approx(wanted, abs=1e-9), seed
        assert sampler.log_bound() >= wanted - 1e-12


def test_a_best_card_that_is_not_allowed_does_not_make_the_others_light() -> None:
    """Every card of the wrong sign is far better: within a support the sums are still those of the allowed ones."""
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    positives, negatives = np.array([0, 4000, 4000, 9000]), np.array([9000, 4000, 4000, 0])
    domain = ConstrainedPoints(3, 2, 2, (-2, 2), variables=["a", "b"], signs=[-1, -1])
    loss, weights = ps.ZeroOneLoss(), (np.zeros((2, 2)), np.zeros(5))
    card = rows, positives, negatives, loss, 2, domain.points, np.arange(-2, 3)
    for path in PATHS.values():
        sampler = SupportSampler(*card, *weights, 0.5, Randomness.seeded(0), constraints=domain, **path)
        assert (sampler.draw(50)[:, :2] <= 0).all()


def test_prefixes_are_alive_exactly_where_an_allowed_support_begins_with_them() -> None:
    """So nothing that could be drawn is passed over, and nothing is entered in vain."""
    passed_over = 0
    for seed in range(150):
        rng = np.random.default_rng([seed, 3])
        columns = int(rng.integers(2, 7))
        most = int(rng.integers(1, min(columns, 4) + 1))
        domain = random_constraints(rng, columns, most, 1, (0, 0))
        usable = rng.permutation(np.array(domain.usable))
        most = min(most, len(usable))
        order, rule = rule_of(domain, usable, most)
        kept = usable[order]
        sets = [s for k in range(most + 1) for s in itertools.combinations(range(len(kept)), k)]
        allowed = {s for s in sets if domain.permits(kept[list(s)])}
        alive = {s[:k] for s in allowed for k in range(len(s) + 1)}
        for s in sets:
            path = np.array([*s, 0])
            assert bool(is_allowed(rule, path, len(s))) == (s in allowed)
            extend(rule, path, len(s))
            for j in range(max(s, default=-1) + 1, len(kept)):
                assert bool(rule.alive[j]) == ((*s, j) in alive)
                assert bool(rule.allowed[j]) == ((*s, j) in allowed)
        passed_over += len(sets) - len(alive)
    assert passed_over > 300


def test_dead_prefixes_are_not_walked() -> None:
    """With two questions, one of them required, the blocks and rows that have a bound are those of the rule."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (60, 9))
    domain = ConstrainedPoints(
        10, 4, 1, 1, variables=["a"] * 3 + ["b"] * 3 + ["c"] * 3, max_questions=2, required=["b"]
    )
    counts = rng.integers(0, 9, (2, 60))
    card = rows, *counts, ps.ZeroOneLoss(), 4, [-1, 1], [-1, 0, 1]
    prior = np.zeros((9, 2)), np.zeros(3)
    sampler = SupportSampler(*card, *prior, 0.1, Randomness.seeded(0), max_listed=0, constraints=domain)
    assert isinstance(sampler.frontier, BlockFrontier)
    sums, kept = sampler.frontier.sums, sampler._order
    sets = [s for k in range(5) for s in itertools.combinations(range(9), k) if domain.permits(kept[list(s)])]
    for size, bounds in ((2, sums.block[sums.first_block :]), (3, sums.row)):
        found = dict(zip(itertools.combinations(range(9), size), np.isfinite(bounds), strict=True))
        assert {s for s, has_bound in found.items() if has_bound} == {s[:size] for s in sets if len(s) >= size}
        assert not all(found.values())
