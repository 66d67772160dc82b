"""A released tree as text, Markdown, SQL, a picture and a page that is used in a real browser."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import privsolve as ps
from browser import Browser, browser_fixture  # noqa: F401
from privsolve.cards.scorecard import Scorecard
from privsolve.cards.tree_card import TreeCard, rules
from privsolve.cli.predict import CardFormat, written
from privsolve.data import Bins, Categories, Label, Schema
from privsolve.models.leaves import LabelLeaves, ProbabilityLeaves
from privsolve.models.tree import DecisionTree, Leaf, Split, with_tree_predictions
from random_scorecards import GUARANTEE

SCHEMA = Schema(
    [
        Bins("age", [30, 50], "thresholds", missing="unknown"),
        Categories("colour <of> hair", ["red & auburn", "black"], missing="none"),
        Bins("dose", [0.5, 2.5], "intervals"),
    ],
    Label("ill", "yes", "no"),
    intercept=False,
)
NAMES = SCHEMA.features
ROOT = Split(
    NAMES.index("age>=50"),
    Split(NAMES.index("colour <of> hair=red & auburn"), Leaf(1), Split(NAMES.index("0.5<=dose<2.5"), Leaf(0), Leaf(1))),
    Split(NAMES.index("age=unknown"), Leaf(1), Leaf(0)),
)


def card(root: Any = ROOT, leaves: Any = None) -> TreeCard:
    return TreeCard(DecisionTree(root, NAMES, leaves or LabelLeaves(["no", "yes"]), SCHEMA), GUARANTEE)


def everybody() -> pd.DataFrame:
    ages = [None, 10, 29.999, 30, 49, 50, 80, float("nan"), -1, float("inf")]
    hair = ["red & auburn", " black ", "blonde", None, "", "black\t"]
    rows = list(itertools.product(ages, hair, [None, 0.1, 0.5, 2.4, 2.5, 9]))
    return pd.DataFrame(rows, columns=["age", "colour <of> hair", "dose"])


def test_sql_says_what_python_says() -> None:
    data = everybody()
    said = card().tree.predict(data)
    query = card().to_sql()
    assert "CASE" in query
    connection = duckdb.connect()
    connection.register("data", data)
    assert connection.sql(query).df()["prediction"].tolist() == said.tolist()
    assert len(set(said)) == 2


@pytest.mark.parametrize("leaves", [LabelLeaves([0, 1]), ProbabilityLeaves(["no", "yes"], [0.2, 0.9])])
def test_engines_say_what_python_says(leaves: Any) -> None:
    import ibis

    tree, data = card(leaves=leaves).tree, everybody()
    found = with_tree_predictions(ibis.memtable(pa.Table.from_pandas(data)), tree).to_pyarrow()
    assert found["prediction"].to_pylist() == tree.predict(data).tolist()
    if isinstance(leaves, ProbabilityLeaves):
        assert found["score"].to_numpy() == pytest.approx(tree.predict_proba(data)[:, 1])


def test_every_leaf_is_in_every_form() -> None:
    made = card()
    assert "age>=50" in made.to_text()
    for text in (made.to_markdown(), made.to_html()):
        assert "age" in text
        assert "The tree was chosen" in text
        assert "scorecard" not in text.split("<body>")[-1]
    assert len(list(rules(made.tree))) == made.tree.size == 5
    assert "colour <of> hair" in made.to_markdown()
    assert max(map(len, made.to_text(60).split("Privacy")[1].splitlines())) <= 60
    single = card(Leaf(1))
    assert "yes" in single.to_text()
    assert list(rules(single.tree)) == [("always", "ill yes")]


def test_every_word_is_a_method() -> None:
    """A new format is a method `to_...` and a word; nothing else knows the formats by name."""
    of_cards, of_trees = ({n.removeprefix("to_") for n in dir(k) if n.startswith("to_")} for k in (Scorecard, TreeCard))
    assert set(CardFormat) - {CardFormat.json} == of_cards
    assert of_cards - of_trees == {"xlsx", "python", "javascript"}
    with pytest.raises(ValueError, match="--format python: is for scorecards; a tree can be written as html or sql"):
        written(SimpleNamespace(card=card), "python")  # type: ignore[arg-type]


def test_the_picture_is_svg_with_a_box_per_node(tmp_path: Path) -> None:
    picture = card().plot()
    root = ElementTree.fromstring(picture.svg)
    boxes = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(boxes) == 9
    places = {(box.get("x"), box.get("y")) for box in boxes}
    assert len(places) == 9
    picture.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == picture._repr_svg_()


def test_leaves_in_words() -> None:
    assert ProbabilityLeaves(["no", "yes"], [0.2, 0.9]).text(1) == "yes: 90%"
    three = ProbabilityLeaves(["a", "b", "c"], [0.6])
    assert [three.text(k) for k in range(three.size)] == ["all equally likely", "a: 60%", "b: 60%", "c: 60%"]


def test_leaves_say_the_words_of_the_schema() -> None:
    about = ps.About(positive="will fall ill", negative="stays well")
    worded = Schema(SCHEMA.columns, SCHEMA.label, intercept=False, about=about)
    for leaves, words in (
        (LabelLeaves(["no", "yes"]), {"will fall ill", "stays well"}),
        (ProbabilityLeaves(["no", "yes"], [0.2, 0.9]), {"will fall ill: 20%", "will fall ill: 90%"}),
    ):
        made = TreeCard(DecisionTree(ROOT, NAMES, leaves, worded), GUARANTEE)
        assert {says for _, says in rules(made.tree)} == words
        for form in (made.to_text(), made.to_markdown(), made.to_html(), made.plot().svg):
            assert all(word.replace("%", "") in form for word in words)


# --- the page, in a real browser --------------------------------------------------------------------


def page(tmp_path: Path, made: TreeCard | None = None) -> Path:
    file = tmp_path / "tree.html"
    file.write_text((made or card()).to_html(), encoding="utf-8")
    return file


def press(browser: Browser, name: str) -> None:
    browser.click(browser.driver.find_element("id", name))


def test_a_person_answers_one_question_at_a_time(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path))
    assert browser.text("#question") == "age: 50 or more?"
    press(browser, "yes")
    assert browser.text("#question") == "colour <of> hair: red & auburn?"
    press(browser, "no")
    assert browser.text("#question") == "dose: 0.5 to under 2.5?"
    press(browser, "yes")
    assert browser.text("#says") == "ill no"
    assert not browser.driver.find_element("id", "yes").is_displayed()
    lines = [e.text for e in browser.all("#path li")]
    assert lines == ["age: 50 or more? yes", "colour <of> hair: red & auburn? no", "dose: 0.5 to under 2.5? yes"]
    on = {e.get_attribute("id") for e in browser.all(".picture .on")}
    assert on == {"box-", "box-y", "box-yn", "box-yny", "way-y", "way-yn", "way-yny"}
    press(browser, "back")
    press(browser, "no")
    assert browser.text("#says") == "ill yes"
    press(browser, "over")
    assert browser.text("#question") == "age: 50 or more?"
    assert not browser.driver.find_element("id", "back").is_enabled()


def test_the_page_fits_and_is_quiet(browser: Browser, tmp_path: Path) -> None:
    deep: Any = Leaf(0)
    for j in range(5):
        deep = Split(j, deep, Leaf(1))
    for made, width in itertools.product((card(), card(deep), card(Leaf(1))), (360, 1200)):
        browser.open(page(tmp_path, made), width=width)
        assert browser.layout_problems() == []
        assert browser.errors() == []


def test_every_path_of_the_page_says_what_the_tree_says(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path))
    said = []
    for answers in (["yes", "yes"], ["yes", "no", "yes"], ["yes", "no", "no"], ["no", "yes"], ["no", "no"]):
        press(browser, "over") if said else None
        for answer in answers:
            press(browser, answer)
        said.append(browser.text("#says"))
    assert said == [says for _, says in rules(card().tree)]
