"""What is minimised over decision trees: the total loss of the records in the leaves they fall into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.data import Schema
from privsolve.data.patterns import PatternTable
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.errors import IntegerRangeError
from privsolve.models.tree import DecisionTree, Node, values_said

LARGEST_TOTAL = 2**52
"""Total losses and statistics stay below this, so that they are exact in float64 too."""


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """Choose a tree of `trees` with the least total loss. Rows with equal answers are merged.

    `answers[i, j]` is 1 where row i answers yes to question j, and `statistics[i]` are the summed statistics of the records
    with these answers: how many of them have each label.
    """

    answers: NDArray[np.uint8]
    statistics: Int64Array
    records: int
    trees: DecisionTrees
    schema: Schema | None = None

    def __init__(
        self,
        answers: ArrayLike,
        statistics: ArrayLike,
        records: int,
        trees: DecisionTrees,
        schema: Schema | None = None,
    ) -> None:
        if not isinstance(trees, DecisionTrees):
            raise ValueError(f"trees must be DecisionTrees, got {type(trees).__name__}")
        rows, counts = _checked_rows(answers, trees.questions.size), np.asarray(statistics)
        if counts.dtype.kind not in "iu":
            raise ValueError("statistics must be whole numbers of at most 64 bits")
        counts = counts.astype(np.int64)
        if counts.shape != (len(rows), trees.leaves.width):
            raise ValueError(f"statistics must have one row per row of answers and {trees.leaves.width} columns")
        if records < 0 or not len(rows):
            raise ValueError("the data has no records: give at least one")
        if counts.min(initial=0) < 0 or int(counts.astype(object).sum()) != records:
            raise ValueError(f"statistics must be counts that add up to the {int(records):,} records")
        if schema is not None and (schema.intercept or TreeQuestions.of(schema) != trees.questions):
            raise ValueError("schema has other features than the trees: pass the schema that made the questions")
        if int(records) * max(int(trees.leaves.table.max()), 1) >= LARGEST_TOTAL:
            raise IntegerRangeError("records times costs leave the exact integer range: use smaller costs")
        distinct, merged = _merged(rows, counts)
        for array in (distinct, merged):
            array.setflags(write=False)
        vars(self).update(answers=distinct, statistics=merged, records=int(records), trees=trees, schema=schema)

    @classmethod
    def from_records(
        cls, answers: ArrayLike, targets: ArrayLike, trees: DecisionTrees, schema: Schema | None = None
    ) -> TreeProblem:
        """One row per record. `targets` are label numbers `0, 1, ...`."""
        rows, found, width = _checked_rows(answers, trees.questions.size), np.asarray(targets), trees.leaves.width
        if found.shape != (len(rows),):
            raise ValueError(f"targets must be one per record, got shape {found.shape} for {len(rows)} records")
        if found.dtype.kind not in "biu" or (len(found) and not 0 <= int(found.min()) <= int(found.max()) < width):
            raise ValueError(f"targets must be label numbers from 0 to {width - 1}")
        return cls(rows, np.eye(width, dtype=np.int64)[found.astype(np.int64)], len(rows), trees, schema)

    @classmethod
    def from_table(cls, table: PatternTable, trees: DecisionTrees, schema: Schema | None = None) -> TreeProblem:
        """From a pattern table with two labels, negative first; a last column of ones that is no question is dropped."""
        if trees.leaves.width != 2:
            raise ValueError("a pattern table has two labels: use leaves with two labels")
        features = table.features[:, : trees.questions.size]
        if table.names[: trees.questions.size] != trees.questions.names:
            raise ValueError("the trees ask other features than the table has")
        return cls(features, np.stack([table.negatives, table.positives], axis=1), table.n, trees, schema)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records

    def model(self, root: Node) -> DecisionTree:
        """The tree as a model to publish."""
        return DecisionTree(root, self.trees.questions.names, self.trees.leaves, self.schema)

    def total_loss(self, root: Node) -> int:
        """`L(D, T)`, exactly. Data-dependent: not for publication."""
        return int((self.statistics * self.trees.leaves.table.T[values_said(root, self.answers)]).sum())

    def quality(self, root: Node) -> dict[str, Any]:
        """How good the tree is on the data: for the curator, not for publication."""
        said = self.trees.leaves.shares.argmax(axis=1)[values_said(root, self.answers)]
        wrong = self.n - int(self.statistics[np.arange(len(said)), said].sum())
        accuracy = 1.0 - wrong / max(self.n, 1)
        return {"training_accuracy": accuracy, "mistakes": wrong, "total_loss": self.total_loss(root)}

    @property
    def largest_loss(self) -> int:
        """`n` times the range: no two trees differ by more."""
        return self.n * self.trees.leaves.range


def _checked_rows(answers: ArrayLike, size: int) -> NDArray[np.uint8]:
    rows = np.asarray(answers)
    if rows.ndim != 2 or rows.shape[1] != size:
        raise ValueError(f"answers must have one row per record and {size} columns, got shape {rows.shape}")
    if rows.dtype.kind not in "biu" or (rows.size and not np.isin(rows, (0, 1)).all()):
        raise ValueError("answers must be 0 or 1: trees ask yes/no questions")
    return rows.astype(np.uint8)


def _merged(rows: NDArray[np.uint8], counts: Int64Array) -> tuple[NDArray[np.uint8], Int64Array]:
    packed = np.packbits(rows, axis=1)
    keys = np.ascontiguousarray(packed).view([("", packed.dtype)] * packed.shape[1]).reshape(-1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    merged = np.zeros((len(first), counts.shape[1]), dtype=np.int64)
    np.add.at(merged, inverse.reshape(-1), counts)
    return np.ascontiguousarray(rows[first]), merged
