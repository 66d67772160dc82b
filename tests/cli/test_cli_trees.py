"""`privsolve fit --model tree`, `show` and `predict` with a tree, on real files."""

import json
import math
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from all_trees import AllTrees
from commands import done, refused, run
from privsolve import Categories, Ledger, Schema, TreeProblem, open_table
from privsolve.cli.options import ModelName, ModelOptions
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.learn.tree_recipe import TreeRecipe
from privsolve.models.leaves import LabelLeaves
from privsolve.models.tree import DecisionTree, depth_of, values_said
from privsolve.safety.folder import load_release
from small_tables import SCHEMA, patients


@pytest.fixture
def here(here: Path) -> Path:
    """A folder with a table, a schema with a number in it, and a ledger."""
    patients().to_csv("data.csv", index=False)
    SCHEMA.save("s.toml")
    Ledger.create("ledger", 10.0)
    return here


FIT = "fit data.csv --schema s.toml --epsilon 8 --out out --model tree --depth 2"


@pytest.mark.parametrize("leaves", ["labels", "probabilities"])
def test_fit_show_and_predict(here: Path, leaves: str) -> None:
    result = done(f"{FIT} --leaves {leaves} --ledger ledger")
    assert "Decision tree: ill" in result.stdout
    assert "training accuracy" in result.stderr
    assert "accuracy" not in result.stdout
    files = sorted(p.name for p in here.glob("out*/**/*") if p.is_file())
    assert files == ["diagnostics.json", "release.json", "tree.html"]
    assert len(Ledger.open("ledger").history()) == 1
    tree = load_release("out/release.json").model
    assert isinstance(tree, DecisionTree)
    assert tree.depth <= 2
    marks = {"text": "Decision tree", "markdown": "## Decision tree", "html": "<!DOCTYPE html>", "sql": "CASE"}
    for form, mark in (marks | {"json": '"decision-tree"'}).items():
        assert mark in done("show out/release.json --format", form).stdout
    done("predict data.csv --release out/release.json --out said.csv")
    said, frame = pd.read_csv("said.csv"), pd.read_csv("data.csv")
    assert said["prediction"].astype(str).tolist() == [str(value) for value in tree.predict(frame)]
    assert ("score" in said) == (leaves == "probabilities")
    query = run("show out/release.json --format sql").stdout
    with duckdb.connect() as db:
        db.register("data", frame)
        assert db.sql(query).df()["prediction"].astype(str).tolist() == said["prediction"].astype(str).tolist()


def test_wrong_options_spend_nothing(here: Path) -> None:
    fit = f"{FIT} --ledger ledger"
    for options, words in (
        ("--depth 0", "depth"),
        ("--depth 9", "depth"),
        ("--leaves probabilities --false-negative 3", "costs of mistakes are for leaves of labels"),
        ("--max-features 4", "--max-features is for --model short: leave it out with --model tree"),
        ("--max-points 3", "--max-points is for --model scorecard or short"),
        ("--intercept 8", "--intercept is for --model short"),
        ("--delta 0.1", "--delta is for --model scorecard: leave it out with --model tree"),
        ("--model short", "--depth is for --model tree: leave it out with --model short"),
    ):
        refused(words, f"{fit} {options}")
    number = "fit data.csv --label age --target 0:99 --model tree --epsilon 1 --out out --ledger ledger"
    refused("--model tree: is for a label with classes; for a number use --model scorecard", number)
    assert Ledger.open("ledger").history() == ()
    assert not (here / "out").exists()


PLAN = "plan --records 5000 --epsilon 1"


def test_plan(here: Path) -> None:
    asked = f"{PLAN} --schema s.toml --model tree --depth 2"
    words = " ".join(done(asked).stdout.split())
    assert "trees of depth 2" in words
    assert "MiB: public numbers" in words
    found = json.loads(done(f"{asked} --json").stdout)
    assert [bound["mechanism"] for bound in found["bounds"]] == ["tree", "tree"]
    assert found["work"]["units"] == 1
    assert found["features"] == 11
    excess = [bound["excess"] for bound in found["bounds"]]
    assert all(bound["share"] == pytest.approx(bound["excess"] / 5000) for bound in found["bounds"])
    assert excess[-1] > excess[-2] > 0


def test_plans_of_other_leaves_and_costs(here: Path) -> None:
    assert "Brier loss" in done(f"{PLAN} --features 10 --model tree --leaves probabilities").stdout
    assert "More cost than the best" in done(f"{PLAN} --features 10 --model tree --false-negative 3").stdout
    for options in ("--model tree --max-points 2", "--depth 2", "--model short --leaves labels"):
        refused("leave it out with --model", f"{PLAN} --features 10 {options}")


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
    grade = np.select([sick == 0, old == 0], ["mild", "moderate"], "severe")
    return pd.DataFrame({"old": old, "sick": sick, "grade": grade})


STATED = {"column": "grade", "classes": ["mild", "moderate", "severe"]}


@pytest.mark.parametrize("drafted", [True, False])
def test_classes(here: Path, drafted: bool) -> None:
    """They take the road of every fit: draft, ledger, release, page, predictions; what cannot be done is refused unpaid."""
    frame = graded()
    frame.to_csv("data.csv", index=False)
    Ledger.create("paid", 100.0, delta=1e-5)
    stated = "--label grade --classes 'mild,moderate, severe'"
    if not drafted:
        columns = {"old": {"categories": [1]}, "sick": {"categories": [1]}}
        schema = Schema.from_dict({"label": STATED, "columns": columns})
        assert Schema.from_toml(schema.to_toml()) == schema
        schema.save("s.toml")
        stated = "--schema s.toml"
        assert "600 records, 4 distinct rows" in done("schema check s.toml data.csv").stdout
        refused("compared by a yes/no label", f"compare data.csv {stated} --epsilon 1 --out c.html")
    fit = f"fit data.csv {stated} --epsilon 20 --depth 2 --ledger paid --seed 1"
    for wrong in ("--holdout 0.2", "--model short --depth 3", "--false-positive 2", "--max-points 3"):
        assert run(f"{fit} --out out {wrong}").exit_code == 2
    assert not Ledger.open("paid").history()
    assert "Decision tree: grade" in done(f"{fit} --out out").stdout
    assert Path("out/tree.html").is_file()
    done("predict data.csv --release out/release.json --out scored.csv")
    assert (pd.read_csv("scored.csv")["prediction"] == frame["grade"]).all()
    evaluate = "evaluate data.csv --release out/release.json --epsilon 1 --ledger paid"
    refused("only trees for two labels can be evaluated", evaluate)
    paid = len(Ledger.open("paid").history())
    for row, value in ((3, None), (0, "odd")):
        odd = frame.astype({"grade": object})
        odd.loc[row, "grade"] = value
        odd.to_csv("data.csv", index=False)
        refused("at least one record has no value, or one that is not", f"{fit} --out other{row}")
    assert len(Ledger.open("paid").history()) == paid


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


def test_costs_act_as_they_are_called() -> None:
    recipe = ModelOptions(model=ModelName.tree, false_positive=2, false_negative=5).recipe(1.0)
    assert recipe.leaves.costs == ((0, 2), (5, 0))  # type: ignore[attr-defined]
