"""The decision tree: questions with two answers, and at the end of every path what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.data import Schema
from privsolve.data.codes import computed_once, with_read
from privsolve.data.columns import Bins, Categories, Dates
from privsolve.data.duckdb import read_each_value
from privsolve.data.patterns import checked_names
from privsolve.data.questions import Quantity, Question, answered
from privsolve.data.reading import check_columns
from privsolve.models.base import Model, check_fields, texts
from privsolve.models.leaves import Leaves, ProbabilityLeaves, label_array, leaves_from_dict
from privsolve.models.linear import answers, decision_words
from privsolve.models.outcomes import Outcome, Outcomes

DEEPEST = 64


@dataclass(frozen=True)
class Leaf:
    """The end of a path: the number of what is said."""

    value: int


@dataclass(frozen=True)
class Split:
    """A question, by its number, and what follows each answer."""

    question: int
    yes: Node
    no: Node


Node = Leaf | Split


def values_said(root: Node, answers: NDArray[Any], places: Mapping[int, int] | None = None) -> Int64Array:
    """The number of the value that the tree says to every row of 0/1 answers; questions may stand at other `places`."""
    said = np.zeros(len(answers), dtype=np.int64)
    waiting: list[tuple[Node, NDArray[np.intp]]] = [(root, np.arange(len(answers)))]
    while waiting:
        node, rows = waiting.pop()
        if isinstance(node, Leaf):
            said[rows] = node.value
        else:
            yes = answers[rows, node.question if places is None else places[node.question]] != 0
            waiting += [(node.yes, rows[yes]), (node.no, rows[~yes])]
    return said


def simplified(node: Node) -> Node:
    """The same tree without questions whose two sides say the same."""
    if isinstance(node, Leaf):
        return node
    yes, no = simplified(node.yes), simplified(node.no)
    return yes if yes == no else Split(node.question, yes, no)


def nodes_of(root: Node) -> Iterator[Node]:
    """All nodes, a question before what follows it, yes before no."""
    yield root
    if isinstance(root, Split):
        yield from nodes_of(root.yes)
        yield from nodes_of(root.no)


def depth_of(root: Node) -> int:
    """The number of questions on the longest path."""
    return 0 if isinstance(root, Leaf) else 1 + max(depth_of(root.yes), depth_of(root.no))


@dataclass(frozen=True, eq=False)
class DecisionTree(Model):
    """A record answers the questions from the root down, and the leaf it comes to says the prediction.

    `features` names the questions by their number; with a `schema` they are its features, and a table can be predicted.
    """

    root: Node
    features: tuple[str, ...]
    leaves: Leaves
    schema: Schema | None = None
    kind: ClassVar[str] = "decision-tree"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"trees", "prior"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_names(self.features, len(self.features)))
        for node in nodes_of(self.root):
            known = self.leaves.size if isinstance(node, Leaf) else len(self.features)
            number = node.value if isinstance(node, Leaf) else node.question
            if type(number) is not int or not 0 <= number < known:
                raise ValueError("the tree has a question or a leaf that does not exist")
        if self.schema is not None and (self.schema.intercept or self.schema.features != self.features):
            raise ValueError("the tree's schema has other features than its questions")

    @property
    def depth(self) -> int:
        """The number of questions on the longest path."""
        return depth_of(self.root)

    @property
    def size(self) -> int:
        """The number of leaves."""
        return sum(isinstance(node, Leaf) for node in nodes_of(self.root))

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of the features that are asked, in order of their number."""
        used = {node.question for node in nodes_of(self.root) if isinstance(node, Split)}
        return tuple(self.features[j] for j in sorted(used))

    @cached_property
    def _words(self) -> tuple[str, ...] | None:
        """What the schema calls the two labels, if the leaves say these."""
        if self.schema is None or self.schema.label is None or self.leaves.labels != answers(self.schema.label)[::-1]:
            return None
        return decision_words(self.schema)[::-1]

    def says(self, value: int) -> str:
        """What a leaf says, in the words of the schema."""
        return self.leaves.text(value, self._words)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Every question as a person is asked it: `age: 50 or more?`; without a schema by the name of its feature."""
        if self.schema is None:
            return tuple(f"{name}?" for name in self.features)
        asked = zip(self.schema.columns, self.schema.questions(), strict=True)
        return tuple(f"{_asked(question, name)}?" for column, question in asked for name in column.names)

    @cached_property
    def used(self) -> tuple[Schema, Mapping[int, int]]:
        """The schema of the columns that are asked, and the place of each question among its features."""
        if self.schema is None:
            raise ValueError("the release has no schema, so it cannot be applied to a table: fit with one")
        asked = set(self.asked)
        kept = [column for column in self.schema.columns if asked & set(column.names)] or self.schema.columns[:1]
        less = self.schema.of_columns(kept, intercept=False)
        return less, {self.features.index(name): place for place, name in enumerate(less.features)}

    def values(self, table: Any) -> Int64Array:
        """The number of the value that every row of a table comes to; only the columns that are asked are looked at."""
        schema, places = self.used
        return values_said(self.root, schema.encode(table), places)

    def outcomes(self) -> Outcomes:
        """The leaves, ordered by how much they speak for the second label; the tree must be for two labels."""
        if self.leaves.width != 2:
            raise TypeError("only trees for two labels can be evaluated: this one has more")
        schema, places = self.used
        leaves = list(leaf_paths(self))
        risks = self.leaves.shares[:, 1]
        ranks = {risk: rank for rank, risk in enumerate(sorted(set(risks.tolist())))}
        order = sorted(range(len(leaves)), key=lambda i: risks[leaves[i][1]])
        states = isinstance(self.leaves, ProbabilityLeaves)
        yes = self.leaves.answers() == label_array(self.leaves.labels)[1]
        listed = []
        for i in order:
            path, value = leaves[i]
            risk = float(risks[value])
            listed.append(Outcome(path, ranks[risk], bool(yes[value]), risk if states else None))
        numbered = _numbered(self.root, iter(np.argsort(order).tolist()))
        return Outcomes(tuple(listed), schema, lambda rows: values_said(numbered, np.asarray(rows), places), "leaf")

    def predict(self, table: Any) -> NDArray[Any]:
        """The label that the tree says to every row."""
        return np.asarray(self.leaves.answers()[self.values(table)])

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """What the tree says of the probability of each label."""
        return np.asarray(self.leaves.shares[self.values(table)])

    def describe(self) -> str:
        """The tree as indented text."""
        return "\n".join(_lines(self, self.root, ""))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: questions by name, leaves by the number of their value and in words."""
        values = {
            "kind": self.kind,
            "tree": _node_to_dict(self, self.root),
            "features": list(self.features),
            "leaves": self.leaves.to_dict(),
        }
        return values if self.schema is None else values | {"schema": self.schema.to_dict()}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> DecisionTree:
        check_fields(values, {"tree", "features", "leaves"}, frozenset({"schema"}))
        names = texts(values["features"], "features")
        leaves = leaves_from_dict(values["leaves"])
        root = _node_from_dict(values["tree"], {name: j for j, name in enumerate(names)}, leaves, 0)
        schema = Schema.from_dict(values["schema"]) if "schema" in values else None
        return cls(root, tuple(names), leaves, schema)


