"""Scores of a linear rule, exact in the integers; also inside an engine, where the rows of a large table stay."""

from __future__ import annotations

from typing import Any

from privsolve.data.connection import read_each_value
from privsolve.data.engines import computed_once, with_read
from privsolve.data.reading import check_columns
from privsolve.models.linear import LinearRule, answers
from privsolve.models.risk import RiskScore
from privsolve.models.tally import Tally


def with_predictions(
    table: Any, model: LinearRule, score: str = "score", prediction: str = "prediction", risk: str = "risk"
) -> Any:
    """The Ibis table with more columns: the total as the card prints it, its risk (of a risk score), and the predicted label.

    Only the columns that the card asks for are looked at.
    """
    tally = model.tally
    check_columns([entry.column.column for entry in tally.entries], table.columns)
    for name in (score, *([risk] if isinstance(model, RiskScore) else []), prediction):
        if name in table.columns:
            raise ValueError(f"the table has a column {name!r} already: rename it")
    wider, total = _with_total(read_each_value(table), tally)
    return wider.select(*table.columns, **_added(total, model, score, prediction, risk))


def _added(total: Any, model: LinearRule, score: str, prediction: str, risk: str) -> dict[str, Any]:
    """What is added to a table, by name."""
    import ibis

    tally = model.tally
    yes, no = answers(model.stated_schema.label)
    added = {score: total / tally.unit if tally.unit > 1 else total}
    if isinstance(model, RiskScore):
        added[risk] = _risk(model, total)
    return added | {prediction: ibis.cases((total >= tally.threshold, yes), else_=no)}


def _with_total(table: Any, tally: Tally) -> tuple[Any, Any]:
    """The table with more columns, one of which is the total, in units of the tally: and that one."""
    import ibis

    asked = [entry for entry in tally.entries if entry.asked]
    wider, names = with_read(table, [entry.column for entry in asked])
    parts = (entry.expression(wider[name]) for name, entry in zip(names, asked, strict=True))
    wider, (name,) = computed_once(wider, [sum(parts, ibis.literal(0, type="int64"))])
    return wider, wider[name]


def _risk(rule: RiskScore, total: Any) -> Any:
    """The risk of a total inside the engine."""
    above = total.cast("float64") / rule.tally.unit - float(rule.half)
    return 1 / (1 + (above * -rule.log_odds).exp())
