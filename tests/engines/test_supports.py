"""The supports-first tree against brute force: bounds, sums, minima and laws (theory, section 4)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.engines.supports import SupportSampler, minimise_supports
from privsolve.engines.supports.chain import EXACT, LISTED
from privsolve.errors import IntegerRangeError, WorkLimitReached
from privsolve.noise.coins import Stream, choose, choose_log, choose_of_many, coin, new_sum_tree, propose, set_weight
from privsolve.noise.entropy import Randomness

PATHS = {"listed": {}, "blocks": {"max_listed": 0}}
MISTAKES = ps.ZeroOneLoss()
COSTS = ps.ZeroOneLoss(3, 7)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(QUICK, max_examples=250)


@dataclass(frozen=True)
class Scorecards:
    """A small problem with all its scorecards: points per column and the intercept, in the fixed order of ties."""

    rows: Int64Array
    cost_pos: Int64Array
    cost_neg: Int64Array
    max_features: int
    points: Int64Array
    intercepts: Int64Array
    log_weight: np.ndarray
    log_weight_intercept: np.ndarray
    loss: ps.ZeroOneLoss = MISTAKES

    @property
    def arrays(self):
        cards = self.max_features, self.points, self.intercepts
        return self.rows, self.cost_neg, self.cost_pos, self.loss, *cards

    def members(self) -> tuple[Int64Array, Int64Array]:
        """All scorecards and the number of the support of each."""
        m, found, supports = self.rows.shape[1], [], []
        subsets = [s for k in range(self.max_features + 1) for s in itertools.combinations(range(m), k)]
        for number, subset in enumerate(subsets):
            for values in itertools.product(self.points, repeat=len(subset)):
                for intercept in self.intercepts:
                    member = np.zeros(m + 1, dtype=np.int64)
                    member[list(subset)], member[-1] = values, intercept
                    found.append(member)
                    supports.append(number)
        return np.array(found), np.array(supports)

    def losses(self, members: Int64Array) -> Int64Array:
        positive = self.rows @ members[:, :-1].T + members[:, -1] > 0
        missed = ~positive.T @ self.cost_neg * self.loss.false_negative
        return missed + positive.T @ self.cost_pos * self.loss.false_positive

    def log_prior(self, members: Int64Array) -> np.ndarray:
        total = self.log_weight_intercept[members[:, -1] - self.intercepts[0]].copy()
        for j in range(members.shape[1] - 1):
            for i, point in enumerate(self.points):
                total[members[:, j] == point] += self.log_weight[j, i]
        return total

    def sampler(self, kappa: float, seed: int = 0, **limits: int) -> SupportSampler:
        prior = self.log_weight, self.log_weight_intercept
        return SupportSampler(*self.arrays, *prior, kappa, Randomness.seeded(seed), **limits)


def problem(
    seed: int,
    columns: int,
    max_features: int,
    points=(-2, -1, 1, 2),
    intercepts=range(-2, 3),
    flat=False,
    cost=4,
    loss=MISTAKES,
) -> Scorecards:
    rng = np.random.default_rng(seed)
    every = np.array(list(itertools.product((0, 1), repeat=columns)), dtype=np.int64).reshape(-1, columns)
    rows = every[np.sort(rng.permutation(len(every))[: rng.integers(1, len(every) + 1)])]
    spread = 0.0 if flat else 1.0
    return Scorecards(
        rows,
        rng.integers(0, cost + 1, len(rows)),
        rng.integers(0, cost + 1, len(rows)),
        max_features,
        np.array(points),
        np.array(intercepts),
        spread * rng.normal(size=(columns, len(points))),
        spread * rng.normal(size=len(intercepts)),
        loss,
    )


@st.composite
def problems(draw, columns=4):
    m = draw(st.integers(1, columns))
    points = sorted(draw(st.sets(st.integers(-4, 4).filter(bool), min_size=1, max_size=3 if m > 3 else 7)))
    low = draw(st.integers(-3, 2))
    intercepts = range(low, low + draw(st.integers(1, 4)))
    k, seed, cost = draw(st.integers(0, m)), draw(st.integers(0, 10**6)), draw(st.sampled_from((1, 5, 50)))
    return problem(seed, m, k, points, intercepts, draw(st.booleans()), cost, draw(st.sampled_from((MISTAKES, COSTS))))


def exact_law(cards: Scorecards, kappa: float):
    members, supports = cards.members()
    log_law = cards.log_prior(members) - kappa * cards.losses(members)
    return members, supports, log_law


def p_value(cards: Scorecards, sampler: SupportSampler, kappa: float, draws: int = 4000) -> float:
    """Chi-square of draws against the exact law, rare scorecards taken together."""
    members, _, log_law = exact_law(cards, kappa)
    expected = draws * np.exp(log_law - logsumexp(log_law))
    index = {tuple(member): i for i, member in enumerate(members.tolist())}
    counts = np.bincount([index[tuple(w)] for w in sampler.draw(draws).tolist()], minlength=len(members))
    return pooled_chisquare(counts, expected)


def pooled_chisquare(counts: Int64Array, expected: np.ndarray) -> float:
    """Chi-square with the outcomes expected fewer than eight times taken together, if they are expected at all."""
    rare = expected < 8
    observed, wanted = counts[~rare], expected[~rare]
    if expected[rare].sum() > 8:
        observed, wanted = np.append(observed, counts[rare].sum()), np.append(wanted, expected[rare].sum())
    else:
        assert counts[rare].sum() < 40
        wanted = wanted * observed.sum() / wanted.sum()
    return 1.0 if len(observed) == 1 else chisquare(observed, wanted).pvalue


CASES = {
    "no columns used": (problem(1, 3, 0), 0.3),
    "one column": (problem(2, 4, 1), 0.4),
    "pairs": (problem(3, 4, 2), 0.2),
    "all columns": (problem(4, 3, 3), 0.5),
    "no intercept": (problem(5, 4, 2, intercepts=[0]), 0.3),
    "flat prior, one sign": (problem(6, 3, 2, points=(1, 2, 3), flat=True), 0.4),
    "heavy costs": (problem(7, 4, 2, cost=40), 0.05),
    "prior only": (problem(8, 3, 2), 0.0),
    "cold": (problem(9, 3, 2), 3.0),
    "unequal costs": (problem(5, 4, 3, points=(-1, 1), loss=COSTS), 0.05),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_exact_law(name):
    cards, kappa = CASES[name]
    assert p_value(cards, cards.sampler(kappa, seed=11), kappa) > 1e-3


def test_the_law_is_still_exact_when_little_is_tightened():
    """Fresh samplers, one draw each: the bounds are at their loosest."""
    cards = problem(10, 3, 2)
    members, _, log_law = exact_law(cards, 0.4)
    index = {tuple(member): i for i, member in enumerate(members.tolist())}
    draws = [index[tuple(cards.sampler(0.4, seed).draw(1)[0].tolist())] for seed in range(1500)]
    expected = 1500 * np.exp(log_law - logsumexp(log_law))
    assert pooled_chisquare(np.bincount(draws, minlength=len(members)), expected) > 1e-3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("cards", "kappa"),
    [(problem(3, 4, 2, cost=40), 0.1), (problem(4, 4, 2, cost=12, loss=COSTS), 0.01)],
    ids=["mistakes", "costs"],
)
def test_the_test_of_the_law_notices_a_wrong_temperature(cards, kappa, path):
    assert p_value(cards, cards.sampler(kappa, seed=11, **PATHS[path]), kappa, draws=20_000) > 1e-3
    assert p_value(cards, cards.sampler(1.1 * kappa, seed=11, **PATHS[path]), kappa, draws=20_000) < 1e-6


def test_seeded_draws_are_reproducible_and_in_the_domain():
    cards = problem(12, 4, 2)
    draws = cards.sampler(0.3, seed=5).draw(300)
    assert (draws == cards.sampler(0.3, seed=5).draw(300)).all()
    assert (np.count_nonzero(draws[:, :-1], axis=1) <= 2).all()
    assert np.isin(draws[:, -1], cards.intercepts).all()


@pytest.mark.parametrize("name", [name for name, (cards, _) in CASES.items() if cards.max_features > 1])
def test_blocks_have_the_same_law(name):
    cards, kappa = CASES[name]
    sampler = cards.sampler(kappa, seed=12, **PATHS["blocks"])
    assert p_value(cards, sampler, kappa) > 1e-3
    assert sampler.statistics.nodes > 0


@pytest.mark.nightly
def test_blocks_of_losses_beyond_32_bits_have_the_same_law():
    """A hundred million times as many records at a temperature that is as much higher."""
    cards = problem(13, 4, 3, points=(-1, 1), cost=12)
    many = replace(cards, cost_pos=cards.cost_pos * 10**8, cost_neg=cards.cost_neg * 10**8)
    sampler = many.sampler(0.15e-8, seed=12, **PATHS["blocks"])
    assert sampler.instance.is_wide
    assert not cards.sampler(0.15, seed=12, **PATHS["blocks"]).instance.is_wide
    assert p_value(many, sampler, 0.15e-8) > 1e-3


def test_supports_beyond_the_memory_are_refused_before_anything_is_drawn():
    rows = np.zeros((1, 2000), dtype=np.int64)
    card = rows, [1], [1], MISTAKES, 5, [-1, 1], [0]
    with pytest.raises(WorkLimitReached, match="use a smaller max_features or fewer columns"):
        SupportSampler(*card, np.zeros((2000, 2)), np.zeros(1), 0.1, Randomness.seeded(0))


def test_the_law_of_blocks_is_still_exact_when_little_is_tightened():
    cards = problem(10, 4, 3, points=(-1, 1))
    members, _, log_law = exact_law(cards, 0.4)
    index = {tuple(member): i for i, member in enumerate(members.tolist())}
    draws = [index[tuple(cards.sampler(0.4, seed, **PATHS["blocks"]).draw(1)[0].tolist())] for seed in range(1500)]
    expected = 1500 * np.exp(log_law - logsumexp(log_law))
    assert pooled_chisquare(np.bincount(draws, minlength=len(members)), expected) > 1e-3


@QUICK
@given(problems(), st.sampled_from((0.0, 0.01, 0.3, 2.0, 30.0)))
def test_bounds_form_a_chain_down_to_the_brute_force_sum(cards, kappa):
    sampler = cards.sampler(kappa)
    chain = np.array([sampler.log_bounds(step) for step in range(LISTED, EXACT + 1)])
    assert (np.diff(chain, axis=0) <= 0).all()
    _, supports, log_law = exact_law(cards, kappa)
    shifted = log_law + kappa * sampler.reference
    brute = np.array([logsumexp(shifted[supports == s]) for s in range(supports[-1] + 1)])
    assert chain[-1] == pytest.approx(brute, rel=1e-9, abs=1e-9)
    assert (chain[-1] <= brute + 1e-9).all()
    assert sampler.log_partition() == pytest.approx(logsumexp(shifted), rel=1e-9, abs=1e-9)
    assert sampler.log_bound() >= sampler.log_partition()


@MANY
@given(problems(), st.sampled_from((0, 1, 2**19, 2**22)), st.integers(0, 10**6))
def test_minimum_is_the_first_best_scorecard(cards, scale, seed):
    rng = np.random.default_rng(seed)
    m = cards.rows.shape[1]
    table, zero = rng.integers(-scale, scale + 1, (m, len(cards.points))), rng.integers(-scale, scale + 1, m)
    starts = rng.integers(-scale, scale + 1, len(cards.intercepts))
    found = minimise_supports(*cards.arrays, table, starts, zero)
    members, _ = cards.members()
    values = cards.losses(members) * 2**20 + starts[members[:, -1] - cards.intercepts[0]] + zero.sum()
    for j in range(m):
        for i, point in enumerate(cards.points):
            values[members[:, j] == point] += table[j, i] - zero[j]
    best = int(np.argmin(values))  # members are in the order of the tie-break
    assert found.value == values[best]
    assert found.weights.tolist() == members[best].tolist()


def largest_difference(cards):
    return int(np.abs(cards.cost_pos - cards.cost_neg).sum())


@pytest.mark.parametrize("kappa", [1e-6, 50.0, 2000.0])
def test_extreme_temperatures_neither_overflow_nor_vanish(kappa):
    cards = problem(20, 4, 3, cost=60)
    sampler = cards.sampler(kappa, seed=3)
    _, _, log_law = exact_law(cards, kappa)
    expected = logsumexp(log_law + kappa * sampler.reference)
    assert sampler.log_partition() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    draws = sampler.draw(200)
    if kappa >= 50:
        assert (cards.losses(draws) == cards.losses(cards.members()[0]).min()).all()
    assert 0 < sampler.relative_error(largest_difference(cards)) < 1e-3


@pytest.mark.parametrize("path", PATHS)
def test_weights_of_very_many_records_are_as_precise_as_stated(path):
    """Logarithms of tens of millions, against sums with sixty digits."""
    cards, kappa = problem(30, 4, 3, cost=2**27), 0.4999995
    sampler = cards.sampler(kappa, seed=5, **PATHS[path])
    largest = largest_difference(cards)
    stated = sampler.relative_error(largest)
    assert kappa * largest > 3e7
    assert 1e-9 < stated < 2.5e-7
    if path != "listed":
        losses = cards.losses(cards.members()[0])
        assert cards.losses(sampler.draw(5)).tolist() == [losses.min()] * 5
        return
    members, supports = cards.members()
    losses, log_prior = cards.losses(members), cards.log_prior(members)
    log_bounds = sampler.log_bounds()
    with localcontext() as context:
        context.prec = 60
        for support in range(supports[-1] + 1):
            at = np.flatnonzero(supports == support)
            least = int(losses[at].min())
            terms = [Decimal(float(log_prior[i])) - Decimal(kappa) * (int(losses[i]) - least) for i in at.tolist()]
            total = sum((term.exp() for term in terms if term > -200), Decimal(0)).ln()
            exact = total - Decimal(kappa) * (least - sampler.reference)
            assert abs(Decimal(float(log_bounds[support])) - exact) <= Decimal(stated)
    assert sampler.log_bounds().min() < -1e6


def test_how_many_records_epsilon_one_allows():
    """A hundred million, not ten thousand million; the refusal depends on the number of records alone."""
    cards = ps.SparsePoints(dim=3, max_features=2, max_points=3, intercept=(-2, 2))
    rows = [[1, 0, 1], [0, 1, 1], [1, 1, 1]]
    table = ps.PatternTable(rows, [40_000_000, 0, 10_000_000], [0, 45_000_000, 5_000_000])
    run = ps.exponential(ps.Problem(table, cards), 1.0, random_state=0)
    assert run.diagnostics.mistakes == 5_000_000
    for counts in ([10**10, 0, 0], [10**10 // 2, 0, 0]):
        many = ps.PatternTable(rows, counts, [10**10 - counts[0], 0, 0])
        with pytest.raises(ValueError, match="epsilon is too large for exact sampling with this many records"):
            ps.exponential(ps.Problem(many, cards), 1.0, random_state=0)


def test_supports_too_light_for_floats_are_drawn_in_logarithms():
    """XOR cannot be scored: with one intercept every scorecard of the pair is far above its Bayes loss."""
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    positive = np.array([1, 0, 0, 1], dtype=np.int64)
    cards = Scorecards(
        rows, 30 * positive, 30 * (1 - positive), 2, np.array([-1, 1]), np.array([0, 1]), np.zeros((2, 2)), np.zeros(2)
    )
    for limits in PATHS.values():
        sampler = cards.sampler(40.0, seed=4, **limits)
        assert p_value(cards, sampler, 40.0, draws=2000) > 1e-3
        assert sampler.statistics.opened["exact in logs"] > 0


def test_problems_without_columns_rows_or_room():
    none = np.zeros((0, 4)), np.zeros(2)
    for rows, most in ((np.zeros((3, 0), dtype=np.int64), 2), (np.zeros((0, 0), dtype=np.int64), 0)):
        costs = np.arange(len(rows)), np.full(len(rows), 2)
        arrays = rows, *costs, ps.ZeroOneLoss(), most, np.array([-2, -1, 1, 2]), np.array([0, 1])
        draws = SupportSampler(*arrays, *none, 0.5, Randomness.seeded(1), max_listed=0).draw(50)
        assert draws.shape == (50, 1)
        found = minimise_supports(*arrays, np.zeros((0, 4), int), np.zeros(2, int), np.zeros(0, int))
        assert found.value == min(costs[0].sum(), costs[1].sum()) * 2**20


def test_limits_raise_and_release_nothing():
    cards = problem(21, 4, 3)
    with pytest.raises(WorkLimitReached, match="max_attempts=2: nothing is released"):
        cards.sampler(0.1, max_attempts=2).draw(50)
    with pytest.raises(WorkLimitReached, match="max_supports"):
        cards.sampler(0.1, max_supports=10).draw(1)
    tables = np.zeros((4, 4), int), np.zeros(5, int), np.zeros(4, int)
    with pytest.raises(WorkLimitReached, match="nothing was released"):
        minimise_supports(*cards.arrays, *tables, max_supports=10)
    with pytest.raises(WorkLimitReached, match="seconds: nothing was released"):
        minimise_supports(*cards.arrays, *tables, time_limit=1e-9)
    with pytest.raises(WorkLimitReached, match="within 0 supports: nothing was released"):
        minimise_supports(*cards.arrays, *tables, node_limit=0)


def test_wrong_arguments_are_named():
    cards = problem(22, 3, 2)
    for changed, message in (
        ({"points": np.array([0, 1, 2, 3])}, "points"),
        ({"intercepts": np.array([0, 2, 4, 5, 6])}, "intercepts"),
        ({"rows": 2 * cards.rows + 1}, "rows"),
        ({"max_features": 13}, "max_features"),
        ({"cost_pos": cards.cost_pos[:-1]}, "negatives"),
        ({"log_weight": np.full((3, 4), -np.inf)}, "log weights"),
        ({"log_weight": np.tile([0.0, 0, 0, -400], (3, 1))}, "prior"),
        ({"log_weight": np.zeros((2, 4))}, "log_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(cards, **changed).sampler(0.1)
    with pytest.raises(ValueError, match="kappa"):
        cards.sampler(-1.0)
    with pytest.raises(IntegerRangeError, match="noise scale"):
        minimise_supports(*cards.arrays, np.full((3, 4), 2**60), np.zeros(5, int), np.zeros(3, int))


def stream(seed: int, size: int = 200_000) -> Stream:
    return Stream(Randomness.seeded(seed).uniform(size), np.zeros(1, dtype=np.int64))


def test_choices_have_their_probabilities():
    source, weight = stream(1), np.array([0.1, 0.5, 0.0, 0.3, 0.1])
    counts = np.bincount([choose(source, weight, 5) for _ in range(20_000)], minlength=5)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3, 4]], 20_000 * weight[[0, 1, 3, 4]]).pvalue > 1e-3
    log_weight = np.log(weight[[0, 1, 3, 4]]) - 5000
    counts = np.bincount([choose_log(source, log_weight, 4) for _ in range(20_000)], minlength=4)
    assert chisquare(counts, 20_000 * weight[[0, 1, 3, 4]]).pvalue > 1e-3


@pytest.mark.parametrize("n", [1, 2, 5, 8, 33])
def test_choices_by_halves_have_their_probabilities(n):
    source, weight = stream(n), np.random.default_rng(n).dirichlet(np.ones(n))
    log_weight = np.append(np.log(weight) - 5000, -np.inf)
    found = [choose_of_many(source, log_weight, n + 1, np.zeros(4 * n + 4)) for _ in range(20_000)]
    counts = np.bincount([i for i, _ in found], minlength=n + 1)
    assert counts[n] == 0
    assert n == 1 or chisquare(counts[:n], 20_000 * weight).pvalue > 1e-3
    assert [total for _, total in found] == pytest.approx([-5000] * len(found), abs=1e-9)


def test_choices_by_halves_keep_outcomes_that_floats_do_not_hold():
    """Outcomes `e^-700` and less beside the heaviest are flipped for as several coins, then chosen among in proportion."""
    log_weight, sums = np.array([-750.0, 0.0, -800.0, -800.0 + np.log(3), -np.inf]), np.zeros(20)
    tiny = Stream(np.array([1e-300] * 2 + [0.5] * 8), np.zeros(1, dtype=np.int64))
    assert choose_of_many(tiny, log_weight, 5, sums)[0] == 0
    assert choose_of_many(stream(0), log_weight, 5, sums)[0] == 1
    only = log_weight - np.array([1e6, 0, 0, 0, 0])  # of what is left the third is three times as likely
    counts = np.zeros(5)
    for seed in range(4000):
        uniforms = np.concatenate([[1e-300, 1e-300], Randomness.seeded(seed).uniform(8)])
        counts[choose_of_many(Stream(uniforms, np.zeros(1, dtype=np.int64)), only, 5, sums)[0]] += 1
    assert counts[[0, 1, 4]].sum() == 0
    assert chisquare(counts[2:4], [1000, 3000]).pvalue > 1e-3


def test_a_coin_below_the_range_of_floats_is_flipped_as_several():
    tiny = np.full(3, 1e-300)
    assert coin(Stream(tiny, np.zeros(1, dtype=np.int64)), -1500.0)
    assert not coin(Stream(np.array([1e-300, 1e-300, 0.5]), np.zeros(1, dtype=np.int64)), -1500.0)


def test_sum_tree_proposes_in_proportion_over_any_range():
    log_weight = np.array([-9000.0, -9000 + np.log(3), -1e6, -9000 + np.log(2)])
    tree = new_sum_tree(log_weight, 4)
    source = stream(2)
    counts = np.bincount([propose(source, tree) for _ in range(20_000)], minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]], 20_000 * np.array([1, 3, 2]) / 6).pvalue > 1e-3
    set_weight(tree, 2, -9000 + np.log(6))
    counts = np.bincount([propose(source, tree) for _ in range(20_000)], minlength=4)
    assert chisquare(counts, 20_000 * np.array([1, 3, 6, 2]) / 12).pvalue > 1e-3
