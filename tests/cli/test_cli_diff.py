"""`privsolve diff`: what changed between two releases, told from the files alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from commands import done, refused
from privsolve import Bins, Categories, Dates, Guarantee, Label, Number, Release, Schema
from privsolve.models.full_card import FullCard
from privsolve.models.leaves import LabelLeaves
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree, Leaf, Split
from privsolve.privacy.profiles import Pure
from privsolve.releases.differences import differences

LABEL = Label("ill", "yes", "no")
PROMISE = Guarantee(Pure(0.5, 0.125), "replace", "a test", "none", "4", "none")
OLD = Schema([Bins("age", [40, 60], whole=True), Categories("sex", ["f", "m"]), Number("dose", 0, 10)], LABEL)
NEW = Schema([Bins("age", [50], whole=True), Categories("ward", ["a"]), Dates("born", ["2000-01-01"])], LABEL)


def release(model: object) -> Release:
    """A release of a model that no mechanism chose."""
    return Bare(model, PROMISE)  # type: ignore[arg-type]


class Bare(Release):
    """Without what it was chosen from."""

    def __post_init__(self) -> None:
        pass


def risk(schema: Schema, weights: list[int], log_odds: float) -> FullCard:
    return FullCard(np.array(weights), schema.features, schema.scales, True, schema, log_odds=log_odds)


def test_cards_with_risks_are_compared_in_log_odds() -> None:
    old, new = risk(OLD, [1, 2, 3, 0, 1, -4], 0.5), risk(NEW, [4, -1, 2, -2], 1.0)
    found = differences(release(old), release(new))
    assert "No longer asked: sex, dose." in found.words
    assert "Newly asked: ward, born." in found.words
    assert found.unit == "log-odds"
    (said,) = [line for line in found.words if line.startswith("Positive from")]
    assert "a risk of 62.2% before" in said
    assert "a risk of 73.1% now" in said
    by = {(change.question, change.answer): (change.old, change.new) for change in found.changes}
    assert by["age", "under 40"] == (0, 0)
    assert by["age", "40 to 49"] == (0.5, 0)
    assert by["age", "50 to 59"] == (0.5, 4)
    assert by["age", "60 or more"] == (1.5, 4)
    assert by["sex", "m"] == (-1.5, None)
    assert by["dose", "10"] == (5, None)
    assert by["ward", "any other"] == (None, 1)
    assert by["born", "from 2000-01-01 on"] == (None, 2)
    record = pd.DataFrame({"age": [55], "sex": ["m"], "dose": [0], "ward": ["b"], "born": ["2001-05-05"]})
    risen = next(line for line in found.words if line.startswith("Risen most"))
    assert "age 50 to 59, sex m, dose 0, ward a, born from 2000-01-01 on" in risen
    for model, when in ((old, "of"), (new, "before,")):
        assert f"{when} {100 * model.risks(record.assign(ward='a'))[0]:.1f}%" in risen


def test_the_table_is_what_totals_say() -> None:
    """Every change is the difference of the totals of two records that differ in one answer."""
    old, new = risk(OLD, [1, 2, 3, 0, 1, -4], 0.5), risk(OLD, [3, -2, 0, 2, -1, 1], 0.25)
    answers = {"age": [30, 45, 70], "sex": ["f", "m"], "dose": [0, 10]}
    texts = {"age": ["under 40", "40 to 59", "60 or more"], "sex": ["f", "m"], "dose": ["0", "10"]}
    by = {(c.question, c.answer): (c.old, c.new) for c in differences(release(old), release(new)).changes}
    first = {name: values[0] for name, values in answers.items()}
    for name, values in answers.items():
        for text, value in zip(texts[name], values, strict=True):
            rows = pd.DataFrame([first, first | {name: value}])
            moved = [model.log_odds * float(np.diff(model.totals(rows))[0]) for model in (old, new)]
            assert by[name, text] == pytest.approx(moved)


def test_short_cards_trees_and_decisions() -> None:
    schema = Schema([Categories("a", ["yes"], no="no"), Categories("b", ["yes"], no="no")], LABEL)
    rules = [LinearRule(np.array(w), schema.features, schema.scales, True, schema) for w in ([1, 0, 0], [1, 1, -1])]
    found = differences(release(rules[0]), release(rules[1]))
    assert found.words[0] == "Both are a short card."
    assert found.unit == "points"
    asked = replace(schema, intercept=False)
    leaves = LabelLeaves(["no", "yes"])
    tree = DecisionTree(Split(0, Leaf(1), Leaf(0)), asked.features, leaves, asked)
    other = DecisionTree(Split(0, Split(1, Leaf(1), Leaf(0)), Leaf(0)), asked.features, leaves, asked)
    count = "Of 16 combinations of answers, 3 get another decision (combinations, not people)."
    for old, new in ((rules[0], rules[1]), (tree, other), (rules[0], other)):
        assert differences(release(old), release(new)).words[-1] == count
    words = differences(release(tree), release(other)).words
    assert "Only before: a=yes: yes → yes." in words
    assert "Only now: a=yes: yes; b=yes: yes → yes." in words
    assert differences(release(tree), release(rules[0])).words[0] == "A decision tree became a short card."
    relabelled = replace(other, schema=replace(asked, label=Label("ill", "no", "yes")))
    words = differences(release(tree), release(relabelled)).words
    assert "They do not predict the same: ill yes before, ill no now." in words


def test_privacy_of_both_from_real_files(here: Path) -> None:
    """A draft that both use is paid once; an evaluation added to a release does not pay for the model again."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 3000), "b": rng.choice(["x", "y"], 3000)})
    frame.assign(ill=np.where(frame["age"] + rng.normal(0, 9, 3000) > 50, "yes", "no")).to_csv("t.csv", index=False)

    def words_of(command: str) -> str:
        return " ".join(done(command).stdout.split())

    done("fit t.csv --label ill --positive yes --epsilon 1 --holdout 0 --out old")
    fit = "fit t.csv --schema old-curator/schema.toml --epsilon 0.5"
    done(f"{fit} --exclude b --out new")
    done(f"{fit} --out third")
    done("evaluate t.csv --release old/release.json --epsilon 0.25 --out measured")
    assert "e^1.5 =" in words_of("diff old/release.json new/release.json")  # 0.25 + 0.75 + 0.5
    same = words_of("diff old/release.json measured/release.json")
    assert "The two models are the same." in same
    assert "e^1.25 =" in same
    assert "paid for once" in words_of("diff old/release.json old/release.json")
    written = json.loads(words_of("diff new/release.json third/release.json --json"))
    assert "age" in {change["question"] for change in written["changes"]}
    refused("nowhere.json", "diff old/release.json nowhere.json")
    other = Bare(risk(OLD, [1, 2, 3, 0, 1, -3], 0.5), replace(PROMISE, adjacency="add-remove"))  # type: ignore[arg-type]
    words = differences(release(risk(OLD, [1, 2, 3, 0, 1, -4], 0.5)), other).privacy
    assert words[-1].startswith("The two do not add up")


def test_a_full_card_leaves_out_a_column_with_words_and_frequencies() -> None:
    label, words = '[label]\ncolumn = "ill"\npositive = ["yes"]', 'question = "How much?"\nfrequency = [0.5]'
    text = f"{label}\n[columns.a]\nbins = [1]\n{words}\n[columns.b]\nbins = [1]"
    frame = pd.DataFrame({"a": [0, 2] * 50, "b": [2, 0] * 50, "ill": ["yes", "no"] * 50})
    made = ps.PrivateScorecard(1.0, schema=Schema.from_toml(text), constraints=ps.Constraints(excluded=["a"]))
    assert [column.column for column in made.fit(frame).schema_.columns] == ["b"]
