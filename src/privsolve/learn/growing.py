"""From an encoded table to a private tree, for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.checks import check_choice
from privsolve.data import EncodedTable, Schema
from privsolve.domains.trees import DecisionTrees, TreePrior, TreeQuestions, tree_schema
from privsolve.learn.fitting import with_outside
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.trees import private_tree, tree_temperature
from privsolve.models.leaves import LabelLeaves, LeafKind, Leaves, ProbabilityLeaves
from privsolve.models.linear import answers
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.trees import TreeProblem
from privsolve.problems.unions import label_costs
from privsolve.releases import Run


@dataclass(frozen=True)
class TreeRecipe:
    """How a tree for a label of two values is chosen: everything but the data, all of it public."""

    epsilon: float
    schema: Schema
    depth: int
    leaves: LeafKind | str = LeafKind.LABELS
    adjacency: Adjacency | str = Adjacency.REPLACE
    false_positive: int = 1
    false_negative: int = 1
    prior: TreePrior | None = None
    simplify: bool = True

    def __post_init__(self) -> None:
        tree_temperature(self.trees, self.epsilon, self.adjacency)

    @property
    def asked(self) -> Schema:
        """The schema of the questions."""
        return tree_schema(self.schema)

    @property
    def trees(self) -> DecisionTrees:
        """The trees to choose from."""
        return DecisionTrees(TreeQuestions.of(self.asked), self.depth, self._leaves())

    def _leaves(self) -> Leaves:
        yes, no = answers(self.schema.label)
        loss = ZeroOneLoss(self.false_positive, self.false_negative)
        if check_choice("leaves", self.leaves, LeafKind) is LeafKind.LABELS:
            costs = None if loss == ZeroOneLoss() else label_costs(loss)
            return LabelLeaves([no, yes], costs)
        if loss != ZeroOneLoss():
            raise ValueError("costs of mistakes are for leaves of labels: leave them out with probabilities")
        return ProbabilityLeaves([no, yes])

    def run(
        self,
        encoded: EncodedTable,
        *,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        progress: Any = None,
        budget: Account | None = None,
    ) -> Run:
        """Choose a tree for a table that `asked` has encoded; the diagnostics hold what fell outside the schema."""
        encoded.check(self.asked)
        problem = TreeProblem.from_table(encoded.table, self.trees, encoded.schema)
        run = private_tree(
            problem, self.epsilon, prior=self.prior, adjacency=self.adjacency, random_state=random_state,
            simplify=self.simplify, progress=progress, budget=budget,
        )  # fmt: skip
        return with_outside(run, encoded)
