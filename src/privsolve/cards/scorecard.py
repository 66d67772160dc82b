"""A scorecard: points per answer and a threshold, what they say of a person, and every form it is written in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from privsolve.cards import words
from privsolve.cards.document import scorecard_document
from privsolve.cards.pages import scorecard_html
from privsolve.cards.programs import javascript_program, python_program, scorecard_sql
from privsolve.cards.rows import UNKNOWN, Answer, ChoicePoints, QuantityPoints, Row, rows_of
from privsolve.cards.tree_card import TreeCard
from privsolve.cards.words import TotalLine, total_lines
from privsolve.cards.workbook import scorecard_workbook
from privsolve.data import Schema
from privsolve.data.columns import Categories
from privsolve.data.constraints import About
from privsolve.evaluation import Evaluation
from privsolve.models.bands import Bands
from privsolve.models.base import Model
from privsolve.models.linear import LinearRule, decision_words
from privsolve.models.scales import NumberScale, RiskScale
from privsolve.models.tree import DecisionTree
from privsolve.notebooks import panel
from privsolve.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class AnsweredLine:
    """One question with an answer and its points."""

    question: str
    answer: str
    points: int


@dataclass(frozen=True, eq=False)
class Scorecard:
    """The points of a release by question, in every form a person may want them.

    The decision is `positive` iff the points add up to at least `threshold`; a card for a number predicts one instead. It
    is made from the release and its public schema alone, so it may be published with it. Points are the smallest whole
    numbers that decide the same (theory, section 17). `release.card()` gives it.
    """

    rule: LinearRule
    guarantee: Guarantee
    evaluation: Evaluation | None = None
    version: str = ""

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The questions with the points of their answers, those that matter most first."""
        if self.rule.schema is not None:
            return rows_of(self._asked)
        rows = (row for row in rows_of(self._asked) if isinstance(row, ChoicePoints))
        return tuple(replace(row, options=tuple(o for o in row.options if o.text != UNKNOWN)) for row in rows)

    @cached_property
    def _asked(self) -> LinearRule:
        """The rule; without a schema every feature is a yes/no question."""
        rule = self.rule
        if rule.schema is not None:
            return rule
        names = rule.features[:-1] if rule.intercept else rule.features
        for name, weight, scale in zip(names, rule.weights, rule.scales, strict=False):
            if weight and scale != 1:
                raise ValueError(f"feature {name!r} has scale {scale}, so it is no yes/no question: fit with a schema")
        schema = Schema([Categories(name, ["yes"], no="no") for name in names], intercept=rule.intercept)
        return replace(rule, features=schema.features, schema=schema)

    @property
    def threshold(self) -> int:
        """The least total that is decided positive."""
        return self._asked.tally.threshold

    @property
    def positive(self) -> str:
        """What a positive decision is called."""
        return decision_words(self.rule.schema)[0]

    @property
    def negative(self) -> str:
        """What a negative decision is called."""
        return decision_words(self.rule.schema)[1]

    @property
    def about(self) -> About:
        """What the schema says of the card in words."""
        return About() if self.rule.schema is None else self.rule.schema.about

    @property
    def bands(self) -> Bands | None:
        """Names for ranges of totals."""
        return self.rule.bands

    @property
    def risk_scale(self) -> RiskScale | None:
        """The risks of totals, if the card states any."""
        return self._asked.scale

    @property
    def number_scale(self) -> NumberScale | None:
        """The numbers that are predicted at totals, if the card predicts one."""
        return self._asked.number_scale

    @property
    def scale(self) -> RiskScale | NumberScale | None:
        """What a total says beside the decision."""
        return self.risk_scale or self.number_scale

    @cached_property
    def totals(self) -> tuple[TotalLine, ...]:
        """The risk or number and the band of every total, if the card has any."""
        if self.scale is None and self.bands is None:
            return ()
        points = [
            range(row.lowest, row.highest + 1)
            if isinstance(row, QuantityPoints)
            else [option.points for option in row.options]
            for row in self.rows
        ]
        return total_lines(points, self.scale, self.band_starts)

    @property
    def band_starts(self) -> tuple[int, ...]:
        """The least total of every band but the first."""
        return () if self.bands is None else self.bands.starts(self.risk_scale)

    def band(self, answers: Mapping[str, Answer]) -> str | None:
        """The band of one person's total; None if the card has no bands."""
        return None if self.bands is None else self.bands.names[bisect_right(self.band_starts, self.score(answers))]

    @property
    def minimum(self) -> int:
        """The lowest total there can be."""
        return sum(row.lowest for row in self.rows)

    @property
    def maximum(self) -> int:
        """The highest total there can be."""
        return sum(row.highest for row in self.rows)

    @property
    def example(self) -> dict[str, Answer]:
        """The answers of a made-up record: the highest and the lowest in turn, numbers in the middle. No data is involved."""
        answers: dict[str, Answer] = {}
        for i, row in enumerate(self.rows):
            if isinstance(row, QuantityPoints):
                answers[row.column] = float(row.exact_step * row.steps(row.low / 2 + row.high / 2))
            else:
                best = (max, min)[i % 2](row.options, key=lambda option: option.points)
                answers[row.column] = best.text if best.span is not None or not best.covers else best.covers[0]
        return answers

    def lines(self, answers: Mapping[str, Answer]) -> tuple[AnsweredLine, ...]:
        """One person's answers with their points; answers to other columns are ignored."""
        if missing := [row.column for row in self.rows if row.column not in answers]:
            raise ValueError(f"answers has no {', '.join(map(repr, missing))}: give one answer per question")
        said = [(row, answers[row.column]) for row in self.rows]
        return tuple(
            AnsweredLine(row.asked, answer if isinstance(answer, str) else f"{answer:.15g}", row.points_for(answer))
            for row, answer in said
        )

    def reasons(self, answers: Mapping[str, Answer], most: int = 4) -> tuple[AnsweredLine, ...]:
        """The answers that raised the total most above the lowest one: what lenders call reason codes.

        Args:
            answers: an answer for each column of the card, as for `score`.
            most: how many reasons to give at most.

        Returns:
            The answers, those that raised the total most first, each with the points by which it did.
        """
        lines = zip(self.rows, self.lines(answers), strict=True)
        raised = [replace(line, points=line.points - row.lowest) for row, line in lines]
        return tuple(sorted((line for line in raised if line.points), key=lambda line: -line.points)[:most])

    def score(self, answers: Mapping[str, Answer]) -> int:
        """The total of one person's answers: a text of an option or a number per column; other columns are ignored."""
        return sum(line.points for line in self.lines(answers))

    @property
    def can_skip(self) -> bool:
        """Whether a question has an answer for what is not known."""
        return any(isinstance(r, ChoicePoints) and any(o.text == UNKNOWN for o in r.options) for r in self.rows)

    @property
    def constant(self) -> bool:
        """Whether the card says the same of everybody: one decision, and no risks that differ."""
        decided = self.minimum >= self.threshold or self.maximum < self.threshold
        return not self.rows or (decided and self.scale is None)

    def decide(self, answers: Mapping[str, Answer]) -> str:
        """What the card says of one person: `positive` or `negative` as they were named, or a number in figures."""
        return self.said(self.score(answers))

    def said(self, total: int) -> str:
        """What the card says at a total."""
        if self.number_scale is not None:
            return self.number_scale.text(total)
        return self.positive if total >= self.threshold else self.negative

    def to_text(self, width: int = 80) -> str:
        """The card for a terminal of the given width."""
        return scorecard_document(self, full=False).to_text(width)

    def to_markdown(self) -> str:
        """The card as Markdown."""
        return scorecard_document(self, full=True).to_markdown()

    def to_sql(self, dialect: str = "duckdb") -> str:
        """A query that adds score, risk, prediction and band to the rows of a table `data`: one `CASE` for each question.

        Columns may be typed or texts as in a CSV file. `duckdb` and `sqlite` are tested; other dialects, such as `postgres` or
        `tsql`, are written by sqlglot.
        """
        return scorecard_sql(self._applied, dialect)

    def to_python(self) -> str:
        """A Python module that needs no package: `score({column: value, ...})` gives score, risk, prediction and band."""
        return python_program(self._applied, words.title(self), self.guarantee.sentence())

    def to_javascript(self) -> str:
        """The same as JavaScript, for browsers and Node.js."""
        return javascript_program(self._applied, words.title(self), self.guarantee.sentence())

    @property
    def _applied(self) -> LinearRule:
        """The rule, where its schema says how columns become answers."""
        self._refuse_number("a program or query")
        if self.rule.schema is None:
            raise ValueError(
                "the card has no schema that says how columns become answers: fit with one to write a program"
            )
        return self.rule

    def to_xlsx(self) -> bytes:
        """The card as a workbook with a sheet that adds up the points of the answers that are chosen. Needs openpyxl."""
        self._refuse_number("a workbook")
        return scorecard_workbook(self)

    def _refuse_number(self, form: str) -> None:
        if self.number_scale is not None:
            raise ValueError(f"a card for a number cannot be written as {form}: use `privsolve predict` or the page")

    def to_html(self, date: str | None = None) -> str:
        """The card as one self-contained page that adds up the points of the answers a person ticks.

        Args:
            date: the day to print on it, where the schema states none.
        """
        return scorecard_html(self, date)

    def _repr_html_(self) -> str:
        privacy = words.privacy_words(self.guarantee)
        notes = [words.rule(self), *words.notes(self), *words.facts_line(self.about), f"Privacy: {privacy.sentence}"]
        notes += words.other_count(self.guarantee)
        warnings = (*words.problems(self), *privacy.warnings)
        return panel(words.title(self), words.POINTS, words.answer_lines(self), notes, warnings)


ModelCard = Scorecard | TreeCard


def has_card(model: Model) -> bool:
    """Whether there is a card of a model."""
    return isinstance(model, DecisionTree | LinearRule)


def card_of(model: Model, guarantee: Guarantee, evaluation: Evaluation | None = None, version: str = "") -> ModelCard:
    """A model in the form that people use: a tree card for a decision tree, a scorecard for a linear rule."""
    if isinstance(model, DecisionTree):
        return TreeCard(model, guarantee, evaluation, version)
    if not isinstance(model, LinearRule):
        raise ValueError(f"release is a {model.kind}: only a linear rule is a scorecard")
    return Scorecard(model, guarantee, evaluation, version)
