"""Points as people add them up: the smallest whole numbers, the same decision on every combination of answers."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsolve.cards.rows import UNKNOWN
from privsolve.cards.scorecard import Scorecard
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.data.codes import codes_of_frame
from privsolve.data.columns import Dates
from privsolve.data.questions import Quantity
from privsolve.models import points as arithmetic
from privsolve.models.points import Levels, Points, Slope, from_zero, smallest
from random_scorecards import card_of, schema_release

LEVELS = st.lists(st.integers(-5, 6), min_size=1, max_size=4, unique=True).map(
    lambda found: Levels(tuple(sorted(found)))
)


def sums(points: Points) -> list[int]:
    """The totals of all combinations of answers, in one order."""
    levels = [part.points for part in points.parts if isinstance(part, Levels)]
    return [sum(combination) for combination in product(*levels)]


def decisions(points: Points) -> list[bool]:
    return [total >= points.threshold for total in sums(points)]


@given(st.lists(LEVELS, min_size=1, max_size=5), st.integers(-25, 30))
@settings(max_examples=100, deadline=None)
def test_decisions_stay_on_every_combination_of_answers(parts: list[Levels], threshold: int) -> None:
    raw = Points(tuple(parts), threshold)
    plain = smallest(raw)
    assert decisions(plain) == decisions(raw)
    for before, after in zip(raw.parts, plain.parts, strict=True):
        assert isinstance(before, Levels)
        assert isinstance(after, Levels)
        assert after.points[0] == 0
        assert list(after.points) == sorted(after.points)
        assert len(after.points) == len(before.points)
    assert max(sums(plain)) <= max(sums(from_zero(raw)))
    assert smallest(plain) == plain
    several = Points(tuple(Levels(tuple(7 * p for p in part.points)) for part in parts), 7 * threshold - 3)
    assert smallest(several) == plain


@given(st.lists(LEVELS, min_size=1, max_size=3), st.integers(-12, 14))
@settings(max_examples=60, deadline=None)
def test_no_smaller_points_decide_the_same(parts: list[Levels], threshold: int) -> None:
    raw = Points(tuple(parts), threshold)
    plain, wanted = smallest(raw), decisions(raw)
    highest, lengths = max(sums(plain)), [len(part.points) for part in parts]
    if highest ** sum(lengths) > 5000:
        return
    for values in product(range(highest), repeat=sum(lengths)):  # in any order, from any number on
        ends = np.cumsum([0, *lengths])
        tried = Points(tuple(Levels(values[a:b]) for a, b in pairwise(ends)), 0)
        if sum(max(part.points) for part in tried.parts if isinstance(part, Levels)) >= highest:
            continue
        totals = sums(tried)
        yes = [total for total, positive in zip(totals, wanted, strict=True) if positive]
        no = [total for total, positive in zip(totals, wanted, strict=True) if not positive]
        assert yes
        assert no
        assert max(no) >= min(yes), (tried, plain)


def test_risks_keep_their_distances() -> None:
    raw = Points((Levels((-3, 0, 4)), Slope(6)), 5)
    assert from_zero(raw) == Points((Levels((0, 3, 7)), Slope(6)), 8)


def test_numbers_and_very_many_answers_are_divided_only() -> None:
    assert smallest(Points((Levels((-4, 2)), Slope(-6)), 5)) == Points((Levels((0, 1)), Slope(-1)), 2)
    many = Points(tuple(Levels((0, 2, 4)) for _ in range(9)), 15)
    assert smallest(many) == Points(tuple(Levels((0, 1, 2)) for _ in range(9)), 8)


def test_a_long_search_ends_in_the_same_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Points((Levels((0, 3)), Levels((0, 2)), Levels((0, 2))), 4)
    assert smallest(raw) == Points((Levels((0, 1)),) * 3, 2)
    monkeypatch.setattr(arithmetic, "MOST_WORK", 10)
    assert smallest(raw) == raw


COMPAS = Schema(
    [
        Bins("age", [21, 30, 46], "thresholds", whole=True),
        Categories("sex", ["Male"]),
        Bins("priors", [1, 2, 5], "thresholds", whole=True),
    ],
    Label("two_year_recid", 1, 0),
)


def made(weights: list[int], schema: Schema, risk: bool = False) -> tuple[Any, Scorecard]:
    release = schema_release(weights, schema, risk)
    return release.model, card_of(release)


def test_a_card_as_people_say_it() -> None:
    """Weights -2 and -3 from 21 and 30 years on, 2 and 3 from 2 and 5 priors on, a point for men that never decides."""
    model, card = made([-2, -3, 0, 1, 0, 2, 3, 1], COMPAS)
    shown = [(row.column, [(o.text, o.points) for o in row.options]) for row in card.rows]  # type: ignore[union-attr]
    assert shown == [
        ("age", [("under 21", 2), ("21 to 29", 1), ("30 or more", 0), (UNKNOWN, 2)]),
        ("priors", [("under 2", 0), ("2 to 4", 1), ("5 or more", 2), (UNKNOWN, 0)]),
    ]
    assert card.threshold == 2
    assert "if the total is at least 2," in card.to_text()
    few = pd.DataFrame({"age": [20, 29, 30, 70], "priors": [0, 2, 4, 9]})  # just the columns of the card
    assert model.totals(few).tolist() == [2, 2, 1, 2]
    assert model.predict(few).tolist() == [1, 1, 0, 1]
    assert card.score({"age": "46 or more", "priors": "under 1"}) == 0  # answers as the schema has them


def test_days_are_said_as_dates() -> None:
    schema = Schema([Dates("born", ["1990-01-01", "2000-06-30", "2010-01-01"])], Label("y", 1, 0))
    _, card = made([1, 0, 1, 0], schema)
    texts = [option.text for option in card.rows[0].options]  # type: ignore[union-attr]
    assert texts == ["before 1990-01-01", "from 1990-01-01 on", UNKNOWN]
    _, card = made([1, 0, 1, 0], schema, risk=True)
    texts = [option.text for option in card.rows[0].options]  # type: ignore[union-attr]
    assert texts == ["before 1990-01-01", "1990-01-01 to before 2010-01-01", "from 2010-01-01 on", UNKNOWN]


@st.composite
def rules(draw: st.DrawFn, number: bool) -> tuple[list[int], Schema]:
    encodings = st.sampled_from(["intervals", "thresholds"])
    columns: list[Any] = [
        Bins("a", [1, 3], draw(encodings), missing=draw(st.sampled_from([None, "unknown"]))),
        Categories(
            "b", ["x", "y"], other=draw(st.sampled_from([None, "else"])), missing=draw(st.sampled_from([None, "-"]))
        ),
        Bins("c", [0], draw(encodings)),
    ]
    if number and draw(st.booleans()):
        columns.append(Number("d", -1, 1, 0.5, draw(st.sampled_from([1, 3]))))
    schema = Schema(columns, Label("y", 1, 0))
    points = st.lists(st.sampled_from([0, 1, -1, 2, -3]), min_size=schema.dim, max_size=schema.dim)
    return draw(points), schema


GRID: dict[str, list[Any]] = {
    "a": [0.0, 1.0, 3.0, math.nan],
    "b": ["x", "y", "z", None],
    "c": [-1.0, 1.0, math.nan],
    "d": [-2.0, -0.6, 0.3, 1.0, math.nan],
}


@given(st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_table_and_card_and_weights_say_the_same_of_all_values(risk: bool, data: st.DataObject) -> None:
    weights, schema = data.draw(rules(number=not risk))  # cards with risks have 0/1 features only
    model, card = made(weights, schema, risk)
    names = [column.column for column in schema.columns]
    frame = pd.DataFrame(list(product(*(GRID[name] for name in names))), columns=names)
    raw = schema.encode(frame) @ np.array([w * (model.unit // s) for w, s in zip(weights, schema.scales, strict=True)])
    totals, decided = model.totals(frame), model.decide(frame)
    assert decided.tolist() == (raw > 0).tolist()
    assert (totals >= float(card.threshold)).tolist() == decided.tolist()
    assert totals.min() >= float(card.minimum)
    assert totals.max() <= float(card.maximum)
    if risk:
        assert [model.scale.risk(int(t)) for t in totals] == model.risks(frame).tolist()
    codes = codes_of_frame(frame, schema.columns)
    for i in range(0, len(frame), 7):
        answers: dict[str, Any] = {}
        for column, question, mine in zip(schema.columns, schema.questions(), codes, strict=True):
            name = column.column
            if isinstance(question, Quantity):
                answers[name] = UNKNOWN if math.isnan(frame[name][i]) else frame[name][i]
            else:
                text = column.answers()[int(mine[i])]
                answers[name] = text if text in [option.text for option in question.options] else UNKNOWN
        assert float(card.score(answers)) == pytest.approx(totals[i])


def test_a_missing_value_is_an_answer() -> None:
    schema = Schema([Bins("a", [1], "intervals")], Label("y", 1, 0))
    model, card = made([2, 4, -3], schema)
    assert [(o.text, o.points) for o in card.rows[0].options] == [("under 1", 0), ("1 or more", 1), (UNKNOWN, 0)]  # type: ignore[union-attr]
    model, card = made([-2, -4, 1], schema)  # decided positive where nothing is known
    shown = [(o.text, o.points) for o in card.rows[0].options]  # type: ignore[union-attr]
    assert shown == [("any number", 0), (UNKNOWN, 1)]
    assert model.totals(pd.DataFrame({"a": [0.0, math.nan]})).tolist() == [0, 1]
