"""A release as a scorecard: points per answer and a threshold, to be used without a computer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from privsolve.data.questions import Choice, Option, Quantity, Question
from privsolve.losses import ZeroOneLoss
from privsolve.models.release import Release
from privsolve.privacy.guarantee import Guarantee

INTERCEPT = "intercept"
EXACT_STEPS = 2**53
"""Numbers of steps stay below this, so that every one of them is a double, in Python and in a browser."""

Answer = str | float


@dataclass(frozen=True)
class OptionPoints:
    """One possible answer and its points."""

    text: str
    points: Fraction


@dataclass(frozen=True)
class ChoicePoints:
    """A question with a few possible answers."""

    column: str
    options: tuple[OptionPoints, ...]

    @property
    def lowest(self) -> Fraction:
        """The fewest points an answer can give."""
        return min(option.points for option in self.options)

    @property
    def highest(self) -> Fraction:
        """The most points an answer can give."""
        return max(option.points for option in self.options)

    def points_for(self, answer: Answer) -> Fraction:
        """The points of the option with this text."""
        for option in self.options:
            if option.text == answer:
                return option.points
        texts = ", ".join(repr(option.text) for option in self.options)
        raise ValueError(f"answers[{self.column!r}] is {answer!r}: choose one of {texts}")


@dataclass(frozen=True)
class QuantityPoints:
    """A question for a number: `points` for each step. Numbers beyond the bounds count as the nearest bound."""

    column: str
    low: float
    high: float
    step: float
    points: Fraction

    @property
    def lowest(self) -> Fraction:
        """The fewest points a number can give."""
        return min(self.points_for(self.low), self.points_for(self.high))

    @property
    def highest(self) -> Fraction:
        """The most points a number can give."""
        return max(self.points_for(self.low), self.points_for(self.high))

    @property
    def exact_step(self) -> Fraction:
        """The step as it is written: 0.1 is one tenth."""
        return Fraction(repr(self.step))

    @property
    def points_per_one(self) -> Fraction:
        """What a rounded number is multiplied by to get its points."""
        return self.points / self.exact_step

    def steps(self, answer: Answer) -> int:
        """The number of steps that an answer counts as: clipped, divided, rounded (halves up), in doubles."""
        if isinstance(answer, str) or math.isnan(answer):
            raise ValueError(
                f"answers[{self.column!r}] is {answer!r}: give a number from {self.low:g} to {self.high:g}"
            )
        return math.floor(min(max(float(answer), self.low), self.high) / self.step + 0.5)

    def points_for(self, answer: Answer) -> Fraction:
        """The points of a number."""
        return self.points * self.steps(answer)


Row = ChoicePoints | QuantityPoints


@dataclass(frozen=True)
class ExampleLine:
    """One answer of the worked example."""

    column: str
    answer: str
    points: Fraction


@dataclass(frozen=True)
class Example:
    """A made-up person, their points, and what the card decides."""

    lines: tuple[ExampleLine, ...]
    total: Fraction
    decision: str


@dataclass(frozen=True)
class Scorecard:
    """The points of a release by question. The decision is `positive` iff the points add up to more than `threshold`.

    It is made from the release and its public schema alone, so it may be published with it. Points are exact fractions;
    they are whole numbers unless a number with a scale is asked for.
    """

    rows: tuple[Row, ...]
    threshold: Fraction
    positive: str
    negative: str
    guarantee: Guarantee

    @classmethod
    def of(
        cls,
        release: Release,
        questions: Iterable[Question] | None = None,
        positive: str = "positive",
        negative: str = "negative",
    ) -> Scorecard:
        """The scorecard of a release; only questions whose answer matters to the points are kept.

        `questions` say how a person is asked for the features; they are part of the public schema, never read off the
        data. Without them every feature is taken as a yes/no question, which is right for 0/1 features. A last feature
        called "intercept" is the constant 1 and becomes the threshold.
        """
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}: pass run.release")
        if not isinstance(release.loss, ZeroOneLoss):
            raise ValueError(f"release has {release.loss.kind} loss: only a classifier's release is a scorecard")
        if positive == negative:
            raise ValueError(f"positive and negative are both {positive!r}: name the two decisions differently")
        points = {
            name: Fraction(int(weight), scale)
            for name, weight, scale in zip(release.features, release.weights, release.scales, strict=True)
        }
        asked = _yes_no_questions(release) if questions is None else tuple(questions)
        _check_questions(asked, release, points)
        rows = tuple(_row(question, points) for question in asked)
        intercept = points[INTERCEPT] if _has_intercept(release, asked) else Fraction(0)
        return cls(tuple(row for row in rows if _matters(row)), -intercept, positive, negative, release.guarantee)

    @property
    def minimum(self) -> Fraction:
        """The lowest total there can be."""
        return sum((row.lowest for row in self.rows), Fraction(0))

    @property
    def maximum(self) -> Fraction:
        """The highest total there can be."""
        return sum((row.highest for row in self.rows), Fraction(0))

    @property
    def unit(self) -> int:
        """Common denominator of all points: 1 if they are whole numbers."""
        points = [self.threshold]
        for row in self.rows:
            points += [row.points] if isinstance(row, QuantityPoints) else [option.points for option in row.options]
        return math.lcm(*(p.denominator for p in points))

    @property
    def example(self) -> Example:
        """A made-up person: the highest and the lowest option in turn, and numbers in the middle. No data is involved."""
        answers: dict[str, Answer] = {}
        for i, row in enumerate(self.rows):
            if isinstance(row, QuantityPoints):
                answers[row.column] = float(row.exact_step * row.steps(row.low / 2 + row.high / 2))
            else:
                best = (max, min)[i % 2]
                answers[row.column] = best(row.options, key=lambda option: option.points).text
        lines = tuple(
            ExampleLine(row.column, _answer_text(answers[row.column]), row.points_for(answers[row.column]))
            for row in self.rows
        )
        return Example(lines, self.score(answers), self.decide(answers))

    def score(self, answers: Mapping[str, Answer]) -> Fraction:
        """The total of one person's answers: a text of an option or a number per column; other columns are ignored."""
        missing = [row.column for row in self.rows if row.column not in answers]
        if missing:
            raise ValueError(f"answers has no {', '.join(map(repr, missing))}: give one answer per question")
        return sum((row.points_for(answers[row.column]) for row in self.rows), Fraction(0))

    def decide(self, answers: Mapping[str, Answer]) -> str:
        """What the card says of one person: `positive` or `negative` as they were named."""
        return self.positive if self.score(answers) > self.threshold else self.negative

    # The renderers read the classes above, so they are imported when they are used.

    def to_text(self, width: int = 80) -> str:
        """The card for a terminal of the given width."""
        from privsolve.cards.text import scorecard_text

        return scorecard_text(self, width)

    def to_markdown(self) -> str:
        """The card as Markdown."""
        from privsolve.cards.markdown import scorecard_markdown

        return scorecard_markdown(self)

    def to_latex(self) -> str:
        """The card as a LaTeX table; it needs the package booktabs."""
        from privsolve.cards.latex import scorecard_latex

        return scorecard_latex(self)

    def to_html(self) -> str:
        """The card as one self-contained page that adds up the points of the answers a person ticks."""
        from privsolve.cards.html import scorecard_html

        return scorecard_html(self)


