"""The questions of a card with the points of every answer, as people add them up (theory, section 17)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privsolve.data.columns import MISSING, Column, Number
from privsolve.data.questions import Option, Quantity, Question, Span
from privsolve.models.linear import LinearRule
from privsolve.models.points import Slope
from privsolve.models.tally import Entry

Answer = str | float

UNKNOWN = "not known"
"""The answer of a value that is missing."""

LISTED = 3
"""Up to so many answers of equal points are always listed by name; the most answers beyond are "any other"."""


@dataclass(frozen=True)
class OptionPoints:
    """One possible answer and its points."""

    text: str
    points: int
    span: Span | None = None
    covers: tuple[str, ...] = ()
    """The answers that were merged into this one; each of them is understood as well."""


@dataclass(frozen=True)
class ChoicePoints:
    """A question with a few possible answers; `asked` is the question in words, or the name of the column."""

    column: str
    asked: str
    options: tuple[OptionPoints, ...]

    @property
    def lowest(self) -> int:
        """The fewest points an answer can give."""
        return min(option.points for option in self.options)

    @property
    def highest(self) -> int:
        """The most points an answer can give."""
        return max(option.points for option in self.options)

    def points_for(self, answer: Answer) -> int:
        """The points of the option with this text."""
        for option in self.options:
            if answer == option.text or answer in option.covers:
                return option.points
        texts = ", ".join(repr(option.text) for option in self.options)
        raise ValueError(f"answers[{self.column!r}] is {answer!r}: choose one of {texts}")


@dataclass(frozen=True)
class QuantityPoints:
    """A question for a number: `points` for each step. Numbers beyond the bounds count as the nearest bound."""

    column: str
    asked: str
    low: float
    high: float
    step: float
    points: int
    unknown: float
    """What a missing value counts as."""

    @property
    def lowest(self) -> int:
        """The fewest points a number can give."""
        return min(self.points_for(self.low), self.points_for(self.high))

    @property
    def highest(self) -> int:
        """The most points a number can give."""
        return max(self.points_for(self.low), self.points_for(self.high))

    @property
    def exact_step(self) -> Fraction:
        """The step as it is written: 0.1 is one tenth."""
        return Fraction(repr(self.step))

    def steps(self, answer: Answer) -> int:
        """The number of steps that an answer counts as: clipped, divided, rounded (halves up), in doubles."""
        if isinstance(answer, str) or math.isnan(answer):
            raise ValueError(
                f"answers[{self.column!r}] is {answer!r}: give a number from {self.low:g} to {self.high:g}"
            )
        return math.floor(min(max(float(answer), self.low), self.high) / self.step + 0.5)

    def points_for(self, answer: Answer) -> int:
        """The points of a number, or of "not known"."""
        return self.points * self.steps(self.unknown if answer == UNKNOWN else answer)


Row = ChoicePoints | QuantityPoints


def rows_of(rule: LinearRule) -> tuple[Row, ...]:
    """The questions whose answer matters, with their points, those that can move the total most first."""
    asked = {question.column: question for question in rule.stated_schema.questions()}
    return tuple(_row(entry, asked[entry.column.column]) for entry in rule.tally.by_weight)


def _row(entry: Entry, question: Question) -> Row:
    name, column = question.text or question.column, entry.column
    if isinstance(question, Quantity):
        assert isinstance(column, Number)
        assert isinstance(entry.printed, Slope)
        bounds = question.low, question.high, question.step
        return QuantityPoints(question.column, name, *bounds, entry.printed.points, float(column.stands_for_missing))
    options = (*question.options, *_unknown(column, question.options))
    features = [[feature in option.features for feature in column.names] for option in options]
    points = entry.of_features(np.array(features)).tolist()
    return ChoicePoints(
        question.column,
        name,
        merged([OptionPoints(o.text, p, o.span, (o.text,)) for o, p in zip(options, points, strict=True)]),
    )


def _unknown(column: Column, options: tuple[Option, ...]) -> list[Option]:
    """The answer of a value that is missing, where the schema does not name one."""
    if MISSING not in column.outside:
        return []
    code = column.outside[MISSING]
    (features,) = column.expand(np.array([code]))
    names = tuple(name for name, x in zip(column.names, features, strict=True) if x)
    stated = any((option.text, option.features) == (column.answers()[code], names) for option in options)
    return [] if stated else [Option(UNKNOWN, names)]


def merged(options: list[OptionPoints]) -> tuple[OptionPoints, ...]:
    """Answers of equal points as one answer: neighbouring ranges, and all named answers (theory, 17.4)."""
    spans: list[OptionPoints] = []
    named: dict[int, list[OptionPoints]] = {}
    unknown: list[OptionPoints] = []
    for option in options:
        last = spans[-1] if spans else None
        if option.text == UNKNOWN:
            unknown.append(option)
        elif option.span is None:
            named.setdefault(option.points, []).append(option)
        elif last is not None and last.span is not None and last.points == option.points:
            span = last.span.until(option.span)
            spans[-1] = replace(last, text=span.text, span=span, covers=(*last.covers, option.text))
        else:
            spans.append(option)
    return (*spans, *_together(named), *unknown)


def _together(named: dict[int, list[OptionPoints]]) -> list[OptionPoints]:
    """One answer for each number of points; the one that stands for the most answers is "any other", if these are many."""
    most = max(named.values(), key=len, default=[])
    rest = most if len(most) > LISTED and len(named) > 1 else []
    found = []
    for points, options in sorted(named.items(), key=lambda item: item[1] is rest):
        text = "any other" if options is rest else ", ".join(option.text for option in options)
        found.append(OptionPoints(text, points, None, tuple(option.text for option in options)))
    return found
