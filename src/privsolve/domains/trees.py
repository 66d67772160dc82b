"""All decision trees of a depth, and what is likely among them before any data is seen (theory, trees)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.checks import check_finite, check_integer
from privsolve.data import Schema
from privsolve.data.columns import Bins, Column, Number
from privsolve.data.patterns import checked_names
from privsolve.models.leaves import Leaves

DEEPEST = 6
MOST_QUESTIONS = 2000
CUTS_OF_A_NUMBER = 15
"""A number between bounds is asked about at so many points, equally far apart."""

SPLIT = 0.8
"""The probability that a node asks a question, unless stated otherwise."""

LARGEST_RATIO = 1e12
"""Weights of questions differ by at most this factor, so that sums of products stay within float64."""


@dataclass(frozen=True)
class TreeQuestions:
    """The yes/no features that a tree may ask, and which of them are decided by others.

    Feature j belongs to the column `columns[j]`, whose values have codes `0, ..., radices[c] - 1`, and `codes[j]` is the
    set of codes with the answer yes, as the bits of a number. A question is open as long as the answers before it leave
    its column both a code with yes and one with no.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    radices: tuple[int, ...]
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST_QUESTIONS:
            raise ValueError(f"trees ask 1 to {MOST_QUESTIONS:,} features, got {len(self.names):,}")
        m, ascending = len(self.names), list(self.columns) == sorted(self.columns)
        if not len(self.columns) == len(self.codes) == m or not ascending or self.columns[0] < 0:
            raise ValueError("columns and codes must have one entry per name, those of a column side by side")
        if self.columns[-1] >= len(self.radices) or any(
            not 0 <= code < 1 << self.radices[c] for c, code in zip(self.columns, self.codes, strict=True)
        ):
            raise ValueError("codes must be sets of codes below the radix of their column")

    @classmethod
    def plain(cls, names: Sequence[str] | int) -> TreeQuestions:
        """Features that decide nothing about each other: each is a column of its own."""
        found = checked_names(
            None if isinstance(names, int) else names, names if isinstance(names, int) else len(names)
        )
        m = len(found)
        return cls(found, tuple(range(m)), (2,) * m, (2,) * m)

    @classmethod
    def of(cls, schema: Schema) -> TreeQuestions:
        """The features of a schema whose columns are all of options or bins (see `tree_schema`), without the intercept."""
        columns: list[int] = []
        codes: list[int] = []
        for c, column in enumerate(schema.columns):
            if isinstance(column, Number):
                raise ValueError(f"columns.{column.column}: trees ask yes/no questions; use tree_schema(schema) first")
            table = np.asarray(column.expand(np.arange(column.radix)))
            for answers in table.T:
                columns.append(c)
                codes.append(sum(1 << int(code) for code in np.flatnonzero(answers)))
        names = tuple(name for column in schema.columns for name in column.names)
        radices = tuple(column.radix for column in schema.columns)
        return cls(names, tuple(columns), radices, tuple(codes))

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.names)

    def open(self, answered: Mapping[int, bool]) -> NDArray[np.bool_]:
        """Which questions are open after these answers."""
        left = [(1 << radix) - 1 for radix in self.radices]
        for j, yes in answered.items():
            left[self.columns[j]] &= self.codes[j] if yes else ~self.codes[j]
        return np.array(
            [
                bool(left[c] & codes) and bool(left[c] & ~codes)
                for c, codes in zip(self.columns, self.codes, strict=True)
            ]
        )