def _yes_no_questions(release: Release) -> tuple[Question, ...]:
    names = release.features[:-1] if release.features[-1] == INTERCEPT else release.features
    for name, weight, scale in zip(release.features, release.weights, release.scales, strict=True):
        if weight and scale != 1 and name in names:
            raise ValueError(f"feature {name!r} has scale {scale}, so it is no yes/no question: pass `questions`")
    return tuple(Choice(name, (Option("yes", (name,)), Option("no", ()))) for name in names)


def _features(question: Question) -> set[str]:
    if isinstance(question, Quantity):
        return {question.feature}
    return {name for option in question.options for name in option.features}


def _has_intercept(release: Release, questions: Iterable[Question]) -> bool:
    """Whether the last column is the constant 1, and not something a person is asked for."""
    return release.features[-1] == INTERCEPT and all(INTERCEPT not in _features(q) for q in questions)


def _check_questions(questions: tuple[Question, ...], release: Release, points: Mapping[str, Fraction]) -> None:
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
            _check_quantity(question, release)
        elif len({option.text for option in question.options}) != len(question.options) or not question.options:
            raise ValueError(f"question {question.column!r} needs options with different texts")
    if _has_intercept(release, questions):
        asked.add(INTERCEPT)
    if left := [name for name in release.features if points[name] and name not in asked]:
        raise ValueError(f"feature {left[0]!r} has points but no question asks for it: add one to `questions`")


def _check_quantity(question: Quantity, release: Release) -> None:
    scale = release.scales[release.features.index(question.feature)]
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


def _answer_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer:.15g}"
