"""What a decision tree says, inside an engine: the rows of a large table stay there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsolve.data.codes import computed_once, with_read
from privsolve.data.columns import Bins, Categories, Dates
from privsolve.data.duckdb import read_each_value
from privsolve.data.reading import check_columns
from privsolve.models.leaves import ProbabilityLeaves
from privsolve.models.tree import DecisionTree, Leaf, Node


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
