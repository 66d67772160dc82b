"""Every card and every tree of a small union, listed by brute force."""

from __future__ import annotations

import numpy as np

from all_trees import AllTrees
from privsolve.arrays import Floats
from privsolve.domains.trees import TreePrior
from privsolve.models.tree import Leaf, Split
from privsolve.problems.priors import Prior
from privsolve.problems.unions import CardOrTree, UnionProblem


class AllChoices:
    """Losses and logarithms of the prior: all cards in the order of the domain's members, then all trees."""

    def __init__(
        self, problem: UnionProblem, card_prior: Prior, tree_prior: TreePrior, card: float, tree: float
    ) -> None:
        self.trees = AllTrees(problem.grown, tree_prior)
        self._members = {tuple(row): k for k, row in enumerate(problem.domain.members().tolist())}
        losses = [problem.cards.total_loss(np.array(row)) for row in self._members]
        values = [problem.domain.values(j).tolist() for j in range(problem.domain.dim)]
        tables = card_prior.log_tables(problem.domain)
        logs = np.array([sum(tables[j][values[j].index(v)] for j, v in enumerate(row)) for row in self._members])
        logs -= np.logaddexp.reduce(logs)
        total = card + tree
        self.cards = len(losses)
        self.losses = np.concatenate([losses, self.trees.losses]).astype(np.int64)
        self.log_prior = np.concatenate([logs + np.log(card / total), self.trees.log_prior + np.log(tree / total)])

    def number(self, chosen: CardOrTree) -> int:
        """The place of a card or a tree in the lists."""
        if isinstance(chosen, Leaf | Split):
            return self.cards + self.trees.number(chosen)
        return self._members[tuple(chosen.tolist())]

    def log_law(self, kappa: float) -> Floats:
        """The logarithm of the probability of every card and tree."""
        logs = self.log_prior - kappa * (self.losses - self.losses.min())
        return np.asarray(logs - np.logaddexp.reduce(logs))
