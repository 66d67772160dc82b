"""All decision trees of a depth, and what is likely among them before any data is seen (theory, trees)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.checks import check_integer
from privsolve.data import Schema
from privsolve.data.columns import Bins, Column, Number
from privsolve.data.patterns import checked_names
from privsolve.models.leaves import Leaves

DEEPEST = 6
MOST_QUESTIONS = 2000
CUTS_OF_A_NUMBER = 15
"""A number between bounds is asked about at so many points, equally far apart."""

SPLIT = 0.8
"""The prior probability that a node asks a question; which one it asks, and what a leaf says, is equally likely."""


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

    def least_log_prior(self, depth: int) -> float:
        """A number below `log p₀(T)` of some tree that says the same as `T`, for every tree `T` of at most this depth.

        Namely of the one in which every path asks as long as it may (theory, trees: utility). At the full depth, and less
        `2^depth·ln(1/(1 - SPLIT))`, it is below the prior of every tree.
        """
        ends = math.log1p(-SPLIT) if depth < self.depth else 0.0
        question = math.log(SPLIT / self.questions.size)
        return float((2**depth - 1) * question + 2**depth * (ends - math.log(self.leaves.size)))

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
