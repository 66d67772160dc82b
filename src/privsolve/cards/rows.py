"""From a linear rule and its questions to the rows of a card, with the points as people add them up (theory, section 17)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privsolve.cards.card import UNKNOWN, ChoicePoints, OptionPoints, QuantityPoints, Row
from privsolve.data.columns import MISSING, Column, Number
from privsolve.data.questions import Choice, Option, Quantity, Question
from privsolve.models.linear import LinearRule
from privsolve.models.points import Levels, Part, Points, Slope

LISTED = 3
"""Up to so many answers of equal points are always listed by name; the most answers beyond are "any other"."""

EXACT_STEPS = 2**53
"""Numbers of steps stay below this, so that every one of them is a double, in Python and in a browser."""


def rows_and_threshold(rule: LinearRule, questions: Iterable[Question] | None) -> tuple[tuple[Row, ...], Fraction, int]:
    """The questions whose answer matters, with their points; the least total that is decided positive; and the unit.

    Without questions, those of the rule's schema, the ones that can move the total most first; without a schema every feature
    is a yes/no question.
    """
    asked = _default_questions(rule) if questions is None else tuple(questions)
    _check_questions(asked, rule)
    rows = [_row(question, rule.points) for question in asked]
    above = rule.threshold if _has_intercept(rule, asked) else Fraction(rule.cut)
    unit = math.lcm(above.denominator, *(p.denominator for row in rows for p in _all_points(row)))
    parts = tuple(_part(row, unit) for row in rows)
    printed = rule.as_printed(Points(parts, int(above * unit) + 1))
    left = unit if rule.keeps_totals else 1
    plain = [_printed(row, a, b, unit, left) for row, a, b in zip(rows, parts, printed.parts, strict=True)]
    kept = [merged(row) for row in plain if row.lowest != row.highest]
    if questions is None and rule.schema is not None:
        counts_as = {c.column: float(c.stands_for_missing) for c in rule.schema.columns if isinstance(c, Number)}
        kept = [replace(r, unknown=counts_as[r.column]) if isinstance(r, QuantityPoints) else r for r in kept]
        kept.sort(key=lambda row: row.lowest - row.highest)
    return tuple(kept), Fraction(printed.threshold, left), left


def _all_points(row: Row) -> list[Fraction]:
    return [row.points] if isinstance(row, QuantityPoints) else [option.points for option in row.options]


def _part(row: Row, unit: int) -> Part:
    points = [int(p * unit) for p in _all_points(row)]
    return Slope(points[0]) if isinstance(row, QuantityPoints) else Levels(tuple(sorted(set(points))))


def _printed(row: Row, raw: Part, printed: Part, unit: int, left: int) -> Row:
    """The row with the printed points, which are in units of `1 / left`."""
    if isinstance(row, QuantityPoints):
        assert isinstance(printed, Slope)
        return replace(row, points=Fraction(printed.points, left))
    assert isinstance(raw, Levels)
    assert isinstance(printed, Levels)
    points = dict(zip(raw.points, printed.points, strict=True))
    return replace(
        row,
        options=tuple(replace(o, points=Fraction(points[int(o.points * unit)], left)) for o in row.options),
    )


def merged(row: Row) -> Row:
    """The row with equal points as one answer: neighbouring ranges, and all named answers (theory, 17.4)."""
    if isinstance(row, QuantityPoints):
        return row
    spans: list[OptionPoints] = []
    named: dict[Fraction, list[OptionPoints]] = {}
    unknown: list[OptionPoints] = []
    for option in row.options:
        last = spans[-1] if spans else None
        if option.text == UNKNOWN:
            unknown.append(option)
        elif option.span is None:
            named.setdefault(option.points, []).append(option)
        elif last is not None and last.span is not None and last.points == option.points:
            span = last.span.until(option.span)
            spans[-1] = OptionPoints(span.text, option.points, span, (*last.covers, option.text))
        else:
            spans.append(option)
    return replace(row, options=(*spans, *_together(named), *unknown))


def _together(named: Mapping[Fraction, list[OptionPoints]]) -> list[OptionPoints]:
    """One answer for each number of points; the one that stands for the most answers is "any other", if these are many."""
    most = max(named.values(), key=len, default=[])
    rest = most if len(most) > LISTED and len(named) > 1 else []
    found = []
    for points, options in sorted(named.items(), key=lambda item: item[1] is rest):
        text = "any other" if options is rest else ", ".join(option.text for option in options)
        found.append(OptionPoints(text, points, None, tuple(option.text for option in options)))
    return found


def _default_questions(rule: LinearRule) -> tuple[Question, ...]:
    if rule.schema is None:
        return _yes_no_questions(rule)
    return tuple(
        _with_unknown(column, question)
        for column, question in zip(rule.schema.columns, rule.schema.questions(), strict=True)
    )


def _with_unknown(column: Column, question: Question) -> Question:
    """The question, with an answer for a value that is missing where the schema does not name one."""
    if isinstance(question, Quantity) or MISSING not in column.outside:
        return question
    code = column.outside[MISSING]
    (features,) = column.expand(np.array([code]))
    names = tuple(name for name, x in zip(column.names, features, strict=True) if x)
    stated = Option(column.answers()[code], names)
    if any((option.text, option.features) == (stated.text, stated.features) for option in question.options):
        return question
    return replace(question, options=(*question.options, Option(UNKNOWN, names)))


def _yes_no_questions(rule: LinearRule) -> tuple[Question, ...]:
    names = rule.features[:-1] if rule.intercept else rule.features
    for name, weight, scale in zip(rule.features, rule.weights, rule.scales, strict=True):
        if weight and scale != 1 and name in names:
            raise ValueError(f"feature {name!r} has scale {scale}, so it is no yes/no question: pass `questions`")
    return tuple(Choice(name, (Option("yes", (name,)), Option("no", ()))) for name in names)


def _features(question: Question) -> set[str]:
    if isinstance(question, Quantity):
        return {question.feature}
    return {name for option in question.options for name in option.features}


def _has_intercept(rule: LinearRule, questions: Iterable[Question]) -> bool:
    """Whether the last column is the constant 1, and not something a person is asked for."""
    return rule.intercept and all(rule.features[-1] not in _features(q) for q in questions)


def _check_questions(questions: tuple[Question, ...], rule: LinearRule) -> None:
    points = rule.points
    columns: set[str] = set()
    asked: set[str] = set()
    for question in questions:
        if not isinstance(question, Choice | Quantity):
            raise TypeError(f"questions must hold Choice and Quantity values, got {type(question).__name__}")
        names = _features(question)
        if unknown := sorted(names - set(points)):
            raise ValueError(f"question {question.column!r} asks for {unknown[0]!r}, which the release does not have")
        if question.column in columns:
            raise ValueError(f"questions has {question.column!r} twice: ask for each column once")
        if twice := sorted(names & asked):
            raise ValueError(f"feature {twice[0]!r} is asked for by two questions: it would count twice")
        columns.add(question.column)
        asked |= names
        if isinstance(question, Quantity):
            _check_quantity(question, rule)
        elif len({option.text for option in question.options}) != len(question.options) or not question.options:
            raise ValueError(f"question {question.column!r} needs options with different texts")
    if _has_intercept(rule, questions):
        asked.add(rule.features[-1])
    if left := [name for name in rule.features if points[name] and name not in asked]:
        raise ValueError(f"feature {left[0]!r} has points but no question asks for it: add one to `questions`")


def _check_quantity(question: Quantity, rule: LinearRule) -> None:
    scale = rule.scales[rule.features.index(question.feature)]
    if question.scale != scale:
        raise ValueError(f"question {question.column!r} has scale {question.scale}, but the release has {scale}")
    if not (-math.inf < question.low < question.high < math.inf and 0 < question.step < math.inf):
        raise ValueError(f"question {question.column!r} needs finite bounds low < high and a positive step")
    if max(abs(question.low), abs(question.high)) / question.step >= EXACT_STEPS:
        raise ValueError(f"question {question.column!r} has 2^53 steps or more: use a larger step")


def _row(question: Question, points: Mapping[str, Fraction]) -> Row:
    if isinstance(question, Quantity):
        low, high, step = float(question.low), float(question.high), float(question.step)
        return QuantityPoints(question.column, low, high, step, points[question.feature], question.text)
    return ChoicePoints(
        question.column,
        tuple(
            OptionPoints(
                option.text,
                sum((points[name] for name in set(option.features)), Fraction(0)),
                option.span,
                (option.text,),
            )
            for option in question.options
        ),
        question.text,
    )
