"""Sums, draws and optima over all decision trees, held against lists of all trees."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from all_trees import AllTrees
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.engines.trees.sampler import TreeSums, relative_error, work_of
from privsolve.models.leaves import LabelLeaves, Leaves, ProbabilityLeaves
from privsolve.models.tree import Leaf, Node, nodes_of
from privsolve.noise.entropy import Randomness
from privsolve.problems.trees import TreeProblem

LABELS = LabelLeaves(["no", "yes"])
LEAVES: dict[str, Leaves] = {
    "labels": LABELS,
    "costs": LabelLeaves(["no", "yes"], [[0, 2], [5, 0]]),
    "three labels": LabelLeaves(["a", "b", "c"]),
    "probabilities": ProbabilityLeaves(["no", "yes"], [0.1, 0.5, 0.8]),
    "three probabilities": ProbabilityLeaves(["a", "b", "c"], [0.6]),
}
THRESHOLDS = TreeQuestions(("a>=1", "a>=2", "a>=3", "b"), (0, 0, 0, 1), (4, 2), (0b1110, 0b1100, 0b1000, 0b10))
ONE_HOT = TreeQuestions(("c=x", "c=y", "c=z", "b"), (0, 0, 0, 1), (3, 2), (0b001, 0b010, 0b100, 0b10))


def problem(leaves: Leaves, depth: int, features: int, seed: int, records: int = 30) -> TreeProblem:
    return with_questions(leaves, depth, TreeQuestions.plain(features), seed, records)


def with_questions(leaves: Leaves, depth: int, questions: TreeQuestions, seed: int, records: int = 30) -> TreeProblem:
    """Records whose columns have random codes, so that all answers are possible together."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, radix, records) for radix in questions.radices]
    answers = np.array(
        [questions.codes[j] >> codes[questions.columns[j]] & 1 for j in range(questions.size)], dtype=np.uint8
    ).T
    drift = answers @ np.linspace(-1, 1, questions.size) + rng.normal(0, 0.6, records)
    targets = np.searchsorted(np.linspace(-0.5, 0.5, leaves.width - 1), drift)
    return TreeProblem.from_records(answers, targets, DecisionTrees(questions, depth, leaves))


def solved(at: TreeProblem, kappa: float, **options: Any) -> TreeSums:
    return TreeSums(at, kappa, **options).solve()


def law_of_draws(sums: TreeSums, tree: Node, path: tuple[tuple[int, bool], ...] = ()) -> float:
    """The logarithm of the probability that a draw makes exactly these choices."""
    found = sums.alternatives(path)
    question = -1 if isinstance(tree, Leaf) else tree.question
    at = int(np.flatnonzero(found.questions == question)[0])
    log = _log_share(found.losses, found.logs, at, sums.law.kappa)
    if isinstance(tree, Leaf):
        return log + _log_share(sums.values(path), 0.0, tree.value, sums.law.kappa)
    return log + sum(
        law_of_draws(sums, child, tuple(sorted((*path, (tree.question, yes)))))
        for child, yes in ((tree.yes, True), (tree.no, False))
    )


def _log_share(losses: Any, logs: Any, at: int, kappa: float) -> float:
    weights = logs - kappa * (losses - losses.min())
    return float(weights[at] - np.logaddexp.reduce(weights))


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize(("depth", "features"), [(1, 1), (1, 4), (2, 4), (3, 3)])
def test_the_sum_over_all_trees(leaves: Leaves, depth: int, features: int) -> None:
    at = problem(leaves, depth, features, seed=depth)
    listed = AllTrees(at)
    assert np.logaddexp.reduce(listed.log_prior) == pytest.approx(0.0, abs=1e-9)  # a prior sums to 1
    for kappa in (0.01, 0.5, 3.0, 200.0):
        kappa /= leaves.range
        sums = solved(at, kappa)
        assert sums.least_loss == listed.losses.min()
        assert sums.log_sum == pytest.approx(listed.log_sum(kappa), abs=1e-9)


