"""`privsolve fit --model tree`, `show` and `predict` with a tree, on real files."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from privsolve.cli import app
from privsolve.learn.publishing import load_release
from privsolve.models.tree import DecisionTree
from privsolve.privacy.ledger import Ledger
from small_tables import SCHEMA, patients


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


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
        "diagnostics.json", "release.json", "tree.html",
    ]  # fmt: skip
    assert len(Ledger.open("ledger").history()) == 1
    tree = load_release("out/release.json").model
    assert isinstance(tree, DecisionTree)
    assert tree.depth <= 2
    for form, mark in (("text", "Decision tree"), ("markdown", "## Decision tree"), ("latex", "tabular"),
                       ("html", "<!DOCTYPE html>"), ("sql", "CASE"), ("json", '"decision-tree"')):  # fmt: skip
        shown = run("show", "out/release.json", "--format", form)
        assert shown.exit_code == 0, shown.output
        assert mark in shown.stdout
    done = run("predict", "data.csv", "--release", "out/release.json", "--out", "said.csv")
    assert done.exit_code == 0, done.output
    said, frame = pd.read_csv("said.csv"), pd.read_csv("data.csv")
    assert said["prediction"].astype(str).tolist() == [str(value) for value in tree.predict(frame)]
    assert ("score" in said) == (leaves == "probabilities")
    query = run("show", "out/release.json", "--format", "sql").stdout
    with duckdb.connect() as db:
        db.register("data", frame)
        assert db.sql(query).df()["prediction"].astype(str).tolist() == said["prediction"].astype(str).tolist()


def test_machine_readable(here: Path) -> None:
    result = run(*FIT, "--json", "--seed", 1)
    assert json.loads(result.stdout) == {
        "release": "out/release.json", "tree": "out/tree.html", "curator": "out-curator/diagnostics.json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--depth", 0), "depth"),
        (("--depth", 9), "depth"),
        (("--mechanism", "opdisc"), "trees are drawn by the exponential mechanism"),
        (("--leaves", "probabilities", "--false-negative", 3), "costs of mistakes are for leaves of labels"),
    ],
)
def test_wrong_options_spend_nothing(here: Path, options: tuple[object, ...], message: str) -> None:
    result = run(*FIT, "--ledger", "ledger", *options)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())
    assert Ledger.open("ledger").history() == ()
    assert not (here / "out").exists()


def test_sql_is_for_trees(here: Path) -> None:
    assert run(*FIT[:8], "--max-features", 1).exit_code == 0
    result = run("show", "out/release.json", "--format", "sql")
    assert result.exit_code != 0
    assert "is for decision trees" in " ".join(result.stderr.split())
