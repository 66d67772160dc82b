"""What is minimised over scorecards and decision trees together: one table of records, one loss, two kinds of models."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data import Schema
from privsolve.data.patterns import PatternTable
from privsolve.domains import SparsePoints
from privsolve.domains.trees import DecisionTrees, tree_schema
from privsolve.losses import ZeroOneLoss
from privsolve.models.base import Model
from privsolve.models.leaves import LabelLeaves
from privsolve.models.tree import Leaf, Node, Split
from privsolve.problems.problem import Problem
from privsolve.problems.trees import TreeProblem

CardOrTree = Node | Int64Array
"""What is chosen: a tree, or the weights of a scorecard."""


@dataclass(frozen=True, eq=False)
class UnionProblem:
    """Choose a scorecard of `domain` or a tree of `trees` with the least total loss on `table`.

    Both are made of the same 0/1 features and lose by the same table: the leaves of the trees say one of two labels, the
    negative one first, and cost what `loss` says. A `schema` with an intercept is the cards'; the trees leave it out.
    """

    table: PatternTable
    domain: SparsePoints
    trees: DecisionTrees
    loss: ZeroOneLoss = field(default_factory=ZeroOneLoss)
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.domain, SparsePoints):
            raise ValueError(f"domain must be SparsePoints, the scorecards, got {type(self.domain).__name__}")
        if not isinstance(self.trees, DecisionTrees) or not isinstance(self.trees.leaves, LabelLeaves):
            raise ValueError("trees must be DecisionTrees whose leaves are LabelLeaves: cards and trees say labels")
        if not isinstance(self.loss, ZeroOneLoss):
            raise ValueError(f"loss must be a ZeroOneLoss, got {type(self.loss).__name__}")
        if not np.array_equal(self.trees.leaves.table, label_costs(self.loss)):
            raise ValueError(
                "the leaves of the trees must cost what the loss says: use LabelLeaves([no, yes], label_costs(loss))"
            )
        if self.domain.columns != self.trees.questions.size:
            raise ValueError(
                f"cards have {self.domain.columns} features and trees {self.trees.questions.size}: make them the same"
            )
        _ = self.cards, self.grown  # both are checked now

    @cached_property
    def cards(self) -> Problem:
        """The scorecards alone."""
        return Problem(self.table, self.domain, self.loss, self.schema)

    @cached_property
    def grown(self) -> TreeProblem:
        """The trees alone."""
        schema = None if self.schema is None else tree_schema(self.schema)
        return TreeProblem.from_table(self.table, self.trees, schema)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.table.n

    def model(self, chosen: CardOrTree) -> Model:
        """The card or the tree as a model to publish."""
        return self.grown.model(chosen) if isinstance(chosen, Leaf | Split) else self.cards.model(chosen)

    def total_loss(self, chosen: CardOrTree) -> int:
        """`L(D, w)` or `L(D, T)`, exactly. Data-dependent: not for publication."""
        return self.grown.total_loss(chosen) if isinstance(chosen, Leaf | Split) else self.cards.total_loss(chosen)

    def quality(self, chosen: CardOrTree) -> dict[str, Any]:
        """How good it is on the data: for the curator, not for publication."""
        return self.grown.quality(chosen) if isinstance(chosen, Leaf | Split) else self.cards.quality(chosen)


def label_costs(loss: ZeroOneLoss) -> tuple[tuple[int, int], tuple[int, int]]:
    """The costs of leaves that say no or yes: `costs[y][v]`, as in `LabelLeaves`."""
    return (0, loss.false_positive), (loss.false_negative, 0)
