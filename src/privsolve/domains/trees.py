"""All decision trees of a depth, and what is likely among them before any data is seen (theory, trees)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.checks import check_finite, check_integer
from privsolve.data import Schema
from privsolve.data.columns import Bins, Column, Number
from privsolve.data.patterns import checked_names
from privsolve.models.leaves import LabelLeaves, Leaves, NumberLeaves, ProbabilityLeaves
from privsolve.models.tree import Leaf, Node, Split

DEEPEST = 6
MOST_QUESTIONS = 2000
CUTS_OF_A_NUMBER = 15
"""A number between bounds is asked about at so many points, equally far apart."""

SPLIT = 0.8
"""The probability that a node asks a question, unless stated otherwise."""

LARGEST_RATIO = 1e12
"""Weights of questions and values differ by at most this factor, so that sums of products stay within float64."""


@dataclass(frozen=True)
class TreeQuestions:
    """The yes/no features that a tree may ask, and which of them are decided by others.

    Feature j belongs to the column `columns[j]`, whose values have codes `0, ..., radices[c] - 1`, and `codes[j]` is the
    set of codes with the answer yes, as the bits of a number. A question is open as long as the answers before it leave
    its column both a code with yes and one with no. Columns may have `titles`, and of `ordered[c]` codes of a column, the
    first ones, each stands above the one before it.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    radices: tuple[int, ...]
    codes: tuple[int, ...]
    titles: tuple[str, ...] = ()
    ordered: tuple[int, ...] = ()

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
        if len(self.titles) != len(self.ordered) or len(self.titles) not in (0, len(self.radices)):
            raise ValueError("titles and ordered must have one entry per column, or none")

    @classmethod
    def plain(cls, names: Sequence[str] | int) -> TreeQuestions:
        """Features that decide nothing about each other: each is a column of its own."""
        found = checked_names(
            None if isinstance(names, int) else names, names if isinstance(names, int) else len(names)
        )
        m = len(found)
        return cls(found, tuple(range(m)), (2,) * m, (2,) * m, found, (2,) * m)

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
        ordered = tuple(len(column.cuts) + 1 if isinstance(column, Bins) else 0 for column in schema.columns)
        titles = tuple(column.column for column in schema.columns)
        return cls(names, tuple(columns), radices, tuple(codes), titles, ordered)

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
        split: the probability that a node asks a question, one number or one per level from the root on.
        questions: how likely features are to be asked, by name; 1 for features that are not named, 0 for never.
        allowed: by level (0 is the root) the names of the features that may be asked there; all where a level is missing.
        values: how likely each leaf value is; all the same if left out.
        monotone: columns in which the tree must be monotone, by name: 1 (whoever has more is never told less, all else
            equal) or -1. "More" of two labels is the second one. Other trees have prior weight 0.
    """

    split: float | tuple[float, ...] = SPLIT
    questions: Mapping[str, float] = field(default_factory=dict)
    allowed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    values: tuple[float, ...] | None = None
    monotone: Mapping[str, int] = field(default_factory=dict)

    def split_of(self, depth: int) -> NDArray[np.float64]:
        """`α` of every level."""
        stated = self.split if isinstance(self.split, (tuple, list)) else (self.split,) * depth
        if len(stated) != depth:
            raise ValueError(f"prior: split must be one probability, or one for each of the {depth} levels")
        found = [check_finite("prior: split", share, "lie between 0 and 1") for share in stated]
        if not all(0 <= share <= 1 - 1e-6 for share in found):
            raise ValueError(f"prior: split must be at least 0 and at most 0.999999, got {self.split!r}")
        return np.array(found)

    def weights_of(self, names: Sequence[str], depth: int) -> NDArray[np.float64]:
        """`q`: one row per level, one column per feature."""
        known = set(names)
        for where, found in (("questions", self.questions), *((f"allowed[{k}]", v) for k, v in self.allowed.items())):
            if isinstance(found, str) or not known.issuperset(found):
                raise ValueError(f"prior: {where} must name features of the trees")
        if wrong := [level for level in self.allowed if type(level) is not int or not 0 <= level < depth]:
            raise ValueError(f"prior: allowed must have levels from 0 to {depth - 1}, got {wrong[0]!r}")
        weight = _checked_weights([self.questions.get(name, 1.0) for name in names], "questions")
        rows = np.tile(weight, (depth, 1))
        for level, listed in self.allowed.items():
            rows[level, [name not in listed for name in names]] = 0.0
        return rows

    def values_of(self, size: int) -> NDArray[np.float64]:
        """`r`: one probability per leaf value."""
        if self.values is None:
            return np.full(size, 1.0 / size)
        if len(self.values) != size:
            raise ValueError(f"prior: values must be {size} weights, one per leaf value, got {len(self.values)}")
        weight = _checked_weights(self.values, "values")
        if not weight.all():
            raise ValueError("prior: values must be positive: leave out leaf values that must not be said")
        return np.asarray(weight / weight.sum())

    def log_probability(self, trees: DecisionTrees, root: Node) -> float:
        """`log p₀(T)`, whether or not it is `monotone`; minus infinity for a tree that is not among them."""
        split, weights = self.split_of(trees.depth), self.weights_of(trees.questions.names, trees.depth)
        values = self.values_of(trees.leaves.size)

        def log_of(node: Node, answered: dict[int, bool]) -> float:
            level = len(answered)
            asked = weights[level] * trees.questions.open(answered) if level < trees.depth else np.zeros(1)
            ask = float(split[level]) if asked.any() else 0.0
            if isinstance(node, Leaf):
                return math.log(values[node.value]) + math.log1p(-ask)
            if ask == 0.0 or asked[node.question] == 0.0:
                return -math.inf
            sides = (
                log_of(child, answered | {node.question: yes}) for child, yes in ((node.yes, True), (node.no, False))
            )
            return math.log(ask * asked[node.question] / asked.sum()) + sum(sides)

        return log_of(root, {})

    def least_log_of_depth(self, trees: DecisionTrees, depth: int) -> float:
        """A number below `log p₀(T)` of some tree that says the same as `T`, for every tree `T` of at most this depth.

        Namely of the one in which every path asks as long as it may (theory, trees: utility); minus infinity if the prior
        rules such trees out.
        """
        weights, split = self.weights_of(trees.questions.names, trees.depth), self.split_of(trees.depth)
        ends = math.log1p(-split[depth]) if depth < trees.depth else 0.0
        total = 2**depth * (math.log(self.values_of(trees.leaves.size).min()) + ends)
        for level in range(depth):
            positive = weights[level][weights[level] > 0]
            if not positive.size or split[level] == 0:
                return -math.inf
            total += 2**level * math.log(split[level] * positive.min() / positive.sum())
        return float(total)

    def least_log(self, trees: DecisionTrees) -> float:
        """A number below `log p₀(T)` of every tree among them."""
        weights, split = self.weights_of(trees.questions.names, trees.depth), self.split_of(trees.depth)
        return least_log(weights, split, self.values_of(trees.leaves.size), trees.depth)

    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release."""
        split = list(self.split) if isinstance(self.split, (tuple, list)) else self.split
        values: dict[str, Any] = {"split": split}
        if self.questions:
            values["questions"] = dict(self.questions)
        if self.allowed:
            values["allowed"] = {str(level): list(names) for level, names in self.allowed.items()}
        if self.monotone:
            values["monotone"] = dict(self.monotone)
        return values if self.values is None else values | {"values": list(self.values)}


