"""Scorecards: the points say exactly what the release says, in every form, and wrong questions are refused in words."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import privsolve as ps
from privsolve.cards.rows import UNKNOWN, QuantityPoints
from privsolve.cards.scorecard import Scorecard
from privsolve.cards.words import answer_lines, example_line, number, privacy_words, rule
from privsolve.data import About, Categories, Number, Schema
from privsolve.models.linear import LinearRule
from privsolve.privacy.guarantee import Proof
from promises import promise
from random_scorecards import (
    AWKWARD,
    GUARANTEE,
    card_of,
    random_case,
    release_of,
    risk_release,
    schema_release,
    setting_of,
)

YES_NO = release_of(["member", "<25 & new", "unused", "intercept"], [3, -2, 0, -1])
HOURS = card_of(
    schema_release([3, 2, -3], Schema([Categories("married", ["yes"], no="no"), Number("hours", 1, 99, 1, 99)]))
)


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_scores_and_decisions_are_those_of_the_release(random: Random) -> None:
    case = random_case(random)
    card = case.card
    for _ in range(5):
        answers = case.answers(random)
        expected = case.release_score(answers)
        assert card.decide(answers) == (card.positive if expected > 0 else card.negative)
        assert card.minimum <= card.score(answers) <= card.maximum


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_bounds_are_reached_and_the_rule_is_the_decision(random: Random) -> None:
    card = random_case(random).card
    for bound, best in ((card.minimum, min), (card.maximum, max)):
        answers: dict[str, str | float] = {}
        for row in card.rows:
            values = [row.low, row.high] if isinstance(row, QuantityPoints) else [option.text for option in row.options]
            answers[row.column] = best(values, key=row.points_for)
        assert card.score(answers) == bound
    assert f"at least {number(card.threshold)}," in rule(card)


def test_only_columns_with_points_are_shown() -> None:
    card = card_of(YES_NO)
    assert [row.column for row in card.rows] == ["member", "<25 & new"]
    assert (card.threshold, card.minimum, card.maximum) == (2, 0, 2)
    assert card.score({"member": "yes", "<25 & new": "yes", "unused": "ignored"}) == 1
    assert card.decide({"member": "yes", "<25 & new": "yes"}) == "negative"
    assert card.decide({"member": "yes", "<25 & new": "no"}) == "positive"


def test_quantities_are_clipped_and_rounded_and_their_points_are_whole() -> None:
    card = HOURS
    for value, steps in ((40, 40), (41.5, 42), (42.5, 43), (-5, 1), (1e300, 99), (float("inf"), 99)):
        assert card.score({"married": "no", "hours": value}) == 2 * steps
    assert card.decide({"married": "yes", "hours": 1}) == "positive"
    assert re.search(r"hours.*× 2\n", card.to_text())
    assert re.search(r"married +yes +\+297\n", card.to_text())
    assert "at least 298" in card.to_text()


def test_a_number_is_multiplied_by_an_exact_factor() -> None:
    def card(scales: list[int], risk: bool) -> Scorecard:
        columns = [Number("n", 0, 9, 0.1, scales[0]), Number("m", 0, 9, 0.5, scales[1])]
        return card_of(schema_release([-2, 3, 1], Schema(columns), risk))

    text = " ".join(card([1, 1], False).to_text(200).split())
    assert "× −20 " in text
    assert "× 6 " in text
    assert "0 if it is not known" in text
    assert "× −40 " in " ".join(card([1, 2], False).to_text().split())  # a whole number of points per step
    odd = card_of(schema_release([2, 3, -1], Schema([Number("n", 0, 9, 3), Number("m", 0, 9)])))
    assert "× 2 ÷ 3" in odd.to_text()
    assert number(-12_345, "+") == "−12,345"
    assert number(7, "+") == "+7"


def test_the_example_comes_from_the_card_alone() -> None:
    example = HOURS.example
    assert [(line.question, line.answer) for line in HOURS.lines(example)] == [("married", "yes"), ("hours", "50")]
    assert (HOURS.score(example), HOURS.decide(example)) == (297 + 100, "positive")


def test_a_card_without_points() -> None:
    card = card_of(release_of(["a", "intercept"], [0, 1]))
    assert (card.rows, card.decide({})) == ((), "positive")
    for text in (card.to_text(), card.to_markdown(), card.to_html()):
        assert "No question has points" in text
        assert "The decision is positive whatever the answers" in text


def test_wrong_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="answers has no 'married', 'hours'"):
        HOURS.score({})
    with pytest.raises(ValueError, match="choose one of 'yes', 'no'"):
        HOURS.score({"married": "maybe", "hours": 1})
    for wrong in ("forty", float("nan")):
        with pytest.raises(ValueError, match="give a number from 1 to 99"):
            HOURS.score({"married": "no", "hours": wrong})
    scaled = LinearRule(np.array([1, 2]), ("a", "hours"), (1, 99), False)
    with pytest.raises(ValueError, match="'hours' has scale 99, so it is no yes/no question"):
        card_of(ps.Release(scaled, GUARANTEE, setting_of([1, 2]))).to_text()


class _Text(HTMLParser):
    """The texts of a page, decoded, without scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = False

    def handle_data(self, data: str) -> None:
        self.texts += [] if self.hidden else [data]


