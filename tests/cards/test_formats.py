"""To add a format: a module that reads a `Card`, a method `to_...`, a word. Nothing else knows the formats by name."""

from __future__ import annotations

import csv
import io

import pytest

import privsolve as ps
from privsolve.cards import words
from privsolve.cards.scorecard import Scorecard
from privsolve.cards.tree_card import TreeCard
from privsolve.cli.predict import CardFormat, written
from small_tables import INDICATORS, patients

FRAME = patients(200)


def release(estimator: ps.PrivateShortCard | ps.PrivateTreeClassifier) -> ps.Release:
    return estimator.fit(FRAME.drop(columns="ill"), FRAME["ill"]).release_


def card_csv(card: Scorecard) -> str:
    """A format of somebody's own: one line per answer, and what is promised."""
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerows(words.answer_lines(card))
    lines.writerow(("Privacy", words.privacy_words(card.guarantee).sentence))
    return out.getvalue()


def test_a_new_format_is_a_function_a_method_and_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scorecard, "to_csv", card_csv, raising=False)
    made = release(ps.PrivateShortCard(20.0, schema=INDICATORS, random_state=0))
    text = written(made, "csv")
    assert isinstance(text, str)
    *answers, promise = csv.reader(io.StringIO(text))
    assert len(answers) >= 2
    assert all(points in made.card().to_text() for _, _, points in answers)
    assert promise[1].startswith("Changing one record")
    tree = release(ps.PrivateTreeClassifier(20.0, depth=1, schema=INDICATORS, random_state=0))
    with pytest.raises(ValueError, match=r"--format csv: is for scorecards; a tree can be written as html or sql"):
        written(tree, "csv")


def test_every_word_is_a_method() -> None:
    methods = {name.removeprefix("to_") for name in dir(Scorecard) if name.startswith("to_")}
    assert set(CardFormat) - {CardFormat.json} == methods
    of_trees = {name.removeprefix("to_") for name in dir(TreeCard) if name.startswith("to_")}
    assert methods - of_trees == {"xlsx", "python", "javascript"}
