"""Private trees, and a card or a tree, attacked: exactly by listing, by draws, and with copies broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import privsolve as ps
from all_trees import AllTrees
from privsolve import audit
from privsolve.audit import exact, suite
from privsolve.mechanisms import exponential, trees, unions
from privsolve.mechanisms.unions import UnionSampler
from privsolve.noise.entropy import Randomness
from privsolve.problems.unions import UnionProblem


@pytest.mark.parametrize("case", audit.TREE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_trees_hold_exactly(case: audit.TreeCase, epsilon: float) -> None:
    found = audit.exact_tree(case.data, case.neighbour, epsilon, adjacency=case.adjacency, prior=case.prior)
    assert 0 < found.epsilon <= epsilon
    assert found.members == len(exact.all_trees(case.data.trees, case.prior))


@pytest.mark.parametrize("case", audit.UNION_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("card", [0.5, 0.01])
def test_a_card_or_a_tree_holds_exactly(case: audit.UnionCase, epsilon: float, card: float) -> None:
    weights = {"card": card, "tree": 1 - card}
    found = audit.exact_union(case.data, case.neighbour, epsilon, adjacency=case.adjacency, weights=weights)
    assert 0 < found.epsilon <= epsilon


def test_cases_are_neighbours() -> None:
    for case in audit.TREE_CASES:
        assert case.why
        assert (case.data.n == case.neighbour.n) == (case.adjacency == "replace")
        listed = exact.all_trees(case.data.trees)
        change = [case.neighbour.total_loss(tree) - case.data.total_loss(tree) for tree, _ in listed]
        assert 0 < np.ptp(change) <= case.data.trees.leaves.range * (2 if case.adjacency == "replace" else 1)


def test_the_whole_budget_is_used_up() -> None:
    tree, union = audit.TREE_CASES[0], audit.UNION_CASES[0]
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0).epsilon > 0.95
    assert audit.exact_union(union.data, union.neighbour, 1.0).epsilon > 0.95


def test_the_lists_agree_with_others() -> None:
    for case in audit.TREE_CASES:
        mine, prior = exact.all_trees(case.data.trees), ps.TreePrior()
        listed = AllTrees(case.data, prior)
        assert len(mine) == len(listed.losses)
        assert all(log == pytest.approx(listed.log_prior[listed.number(tree)]) for tree, log in mine)


@pytest.mark.parametrize("attempts", [1, 3])
def test_the_law_of_monotone_trees_holds_those_that_are_cut_back(attempts: int) -> None:
    case, draws = audit.TREE_CASES[-1], 3000
    law = np.exp(audit.tree_law(case.data, 3.0, prior=case.prior, max_attempts=attempts))
    assert law.sum() == pytest.approx(1.0)
    sampler = trees.TreeSampler(case.data, 3.0, prior=case.prior, max_attempts=attempts, random_state=0, simplify=False)
    places = {tree: k for k, (tree, _) in enumerate(exact.all_trees(case.data.trees, case.prior))}
    seen = np.bincount([places[sampler.draw()] for _ in range(draws)], minlength=len(law))
    assert sampler.cut_back
    often = draws * law >= 8
    found, wanted = (np.append(part[often], part[~often].sum()) for part in (seen, draws * law))
    assert chisquare(found, wanted * draws / wanted.sum()).pvalue > 1e-4


def doubled(original: Callable[..., float]) -> Callable[..., float]:
    return lambda *arguments: 2 * original(*arguments)


def test_a_doubled_temperature_is_caught_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, union = audit.TREE_CASES[0], audit.UNION_CASES[0]
    monkeypatch.setattr(trees, "tree_temperature", doubled(trees.tree_temperature))
    monkeypatch.setattr(exponential, "inverse_temperature", doubled(exponential.inverse_temperature))
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0).refutes(1.0)
    assert audit.exact_union(union.data, union.neighbour, 1.0).refutes(1.0)


def test_the_other_adjacency_is_caught() -> None:
    tree, union = audit.TREE_CASES[0], audit.UNION_CASES[0]
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0, adjacency="add-remove").refutes(1.0)
    assert audit.exact_union(union.data, union.neighbour, 1.0, adjacency="add-remove").refutes(1.0)


def sampled(kind: str) -> audit.Finding:
    make = suite._sampled_tree if kind == "tree" else suite._sampled_union
    case: Any = audit.TREE_CASES[1] if kind == "tree" else audit.UNION_CASES[1]
    found = make(case, 6000, Randomness.seeded(2)).measure(0.999)
    assert isinstance(found, audit.Finding)
    return found


@pytest.mark.parametrize("kind", ["tree", "union"])
def test_draws_stand_and_a_doubled_temperature_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.2 < sampled(kind).epsilon <= 1.0
    twice = doubled(trees.tree_temperature)
    monkeypatch.setattr(trees, "tree_temperature", lambda *arguments: 2 * twice(*arguments))
    monkeypatch.setattr(
        unions, "inverse_temperature", lambda *arguments: 4 * exponential.inverse_temperature(*arguments)
    )
    assert sampled(kind).refutes(1.0)


def log_weights(sampler: unions.UnionSampler) -> dict[unions.ModelClass, float]:
    """Of both classes, exactly."""
    bounds = sampler.log_bounds()
    bounds[unions.ModelClass.CARD] += sampler.cards.log_partition() - sampler.cards.log_bound()
    return bounds


def test_a_class_chosen_without_a_coin_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A union that takes whichever class weighs more. Its weights are such that one record decides which."""
    case, rng, gaps = audit.UNION_CASES[2], Randomness.seeded(3), []
    for problem in (case.data, case.neighbour):
        found = log_weights(UnionSampler(problem, 1.0, adjacency=case.adjacency, random_state=0))
        gaps.append(found[unions.ModelClass.TREE] - found[unions.ModelClass.CARD])
    assert gaps[0] != gaps[1]
    weights = {"card": float(np.exp(np.mean(gaps))), "tree": 1.0}

    def kinds(problem: UnionProblem, runs: int) -> list[str]:
        sampler = UnionSampler(problem, 1.0, weights=weights, adjacency=case.adjacency, random_state=rng)
        return [type(sampler.draw()).__name__ for _ in range(runs)]

    assert not audit.lower_bound(kinds, case.data, case.neighbour, 400).refutes(1.0)
    heavier = lambda self: max((log, kind) for kind, log in log_weights(self).items())[1]  # noqa: E731
    monkeypatch.setattr(unions.UnionSampler, "_chosen", heavier)
    assert audit.lower_bound(kinds, case.data, case.neighbour, 400).refutes(1.0)
