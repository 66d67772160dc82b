"""Monotone trees: the test for them against all records, and draws against lists of all monotone trees."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import privsolve as ps
from all_trees import AllTrees
from privsolve.domains.trees import DecisionTrees, Monotone, TreePrior, TreeQuestions, tree_schema
from privsolve.mechanisms.trees import TreeSampler, tree_temperature, tree_utility_bound
from privsolve.models.leaves import LabelLeaves, Leaves, NumberLeaves, ProbabilityLeaves
from privsolve.models.tree import Leaf, Node, Split, values_said
from small_tables import SCHEMA

LABELS = LabelLeaves(["no", "yes"])
LEAVES: dict[str, Leaves] = {
    "labels": LABELS,
    "probabilities": ProbabilityLeaves(["no", "yes"], [0.1, 0.5, 0.9]),
    "numbers": NumberLeaves(0.0, 1.0, choices=3, steps=4),
}
# two ordered columns, the first with a code outside the order (missing), and one without an order
QUESTIONS = TreeQuestions(
    ("a>=1", "a>=2", "a=?", "b", "c=x", "c=y"),
    (0, 0, 0, 1, 2, 2),
    (4, 2, 3),
    (0b0110, 0b0100, 0b1000, 0b10, 0b001, 0b010),
    ("a", "b", "c"),
    (3, 2, 0),
)


def random_tree(rng: np.random.Generator, questions: TreeQuestions, leaves: int, depth: int, answered: Any) -> Node:
    opened = np.flatnonzero(questions.open(answered))
    if depth == 0 or not len(opened) or rng.random() < 0.15:
        return Leaf(int(rng.integers(leaves)))
    j = int(rng.choice(opened))
    yes, no = (random_tree(rng, questions, leaves, depth - 1, {**answered, j: way}) for way in (True, False))
    return Split(j, yes, no)


def is_monotone(root: Node, questions: TreeQuestions, ways: dict[int, int]) -> bool:
    """By what it says of every record that can be."""
    codes = list(product(*(range(radix) for radix in questions.radices)))
    answers = np.array(
        [[questions.codes[j] >> code[questions.columns[j]] & 1 for j in range(questions.size)] for code in codes]
    )
    said = dict(zip(codes, values_said(root, answers).tolist(), strict=True))
    for code in codes:
        for c, way in ways.items():
            for other in range(code[c] + 1, questions.ordered[c]):
                more = (*code[:c], other, *code[c + 1 :])
                if (said[more] - said[code]) * way < 0:
                    return False
    return True


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("ways", [{"a": 1}, {"b": -1}, {"a": -1, "b": 1}], ids=str)
def test_the_test_is_exact(leaves: Leaves, ways: dict[str, int]) -> None:
    rng = np.random.default_rng(3)
    monotone = Monotone(DecisionTrees(QUESTIONS, 4, leaves), ways)
    numbers = {QUESTIONS.titles.index(title): way for title, way in ways.items()}
    found = []
    for _ in range(1500):
        tree = random_tree(rng, QUESTIONS, leaves.size, 4, {})
        found.append(is_monotone(tree, QUESTIONS, numbers))
        assert monotone.allows(tree) == found[-1]
    assert 100 < sum(found) < 1400


def problem(leaves: Leaves, depth: int = 2, records: int = 40) -> ps.TreeProblem:
    rng = np.random.default_rng(5)
    answers = rng.integers(0, 2, (records, 3))
    drift = answers @ [0.5, -0.6, 0.3] + rng.normal(0, 0.5, records)
    targets: Any = np.clip(drift, 0, 1) if isinstance(leaves, NumberLeaves) else (drift > 0.1).astype(int)
    return ps.TreeProblem.from_records(answers, targets, DecisionTrees(TreeQuestions.plain(3), depth, leaves))


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("ways", [{"x0": 1}, {"x0": 1, "x1": 1}], ids=str)
def test_draws_have_the_law_of_the_monotone_trees(leaves: Leaves, ways: dict[str, int]) -> None:
    at, prior, draws = problem(leaves), TreePrior(0.6, monotone=ways), 4000
    sampler = TreeSampler(at, 0.8, prior=prior, random_state=1, simplify=False)
    listed = AllTrees(at, prior)
    numbers = {TreeQuestions.plain(3).names.index(name): way for name, way in ways.items()}
    allowed = np.array([is_monotone(listed.tree(k), at.trees.questions, numbers) for k in range(len(listed.losses))])
    law = np.where(allowed, np.exp(listed.log_law(tree_temperature(at.trees, 0.8, "replace"))), 0.0)
    seen = np.bincount([listed.number(sampler.draw()) for _ in range(draws)], minlength=len(law))
    assert seen[~allowed].sum() == 0 < sampler.lost
    expected = draws * law / law.sum()
    often = expected >= 8
    observed, wanted = np.append(seen[often], seen[~often].sum()), np.append(expected[often], expected[~often].sum())
    assert chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1) > 1e-4


@pytest.mark.nightly
def test_whatever_is_drawn_there_is_a_monotone_tree_with_the_law_of_a_public_prior() -> None:
    """Other trees have a third of their weight, and are cut back; nothing fails after it was paid for."""
    at, draws, ways = problem(LABELS, 3), 4000, {"x0": -1}
    prior = TreePrior(monotone=ways)
    sampler = TreeSampler(at, 3.0, prior=prior, max_attempts=3, random_state=0, simplify=False)
    listed, test = AllTrees(at, prior), Monotone(at.trees, ways)
    weights = np.exp(listed.log_law(tree_temperature(at.trees, 3.0, "replace")))
    law = np.zeros(len(weights))
    for k, weight in enumerate(weights):
        tree = listed.tree(k)
        if test.allows(tree):
            law[k] += weight
        else:
            cut = test.cut_back(tree)
            assert test.allows(cut)
            law[listed.number(cut)] += weight / 3
    seen = np.bincount([listed.number(sampler.draw()) for _ in range(draws)], minlength=len(law))
    assert sampler.cut_back
    assert sampler.lost > draws / 10
    expected = draws * law / law.sum()
    often = expected >= 8
    observed, wanted = np.append(seen[often], seen[~often].sum()), np.append(expected[often], expected[~often].sum())
    assert chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1) > 1e-4


def test_a_fit_whose_good_trees_are_not_monotone_still_ends_with_one() -> None:
    prior = TreePrior(monotone={"x0": -1})
    run = ps.private_tree(problem(LABELS, 3), 8.0, prior=prior, max_attempts=1, random_state=0)
    assert run.diagnostics.cut_back is True
    assert Monotone(problem(LABELS, 3).trees, {"x0": -1}).allows(run.release.model.root)


def test_columns_of_a_schema() -> None:
    questions = TreeQuestions.of(tree_schema(SCHEMA))
    assert dict(zip(questions.titles, questions.ordered, strict=True)) == {"colour": 0, "age": 3, "dose": 5}
    prior = TreePrior(monotone={"age": 1, "dose": -1})
    assert prior.to_dict()["monotone"] == {"age": 1, "dose": -1}


@pytest.mark.parametrize(
    ("leaves", "ways", "message"),
    [
        (LABELS, {"nobody": 1}, "must name columns whose values have an order"),
        (LABELS, {"c": 1}, "must name columns whose values have an order"),
        (LABELS, {"a": 2}, r"must say 1 \(up\) or -1 \(down\)"),
        (LABELS, {"a": True}, r"must say 1 \(up\) or -1 \(down\)"),
        (LabelLeaves(["x", "y", "z"]), {"a": 1}, "more labels have no order"),
    ],
)
def test_wrong_directions(leaves: Leaves, ways: dict[str, int], message: str) -> None:
    trees = DecisionTrees(QUESTIONS, 2, leaves)
    rows = np.zeros((4, 6), dtype=int)
    with pytest.raises(ValueError, match=message):
        TreeSampler(ps.TreeProblem.from_records(rows, [0, 1, 0, 1], trees), 1.0, prior=TreePrior(monotone=ways))


def test_what_monotone_trees_are_not_for() -> None:
    with pytest.raises(ValueError, match="the best monotone tree is not computed"):
        ps.best_tree(problem(LABELS), prior=TreePrior(monotone={"x0": 1}))
    falls = Split(0, Leaf(0), Leaf(1))
    trees = problem(LABELS).trees
    assert tree_utility_bound(trees, 1.0, tree=falls) > 0
    with pytest.raises(ValueError, match="not among the trees that the prior allows"):
        tree_utility_bound(trees, 1.0, tree=falls, prior=TreePrior(monotone={"x0": 1}))
