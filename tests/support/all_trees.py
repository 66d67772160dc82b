"""Every tree of a small problem, listed by brute force: losses and prior, without any of the engine's code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.models.tree import Leaf, Node, Split
from privsolve.problems.trees import TreeProblem


class AllTrees:
    """Losses and logarithms of the prior of all trees; `tree(k)` is the one with number k, `number(tree)` the inverse."""

    def __init__(self, problem: TreeProblem) -> None:
        self._problem, self._values = problem, problem.trees.leaves.size
        self._sizes: dict[Any, int] = {}
        self.losses, self.log_prior = self._listed({}, 0)

    def _asked(self, answered: dict[int, bool], level: int) -> list[int]:
        if level >= self._problem.trees.depth:
            return []
        questions = self._problem.trees.questions
        left = [set(range(radix)) for radix in questions.radices]  # the codes that are left, as sets
        for j, yes in answered.items():
            mine = {code for code in range(64) if questions.codes[j] >> code & 1}
            left[questions.columns[j]] &= mine if yes else left[questions.columns[j]] - mine
        found = []
        for j in range(questions.size):
            mine = {code for code in range(64) if questions.codes[j] >> code & 1}
            here = left[questions.columns[j]]
            if here & mine and here - mine:
                found.append(j)
        return found

    def _costs(self, answered: dict[int, bool]) -> NDArray[np.int64]:
        kept = np.ones(len(self._problem.answers), dtype=bool)
        for j, yes in answered.items():
            kept &= (self._problem.answers[:, j] == 1) == yes
        return self._problem.trees.leaves.table.T @ self._problem.statistics[kept].sum(axis=0)

    def _listed(self, answered: dict[int, bool], level: int) -> tuple[NDArray[np.int64], Floats]:
        asked = self._asked(answered, level)
        stop = np.full(self._values, (np.log(0.2) if asked else 0.0) - np.log(self._values))
        losses, logs = [self._costs(answered)], [stop]
        for j in asked:
            yes, no = (self._listed(answered | {j: way}, level + 1) for way in (True, False))
            losses.append(np.add.outer(yes[0], no[0]).reshape(-1))
            logs.append(np.add.outer(yes[1], no[1]).reshape(-1) + np.log(0.8 / len(asked)))
        self._sizes[frozenset(answered.items()), level] = sum(map(len, losses))
        return np.concatenate(losses), np.concatenate(logs)

    def number(self, node: Node, answered: dict[int, bool] | None = None, level: int = 0) -> int:
        """The place of a tree in the lists."""
        answered = answered or {}
        if isinstance(node, Leaf):
            return node.value
        at = self._values
        for j in self._asked(answered, level):
            yes, no = (self._sizes[frozenset((answered | {j: way}).items()), level + 1] for way in (True, False))
            if j == node.question:
                first = self.number(node.yes, answered | {j: True}, level + 1)
                return at + first * no + self.number(node.no, answered | {j: False}, level + 1)
            at += yes * no
        raise AssertionError("the tree asks what is not open")

    def tree(self, number: int, answered: dict[int, bool] | None = None, level: int = 0) -> Node:
        """The tree at a place in the lists."""
        answered = answered or {}
        if number < self._values:
            return Leaf(int(number))
        at = self._values
        for j in self._asked(answered, level):
            yes, no = (self._sizes[frozenset((answered | {j: way}).items()), level + 1] for way in (True, False))
            if number < at + yes * no:
                first, second = divmod(number - at, no)
                return Split(
                    j,
                    self.tree(first, answered | {j: True}, level + 1),
                    self.tree(second, answered | {j: False}, level + 1),
                )
            at += yes * no
        raise AssertionError("no such tree")

    def log_law(self, kappa: float) -> Floats:
        """The logarithm of the probability of every tree."""
        logs = self.log_prior - kappa * (self.losses - self.losses.min())
        return logs - self.log_sum(kappa)

    def log_sum(self, kappa: float) -> float:
        """`log Σ p₀ exp(-κ (L - least))`."""
        return float(np.logaddexp.reduce(self.log_prior - kappa * (self.losses - self.losses.min())))
