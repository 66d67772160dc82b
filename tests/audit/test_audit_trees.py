"""Private trees attacked: exactly by listing, by draws, and with copies broken on purpose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from all_trees import AllTrees
from privsolve import audit
from privsolve.audit import exact, suite
from privsolve.mechanisms import trees
from privsolve.noise.entropy import Randomness


@pytest.mark.parametrize("case", audit.TREE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_trees_hold_exactly(case: audit.Case, epsilon: float) -> None:
    found = audit.exact_tree(case.data, case.neighbour, epsilon, adjacency=case.adjacency, **case.options)
    assert 0 < found.epsilon <= epsilon
    assert found.members == len(exact.all_trees(case.data.trees))


def test_cases_are_neighbours() -> None:
    for case in audit.TREE_CASES:
        assert case.why
        assert (case.data.n == case.neighbour.n) == (case.adjacency == "replace")
        listed = exact.all_trees(case.data.trees)
        change = [case.neighbour.total_loss(tree) - case.data.total_loss(tree) for tree, _ in listed]
        assert 0 < np.ptp(change) <= case.data.trees.leaves.range * (2 if case.adjacency == "replace" else 1)


def test_the_whole_budget_is_used_up() -> None:
    tree = audit.TREE_CASES[0]
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0).epsilon > 0.95


def test_the_lists_agree_with_others() -> None:
    for case in audit.TREE_CASES:
        mine, listed = exact.all_trees(case.data.trees), AllTrees(case.data)
        assert len(mine) == len(listed.losses)
        assert all(log == pytest.approx(listed.log_prior[listed.number(tree)]) for tree, log in mine)


def doubled(original: Callable[..., float]) -> Callable[..., float]:
    return lambda *arguments: 2 * original(*arguments)


def test_a_doubled_temperature_is_caught_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = audit.TREE_CASES[0]
    monkeypatch.setattr(trees, "tree_temperature", doubled(trees.tree_temperature))
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0).refutes(1.0)


def test_the_other_adjacency_is_caught() -> None:
    tree = audit.TREE_CASES[0]
    assert audit.exact_tree(tree.data, tree.neighbour, 1.0, adjacency="add-remove").refutes(1.0)


def sampled() -> audit.Finding:
    found = suite._sampled_tree(audit.TREE_CASES[1], 6000, Randomness.seeded(2)).measure(0.999)
    assert isinstance(found, audit.Finding)
    return found


def test_draws_stand_and_a_doubled_temperature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.2 < sampled().epsilon <= 1.0
    twice = doubled(trees.tree_temperature)
    monkeypatch.setattr(trees, "tree_temperature", lambda *arguments: 2 * twice(*arguments))
    assert sampled().refutes(1.0)
