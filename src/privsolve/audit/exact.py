"""The privacy loss to the last digit, by listing all cards and trees instead of the engines' sums (theory, section 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.arrays import Floats
from privsolve.domains.trees import SPLIT, DecisionTrees
from privsolve.mechanisms import trees
from privsolve.models.tree import Leaf, Node, Split
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.trees import TreeProblem


@dataclass(frozen=True)
class ExactFinding:
    """Between two data sets exactly `epsilon` is lost, in the worse direction: no more and, up to rounding, no less."""

    epsilon: float
    members: int

    def refutes(self, claimed_epsilon: float) -> bool:
        """Whether a pure claim of `claimed_epsilon` is broken by this pair."""
        return self.epsilon > claimed_epsilon


def exact_epsilon(log_law: Floats, neighbour_log_law: Floats) -> float:
    """The smallest pure epsilon for two laws on one finite set, given as log probabilities: both directions."""
    first, second = np.asarray(log_law, dtype=np.float64), np.asarray(neighbour_log_law, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(f"the two laws must be vectors of one length, got shapes {first.shape} and {second.shape}")
    for name, law in (("log_law", first), ("neighbour_log_law", second)):
        if not abs(np.logaddexp.reduce(law)) < 1e-9:
            raise ValueError(f"{name} must hold logarithms of probabilities that add up to 1")
    possible = np.maximum(first, second) > -np.inf
    return float(np.abs(first[possible] - second[possible]).max())


def exact_loss(law: Callable[..., Floats], data: Any, neighbour: Any, **options: Any) -> ExactFinding:
    """What is lost between two data sets by a mechanism whose law on either is known.

    Args:
        law: gives the log probability of every answer, in one public order: `exponential_law` or `tree_law`.
        data: the problem that the law takes.
        neighbour: the same with one record changed.
        options: of the law, such as `epsilon`.
    """
    for public in ("domain", "trees"):
        if getattr(data, public, None) != getattr(neighbour, public, None):
            raise ValueError(f"data and neighbour must have the same {public}, which is public")
    laws = [law(one, **options) for one in (data, neighbour)]
    return ExactFinding(exact_epsilon(*laws), len(laws[0]))


def all_trees(family: DecisionTrees) -> list[tuple[Node, float]]:
    """Every tree, with the logarithm of its prior: for two or three features and small depths."""
    value = -math.log(family.leaves.size)

    def grown(answered: dict[int, bool]) -> Iterator[tuple[Node, float]]:
        asked = np.flatnonzero(family.questions.open(answered) & (len(answered) < family.depth))
        for number in range(family.leaves.size):
            yield Leaf(number), value + (math.log1p(-SPLIT) if len(asked) else 0.0)
        for j in asked:
            question, share = int(j), math.log(SPLIT / len(asked))
            sides = [list(grown(answered | {question: way})) for way in (True, False)]
            for yes, log_yes in sides[0]:
                for no, log_no in sides[1]:
                    yield Split(question, yes, no), share + log_yes + log_no

    return list(grown({}))


def tree_law(
    problem: TreeProblem,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
) -> Floats:
    """Log probability of every tree of `all_trees` under the mechanism of `private_tree`, before simplification."""
    listed = all_trees(problem.trees)
    losses = np.array([problem.total_loss(tree) for tree, _ in listed], dtype=np.int64)
    kappa = trees.tree_temperature(problem.trees, epsilon, adjacency)
    weighed = np.array([log for _, log in listed]) - kappa * (losses - losses.min())
    return np.asarray(weighed - np.logaddexp.reduce(weighed))