@dataclass(frozen=True)
class TreePrior:
    """What is likely before any data is seen: public, and free of privacy cost.

    Args:
        split: the probability that a node asks a question.
        questions: how likely features are to be asked, by name; 1 for features that are not named, 0 for never.
    """

    split: float = SPLIT
    questions: Mapping[str, float] = field(default_factory=dict)

    def check(self, names: Sequence[str]) -> None:
        """Raise unless this is a prior for trees that ask features of these names."""
        if not 0 <= check_finite("prior: split", self.split, "lie between 0 and 1") <= 1 - 1e-6:
            raise ValueError(f"prior: split must be at least 0 and at most 0.999999, got {self.split!r}")
        if isinstance(self.questions, str) or not set(names).issuperset(self.questions):
            raise ValueError("prior: questions must name features of the trees")

    def weights_of(self, names: Sequence[str]) -> NDArray[np.float64]:
        """`q`: the weight of every feature."""
        self.check(names)
        stated = [self.questions.get(name, 1.0) for name in names]
        found = np.array([check_finite("prior: questions", weight, "be finite and not negative") for weight in stated])
        positive = found[found > 0]
        if (found < 0).any() or not positive.size or positive.max() > LARGEST_RATIO * positive.min():
            raise ValueError(
                "prior: questions must be weights that are not negative, some of them positive, and differ by at most "
                f"{LARGEST_RATIO:g} times"
            )
        return np.asarray(found / positive.max())

    def least_log_of_depth(self, trees: DecisionTrees, depth: int) -> float:
        """A number below `log p₀(T)` of some tree that says the same as `T`, for every tree `T` of at most this depth.

        Namely of the one in which every path asks as long as it may (theory, trees: utility); minus infinity if the prior
        rules such trees out.
        """
        weights = self.weights_of(trees.questions.names)
        ends = math.log1p(-self.split) if depth < trees.depth else 0.0
        if self.split == 0:
            return -math.inf
        question = math.log(self.split * weights[weights > 0].min() / weights.sum())
        return float((2**depth - 1) * question + 2**depth * (ends - math.log(trees.leaves.size)))

    def least_log(self, trees: DecisionTrees, depth: int | None = None) -> float:
        """A number below `log p₀(T)` of every tree among them, or of those of a smaller depth."""
        weights = self.weights_of(trees.questions.names)
        question = math.log(weights[weights > 0].min() / len(weights)) + (math.log(self.split) if self.split else 0.0)
        leaf = math.log1p(-self.split) - math.log(trees.leaves.size)
        inner = 2 ** (trees.depth if depth is None else depth) - 1
        return float(inner * question + (inner + 1) * leaf)

    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release."""
        return {"split": self.split} | ({"questions": dict(self.questions)} if self.questions else {})


@dataclass(frozen=True)
class DecisionTrees:
    """All trees of depth at most `depth` that ask `questions` and say a value of `leaves`."""

    questions: TreeQuestions
    depth: int
    leaves: Leaves

    def __post_init__(self) -> None:
        check_integer("depth", self.depth, 1, DEEPEST)
        if not isinstance(self.leaves, Leaves):
            raise ValueError(f"leaves must be LabelLeaves or ProbabilityLeaves, got {type(self.leaves).__name__}")
        if not isinstance(self.questions, TreeQuestions):
            raise ValueError(
                f"questions must be TreeQuestions, got {type(self.questions).__name__}: use TreeQuestions.of(schema)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Depth and leaves; the questions are in the model's schema or named by its features."""
        return {"depth": self.depth, "leaves": self.leaves.to_dict()}


def tree_schema(schema: Schema) -> Schema:
    """The yes/no schema of a tree; raises if constraints are stated, which trees do not keep."""
    if schema.constraints:
        raise ValueError(
            f"the schema states constraints on cards ({schema.constraints.words}), which trees do not keep: choose a card, or "
            "take them out of the schema"
        )
    return yes_no_schema(schema)


def yes_no_schema(schema: Schema) -> Schema:
    """Yes/no features only, without an intercept: numbers between bounds are cut at equally distant public points."""
    return replace(schema, columns=tuple(_asked(column) for column in schema.columns), intercept=False)


def _asked(column: Column) -> Column:
    if not isinstance(column, Number):
        return column
    if column.missing is not None and column.missing != column.low:
        raise ValueError(
            f"columns.{column.column}: for trees a missing number must count as low; cut the column into bins with an "
            "option for missing values"
        )
    first, last = column.first, column.steps(column.high)
    places = sorted(
        {math.ceil(first + k * (last - first) / (CUTS_OF_A_NUMBER + 1)) for k in range(1, CUTS_OF_A_NUMBER + 1)}
    )
    cuts = [place * column.step for place in places if first < place <= last]
    if not cuts:
        raise ValueError(f"columns.{column.column}: has a single step, so there is nothing to ask: leave it out")
    return Bins(column.column, cuts, "thresholds", missing_values=column.missing_values, decimal=column.decimal)
