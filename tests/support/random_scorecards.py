"""Random scorecards with every kind of question, and random answers with what the release itself makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

import privsolve as ps
from privsolve.cards.rows import Answer
from privsolve.cards.scorecard import Scorecard
from privsolve.data import About, Bins, Categories, Number, Schema
from privsolve.data.questions import Choice
from privsolve.models.full_card import FullCard
from privsolve.models.linear import LinearRule
from privsolve.releases import Release
from promises import bounded_range

GUARANTEE = bounded_range(1.0)

AWKWARD = (
    "<b>&amp;",
    'say "hi"',
    "it's",
    "a|b",
    "x_y^z",
    "50%",
    "größe",
    "{}[x]",
    "\\end",
    "</script>",
    "年齢",
    "~#$`*",
)


def release_of(names: list[str], weights: list[int], guarantee: ps.Guarantee = GUARANTEE) -> Release:
    """A rule on 0/1 features, without a schema."""
    rule = LinearRule(np.array(weights), tuple(names), (1,) * len(names), names[-1] == "intercept")
    return Release(rule, guarantee, setting_of(weights))


def setting_of(weights: list[int]) -> dict[str, Any]:
    return {"domain": ps.FiniteSet([weights]).to_dict(), "loss": ps.ZeroOneLoss().to_dict()}


def risk_release(names: list[str], weights: list[int], log_odds: float = 0.5) -> Release:
    """The same with risks."""
    made = np.array(weights), tuple(names), (1,) * len(names), names[-1] == "intercept"
    return Release(FullCard(*made, log_odds=log_odds), GUARANTEE, {"objective": {}})


def schema_release(
    weights: list[int], schema: Schema, risk: bool = False, guarantee: ps.Guarantee = GUARANTEE
) -> Release:
    """A rule on the features of a schema, with risks if it shall have any."""
    made = np.array(weights), schema.features, schema.scales, schema.intercept, schema
    if risk:
        return Release(FullCard(*made), guarantee, {"objective": {}})
    return Release(LinearRule(*made), guarantee, setting_of(weights))


def card_of(release: Release) -> Scorecard:
    """Its card, which is a scorecard."""
    card = release.card()
    assert isinstance(card, Scorecard)
    return card


@dataclass(frozen=True)
class Case:
    """A release and its card."""

    release: Release
    card: Scorecard

    @property
    def rule(self) -> LinearRule:
        assert isinstance(self.release.model, LinearRule)
        return self.release.model

    def answers(self, random: Random) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for question in self.rule.stated_schema.questions():
            if isinstance(question, Choice):
                found[question.column] = random.choice(question.options).text
            else:
                width = question.high - question.low
                value = random.uniform(question.low - width / 4, question.high + width / 4)
                halves = round(value / question.step * 2) / 2 * question.step
                found[question.column] = random.choice((value, halves, round(value, 2), question.low, question.high))
        return found

    def release_score(self, answers: dict[str, Answer]) -> Fraction:
        """`Σ_j w_j x_j / scales[j]` of the encoded answers, as the release defines it."""
        x = dict.fromkeys(self.rule.features, 0)
        if self.rule.intercept:
            x[self.rule.features[-1]] = 1
        for question in self.rule.stated_schema.questions():
            answer = answers[question.column]
            if isinstance(question, Choice):
                (option,) = (option for option in question.options if option.text == answer)
                x.update(dict.fromkeys(option.features, 1))
            else:
                assert not isinstance(answer, str)
                x[question.feature] = int(np.floor(np.clip(answer, question.low, question.high) / question.step + 0.5))
        terms = zip(self.rule.features, self.rule.weights, self.rule.scales, strict=True)
        return sum((Fraction(int(w) * x[name], scale) for name, w, scale in terms), Fraction(0))


def random_case(random: Random) -> Case:
    columns: list[Any] = []
    for i in range(random.randint(1, 6)):
        column = f"{random.choice(AWKWARD)} {i}"
        kind = random.random()
        if kind < 0.3:
            step = random.choice((1, 1, 0.1, 0.5, 1000))
            low = random.choice((0, 1, -20)) * step
            high = low + step * random.randint(1, 200)
            columns.append(Number(column, low, high, step, random.choice((1, 10, 99, 4356))))
        elif kind < 0.5:
            cuts = sorted(random.sample(range(-9, 99), random.randint(1, 5)))
            columns.append(Bins(column, cuts, random.choice(("thresholds", "intervals"))))
        else:
            options = random.sample(AWKWARD, random.randint(1, 5))
            columns.append(Categories(column, options, other=random.choice((None, "something else"))))
    yes, no = random.choice(((None, None), ("<yes> & ok", 'n"o')))
    schema = Schema(columns, intercept=random.random() < 0.8, about=About(positive=yes, negative=no))
    weights = [random.choice((-3, -1, 0, 1, 2)) for _ in schema.features]
    if schema.intercept:
        weights[-1] = random.randint(-4, 3)
    release = schema_release(weights, schema)
    return Case(release, card_of(release))
