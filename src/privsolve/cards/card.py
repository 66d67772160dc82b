"""A scorecard as a value: points per answer and a threshold, and what they say of a person."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privsolve.cards.totals import TotalLine, total_lines
from privsolve.data.about import About
from privsolve.data.questions import Span
from privsolve.evaluation import Evaluation
from privsolve.models.bands import Bands
from privsolve.models.linear import LinearRule
from privsolve.models.number_card import NumberScale
from privsolve.models.odds import RiskScale
from privsolve.privacy.guarantee import Guarantee

Answer = str | float

UNKNOWN = "not known"
"""The answer of a value that is missing."""


@dataclass(frozen=True)
class OptionPoints:
    """One possible answer and its points."""

    text: str
    points: Fraction
    span: Span | None = None
    covers: tuple[str, ...] = ()
    """The answers that were merged into this one; each of them is understood as well."""


@dataclass(frozen=True)
class ChoicePoints:
    """A question with a few possible answers."""

    column: str
    options: tuple[OptionPoints, ...]
    text: str | None = None

    @property
    def asked(self) -> str:
        """The question in words, or the name of the column."""
        return self.text or self.column

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
            if answer == option.text or answer in option.covers:
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
    text: str | None = None
    unknown: float | None = None
    """What a missing value counts as, if the schema says so."""

    @property
    def asked(self) -> str:
        """The question in words, or the name of the column."""
        return self.text or self.column

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
        """The points of a number, or of "not known"."""
        return self.points * self.steps(self.unknown if answer == UNKNOWN and self.unknown is not None else answer)


Row = ChoicePoints | QuantityPoints


@dataclass(frozen=True)
class AnsweredLine:
    """One question with an answer and its points."""

    question: str
    answer: str
    points: Fraction


@dataclass(frozen=True)
class Example:
    """A made-up record, its points, and what the card decides."""

    lines: tuple[AnsweredLine, ...]
    total: Fraction
    decision: str


@dataclass(frozen=True)
class Card:
    """The points of a release by question. The decision is `positive` iff the points add up to at least `threshold`; with a
    `scale` of numbers there is none, and a number is predicted.

    It is made from the release and its public schema alone, so it may be published with it. Points are the smallest whole
    numbers that decide the same (theory, section 17); a risk score has fractions if it asks for a number with a scale.
    """

    rows: tuple[Row, ...]
    threshold: Fraction
    positive: str
    negative: str
    guarantee: Guarantee
    evaluation: Evaluation | None = None
    scale: RiskScale | NumberScale | None = None
    about: About = field(default_factory=About)
    version: str = ""
    bands: Bands | None = None
    rule: LinearRule | None = field(default=None, repr=False, compare=False)
    """What it was made from, if its questions are those of a schema."""

    @property
    def risk_scale(self) -> RiskScale | None:
        """The risks of totals, if the card states any."""
        return self.scale if isinstance(self.scale, RiskScale) else None

    @property
    def number_scale(self) -> NumberScale | None:
        """The numbers that are predicted at totals, if the card predicts one."""
        return self.scale if isinstance(self.scale, NumberScale) else None

    @property
    def totals(self) -> tuple[TotalLine, ...]:
        """The risk or number and the band of every total, if the card has any, and whole points."""
        if (self.scale is None and self.bands is None) or self.unit != 1:
            return ()
        return total_lines([_all_points(row) for row in self.rows], self.scale, self.band_starts)

    @property
    def band_starts(self) -> tuple[Fraction, ...]:
        """The least total of every band but the first."""
        return () if self.bands is None else self.bands.starts(self.risk_scale, self.unit)

    def band(self, answers: Mapping[str, Answer]) -> str | None:
        """The band of one person's total; None if the card has no bands."""
        return None if self.bands is None else self.bands.names[bisect_right(self.band_starts, self.score(answers))]

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
        """A made-up record: the highest and the lowest option in turn, and numbers in the middle. No data is involved."""
        answers: dict[str, Answer] = {}
        for i, row in enumerate(self.rows):
            if isinstance(row, QuantityPoints):
                answers[row.column] = float(row.exact_step * row.steps(row.low / 2 + row.high / 2))
            else:
                best = (max, min)[i % 2](row.options, key=lambda option: option.points)
                answers[row.column] = best.text if best.span is not None or not best.covers else best.covers[0]
        return Example(self._lines(answers), self.score(answers), self.decide(answers))

    def _lines(self, answers: Mapping[str, Answer]) -> tuple[AnsweredLine, ...]:
        said = [(row, answers[row.column]) for row in self.rows]
        return tuple(AnsweredLine(row.asked, _answer_text(answer), row.points_for(answer)) for row, answer in said)

    def reasons(self, answers: Mapping[str, Answer], most: int = 4) -> tuple[AnsweredLine, ...]:
        """The answers that raised the total most above the lowest one: what lenders call reason codes.

        Args:
            answers: an answer for each column of the card, as for `score`.
            most: how many reasons to give at most.

        Returns:
            The answers, those that raised the total most first, each with the points by which it did.
        """
        self.score(answers)  # says what is wrong with the answers
        raised = [
            replace(line, points=line.points - row.lowest)
            for row, line in zip(self.rows, self._lines(answers), strict=True)
        ]
        return tuple(sorted((line for line in raised if line.points), key=lambda line: -line.points)[:most])

    def score(self, answers: Mapping[str, Answer]) -> Fraction:
        """The total of one person's answers: a text of an option or a number per column; other columns are ignored."""
        missing = [row.column for row in self.rows if row.column not in answers]
        if missing:
            raise ValueError(f"answers has no {', '.join(map(repr, missing))}: give one answer per question")
        return sum((row.points_for(answers[row.column]) for row in self.rows), Fraction(0))

    @property
    def constant(self) -> bool:
        """Whether the card says the same of everybody: one decision, and no risks that differ."""
        decided = self.minimum >= self.threshold or self.maximum < self.threshold
        return not self.rows or (decided and self.scale is None)

    def decide(self, answers: Mapping[str, Answer]) -> str:
        """What the card says of one person: `positive` or `negative` as they were named, or a number in figures."""
        return self.said(self.score(answers))

    def said(self, total: Fraction) -> str:
        """What the card says at a total."""
        if self.number_scale is not None:
            return self.number_scale.text(total)
        return self.positive if total >= self.threshold else self.negative


def _all_points(row: Row) -> list[int]:
    """What the answers to a question can give; every whole number between, if it is a number."""
    if isinstance(row, QuantityPoints):
        return list(range(math.floor(row.lowest), math.ceil(row.highest) + 1))
    return [int(option.points) for option in row.options]


def _answer_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer:.15g}"