def least_log(
    weights: NDArray[np.float64], split: NDArray[np.float64], values: NDArray[np.float64], depth: int
) -> float:
    """A number below the logarithm of the prior of every tree of this depth that the prior allows."""
    positive, ask = weights[weights > 0], split[split > 0]
    question = math.log(positive.min() / (weights.shape[1] * positive.max())) if positive.size else 0.0
    question += math.log(ask.min()) if ask.size else 0.0
    leaf = math.log(values.min()) + math.log1p(-split.max())
    inner = 2**depth - 1
    return float(inner * question + (inner + 1) * leaf)


@dataclass(frozen=True)
class DecisionTrees:
    """All trees of depth at most `depth` that ask `questions` and say a value of `leaves`."""

    questions: TreeQuestions
    depth: int
    leaves: Leaves

    def __post_init__(self) -> None:
        check_integer("depth", self.depth, 1, DEEPEST)
        if not isinstance(self.leaves, Leaves):
            raise ValueError(
                f"leaves must be LabelLeaves, ProbabilityLeaves or NumberLeaves, got {type(self.leaves).__name__}"
            )
        if not isinstance(self.questions, TreeQuestions):
            raise ValueError(
                f"questions must be TreeQuestions, got {type(self.questions).__name__}: use TreeQuestions.of(schema)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Depth and leaves; the questions are in the model's schema or named by its features."""
        return {"depth": self.depth, "leaves": self.leaves.to_dict()}


class _End(NamedTuple):
    """A leaf: how high what it says stands, and for every column that was asked the codes that come to it, as bits."""

    height: float
    codes: dict[int, int]


class Monotone:
    """Which trees are monotone, by what is public alone. `directions` maps columns to 1 (up) or -1 (down)."""

    def __init__(self, trees: DecisionTrees, directions: Mapping[str, int]) -> None:
        questions = trees.questions
        places = {title: c for c, title in enumerate(questions.titles)}
        for title, way in directions.items():
            if title not in places or questions.ordered[places[title]] < 2:
                raise ValueError(
                    f"prior: monotone must name columns whose values have an order (numbers, bins, yes/no), got {title!r}"
                )
            if type(way) is not int or way not in (1, -1):
                raise ValueError(f"prior: monotone must say 1 (up) or -1 (down) of {title!r}, got {way!r}")
        self._trees = trees
        self._ways = {places[title]: way for title, way in directions.items()}
        self._heights = _heights(trees)

    def allows(self, root: Node) -> bool:
        """Whether no two leaves break the order: the values of two records that differ in one such column are compared."""
        ends = list(self._ends(root, {}))
        return not any(
            one.height > other.height and self._leads(one, other) for one in ends for other in ends if one is not other
        )

    def cut_back(self, root: Node) -> Node:
        """The same tree with the most levels at which it is monotone: below them the answer is no to every question."""
        depth = self._trees.depth
        while not self.allows(root):
            depth -= 1
            root = _cut_at(root, depth)
        return root

    def _ends(self, node: Node, codes: dict[int, int]) -> Iterator[_End]:
        if isinstance(node, Leaf):
            yield _End(float(self._heights[node.value]), codes)
            return
        questions = self._trees.questions
        c, mine = questions.columns[node.question], questions.codes[node.question]
        left = codes.get(c, (1 << questions.radices[c]) - 1)
        for child, here in ((node.yes, left & mine), (node.no, left & ~mine)):
            if here:
                yield from self._ends(child, codes | {c: here})

    def _leads(self, one: _End, other: _End) -> bool:
        """Whether a record at one leaf comes to the other by going up in one column only."""
        apart = [c for c, codes in one.codes.items() if not codes & other.codes.get(c, codes)]
        return len(apart) == 1 and apart[0] in self._ways and self._rises(one, other, apart[0])

    def _rises(self, one: _End, other: _End, c: int) -> bool:
        """Whether some code of the first leaf stands before some code of the second, in the direction of the column."""
        ordered = (1 << self._trees.questions.ordered[c]) - 1
        first, second = one.codes[c] & ordered, other.codes[c] & ordered
        if not first or not second:
            return False
        if self._ways[c] > 0:
            return _lowest(first) < _highest(second)
        return _highest(first) > _lowest(second)


def _cut_at(node: Node, depth: int) -> Node:
    if isinstance(node, Leaf):
        return node
    no = _cut_at(node.no, max(depth - 1, 0))
    return Split(node.question, _cut_at(node.yes, depth - 1), no) if depth else no


def _lowest(codes: int) -> int:
    return (codes & -codes).bit_length()


def _highest(codes: int) -> int:
    return codes.bit_length()


def _heights(trees: DecisionTrees) -> NDArray[np.float64]:
    """How high each leaf value stands: the number, or the share of the second of two labels."""
    leaves = trees.leaves
    if isinstance(leaves, NumberLeaves):
        return np.asarray(leaves.answers(), dtype=np.float64)
    if isinstance(leaves, LabelLeaves | ProbabilityLeaves) and len(leaves.labels) == 2:
        return np.asarray(leaves.shares[:, 1])
    raise ValueError("prior: monotone is for numbers and for two labels: more labels have no order")


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


def _checked_weights(values: Sequence[float], name: str) -> NDArray[np.float64]:
    found = np.array([check_finite(f"prior: {name}", value, "be finite and not negative") for value in values])
    positive = found[found > 0]
    if (found < 0).any() or not positive.size or positive.max() > LARGEST_RATIO * positive.min():
        raise ValueError(
            f"prior: {name} must be weights that are not negative, some of them positive, and differ by at most "
            f"{LARGEST_RATIO:g} times"
        )
    return np.asarray(found / positive.max())
