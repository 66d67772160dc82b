"""Random scorecards with every kind of question, and random answers with what the release itself makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

import numpy as np

import privsolve as ps
from privsolve.cards.card import Answer
from privsolve.cards.scorecard import Scorecard
from privsolve.data.questions import Choice, Option, Quantity, Question
from privsolve.models.linear import LinearRule
from privsolve.models.risk import RiskScore
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


def release_of(
    names: list[str], weights: list[int], scales: list[int] | None = None, guarantee: ps.Guarantee = GUARANTEE
) -> Release:
    scales = scales or [1] * len(names)
    domain = ps.FiniteSet([weights])
    rule = LinearRule(np.array(weights), tuple(names), tuple(scales), names[-1] == "intercept")
    return Release(rule, guarantee, {"domain": domain.to_dict(), "loss": ps.ZeroOneLoss().to_dict()})


def risk_release(
    names: list[str], weights: list[int], log_odds: float = 0.5, scales: list[int] | None = None
) -> Release:
    """The same as a risk score."""
    domain, loss = ps.FiniteSet([weights]), ps.BrierLoss(log_odds)
    score = RiskScore(
        np.array(weights), tuple(names), tuple(scales or [1] * len(names)), names[-1] == "intercept", log_odds=log_odds
    )
    return Release(score, GUARANTEE, {"domain": domain.to_dict(), "loss": loss.to_dict()})


@dataclass(frozen=True)
class Case:
    """A release, how a person is asked for its features, and the card."""

    release: Release
    questions: tuple[Question, ...]
    card: Scorecard

    def answers(self, random: Random) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for question in self.questions:
            if isinstance(question, Choice):
                found[question.column] = random.choice(question.options).text
            else:
                width = question.high - question.low
                value = random.uniform(question.low - width / 4, question.high + width / 4)
                halves = round(value / question.step * 2) / 2 * question.step
                found[question.column] = random.choice((value, halves, round(value, 2), question.low, question.high))
        return found

    @property
    def rule(self) -> LinearRule:
        assert isinstance(self.release.model, LinearRule)
        return self.release.model

    def release_score(self, answers: dict[str, Answer]) -> Fraction:
        """`Σ_j w_j x_j / scales[j]` of the encoded answers, as the release defines it."""
        x = dict.fromkeys(self.rule.features, 0)
        if self.rule.features[-1] == "intercept":
            x["intercept"] = 1
        for question in self.questions:
            answer = answers[question.column]
            if isinstance(question, Quantity):
                assert not isinstance(answer, str)
                x[question.feature] = int(np.floor(np.clip(answer, question.low, question.high) / question.step + 0.5))
            else:
                for option in question.options:
                    x.update(dict.fromkeys(option.features, 1) if option.text == answer else {})
        terms = zip(self.rule.features, self.rule.weights, self.rule.scales, strict=True)
        return sum((Fraction(int(w) * x[name], scale) for name, w, scale in terms), Fraction(0))


def random_case(random: Random) -> Case:
    names: list[str] = []
    scales: list[int] = []
    questions: list[Question] = []
    for i in range(random.randint(1, 6)):
        column = f"{random.choice(AWKWARD)} {i}"
        if random.random() < 0.3:
            step = random.choice((1, 1, 0.1, 0.5, 1000))
            scale = random.choice((1, 10, 99, 4356))
            low = random.choice((0, 1, -20)) * step
            questions.append(Quantity(column, column, low, low + step * random.randint(1, 200), step, scale))
            names.append(column)
            scales.append(scale)
        else:
            features = [f"{column}={k}" for k in range(random.randint(1, 5))]
            cumulative = random.random() < 0.3
            options = [
                Option(f"{random.choice(AWKWARD)} {k}", tuple(features[: k + 1]) if cumulative else (feature,))
                for k, feature in enumerate(features)
            ]
            questions.append(Choice(column, (*options, Option("other", ()))))
            names += features
            scales += [1] * len(features)
    weights = [random.choice((-3, -1, 0, 1, 2)) for _ in names]
    if random.random() < 0.8:
        names, scales, weights = [*names, "intercept"], [*scales, 1], [*weights, random.randint(-4, 3)]
    release = release_of(names, weights, scales)
    labels = random.choice((("positive", "negative"), ("<yes> & ok", 'n"o')))
    return Case(release, tuple(questions), Scorecard.of(release, questions, *labels))
