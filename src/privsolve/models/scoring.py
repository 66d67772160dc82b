"""Scores of a linear rule, exact in the integers; also inside an engine, where the rows of a large table stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsolve.data.connection import read_each_value
from privsolve.data.reading import check_columns
from privsolve.models.linear import LinearRule, answers
from privsolve.models.odds import last_score, risks_of
from privsolve.models.risk import RiskScore
from privsolve.models.score_range import check_scores


def with_predictions(
    table: Any, model: LinearRule, score: str = "score", prediction: str = "prediction", risk: str = "risk"
) -> Any:
    """The Ibis table with more columns: the total as the card prints it, its risk (of a risk score), and the predicted label.

    Only the columns that the rule uses are looked at.
    """
    import ibis

    rule = model.used
    schema, weights = rule.stated_schema, rule.unit_weights
    check_columns([column.column for column in schema.columns], table.columns)
    for name in (score, *([risk] if isinstance(rule, RiskScore) else []), prediction):
        if name in table.columns:
            raise ValueError(f"the table has a column {name!r} already: rename it")
    read_each_value(table)
    check_scores(schema, weights)
    total, first = ibis.literal(0, type="int64"), 0
    for column in schema.columns:
        mine = weights[first : first + len(column.names)]
        first += len(mine)
        if any(mine):
            total = total + column.points(table[column.column], mine)
    yes, no = answers(schema.label)
    added = {score: total / rule.unit if rule.unit > 1 else total}
    if isinstance(rule, RiskScore):
        added[risk] = _risk(rule, total)
    return table.mutate(**added, **{prediction: ibis.cases((total > int(rule.threshold * rule.unit), yes), else_=no)})


def _risk(rule: RiskScore, total: Any) -> Any:
    """The risk of a total inside the engine: one case for each whole score."""
    import ibis

    scores = np.arange(-last_score(rule.log_odds), last_score(rule.log_odds) + 1)
    risks = risks_of(rule.log_odds, scores)
    ends = [int((int(s) + rule.shift) * rule.unit) for s in scores]  # a score is rounded up to whole points
    cases = [(total <= end, float(risk)) for end, risk in zip(ends[:-1], risks[:-1], strict=True)]
    return ibis.cases(*cases, else_=float(risks[-1]))
