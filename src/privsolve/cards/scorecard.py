"""A release as a scorecard, in every form a person may want it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from privsolve.cards import words
from privsolve.cards.card import Card
from privsolve.cards.markdown import scorecard_markdown
from privsolve.cards.pages import scorecard_html
from privsolve.cards.programs import javascript_program, python_program
from privsolve.cards.rows import rows_and_threshold
from privsolve.cards.sql import scorecard_sql
from privsolve.cards.text import scorecard_text
from privsolve.cards.workbook import scorecard_workbook
from privsolve.data.about import About
from privsolve.data.questions import Question
from privsolve.evaluation import Evaluation
from privsolve.models.base import Model
from privsolve.models.linear import LinearRule, decision_words
from privsolve.models.number_card import NumberCard
from privsolve.models.risk import RiskScore
from privsolve.notebooks import panel
from privsolve.privacy.guarantee import Guarantee


class Published(Protocol):
    """What a card is made of: a release has all of it."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def total(self) -> Guarantee:
        """What is promised for everything in it."""

    @property
    def evaluation(self) -> Evaluation | None:
        """How good the model is, if that was measured."""

    @property
    def version(self) -> str:
        """Of the package that made it."""


class Scorecard(Card):
    """The points of a release by question, in every form a person may want them: see `Card`."""

    @classmethod
    def of(
        cls,
        release: Published,
        questions: Iterable[Question] | None = None,
        positive: str | None = None,
        negative: str | None = None,
    ) -> Scorecard:
        """The scorecard of a release; only questions whose answer matters to the points are kept.

        `questions` say how a person is asked for the features; they are part of the public schema, never read off the
        data. Without them and without a schema every feature is taken as a yes/no question, which is right for 0/1
        features. An intercept becomes the threshold. The decisions are called by the schema's label unless named.
        """
        rule = getattr(release, "model", None)
        if rule is None:
            raise TypeError(f"release must be a Release, got {type(release).__name__}: pass run.release")
        if not isinstance(rule, LinearRule):
            raise ValueError(f"release is a {rule.kind}: only a linear rule is a scorecard")
        yes, no = decision_words(rule.schema)
        yes, no = positive or yes, negative or no
        if yes == no:
            raise ValueError(f"positive and negative are both {yes!r}: name the two decisions differently")
        rows, threshold, unit = rows_and_threshold(rule, questions)
        scale = rule.scale_of(int(threshold * unit), unit) if isinstance(rule, RiskScore | NumberCard) else None
        about = About() if rule.schema is None else rule.schema.about
        return cls(
            rows,
            threshold,
            yes,
            no,
            release.total,
            release.evaluation,
            scale,
            about,
            release.version,
            rule.bands,
            rule if questions is None else None,
        )

    def to_text(self, width: int = 80) -> str:
        """The card for a terminal of the given width."""
        return scorecard_text(self, width)

    def to_markdown(self) -> str:
        """The card as Markdown."""
        return scorecard_markdown(self)

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
        if self.rule is None or self.rule.schema is None:
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

    def _repr_html_(self) -> str:
        privacy = words.privacy_words(self.guarantee)
        notes = [words.rule(self), *words.notes(self), *words.facts_line(self.about), f"Privacy: {privacy.sentence}"]
        notes += words.other_count(self.guarantee)
        warnings = (*words.problems(self), *privacy.warnings)
        return panel(words.title(self), ("Question", "Answer", "Points"), words.answer_lines(self), notes, warnings)

    def to_html(self, date: str | None = None) -> str:
        """The card as one self-contained page that adds up the points of the answers a person ticks.

        Args:
            date: the day to print on it, where the schema states none.
        """
        return scorecard_html(self, date)