@pytest.mark.parametrize("questions", [THRESHOLDS, ONE_HOT], ids=["thresholds", "one-hot"])
@pytest.mark.parametrize("depth", [2, 3])
def test_implied_and_contradictory_questions_are_skipped(questions: TreeQuestions, depth: int) -> None:
    at = with_questions(LABELS, depth, questions, seed=3, records=60)
    listed = AllTrees(at)
    assert np.logaddexp.reduce(listed.log_prior) == pytest.approx(0.0, abs=1e-9)
    assert len(listed.losses) < len(AllTrees(problem(LABELS, depth, 4, 0)).losses)
    sums = solved(at, 0.4)
    assert sums.log_sum == pytest.approx(listed.log_sum(0.4), abs=1e-9)
    law = listed.log_law(0.4)
    for k in np.random.default_rng(0).choice(len(law), 60, replace=False):
        assert law_of_draws(sums, listed.tree(int(k))) == pytest.approx(law[k], abs=1e-9)


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_every_tree_is_drawn_with_its_probability(leaves: Leaves) -> None:
    """The probabilities of the choices of a draw, multiplied, however unlikely the tree is."""
    at = problem(leaves, 3, 3, seed=11)
    listed, kappa = AllTrees(at), 40.0 / leaves.range
    sums, law = solved(at, kappa), listed.log_law(kappa)
    likely = np.argsort(law)
    chosen = [*likely[:20], *likely[-20:], *np.random.default_rng(1).choice(len(law), 40, replace=False)]
    assert law.min() < -600  # beyond the range of the tables
    for k in chosen:
        assert law_of_draws(sums, listed.tree(int(k))) == pytest.approx(law[k], abs=1e-8)


def chi_square(at: TreeProblem, kappa: float, stated: float, draws: int, seed: int) -> float:
    """The p-value of draws at `kappa` under the law of `stated`; trees that are rarely expected are taken together."""
    sums, listed = solved(at, kappa), AllTrees(at)
    rng = Randomness.seeded(seed)
    seen = np.bincount([listed.number(sums.draw(rng)) for _ in range(draws)], minlength=len(listed.losses))
    expected = draws * np.exp(listed.log_law(stated))
    by_loss = listed.losses - listed.losses.min()  # rare trees: by their loss
    often = expected >= 10
    groups = np.where(often, np.arange(len(by_loss)), len(by_loss) + by_loss)
    _, group = np.unique(groups, return_inverse=True)
    observed, wanted = np.bincount(group, seen), np.bincount(group, expected)
    few = wanted < 10
    if few.any():
        observed = np.append(observed[~few], observed[few].sum())
        wanted = np.append(wanted[~few], wanted[few].sum())
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return float(chi2.sf(statistic, len(wanted) - 1))


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize(("depth", "features"), [(1, 4), (2, 3), (3, 3)])
def test_draws_have_the_law(leaves: Leaves, depth: int, features: int) -> None:
    at, kappa = problem(leaves, depth, features, seed=5), 1.0 / leaves.range
    assert chi_square(at, kappa, kappa, 3000, seed=depth) > 1e-4


def test_a_temperature_off_by_a_tenth_is_noticed() -> None:
    at = problem(LABELS, 2, 4, seed=5, records=60)
    assert chi_square(at, 0.5, 0.5, 20_000, seed=2) > 1e-4
    assert chi_square(at, 0.5, 0.55, 20_000, seed=2) < 1e-6


