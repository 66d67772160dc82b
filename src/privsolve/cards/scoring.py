"""A table with what a card says of every row: total, risk, decision, band and reasons.

In Python for tables in memory, and as expressions of an engine, where the rows of a large table stay. Both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.cards.rows import UNKNOWN
from privsolve.checks import check_integer
from privsolve.data.codes import codes_of_frame, computed_once, with_read
from privsolve.data.columns import MISSING, Number
from privsolve.data.duckdb import read_each_value
from privsolve.data.questions import Quantity, answered
from privsolve.data.reading import check_columns
from privsolve.models.linear import LinearRule, answers
from privsolve.models.tally import Entry

if TYPE_CHECKING:
    import pandas as pd

MOST_REASONS = 20


def added_names(model: LinearRule, reasons: int = 0) -> list[str]:
    """What is said of every row, in the order of the columns."""
    check_integer("reasons", reasons, 0, MOST_REASONS)
    said = {"score": True, "risk": model.states_risks, "prediction": True, "band": model.bands is not None}
    return [*(name for name, there in said.items() if there), *(f"reason_{k + 1}" for k in range(reasons))]


def scored_frame(table: Any, model: LinearRule, reasons: int = 0) -> pd.DataFrame:
    """What the card says of every row of a table in memory: see `Release.scored`."""
    import pandas as pd

    names, tally = added_names(model, reasons), model.tally
    totals = tally.totals(table)
    found: dict[str, Any] = {"score": totals}
    if model.scale is not None:
        found["risk"] = model.scale.risks(totals)
    if model.number_scale is not None:
        found["prediction"] = model.number_scale.numbers(totals)
    else:
        yes, no = (np.array(value, dtype=object) for value in answers(model.stated_schema.label))
        found["prediction"] = np.where(totals >= tally.threshold, yes, no)
    if model.bands is not None:
        starts = [start for start, _ in reversed(model.band_starts)]
        found["band"] = np.array(model.bands.names, dtype=object)[np.searchsorted(starts, totals, side="right")]
    if reasons:
        found |= zip(names[-reasons:], _reasons(table, model, reasons), strict=True)
    return pd.DataFrame(found, index=getattr(table, "index", None))


def _reasons(table: Any, model: LinearRule, most: int) -> list[NDArray[Any]]:
    entries = model.tally.by_weight
    codes = codes_of_frame(table, [entry.column for entry in entries]) if entries else []
    raised = [e.of_features(e.column.expand(code)) - e.lowest for e, code in zip(entries, codes, strict=True)]
    texts = [_texts(entry, model, code) for entry, code in zip(entries, codes, strict=True)]
    found: list[NDArray[Any]] = [np.full(len(table), None, dtype=object) for _ in range(most)]
    if entries:
        order = np.argsort(-np.stack(raised), axis=0, kind="stable")[:most]  # of equal ones, the first on the card
        for k, chosen in enumerate(order):
            for i, (points, said) in enumerate(zip(raised, texts, strict=True)):
                here = (chosen == i) & (points > 0)
                found[k][here] = said[here]
    return found


def _texts(entry: Entry, model: LinearRule, codes: Int64Array) -> NDArray[Any]:
    """The reason that each code of a column is."""
    each, place = np.unique(codes, return_inverse=True)
    return np.array([_asked(entry, model, _answer(entry, int(code))) for code in each], dtype=object)[place]


def _asked(entry: Entry, model: LinearRule, answer: str) -> str:
    """A question with its answer."""
    return answered(model.stated_schema.about.asking(entry.column.column) or entry.column.column, answer)


def _answer(entry: Entry, code: int) -> str:
    """The answer of the question that the values of a code are."""
    column = entry.column
    question, missing = column.question(), code == column.outside.get(MISSING)
    (features,) = column.expand(np.array([code]))
    if isinstance(question, Quantity):
        return UNKNOWN if missing else f"{float(int(features[0]) * Fraction(str(question.step))):.15g}"
    text = column.answers()[code]
    if any(option.text == text for option in question.options):
        return text
    names = {name for name, x in zip(column.names, features, strict=True) if x}
    same = (option.text for option in question.options if set(option.features) == names)
    return UNKNOWN if missing else next(same, text)  # a value that is not listed may count like "no"


def with_predictions(table: Any, model: LinearRule, reasons: int = 0, names: Mapping[str, str] | None = None) -> Any:
    """The Ibis table with what the card says of every row as more columns, which may be given other names.

    Only the columns that the card asks for are looked at.
    """
    import ibis

    added, tally = added_names(model, reasons), model.tally
    called = [(names or {}).get(name, name) for name in added]
    check_columns([entry.column.column for entry in tally.entries], table.columns)
    if taken := [name for name in called if name in table.columns]:
        raise ValueError(f"the table has a column {taken[0]!r} already: rename it")
    wider, read = with_read(read_each_value(table), [entry.column for entry in tally.by_weight])
    values = [wider[name] for name in read]
    points = [entry.expression(value) for entry, value in zip(tally.by_weight, values, strict=True)]
    parts = _reason_parts(model, values, points) if reasons else []
    wider, places = computed_once(wider, [sum(points, ibis.literal(0, type="int64")), *parts])
    total, *rest = (wider[name] for name in places)
    found = [total]
    if model.scale is not None:
        above = total.cast("float64") - model.scale.half
        found.append(1 / (1 + (above * -model.scale.log_odds).exp()))
    if (scale := model.number_scale) is not None:
        predicted = total.cast("float64") * scale.per_point + scale.start
        found.append(predicted.clip(scale.low, scale.high))
    else:
        yes, no = answers(model.stated_schema.label)
        found.append(ibis.cases((total >= tally.threshold, yes), else_=no))
    if model.bands is not None:
        found.append(
            ibis.cases(*((total >= start, name) for start, name in model.band_starts), else_=model.bands.names[0])
        )
    if reasons:
        found += _reason_columns(rest, reasons)
    return wider.select(*table.columns, **dict(zip(called, found, strict=True)))


def _reason_parts(model: LinearRule, values: Sequence[Any], points: Sequence[Any]) -> list[Any]:
    """For every question a number that orders them, those that raise the total most last, and the reason in words."""
    entries = model.tally.by_weight
    m = len(entries)
    keys = [(p - e.lowest) * m + m - 1 - i for i, (e, p) in enumerate(zip(entries, points, strict=True))]
    return [*keys, *(_said(entry, model, value) for entry, value in zip(entries, values, strict=True))]


def _said(entry: Entry, model: LinearRule, read: Any) -> Any:
    """The reason that was read of a column, in words."""
    import ibis

    column = entry.column
    if not isinstance(column, Number):
        texts = [_asked(entry, model, _answer(entry, code)) for code in range(column.radix)]
        return ibis.array(texts)[column.code(read).cast("int64")]
    over, below = Fraction(str(column.step)).as_integer_ratio()
    counted = column.points(read, (over,))
    text = counted.cast("string") if below == 1 else (counted / below).cast("string").re_replace(r"\.0$", "")
    return ibis.literal(_asked(entry, model, "")) + ibis.cases((read.isnull(), UNKNOWN), else_=text)


def _reason_columns(parts: Sequence[Any], most: int) -> list[Any]:
    import ibis

    m = len(parts) // 2
    nothing = ibis.literal(None, type="string")
    if not m:
        return [nothing] * most
    ranked, texts = ibis.array(parts[:m]).sort(), ibis.array(parts[m:])
    keys = [ranked[m - 1 - k] for k in range(min(most, m))]
    return [
        *(ibis.cases((key >= m, texts[m - 1 - key % m]), else_=nothing) for key in keys),
        *[nothing] * (most - len(keys)),
    ]
