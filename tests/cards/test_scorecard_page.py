"""The scorecard page in a real browser: it adds up like the scorecard, by mouse and by keyboard, and fits any window."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

import privsolve as ps
from browser import Browser, browser_fixture  # noqa: F401
from long_cards import answers_of, long_release, long_schema, long_table
from privsolve.cards import words
from privsolve.cards.rows import UNKNOWN, Answer, ChoicePoints
from privsolve.cards.scorecard import Scorecard
from privsolve.data import About, Categories, Number, Schema
from privsolve.data.columns.label import Target
from privsolve.models.full_card import FullCard, NumberCard
from privsolve.models.scales import percent
from privsolve.privacy.guarantee import Proof
from promises import promise
from random_scorecards import AWKWARD, Case, card_of, random_case, schema_release

CARD = card_of(
    schema_release(
        [3, -2, 2, -3],
        Schema(
            [
                Categories("member", ["yes"], no="no"),
                Categories("since", ["this year"], no="last year"),
                Number("hours", 1, 99, 1, 99),
            ],
            about=About(positive="accepted", negative="declined"),
        ),
    )
)


def show(browser: Browser, card: Scorecard, folder: Path, width: int = 1200) -> None:
    file = folder / "scorecard.html"
    file.write_text(card.to_html(), encoding="utf-8")
    browser.open(file, width)


def fill(browser: Browser, card: Scorecard, answers: dict[str, Answer]) -> None:
    """Answer with the real inputs, found by what a person reads beside them."""
    for row, fieldset in zip(card.rows, browser.all("fieldset"), strict=True):
        assert fieldset.find_element("tag name", "legend").text.startswith(row.column)
        answer = answers[row.column]
        if isinstance(row, ChoicePoints):
            places = [str(answer) in (option.text, *option.covers) for option in row.options]
            browser.click(fieldset.find_elements("css selector", "label")[places.index(True)])
        else:
            field = fieldset.find_element("css selector", "input")
            field.clear()
            field.send_keys(repr(answer))


@pytest.mark.parametrize("seed", range(4))
def test_the_page_scores_and_decides_like_the_scorecard(browser: Browser, seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    case: Case = random_case(random)
    show(browser, case.card, tmp_path)
    for _ in range(2):
        answers = case.answers(random)
        fill(browser, case.card, answers)
        assert browser.text("#total") == words.number(case.card.score(answers))
        assert browser.text("#decision") == case.card.decide(answers)
    assert browser.errors() == []


def test_totals_at_the_threshold_are_exact(browser: Browser, tmp_path: Path) -> None:
    p, q = 2**20 - 3, 2**20 - 5
    a = pow(p, -1, q) + q * 2**16
    b = (a * p - 1) // q  # p·a - q·b is 1, and 0 in doubles
    assert float(p * a) - float(q * b) == 0.0
    about = About(positive="over", negative="not over")
    card = card_of(
        schema_release([p, -q], Schema([Number(name, 0, 2**37) for name in "ab"], intercept=False, about=about))
    )
    show(browser, card, tmp_path)
    for answers, decision in (
        ({"a": a, "b": b}, "over"),
        ({"a": a, "b": b + 1}, "not over"),
        ({"a": 0, "b": 7}, "not over"),
    ):
        fill(browser, card, answers)
        assert card.decide(answers) == decision
        assert browser.text("#decision") == decision
        assert browser.text("#total") == words.number(card.score(answers))
    assert browser.text("#total") == "−7,339,997"


def test_a_decision_is_shown_as_soon_as_it_is_certain(browser: Browser, tmp_path: Path) -> None:
    show(browser, CARD, tmp_path)
    assert browser.text("#decision") == "Not decided yet"
    assert "0 of 3 answered" in browser.text("#progress")
    browser.click(browser.all("fieldset:nth-of-type(1) label")[1])
    assert browser.text("#decision") == "declined"  # hours give 198 points at most, and the others as many
    assert "cannot change the decision" in browser.text("#progress")
    browser.click(browser.all("fieldset:nth-of-type(1) label")[0])
    browser.click(browser.all("fieldset:nth-of-type(2) label")[1])
    assert browser.text("#decision") == "accepted"  # two hours are enough
    assert "2 of 3 answered" in browser.text("#progress")


def test_start_over_clears_everything(browser: Browser, tmp_path: Path) -> None:
    show(browser, CARD, tmp_path)
    before = (browser.text("#total"), browser.text("#decision"), browser.text("#progress"))
    fill(browser, CARD, {"member": "yes", "since": "last year", "hours": 120})
    assert browser.text("output.counted") == "Points: +198 (counts as 99)"
    assert browser.text("#total") == "693"
    browser.click(browser.all("button[type=reset]")[0])
    assert browser.run("return document.querySelectorAll(':checked').length") == 0
    assert (browser.text("#total"), browser.text("#decision"), browser.text("#progress")) == before


def test_it_works_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    show(browser, CARD, tmp_path, width=360)
    for keys in (Keys.TAB, Keys.SPACE, Keys.TAB, Keys.SPACE, Keys.ARROW_DOWN, Keys.TAB, "40", Keys.ENTER):
        browser.press(keys)
        focused = browser.run(
            "const e = document.activeElement.getBoundingClientRect(), bar = document.getElementById('result');"
            "return document.activeElement === document.body || e.bottom <= bar.getBoundingClientRect().top"
        )
        assert focused, "the field that has the focus is hidden behind the result"
    answers: dict[str, Answer] = {"member": "yes", "since": "last year", "hours": 40}
    assert browser.text("#total") == words.number(CARD.score(answers))
    assert browser.text("#decision") == "accepted"
    for keys in (Keys.TAB, Keys.TAB, Keys.ENTER):  # past "answer the rest"
        browser.press(keys)
    assert browser.text("#decision") == "Not decided yet"


def test_every_input_has_a_name_for_screen_readers(browser: Browser, tmp_path: Path) -> None:
    show(browser, CARD, tmp_path)
    names = [field.accessible_name for field in browser.all("input")]
    assert names == [
        *("yes +297", "no 0", "not known 0", "this year 0", "last year +198", "not known +198"),
        "A whole number from 1 to 99; 1 if it is not known",
    ]
    assert [group.accessible_name for group in browser.all("fieldset")] == ["member", "since", "hours"]


@pytest.mark.parametrize(("width", "dark"), [(360, True), (800, False), (1200, True), (1200, False)])
def test_it_fits_the_window_and_loads_nothing(browser: Browser, width: int, dark: bool, tmp_path: Path) -> None:
    long = "Verwaltungsgerichtsverfahrensordnung_" * 4
    columns = [Categories("c" + long, [*AWKWARD, long]), Number(long, -1e6, 1e6, 0.5, 99_999)]
    schema = Schema(columns, intercept=False, about=About(positive=long))
    warned = promise(1.0, 1e-9, seeded=True, proof=Proof.NONE)
    card = card_of(schema_release([1_048_576] * 14, schema, guarantee=warned))
    browser.media("screen", dark)
    show(browser, card, tmp_path, width)
    assert browser.layout_problems() == []
    fill(browser, card, {"c" + long: long, long: 12345.5})
    assert browser.layout_problems() == []
    assert browser.requests() == []
    assert browser.errors() == []
    assert [e.text[:16] for e in browser.all(".warning")] == ["Warning. Seeded:", "Warning. Not pro"]
    assert contrast_problems(browser) == []


def test_on_paper_it_is_a_form_to_fill_in(browser: Browser, tmp_path: Path) -> None:
    browser.media("print", dark=True)  # paper is white whatever the screen
    show(browser, CARD, tmp_path, width=700)
    shown = "return document.body.innerText"
    blank = browser.run(shown)
    assert "Total: ____" in blank
    assert blank.count("points: ____") == 3
    assert "Start over" not in blank
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.layout_problems() == []
    fill(browser, CARD, {"member": "yes", "since": "last year", "hours": 99})
    filled = browser.run(shown)
    assert "Total: ____" not in filled
    assert "accepted" in filled
    browser.media("screen")


def contrast_problems(browser: Browser) -> list[str]:
    """Texts whose contrast with what is behind them is below 4.5 to 1."""
    script = """
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (c) => { const s = c / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
    const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
    const behind = (e) => {
      for (; e; e = e.parentElement) {
        const colour = numbers(getComputedStyle(e).backgroundColor);
        if (colour.length === 3 || colour[3] === 1) return colour;
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const e of document.querySelectorAll("body *")) {
      const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
      if (!own || !e.getClientRects().length) continue;
      const [a, b] = [luminance(numbers(getComputedStyle(e).color)), luminance(behind(e))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) found.push(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
    }
    return found;
    """
    return list(browser.run(script))


def test_the_page_of_a_risk_score_says_the_risk_and_lets_the_threshold_be_moved(
    browser: Browser, tmp_path: Path
) -> None:
    columns = [Categories(name, ["yes"], no="no") for name in ("member", "new")]
    schema = Schema(columns, about=About(positive="accepted", negative="declined"))
    card = card_of(schema_release([3, -2, -1], schema, risk=True))
    show(browser, card, tmp_path)
    assert browser.text("#risk") == "Risk 18% to 73%"  # what it can still be
    fill(browser, card, {"member": "yes", "new": "no"})
    assert card.risk_scale is not None
    assert browser.text("#risk") == f"Risk {card.risk_scale.text(5)}" == "Risk 73%"
    assert browser.text("#decision") == "accepted"
    assert browser.text("#risks .here") == "5 73%"
    assert browser.text("#border") == "4"
    browser.driver.execute_script(
        "const t = document.getElementById('threshold'); t.value = 6; t.dispatchEvent(new Event('input'))"
    )
    assert browser.text("#decision") == "declined"
    assert browser.text("#needed") == "at least 6"
    assert browser.text(".ends").split() == ["0", "5"]
    for width in (1200, 360):
        browser.open(tmp_path / "scorecard.html", width)
        assert browser.layout_problems() == []


LONG = {columns: long_release(long_schema(columns)) for columns in (25, 60)}
ADULT = long_release(ps.datasets.adult_schema())


def test_a_long_page_gives_records_with_gaps_what_predict_gives_them(browser: Browser, tmp_path: Path) -> None:
    release = LONG[25].with_bands("20%,60%")
    card, model = release.card(), release.model
    assert isinstance(model, FullCard)
    table = long_table(model.stated_schema, 40)
    asked, totals = answers_of(release, table), model.totals(table)
    assert [card.score(answers) for answers in asked] == totals.tolist()
    show(browser, card, tmp_path)
    browser.run("for (const e of document.querySelectorAll('details')) e.open = true")
    gaps = int((table == "").sum(axis=1).argmax())
    answers, total = asked[gaps], totals[gaps]
    fill(browser, card, answers)
    assert browser.text("#total") == f"{total:g}"
    reasons = card.reasons(answers)
    assert len(reasons) == 4
    said = "; ".join(f"{line.question} ({words.signed(line.points)})" for line in reasons)
    assert browser.text("#reasons") == f"Most points come from: {said}."
    assert browser.text("#decision") == card.decide(answers)
    assert browser.text("#band").split()[-1] == card.band(answers)
    assert browser.text("#risks .here .band") == browser.text("#band")
    assert browser.text("#risk") == f"Risk {percent(model.scale.risk(int(total)))}"
    assert browser.errors() == []


def test_a_long_page_is_searched_and_the_rest_is_not_known(browser: Browser, tmp_path: Path) -> None:
    card = LONG[60].card()
    show(browser, card, tmp_path, width=390)
    assert browser.layout_problems() == []
    shown = "return [...document.querySelectorAll('fieldset')].filter((e) => e.checkVisibility()).length"
    assert browser.run(shown) == 25
    browser.driver.find_element("id", "search").send_keys("born")
    assert browser.run(shown) == sum(row.column.startswith("born") for row in card.rows)
    browser.driver.find_element("id", "search").send_keys(Keys.BACKSPACE * 4)
    assert browser.run(shown) == len(card.rows)
    browser.click(browser.driver.find_element("id", "skip"))
    stated = sum(not any(o.text == UNKNOWN for o in row.options) for row in card.rows)  # type: ignore[union-attr]
    assert f"{len(card.rows) - stated} of {len(card.rows)} answered" in browser.text("#progress")
    for width in (390, 1200):
        show(browser, card, tmp_path, width)
        browser.run("for (const e of document.querySelectorAll('details')) e.open = true")
        assert browser.layout_problems() == []


@pytest.mark.parametrize("release", [ADULT, LONG[25]], ids=["adult", "25 questions"])
def test_up_to_25_questions_are_printed_on_one_page(browser: Browser, release: ps.Release, tmp_path: Path) -> None:
    browser.media("print")
    show(browser, release.card(), tmp_path)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", base64.b64decode(printed["data"]))) == 1
    browser.media("screen")


def test_questions_that_matter_most_come_first_and_totals_have_few_lines() -> None:
    card = LONG[60].card()
    ranges = [row.highest - row.lowest for row in card.rows]
    assert ranges == sorted(ranges, reverse=True)
    assert len(card.totals) <= 20
    assert (card.totals[0].low, card.totals[-1].high) == (card.minimum, card.maximum)


def test_a_page_says_when_and_with_what_it_was_made() -> None:
    page = ADULT.card().to_html(date="2026-11-18")
    assert "<span><span>Date:</span> 2026-11-18</span>" in page
    assert f"Made with privsolve {ps.__version__}." in page


def test_a_card_for_a_number_predicts_on_the_page(browser: Browser, tmp_path: Path) -> None:
    columns = [ps.Bins("age", [50]), ps.Categories("ward", ["a", "b"])]
    schema = ps.Schema(columns, intercept=False, target=Target("cost", low=0, high=900))
    rule = np.array([3, 2, -1]), schema.features, schema.scales, False, schema
    model = NumberCard(*rule, None, 100.0, 50.0, 0.0, 900.0)
    card = card_of(ps.Release(model, promise(1.0), {"objective": {}}))
    show(browser, card, tmp_path)
    assert browser.text("#risk") == f"Predicted cost: {card.said(card.minimum)} to {card.said(card.maximum)}"
    answers: dict[str, Answer] = {"age": "50 or more", "ward": "b"}
    fill(browser, card, answers)
    assert browser.text("#risk") == f"Predicted cost: {card.decide(answers)}" == "Predicted cost: 250"
    assert not browser.all("#decision, #threshold, #needed")
    assert browser.errors() == []
