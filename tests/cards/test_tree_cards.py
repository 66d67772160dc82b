"""A released tree as text, Markdown, SQL, a picture and a page that is used in a real browser."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from selenium.webdriver.common.by import By

import privsolve as ps
from browser import Browser, browser_fixture  # noqa: F401
from privsolve.cards.tree_card import TreeCard, rules
from privsolve.data import Bins, Categories, Label, Schema
from privsolve.models.leaves import LabelLeaves, ProbabilityLeaves
from privsolve.models.tree import DecisionTree, Leaf, Split, with_tree_predictions
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange

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
GUARANTEE = Guarantee(BoundedRange(1.0), Adjacency.REPLACE, "exponential mechanism", "exact sample", "4", "sums")


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
    for text in (made.to_text(), made.to_markdown(), made.to_html()):
        assert "age" in text
        assert "Privacy" in text
    assert len(list(rules(made.tree))) == made.tree.size == 5
    assert "colour <of> hair" in made.to_markdown()
    assert max(map(len, made.to_text(60).split("Privacy")[1].splitlines())) <= 60
    single = card(Leaf(1))
    assert "yes" in single.to_text()
    assert list(rules(single.tree)) == [("always", "ill yes")]


def test_the_picture_is_svg_with_a_box_per_node(tmp_path: Path) -> None:
    picture = card().plot()
    root = ElementTree.fromstring(picture.svg)
    boxes = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(boxes) == 9
    places = {(box.get("x"), box.get("y")) for box in boxes}
    assert len(places) == 9
    picture.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == picture._repr_svg_()


def test_privacy_is_said_of_a_tree() -> None:
    for text in (card().to_markdown(), card().to_html()):
        assert "The tree was chosen" in text
        assert "scorecard" not in text.split("<body>")[-1]


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


def click(browser: Browser, name: str) -> None:
    browser.driver.find_element(By.ID, name).click()


def text(browser: Browser, name: str) -> str:
    return str(browser.driver.find_element(By.ID, name).text)


def test_a_person_answers_one_question_at_a_time(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path))
    assert text(browser, "question") == "age: 50 or more?"
    click(browser, "yes")
    assert text(browser, "question") == "colour <of> hair: red & auburn?"
    click(browser, "no")
    assert text(browser, "question") == "dose: 0.5 to under 2.5?"
    click(browser, "yes")
    assert text(browser, "says") == "ill no"
    assert not browser.driver.find_element(By.ID, "yes").is_displayed()
    lines = [e.text for e in browser.driver.find_elements(By.CSS_SELECTOR, "#path li")]
    assert lines == ["age: 50 or more? yes", "colour <of> hair: red & auburn? no", "dose: 0.5 to under 2.5? yes"]
    on = {e.get_attribute("id") for e in browser.driver.find_elements(By.CSS_SELECTOR, ".picture .on")}
    assert on == {"box-", "box-y", "box-yn", "box-yny", "way-y", "way-yn", "way-yny"}
    click(browser, "back")
    click(browser, "no")
    assert text(browser, "says") == "ill yes"
    click(browser, "over")
    assert text(browser, "question") == "age: 50 or more?"
    assert not browser.driver.find_element(By.ID, "back").is_enabled()


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_and_is_quiet(browser: Browser, tmp_path: Path, width: int) -> None:
    deep: Any = Leaf(0)
    for j in range(5):
        deep = Split(j, deep, Leaf(1))
    for made in (card(), card(deep), card(Leaf(1))):
        browser.open(page(tmp_path, made), width=width)
        assert browser.layout_problems() == []
        assert browser.errors() == []


def test_every_path_of_the_page_says_what_the_tree_says(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path))
    for _, says in rules(card().tree):
        assert says in ("ill yes", "ill no")
    said = []
    for answers in (["yes", "yes"], ["yes", "no", "yes"], ["yes", "no", "no"], ["no", "yes"], ["no", "no"]):
        click(browser, "over") if said else None
        for answer in answers:
            click(browser, answer)
        said.append(text(browser, "says"))
    assert said == [says for _, says in rules(card().tree)]


def test_the_text_of_a_fitted_tree() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"age": rng.integers(0, 90, 500), "colour <of> hair": "black", "dose": rng.random(500) * 4})
    labels = np.where(data["age"] >= 50, "yes", "no")
    fitted = ps.PrivateTreeClassifier(20.0, depth=2, schema=SCHEMA, random_state=0).fit(data, labels)
    assert "age>=50: yes → ill yes" in fitted.release_.card().to_text()
