"""Decision trees: from an encoded table to a private tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from privsolve.checks import check_choice
from privsolve.data import EncodedTable, Schema
from privsolve.data.columns import Value
from privsolve.domains.trees import DecisionTrees, TreeQuestions, tree_schema
from privsolve.learn.recipe import Paying, with_outside
from privsolve.mechanisms.trees import private_tree, tree_temperature
from privsolve.models.leaves import LabelLeaves, LeafKind, Leaves, ProbabilityLeaves
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.trees import TreeProblem
from privsolve.releases import Run

DEPTH = 3
"""Of a tree, unless said otherwise: seven questions at most."""


@dataclass(frozen=True)
class TreeRecipe:
    """How a tree is chosen: everything but the data, all of it public.

    Args:
        epsilon: privacy budget of the tree.
        depth: maximum number of questions that are asked of a record.
        leaves: what the leaves say, for example `leaves_of(["no", "yes"])`.
        adjacency: `"replace"` or `"add-remove"`.
    """

    epsilon: float
    depth: int
    leaves: Leaves
    adjacency: Adjacency | str = Adjacency.REPLACE

    def __post_init__(self) -> None:
        tree_temperature(self.trees(TreeQuestions.plain(1)), self.epsilon, self.adjacency)

    def encoding(self, schema: Schema) -> Schema:
        """The yes/no questions that a tree may ask."""
        return tree_schema(schema)

    def trees(self, questions: TreeQuestions) -> DecisionTrees:
        """The trees to choose from."""
        return DecisionTrees(questions, self.depth, self.leaves)

    def run(self, encoded: EncodedTable, **paid: Unpack[Paying]) -> Run:
        """Choose a tree for a table that the schema of `encoding` has read."""
        encoded.check()
        trees = self.trees(TreeQuestions.of(encoded.schema))
        if (found := encoded.targets) is None:
            problem = TreeProblem.from_table(encoded.table, trees, encoded.schema)
        else:
            counts = np.eye(self.leaves.width, dtype=np.int64)[found.targets] * found.counts[:, None]
            problem = TreeProblem(found.rows, counts, found.n, trees, encoded.schema)
        return with_outside(self.run_problem(problem, **paid), encoded)

    def run_problem(self, problem: TreeProblem, **paid: Unpack[Paying]) -> Run:
        """Choose a tree for records that lie in memory."""
        return private_tree(problem, self.epsilon, adjacency=self.adjacency, **paid)


def leaves_of(
    labels: Sequence[Value], kind: LeafKind | str = LeafKind.LABELS, costs: Sequence[Sequence[int]] | None = None
) -> LabelLeaves | ProbabilityLeaves:
    """What leaves of a kind say of these classes; `costs[y][v]` is that of saying v for a record of class y."""
    if check_choice("leaves", kind, LeafKind) is LeafKind.LABELS:
        return LabelLeaves(labels, costs)
    if costs is not None:
        raise ValueError("costs of mistakes are for leaves of labels: leave them out with probabilities")
    return ProbabilityLeaves(labels)