def with_tree_predictions(table: Any, tree: DecisionTree, score: str = "score", prediction: str = "prediction") -> Any:
    """The Ibis table with a column `prediction`, and for trees with probabilities of two labels their `score` as well.

    Only the columns that the tree asks about are looked at.
    """
    schema, _ = tree.used
    check_columns([column.column for column in schema.columns], table.columns)
    for name in (score, prediction):
        if name in table.columns:
            raise ValueError(f"the table has a column {name!r} already: rename it")
    wider, names = with_read(read_each_value(table), schema.columns)
    codes = [column.code(wider[name]).cast("int64") for name, column in zip(names, schema.columns, strict=True)]
    wider, names = computed_once(wider, codes)
    found = {column.column: wider[name] for name, column in zip(names, schema.columns, strict=True)}
    more = {}
    if isinstance(tree.leaves, ProbabilityLeaves) and tree.leaves.width == 2:
        more[score] = _said(found, tree, tree.leaves.shares[:, 1].tolist())
    more[prediction] = _said(found, tree, tree.leaves.answers().tolist())
    return wider.select(*table.columns, **more)


def tree_sql(tree: DecisionTree, dialect: str) -> str:
    """The prediction as an SQL expression in this dialect, on the columns of a table called `data`."""
    import ibis

    schema, _ = tree.used
    kinds = {column.column: column_type(column) for column in schema.columns}
    table = ibis.table(kinds, name="data")
    codes = {c.column: c.code(c.read(table[c.column])).cast("int64") for c in schema.columns}
    said = _said(codes, tree, tree.leaves.answers().tolist())
    return str(ibis.to_sql(table.select(prediction=said), dialect=dialect)) + "\n"


