"""`privsolve fit --model tree`, `show` and `predict` with a tree, on real files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from all_trees import AllTrees
from commands import run
from privsolve.data import Categories, Schema
from privsolve.data.tables import open_table
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.learn.tree_recipe import TreeRecipe
from privsolve.models.leaves import LabelLeaves
from privsolve.models.tree import DecisionTree, depth_of, values_said
from privsolve.privacy.ledger import Ledger
from privsolve.problems.trees import TreeProblem
from privsolve.safety.folder import load_release
from small_tables import SCHEMA, patients


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a schema with a number in it, and a ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    patients().to_csv("data.csv", index=False)
    SCHEMA.save("s.toml")
    Ledger.create("ledger", 10.0)
    return tmp_path


FIT = ("fit", "data.csv", "--schema", "s.toml", "--epsilon", 8, "--out", "out", "--model", "tree", "--depth", 2)


@pytest.mark.parametrize("leaves", ["labels", "probabilities"])
def test_fit_show_and_predict(here: Path, leaves: str) -> None:
    result = run(*FIT, "--leaves", leaves, "--ledger", "ledger")
    assert result.exit_code == 0, result.output
    assert "Decision tree: ill" in result.stdout
    assert "training accuracy" in result.stderr
    assert "accuracy" not in result.stdout
    assert sorted(p.name for p in here.glob("out*/**/*") if p.is_file()) == [
        "diagnostics.json",
        "release.json",
        "tree.html",
    ]
    assert len(Ledger.open("ledger").history()) == 1
    tree = load_release("out/release.json").model
    assert isinstance(tree, DecisionTree)
    assert tree.depth <= 2
    for form, mark in (
        ("text", "Decision tree"),
        ("markdown", "## Decision tree"),
        ("html", "<!DOCTYPE html>"),
        ("sql", "CASE"),
        ("json", '"decision-tree"'),
    ):
        shown = run("show", "out/release.json", "--format", form)
        assert shown.exit_code == 0, shown.output
        assert mark in shown.stdout
    done = run("predict data.csv --release out/release.json --out said.csv")
    assert done.exit_code == 0, done.output
    said, frame = pd.read_csv("said.csv"), pd.read_csv("data.csv")
    assert said["prediction"].astype(str).tolist() == [str(value) for value in tree.predict(frame)]
    assert ("score" in said) == (leaves == "probabilities")
    query = run("show out/release.json --format sql").stdout
    with duckdb.connect() as db:
        db.register("data", frame)
        assert db.sql(query).df()["prediction"].astype(str).tolist() == said["prediction"].astype(str).tolist()


def test_machine_readable(here: Path) -> None:
    result = run(*FIT, "--json", "--seed", 1)
    assert json.loads(result.stdout) == {
        "release": "out/release.json",
        "tree": "out/tree.html",
        "curator": "out-curator/diagnostics.json",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--depth", 0), "depth"),
        (("--depth", 9), "depth"),
        (("--leaves", "probabilities", "--false-negative", 3), "costs of mistakes are for leaves of labels"),
        (("--max-features", 4), "--max-features is for --model short: leave it out with --model tree"),
        (("--max-points", 3), "--max-points is for --model scorecard or short"),
        (("--intercept", 8), "--intercept is for --model short"),
        (("--delta", 0.1), "--delta is for --model scorecard: leave it out with --model tree"),
        (("--model", "short"), "--depth is for --model tree: leave it out with --model short"),
    ],
)
def test_wrong_options_spend_nothing(here: Path, options: tuple[object, ...], message: str) -> None:
    result = run(*FIT, "--ledger", "ledger", *options)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())
    assert Ledger.open("ledger").history() == ()
    assert not (here / "out").exists()


def test_sql_is_for_cards_too(here: Path) -> None:
    assert run(*FIT[:8], "--model", "short", "--max-features", 1).exit_code == 0
    result = run("show out/release.json --format sql")
    assert result.exit_code == 0, result.stderr
    assert "CASE WHEN" in result.stdout


PLAN = ("plan", "--records", 5000, "--epsilon", 1)


def test_plan(here: Path) -> None:
    shown = run(*PLAN, "--schema", "s.toml", "--model", "tree", "--depth", 2)
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    assert "trees of depth 2" in words
    assert "MiB: public numbers" in words
    found = json.loads(run(*PLAN, "--schema", "s.toml", "--model", "tree", "--depth", 2, "--json").stdout)
    assert [bound["mechanism"] for bound in found["bounds"]] == ["tree", "tree"]
    assert found["work"]["units"] == 1
    assert found["features"] == 11
    excess = [bound["excess"] for bound in found["bounds"]]
    assert all(bound["share"] == pytest.approx(bound["excess"] / 5000) for bound in found["bounds"])
    assert excess[-1] > excess[-2] > 0


def test_plans_of_other_leaves_and_costs(here: Path) -> None:
    shares = run(*PLAN, "--features", 10, "--model", "tree", "--leaves", "probabilities")
    assert "Brier loss" in shares.stdout
    cost = run(*PLAN, "--features", 10, "--model", "tree", "--false-negative", 3)
    assert "More cost than the best" in cost.stdout
    for options in (("--model", "tree", "--max-points", 2), ("--depth", 2), ("--model", "short", "--leaves", "labels")):
        refused = run(*PLAN, "--features", 10, *options)
        assert refused.exit_code != 0
        assert "leave it out with --model" in " ".join(refused.stderr.split())


def test_the_bound_of_a_depth_holds_for_every_tree_of_it() -> None:
    """For each tree some tree that says the same has at least that prior."""
    questions = TreeQuestions(("a>=1", "a>=2", "b"), (0, 0, 1), (3, 2), (0b110, 0b100, 0b10))
    trees = DecisionTrees(questions, 3, LabelLeaves(["no", "yes"]))
    rows = np.array([[a >= 1, a >= 2, b] for a in range(3) for b in range(2)], dtype=np.uint8)
    listed = AllTrees(TreeProblem.from_records(rows, [0, 1] * 3, trees))
    best: dict[tuple[int, ...], float] = {}
    found = [(listed.tree(k), float(log)) for k, log in enumerate(listed.log_prior)]
    for tree, log in found:
        said = tuple(values_said(tree, rows).tolist())
        best[said] = max(best.get(said, -math.inf), log)
    for depth in (1, 2, 3):
        least = trees.least_log_prior(depth)
        smaller = [tree for tree, _ in found if depth_of(tree) <= depth]
        assert all(best[tuple(values_said(tree, rows).tolist())] >= least for tree in smaller)


def graded(n: int = 600) -> pd.DataFrame:
    """Records whose grade follows from two answers."""
    rng = np.random.default_rng(3)
    old, sick = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return pd.DataFrame(
        {"old": old, "sick": sick, "grade": np.select([sick == 0, old == 0], ["mild", "moderate"], "severe")}
    )


STATED = {"column": "grade", "classes": ["mild", "moderate", "severe"]}


@pytest.mark.parametrize("drafted", [True, False])
def test_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drafted: bool) -> None:
    """They take the road of every fit: draft, ledger, release, page, predictions; what cannot be done is refused unpaid."""
    monkeypatch.chdir(tmp_path)
    frame = graded()
    frame.to_csv("data.csv", index=False)
    Ledger.create("ledger", 100.0, delta=1e-5)
    stated = ["--label", "grade", "--classes", "mild,moderate, severe"]
    if not drafted:
        columns = {"old": {"categories": [1]}, "sick": {"categories": [1]}}
        schema = Schema.from_dict({"label": STATED, "columns": columns})
        assert Schema.from_toml(schema.to_toml()) == schema
        schema.save("s.toml")
        stated = ["--schema", "s.toml"]
        assert "600 records, 4 distinct rows" in run("schema check s.toml data.csv").stdout
        compared = run("compare", "data.csv", *stated, "--epsilon", 1, "--out", "c.html")
        assert "compared by a yes/no label" in compared.stderr
    fit = ("fit", "data.csv", *stated, "--epsilon", 20, "--depth", 2, "--ledger", "ledger", "--out")
    for wrong in (["--holdout", 0.2], ["--model", "short", "--depth", 3], ["--false-positive", 2], ["--max-points", 3]):
        assert run(*fit, "out", *wrong).exit_code == 2
    assert not Ledger.open("ledger").history()
    result = run(*fit, "out")
    assert result.exit_code == 0, result.output
    assert "Decision tree: grade" in result.stdout
    assert Path("out/tree.html").is_file()
    assert run("predict data.csv --release out/release.json --out scored.csv").exit_code == 0
    assert (pd.read_csv("scored.csv")["prediction"] == frame["grade"]).all()
    assert (
        "only trees for two labels can be evaluated"
        in run("evaluate data.csv --release out/release.json --epsilon 1 --ledger ledger").stderr
    )
    paid = len(Ledger.open("ledger").history())
    for row, value in ((3, None), (0, "odd")):
        odd = frame.astype({"grade": object})
        odd.loc[row, "grade"] = value
        odd.to_csv("data.csv", index=False)
        refused = run(*fit, f"other{row}")
        assert refused.exit_code == 2
        assert "at least one record has no value, or one that is not" in refused.stderr
    assert len(Ledger.open("ledger").history()) == paid


def test_a_tree_for_a_number_is_refused_unpaid(here: Path) -> None:
    fit = ("fit", "data.csv", "--label", "age", "--target", "0:99", "--model", "tree", "--epsilon", 1, "--out", "out")
    refused = run(*fit, "--ledger", "ledger")
    assert refused.exit_code == 2
    assert "--model tree: is for a label with classes; for a number use --model scorecard" in refused.stderr
    assert not Ledger.open("ledger").history()


def test_the_road_of_files_gives_the_tree_of_the_estimator(tmp_path: Path) -> None:
    """Counts in the engine and records in memory are the same problem, so the same seed draws the same tree."""
    frame = graded(80)
    frame.to_csv(tmp_path / "data.csv", index=False)
    columns = [Categories("old", [1]), Categories("sick", [1])]
    recipe = TreeRecipe(0.5, 2, LabelLeaves(STATED["classes"]))
    schema = Schema.from_dict({"label": STATED, "columns": {c.column: c.to_dict() for c in columns}})
    run = recipe.run(recipe.encoding(schema).table(open_table(tmp_path / "data.csv")), random_state=5)
    fitted = ps.PrivateTreeClassifier(
        0.5, depth=2, schema=Schema(columns), random_state=5, classes=STATED["classes"]
    ).fit(frame[["old", "sick"]], frame["grade"])
    assert run.release.model.root == fitted.tree_.root
    assert run.diagnostics.total_loss == fitted.diagnostics_.total_loss
