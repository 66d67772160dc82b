"""What notebooks show: every value says what it is, escaped, and what is not private says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.cards.tree_card import TreeCard
from privsolve.data import About, Bins, Categories, Label, Schema
from privsolve.models.leaves import LabelLeaves
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree, Leaf, Split
from privsolve.releases import Diagnostics
from promises import promise
from random_scorecards import GUARANTEE, release_of

ABOUT = About(
    subject="mushroom",
    question="Is it <edible>?",
    positive="edible",
    negative="poisonous",
    owner="The Society",
    data="8,124 mushrooms",
    date="1987",
    questions={"odour": "What does it smell of?"},
    units={"cap": "cm"},
    link="https://example.org/a?b&c",
)
SCHEMA = Schema(
    [Categories("odour", ["almond", "a<b"]), Bins("cap", [2, 5], "thresholds")], Label("class", "e", "p"), about=ABOUT
)
WEIGHTS = [2, 0, 1, 0, -2]


def release(**guarantee: Any) -> ps.Release:
    rule = LinearRule(np.array(WEIGHTS), SCHEMA.features, SCHEMA.scales, True, SCHEMA)
    setting = {"domain": ps.FiniteSet([WEIGHTS]).to_dict(), "loss": ps.ZeroOneLoss().to_dict()}
    return ps.Release(rule, promise(1.0, **guarantee) if guarantee else GUARANTEE, setting)


def test_a_card_and_its_release_show_the_same() -> None:
    card = release().card()
    shown = card._repr_html_()
    assert shown == release()._repr_html_()
    said = (
        "Is it &lt;edible&gt;?",
        "What does it smell of?",
        "cap (cm)",
        "a&lt;b",
        "at least",
        "Published by",
        "ε = 0.5",
    )
    assert all(part in shown for part in said)
    assert "<a<b" not in shown
    assert "Warning." in release(seeded=True)._repr_html_()


def test_trees_schemas_guarantees_and_ledgers(tmp_path: Path) -> None:
    schema = Schema(SCHEMA.columns, SCHEMA.label, False, about=ABOUT)
    tree = DecisionTree(Split(0, Leaf(1), Leaf(0)), schema.features, LabelLeaves(["p", "e"]), schema)
    card = TreeCard(tree, GUARANTEE)
    assert "<svg" in card._repr_html_()
    assert "Is it &lt;edible&gt;?" in card._repr_html_()
    assert SCHEMA.to_frame()["question"].tolist() == ["What does it smell of?", "cap (cm)"]
    assert "2.719" in GUARANTEE._repr_html_()
    assert "Seeded" in promise(1.0, seeded=True)._repr_html_()
    ledger = ps.Ledger.create(tmp_path / "a.ledger", 2.0, dataset="<mushrooms>")
    ledger.spend(GUARANTEE, "first & last")
    assert ledger.to_frame()["note"].tolist() == ["first & last"]


def test_diagnostics_say_that_they_are_not_private() -> None:
    diagnostics = Diagnostics(1.0, {"training_accuracy": 0.9}, {"nodes": 7})
    assert "not private" in diagnostics.to_frame()
    assert diagnostics.to_json().index("NOT covered by the guarantee") < diagnostics.to_json().index("0.9")


def test_words_go_to_a_file_and_back_and_are_on_every_form() -> None:
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    card = ps.Release.from_json(release().to_json()).card()
    for text in (card.to_text(), card.to_markdown(), card.to_html()):
        flat = " ".join(text.split())
        said = ("edible", "poisonous", "What does it smell of?", "cap (cm)", "The Society", "8,124 mushrooms", "1987")
        assert all(part in flat for part in said)
        assert "made-up mushroom" in flat
        assert "made-up person" not in flat
    assert 'href="https://example.org/a?b&amp;c"' in card.to_html()
    assert card.decide({"odour": "almond", "cap": "2 to under 5"}) == "edible"
    plain = Schema(SCHEMA.columns, SCHEMA.label)
    assert "about" not in plain.to_dict()
    assert "made-up person" in release_of(["a"], [1]).card().to_text()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subject": ""}, "about: subject must be one line"),
        ({"owner": "a\nb"}, "about: owner must be one line"),
        ({"date": 1987}, "about: date must be one line"),
        ({"positive": "x", "negative": "x"}, "name the two decisions differently"),
        ({"link": "javascript:alert(1)"}, "about: link must be an address"),
        ({"questions": {"cap": "x" * 301}}, "columns.cap: question must be one line"),
    ],
)
def test_wrong_words_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        About(**wrong)


def test_words_for_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="no column 'weight'"):
        Schema(SCHEMA.columns, about=About(units={"weight": "g"}))
    with pytest.raises(ValueError, match="about: unknown key 'colour'"):
        Schema.from_dict({"columns": {"a": {"bins": [1]}}, "about": {"colour": "red"}})
