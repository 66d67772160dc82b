"""Scores of a linear rule, exact in the integers; also inside an engine, where the rows of a large table stay."""

from __future__ import annotations

from typing import Any

from privsolve.data.connection import read_each_value
from privsolve.data.reading import check_columns
from privsolve.models.linear import LinearRule, answers
from privsolve.models.score_range import check_scores


def with_predictions(table: Any, model: LinearRule, score: str = "score", prediction: str = "prediction") -> Any:
    """The Ibis table with two more columns: the score in points, and the predicted label.

    Only the columns that the rule uses are looked at.
    """
    import ibis

    rule = model.used
    schema, weights = rule.stated_schema, rule.unit_weights
    check_columns([column.column for column in schema.columns], table.columns)
    for name in (score, prediction):
        if name in table.columns:
            raise ValueError(f"the table has a column {name!r} already: rename it")
    read_each_value(table)
    check_scores(schema, weights)
    total, first = ibis.literal(weights[-1] if schema.intercept else 0, type="int64"), 0
    for column in schema.columns:
        mine = weights[first : first + len(column.names)]
        first += len(mine)
        if any(mine):
            total = total + column.points(table[column.column], mine)
    yes, no = answers(schema.label)
    shown = total / rule.unit if rule.unit > 1 else total
    return table.mutate(**{score: shown, prediction: ibis.cases((total > 0, yes), else_=no)})