def _flat(text: str) -> str:
    """Without spaces and the marks of exponents, which a page raises."""
    return re.sub(r"[\s^()]+", "", text)


def awkward_card() -> Scorecard:
    columns = [
        Categories(f"<i>what</i> | which_one & [b] {k}", AWKWARD[k : k + 3], other="something else")
        for k in range(0, len(AWKWARD), 3)
    ]
    schema = Schema(columns, intercept=False, about=About(positive="a|b <c>", negative="$x_y$ %"))
    weights = [int(feature.endswith(f"={AWKWARD[k]}")) for k in range(0, 12, 3) for feature in columns[k // 3].names]
    return card_of(schema_release(weights, schema))


def test_html_shows_names_as_they_are_and_loads_nothing() -> None:
    card = awkward_card()
    page = card.to_html()
    texts = _Text(page).texts
    for text in (*AWKWARD, "<i>what</i> | which_one & [b]"):
        assert any(text in shown for shown in texts)
    assert "The decision is a|b <c> if the total is at least 1, and $x_y$ % otherwise." in " ".join(texts)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=", page)
    assert "default-src 'none'" in page
    assert page == awkward_card().to_html()


def test_markdown_shows_names_as_they_are() -> None:
    for card in (awkward_card(), HOURS):
        rendered = MarkdownIt("commonmark").enable("table").render(card.to_markdown())
        cells = [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", rendered)]
        assert cells == [cell for line in answer_lines(card) for cell in line]
        shown = html.unescape(rendered)
        for line in card.lines(card.example):
            assert f"<li>{example_line(line)}</li>" in shown
        assert f" {card.decide(card.example)}.</p>" in shown


@pytest.mark.parametrize("width", [30, 80, 200])
def test_text_fits_the_terminal_and_holds_every_point(width: int) -> None:
    text = HOURS.to_text(width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("married", "hours", "+297", "× 2", "99", "Example"):
        assert part in text
    assert "[bold]" in card_of(release_of(["[bold]"], [1])).to_text(width)  # no markup


def test_many_answers_without_points_are_any_other() -> None:
    column = Categories("c", [*(f"zero {i}" for i in range(5)), "one", "uno"], other="else")
    text = card_of(schema_release([0, 0, 0, 0, 0, 1, 1, 0], Schema([column], intercept=False))).to_text()
    assert re.search(r"c +one, uno +\+1\n +any other +0\n", text)
    assert "zero" not in text


FACTS: list[dict[str, Any]] = [
    *({"proof": proof, "seeded": seeded} for proof in Proof for seeded in (False, True)),
    {"negligible": 2.0**-100},
]
CAVEATS = {
    "Seeded: for testing only": lambda facts: facts.get("seeded", False),
    "Not proved": lambda facts: facts.get("proof") is Proof.NONE,
    "Proved in real arithmetic only": lambda facts: facts.get("proof") is Proof.REAL_ARITHMETIC,
    "An event of probability below 2^-100 is outside the proof": lambda facts: "negligible" in facts,
}


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("facts", FACTS, ids=str)
def test_the_privacy_statement(adjacency: str, delta: float, facts: dict[str, Any]) -> None:
    guarantee = promise(1.0, delta, adjacency=adjacency, **facts)
    card = card_of(release_of(["a"], [1], guarantee))
    privacy = privacy_words(guarantee)
    page = " ".join(_Text(card.to_html()).texts)
    for text in (page, card.to_text(), card.to_markdown()):
        assert all((_flat(said) in _flat(text)) == holds(facts) for said, holds in CAVEATS.items())
        assert _flat(f"theory section {guarantee.theory}") in _flat(text)
    for sentence in (privacy.short, guarantee.sentence(), *privacy.promised, *privacy.not_promised):
        assert _flat(sentence) in _flat(page)
    holds = facts.get("proof") is not Proof.NONE and not facts.get("seeded", False)
    assert ("number of records" in page) == (adjacency == "replace")
    assert ("whether a record is in the data" in page) == (adjacency == "add-remove" and holds)
    assert ("δ = 1e-06" in page.replace("\u00a0", " ")) == bool(delta)
    assert page.count("at most 73.2% sure") == holds  # e / (1 + e) = 0.7311, said once
    assert page.count("a factor of at most e") == 1
    assert ("Nothing is promised" in page) == (not holds)
    assert ("no exception" in page) == (not delta and facts == {"proof": Proof.COMPLETE, "seeded": False})


def test_nothing_of_the_data_is_on_the_page() -> None:
    def page(last_label: int) -> tuple[str, ...]:
        table = ps.PatternTable.from_records([[1, 0], [0, 1], [1, 1]], [1, 0, last_label], names=["a", "b"])
        problem = ps.Problem(table, ps.IntegerBall(2, 5))
        weights = ps.IntegerBall(2, 5).members()[1]
        card = card_of(ps.Release(problem.model(weights), GUARANTEE, problem.setting))
        return card.to_html(), card.to_text(), card.to_markdown()

    assert page(0) == page(1)


@pytest.mark.parametrize(("epsilon", "shown"), [(1.0, "1"), (1.00004, "1.001"), (0.1, "0.1"), (12.3451, "12.35")])
def test_the_badge_never_shows_less_than_was_spent(epsilon: float, shown: str) -> None:
    release = replace(YES_NO, guarantee=promise(epsilon))
    assert f"differential privacy, ε\u00a0=\u00a0{shown}<" in card_of(release).to_html()


def test_a_card_that_says_the_same_of_everybody_says_so_first() -> None:
    card = card_of(release_of(["a", "intercept"], [0, -1]))
    first = "This card is of no use: it says “negative” of everybody. More records, a larger epsilon"
    assert card.to_text().startswith(f"WARNING: {first[:50]}")
    assert first in " ".join(_Text(card.to_html()).texts)
    assert "of no use" not in card_of(release_of(["a"], [1])).to_text()
    risky = risk_release(["a", "intercept"], [1, -5])  # decides alike at this threshold, but its risks differ
    assert "of no use" not in card_of(risky).to_text()


def test_reasons_are_the_answers_that_raised_the_total_most() -> None:
    card = card_of(risk_release(["a", "b", "c", "intercept"], [2, -3, 1, 0]))
    found = card.reasons({"a": "yes", "b": "no", "c": "no"})
    assert [(line.question, line.answer, line.points) for line in found] == [("b", "no", 3), ("a", "yes", 2)]
    assert [line.question for line in card.reasons({"a": "yes", "b": "no", "c": "yes"}, most=1)] == ["b"]
    assert card.reasons({"a": "no", "b": "yes", "c": "no"}) == ()
    with pytest.raises(ValueError, match="answers has no 'b'"):
        card.reasons({"a": "no"})


def test_a_number_that_is_not_known_counts_what_the_schema_says() -> None:
    schema = Schema([Number("dose", -1, 8, 0.5, missing=2), Categories("married", ["yes"], no="no")])
    made = schema_release([2, 3, -3], schema)
    (total,) = made.model.totals(pd.DataFrame({"dose": [np.nan], "married": ["no"]}))
    assert card_of(made).score({"dose": UNKNOWN, "married": "no"}) == total