def test_the_best_tree_of_a_thousand_problems() -> None:
    rng = np.random.default_rng(8)
    for seed in range(1000):
        leaves = list(LEAVES.values())[seed % len(LEAVES)]
        depth = int(rng.integers(1, 4 if leaves.size == 2 else 3))
        questions = (THRESHOLDS, ONE_HOT, TreeQuestions.plain(int(rng.integers(1, 4))))[seed % 3]
        at = with_questions(leaves, depth, questions, seed, int(rng.integers(1, 40)))
        price = int(rng.integers(0, 2 + leaves.range // 2))
        sums = solved(at, 1.0, price=price, sums=False)
        best = sums.best()
        size = sum(isinstance(node, Leaf) for node in nodes_of(best))
        assert at.total_loss(best) + price * size == sums.least_loss == least(at, {}, depth, price)


def least(at: TreeProblem, answered: dict[int, bool], left: int, price: int) -> int:
    """The least loss and price by trying everything."""
    kept = np.all([at.answers[:, j] == yes for j, yes in answered.items()] or [np.ones(len(at.answers), bool)], axis=0)
    found = int((at.trees.leaves.table.T @ at.statistics[kept].sum(axis=0)).min()) + price
    for j in range(at.trees.questions.size) if left else ():
        if j not in answered:
            found = min(found, sum(least(at, answered | {j: way}, left - 1, price) for way in (True, False)))
    return found


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_draws_of_many_records_count_their_units_again(leaves: Leaves) -> None:
    """A draw counts the units it passes in another way and compares them with the stored ones."""
    sums = solved(problem(leaves, 4, 5, seed=4, records=700), 0.3 / leaves.range)
    for seed in range(5):
        sums.draw(Randomness.seeded(seed))
    sums._tables[2][0][:] += 1
    sums._kept.clear()
    drawn: list[Node] = []
    with pytest.raises(RuntimeError, match="another sum the second time"):
        drawn.extend(sums.draw(Randomness.seeded(seed)) for seed in range(50))


def test_draws_are_repeatable_by_seed_and_differ_otherwise() -> None:
    sums = solved(problem(LABELS, 3, 4, seed=2), 0.3)
    first = [sums.draw(Randomness.seeded(4)) for _ in range(3)]
    assert first[0] == first[1] == first[2]
    assert len({sums.draw(Randomness.seeded(seed)) for seed in range(20)}) > 5


def test_rounding_is_bounded_and_grows_with_the_records() -> None:
    assert 0 < relative_error(problem(LABELS, 3, 4, seed=2), 0.5) < 1e-9
    assert relative_error(parity(2, 0, depth=3, each=10**10), 0.5) > 2.5e-7


def test_work_is_known_before_the_data() -> None:
    trees = DecisionTrees(TreeQuestions.plain(33), 5, LABELS)
    work = work_of(trees, 10_000)
    assert work.units == 5456 * 8
    assert work.leaf_values == work.units * 4 * (33 * 34 // 2) * 2
    assert work.memory < 2**27
    assert work_of(dataclasses.replace(trees, depth=6), 10_000).units == 40920 * 16


def parity(features: int, irrelevant: int, depth: int, each: int) -> TreeProblem:
    """As many records of every pattern of answers, yes where an odd number of the first features is; others do not matter."""
    patterns = np.array([[p >> j & 1 for j in range(features)] for p in range(1 << features)], dtype=np.uint8)
    answers = np.hstack([patterns, np.zeros((len(patterns), irrelevant), dtype=np.uint8)])
    odd = patterns.sum(axis=1) % 2
    statistics = each * np.stack([1 - odd, odd], axis=1)
    trees = DecisionTrees(TreeQuestions.plain(features + irrelevant), depth, LABELS)
    return TreeProblem(answers, statistics, int(statistics.sum()), trees)


def test_a_parity_of_six_needs_the_whole_depth() -> None:
    at = parity(6, 1, depth=6, each=10_000)
    sums = solved(at, 0.5)
    assert sums.least_loss == 0
    assert all(at.total_loss(sums.draw(Randomness.seeded(seed))) == 0 for seed in range(5))


@pytest.mark.parametrize(
    ("statistics", "records"), [([[5000, 0]], 1), ([[-1, 2]], 1), ([[1, 0]], 2)], ids=["more", "negative", "fewer"]
)
def test_statistics_are_those_of_the_records(statistics: list[list[int]], records: int) -> None:
    trees = DecisionTrees(TreeQuestions.plain(2), 1, LABELS)
    with pytest.raises(ValueError, match="statistics must be counts that add up"):
        TreeProblem([[0, 0]], statistics, records, trees)


def test_questions_of_a_column_stand_side_by_side() -> None:
    with pytest.raises(ValueError, match="side by side"):
        TreeQuestions(("a", "b", "c"), (0, 1, 0), (3, 2), (1, 2, 2))
    with pytest.raises(ValueError, match="below the radix"):
        TreeQuestions(("a",), (0,), (2,), (4,))
