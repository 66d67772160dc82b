"""From a linear rule and its questions to the rows of a card."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from privsolve.cards.card import ChoicePoints, OptionPoints, QuantityPoints, Row
from privsolve.data.questions import Choice, Option, Quantity, Question
from privsolve.models.linear import LinearRule

EXACT_STEPS = 2**53
"""Numbers of steps stay below this, so that every one of them is a double, in Python and in a browser."""


def rows_and_threshold(rule: LinearRule, questions: Iterable[Question] | None) -> tuple[tuple[Row, ...], Fraction]:
    """The questions whose answer matters to the points, with their points, and the total to exceed.

    Without questions, those of the rule's schema; without a schema every feature is a yes/no question.
    """
    asked = _default_questions(rule) if questions is None else tuple(questions)
    _check_questions(asked, rule)
    rows = tuple(_row(question, rule.points) for question in asked)
    return tuple(row for row in rows if _matters(row)), rule.threshold if _has_intercept(rule, asked) else Fraction(
        rule.cut
    )


def _default_questions(rule: LinearRule) -> tuple[Question, ...]:
    return _yes_no_questions(rule) if rule.schema is None else rule.schema.questions()


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
        return QuantityPoints(question.column, low, high, step, points[question.feature])
    return ChoicePoints(
        question.column,
        tuple(
            OptionPoints(option.text, sum((points[name] for name in set(option.features)), Fraction(0)))
            for option in question.options
        ),
    )


def _matters(row: Row) -> bool:
    return row.lowest != 0 or row.highest != 0