def column_type(column: Any) -> str:
    """How a table outside of privsolve holds such a column."""
    if isinstance(column, Dates):
        return "date"
    if isinstance(column, Bins):
        return "float64"
    if isinstance(column, Categories):
        return {"text": "string", "boolean": "boolean"}.get(column.kind, "float64")
    return "float64"


def _said(codes: Mapping[str, Any], tree: DecisionTree, says: list[Any]) -> Any:
    """Nested cases; a question is about the code of its column, as in Python."""
    import ibis

    schema = tree.schema
    assert schema is not None
    columns = {name: column for column in schema.columns for name in column.names}

    def case(node: Node) -> Any:
        if isinstance(node, Leaf):
            return ibis.literal(says[node.value])
        name = tree.features[node.question]
        column = columns[name]
        answers = np.asarray(column.expand(np.arange(column.radix)))[:, column.names.index(name)]
        yes = codes[column.column].isin(np.flatnonzero(answers).tolist())
        return ibis.cases((yes, case(node.yes)), else_=case(node.no))

    return case(tree.root)


def _asked(question: Question, feature: str) -> str:
    """What a feature asks: the answers of the question that it stands for."""
    if isinstance(question, Quantity):
        return question.text or feature
    options = [option for option in question.options if feature in option.features]
    spans = [option.span for option in options if option.span is not None]
    said = spans[0].until(spans[-1]).text if spans else " or ".join(option.text for option in options)
    return answered(question.text or question.column, said) if said else feature


def leaf_paths(tree: DecisionTree) -> Iterator[tuple[str, int]]:
    """The answers that lead to every leaf, in the order of `nodes_of`, and the number of what it says."""

    def walk(node: Node, answers: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        if isinstance(node, Leaf):
            yield "; ".join(answers) or "always", node.value
            return
        for child, word in ((node.yes, "yes"), (node.no, "no")):
            yield from walk(child, (*answers, f"{tree.features[node.question]}: {word}"))

    yield from walk(tree.root, ())


def _numbered(node: Node, numbers: Iterator[int]) -> Node:
    """The tree whose leaves say numbers of their own, in the order of `nodes_of`."""
    if isinstance(node, Leaf):
        return Leaf(next(numbers))
    yes = _numbered(node.yes, numbers)
    return Split(node.question, yes, _numbered(node.no, numbers))


def _lines(tree: DecisionTree, node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield f"{indent}→ {tree.says(node.value)}"
        return
    for answer, child in (("yes", node.yes), ("no", node.no)):
        if isinstance(child, Leaf):
            yield f"{indent}{tree.features[node.question]}: {answer} → {tree.says(child.value)}"
        else:
            yield f"{indent}{tree.features[node.question]}: {answer}"
            yield from _lines(tree, child, indent + "│  ")


def _node_to_dict(tree: DecisionTree, node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"value": node.value, "says": tree.leaves.text(node.value)}
    name = tree.features[node.question]
    return {"question": name, "yes": _node_to_dict(tree, node.yes), "no": _node_to_dict(tree, node.no)}


def _node_from_dict(values: object, numbers: Mapping[str, int], leaves: Leaves, level: int) -> Node:
    if level > DEEPEST or not isinstance(values, dict):
        raise ValueError("the release file's tree must be made of objects with question, yes and no, or with a value")
    if set(values) == {"value", "says"}:
        value = values["value"]
        if type(value) is not int or not 0 <= value < leaves.size or values["says"] != leaves.text(value):
            raise ValueError("the release file's tree has a leaf whose value and words do not agree with its leaves")
        return Leaf(value)
    name = values.get("question")
    if set(values) != {"question", "yes", "no"} or not isinstance(name, str) or name not in numbers:
        raise ValueError("the release file's tree has a node that is neither a question it knows nor a leaf")
    yes, no = (_node_from_dict(values[answer], numbers, leaves, level + 1) for answer in ("yes", "no"))
    return Split(numbers[name], yes, no)
