"""Private trees: what they promise, what is checked before paying, and the exact epsilon by enumeration."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from all_trees import AllTrees
from privsolve.domains.trees import TreeQuestions
from privsolve.mechanisms.trees import RELATIVE_ERROR, TreeSampler, tree_temperature
from privsolve.models.leaves import LabelLeaves, Leaves, ProbabilityLeaves
from privsolve.models.tree import DecisionTree, Leaf, Split, simplified, values_said
from privsolve.noise.entropy import Randomness

LABELS = LabelLeaves(["no", "yes"])
LEAVES: dict[str, Leaves] = {
    "labels": LABELS,
    "costs": LabelLeaves(["no", "yes"], [[0, 1], [3, 0]]),
    "three labels": LabelLeaves(["a", "b", "c"]),
    "probabilities": ProbabilityLeaves(["no", "yes"], [0.1, 0.6, 0.9]),
}


def problem(
    leaves: Leaves = LABELS, depth: int = 2, features: int = 3, records: int = 40, seed: int = 0
) -> ps.TreeProblem:
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 2, (records, features))
    targets = rng.integers(0, leaves.width, records)
    return ps.TreeProblem.from_records(answers, targets, ps.DecisionTrees(TreeQuestions.plain(features), depth, leaves))


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_the_exact_epsilon_of_neighbours(leaves: Leaves, adjacency: str) -> None:
    """Over all records that a neighbour can have: the largest log-ratio of a tree is at most epsilon, and comes close."""
    epsilon, features, trees = 0.8, 2, ps.DecisionTrees(TreeQuestions.plain(2), 2, leaves)
    kappa = tree_temperature(trees, epsilon, adjacency)
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 2, (6, features))
    kinds: list[Any] = list(range(leaves.width))
    targets = rng.choice(kinds, 6)

    def law(rows: Any, labels: Any) -> Any:
        at = ps.TreeProblem.from_records(np.array(rows), np.array(labels), trees)
        return AllTrees(at).log_law(kappa)

    largest = 0.0
    for row in ([0, 0], [0, 1], [1, 0], [1, 1]):
        for kind in kinds:
            more = law([*answers.tolist(), row], [*targets.tolist(), kind])
            for other in kinds if adjacency == "replace" else [None]:
                one = [] if other is None else [other]
                base = law([*answers.tolist(), *[[1, 1]] * len(one)], [*targets.tolist(), *one])
                largest = max(largest, float(np.abs(more - base).max()))
    assert largest <= epsilon
    assert largest > 0.3 * epsilon


def test_what_is_promised() -> None:
    accountant = ps.Accountant(1.0)
    run = ps.private_tree(problem(), 0.5, budget=accountant, random_state=0)
    assert run.release.guarantee.profile.kind == "bounded-range"
    assert run.release.guarantee.epsilon == 0.5
    assert run.release.guarantee.zcdp == 0.5**2 / 8
    assert run.release.guarantee.seeded
    assert len(accountant.history) == 1
    assert ps.promised(ps.private_tree, problem(), 0.5).epsilon == 0.5
    with pytest.raises(ps.BudgetExceeded):
        ps.private_tree(problem(), 0.6, budget=accountant)
    assert tree_temperature(problem().trees, 0.5, "replace") == (0.5 - 4 * RELATIVE_ERROR) / 2
    assert tree_temperature(problem().trees, 0.5, "add-remove") == 0.5 - 4 * RELATIVE_ERROR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e-7}, "epsilon must be at least"),
        ({"epsilon": 1e12}, "epsilon is too large"),
        ({"adjacency": "swap"}, "adjacency must be one of"),
        ({"max_memory": 1000}, "max_memory"),
        ({"max_work": 10}, "max_work"),
        ({"max_work": 0.5}, "max_work must be a whole number"),
        ({"progress": 3}, "progress must be None or a function"),
    ],
)
def test_wrong_arguments_spend_nothing(options: dict[str, Any], message: str) -> None:
    accountant = ps.Accountant(1e15)
    with pytest.raises(ValueError, match=message):
        ps.private_tree(problem(), **{"epsilon": 0.5, "budget": accountant, **options})
    assert accountant.history == ()


def test_wrong_problems() -> None:
    trees = ps.DecisionTrees(TreeQuestions.plain(2), 2, LABELS)
    for answers, targets, message in (
        ([[0, 2]], [1], "answers must be 0 or 1"),
        ([[0, 1]], [2], "targets must be label numbers"),
        ([[0, 1, 1]], [1], "2 columns"),
        (np.zeros((0, 2), int), np.zeros(0, int), "no records"),
    ):
        with pytest.raises(ValueError, match=message):
            ps.TreeProblem.from_records(answers, targets, trees)
    with pytest.raises(ValueError, match="depth"):
        ps.DecisionTrees(TreeQuestions.plain(2), 7, LABELS)


def test_progress_tells_the_share_of_the_work() -> None:
    seen: list[float] = []
    ps.private_tree(problem(depth=3), 0.5, progress=seen.append, random_state=0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_seeds_repeat_and_other_runs_differ() -> None:
    same = [ps.private_tree(problem(depth=3), 0.5, random_state=3).release.to_json() for _ in range(2)]
    assert same[0] == same[1]
    assert len({ps.private_tree(problem(depth=3), 0.5).release.to_json() for _ in range(8)}) > 1


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_releases_are_read_back(leaves: Leaves) -> None:
    release = ps.private_tree(problem(leaves, 3), 2.0, random_state=1).release
    again = ps.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert isinstance(again.model, DecisionTree)
    assert again.model.root == release.model.root  # type: ignore[attr-defined]
    assert again.model.describe() == release.model.describe()


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m["tree"].update(question="nobody"),
        lambda m: m["tree"].update(question=["x0"]),
        lambda m: m["tree"].pop("yes"),
        lambda m: m.update(tree=[]),
        lambda m: m.update(tree={"value": 9, "says": "no"}),
        lambda m: m.update(tree={"value": 0, "says": "yes"}),
        lambda m: m["leaves"].update(kind="stones"),
        lambda m: m["leaves"].update(labels=["no"]),
        lambda m: m.pop("features"),
    ],
)
def test_damaged_releases_are_refused(damage: Any) -> None:
    trees = ps.DecisionTrees(TreeQuestions.plain(1), 1, LABELS)
    at = ps.TreeProblem.from_records([[0], [1]] * 50, [0, 1] * 50, trees)
    content = json.loads(ps.private_tree(at, 5.0, random_state=0).release.to_json())
    assert content["model"]["tree"]["question"] == "x0"
    damage(content["model"])
    with pytest.raises(ValueError, match=r"leaves|tree|fields|labels|features"):
        ps.Release.from_json(json.dumps(content))


def test_an_old_tree_for_a_number_is_refused_in_words() -> None:
    content = json.loads(ps.private_tree(problem(), 5.0, random_state=0).release.to_json())
    content["model"]["leaves"] = {"kind": "numbers", "low": 0.0, "high": 9.0, "choices": 21, "steps": 100}
    with pytest.raises(ValueError, match=r"trees for a number are not read any more.*PrivateScorecardRegressor"):
        ps.Release.from_json(json.dumps(content))


def test_simplified_trees_say_the_same() -> None:
    sums, rng = TreeSampler(problem(depth=3, features=4), 0.2).sums, Randomness.seeded(2)
    rows = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    smaller = 0
    for _ in range(100):
        tree = sums.draw(rng)
        less = simplified(tree)
        assert (values_said(less, rows) == values_said(tree, rows)).all()
        smaller += less != tree
    assert smaller > 20
    same = Split(0, Split(1, Leaf(0), Leaf(1)), Split(1, Leaf(0), Leaf(1)))
    assert simplified(same) == Split(1, Leaf(0), Leaf(1))


def test_the_utility_bound() -> None:
    """With probability 0.95 a draw loses at most `(ln 1/p₀(best) + ln 20) / κ` more than the best tree (theory, trees)."""
    at = problem(depth=2, features=4, records=300)
    best, loss = ps.best_tree(at)
    assert at.total_loss(best.root) == loss
    listed, kappa = AllTrees(at), tree_temperature(at.trees, 1.0, "replace")
    bound = (math.log(20) - listed.log_prior[listed.losses == loss].max()) / kappa
    sampler = TreeSampler(at, 1.0, random_state=4)
    worse = [at.total_loss(sampler.draw()) - loss for _ in range(400)]
    assert np.mean(np.array(worse) > bound) <= 0.05
