"""Drafted schemas: sensible, the same from frames and engines, every guess marked, and never silent; the commands."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli.schema import app
from privsolve.data import Bins, Categories, Draft, Label, Schema, draft
from privsolve.data.tables import open_table

runner = CliRunner()


def people(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "blue", None], n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(18, 90, n),
            "weight": rng.normal(70, 15, n),
            "gain": np.where(rng.random(n) < 0.9, 0, rng.integers(1000, 20_000, n)),
            "children": rng.integers(0, 4, n),
            "colour": colour,
            "member": rng.random(n) < 0.5,
            "note": [f"note {i}" for i in range(n)],
            "constant": 1,
            "born": pd.Timestamp("2001-01-01"),
            "label": np.where(rng.random(n) < 0.3, "yes", "no"),
        }
    )


@pytest.fixture
def drafted() -> Draft:
    with pytest.warns(ps.PrivacyLeakWarning, match="drafted from the data"):
        return draft(people(), "label")


def test_a_draft_is_sensible(drafted: Draft) -> None:
    schema = drafted.schema
    assert [column.column for column in schema.columns] == ["age", "weight", "gain", "children", "colour", "member"]
    age, weight, gain, children, colour, member = schema.columns
    assert isinstance(age, Bins)
    assert isinstance(weight, Bins)
    assert isinstance(gain, Bins)
    assert age.whole
    assert len(age.cuts) == 3
    assert all(cut % 5 == 0 for cut in age.cuts)  # round numbers, not the quartiles themselves
    assert 18 < age.cuts[0] < age.cuts[-1] < 90
    assert not weight.whole
    assert 1000 < gain.cuts[0] <= gain.cuts[-1] < 20_000  # although nine of ten are 0
    assert children == Categories("children", [0, 1, 2, 3])
    assert colour == Categories("colour", ["red"], no="blue", missing="missing")
    assert member == Categories("member", [True], no=False)
    assert schema.label == Label("label", "yes", "no")
    assert schema.intercept
    assert set(drafted.left_out) == {"id", "note", "constant", "born"}
    assert schema.table(people()).table.n == 400


def test_every_guess_is_marked(drafted: Draft) -> None:
    text = drafted.to_toml()
    assert Schema.from_toml(text) == drafted.schema
    assert drafted.schema.guessed == drafted.schema.all_guessed().guessed != ()
    by_hand = text.replace("guessed = [", "guessed = [] # [")
    assert Schema.from_toml(by_hand if "\n]" not in text else text).columns == drafted.schema.columns
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("["):
            assert lines[i - 1].startswith("# Guessed: "), line
    for name, reason in drafted.left_out.items():
        assert f"# {name}: {reason}" in lines


@pytest.mark.filterwarnings("ignore::privsolve.PrivacyLeakWarning")
def test_frames_engines_and_files_give_the_same_draft(drafted: Draft, tmp_path: Path) -> None:
    frame = people().drop(columns=["born", "weight"])
    expected = draft(frame, "label")
    assert draft(ibis.memtable(pa.Table.from_pandas(frame)), "label").schema == expected.schema
    frame.to_csv(tmp_path / "a.csv", index=False)
    from_file = draft(open_table(tmp_path / "a.csv"), "label")
    assert from_file.schema == expected.schema
    assert from_file.left_out == expected.left_out


@pytest.mark.filterwarnings("ignore::privsolve.PrivacyLeakWarning")
def test_the_positive_value() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [0, 1, 1, 0], "three": ["a", "b", "c", "a"]})
    assert draft(frame, "y").schema.label == Label("y", 1, 0)
    assert draft(frame, "y", "0").schema.label == Label("y", 0, 1)
    assert draft(frame, "three", "b").schema.label == Label("three", "b", ["a", "c"])
    with pytest.raises(ValueError, match="positive must be given: the label 'three' has 3"):
        draft(frame, "three")
    with pytest.raises(ValueError, match="positive='z' is not a value of the label 'y': it has 0, 1"):
        draft(frame, "y", "z")
    with pytest.raises(ValueError, match="label must be a column of the data, got 'z'"):
        draft(frame, "z")
    with pytest.raises(ValueError, match=r"no column of the data can be drafted.*x: a single value"):
        draft(pd.DataFrame({"x": [1, 1], "y": [0, 1]}), "y")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv", tmp_path / "s.toml"


def test_draft_and_check_from_the_command_line(files: tuple[Path, Path]) -> None:
    data, out = map(str, files)
    drafted = runner.invoke(app, ["draft", data, "--label", "label", "--out", out])
    assert drafted.exit_code == 0, drafted.output
    assert "warning: the schema was drafted from the data" in drafted.stderr
    assert "6 columns" in drafted.stdout
    assert "left out note: " in drafted.stdout
    plain = runner.invoke(app, ["check", out])
    assert plain.exit_code == 0, plain.output
    assert "age>=" in plain.stdout
    assert "Curator" not in plain.stdout
    checked = runner.invoke(app, ["check", out, data])
    public, private = checked.stdout.split("Curator only")
    assert "NOT covered by the guarantee" in private
    assert "400 records" in private
    assert "400" not in public
    missing = int(people()["colour"].isna().sum())
    assert f"colour: {missing} missing" in private


def test_json_and_errors(files: tuple[Path, Path]) -> None:
    data, out = map(str, files)
    wrong = runner.invoke(app, ["draft", data, "--label", "labl", "--out", out])
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("error: label must be a column of the data, got 'labl'")
    drafted = runner.invoke(app, ["draft", data, "--label", "label", "--out", out, "--json"])
    written = json.loads(drafted.stdout)
    assert Schema.from_dict(written["schema"]) == Schema.load(out)
    assert set(written["left_out"]) == {"id", "note", "constant", "born"}
    assert written["warnings"]
    checked = json.loads(runner.invoke(app, ["check", out, data, "--json"]).stdout)
    assert checked["features"] == list(Schema.load(out).features)
    assert checked["curator"]["records"] == 400
    assert "NOT covered" in checked["curator"]["note"]
    assert json.loads(runner.invoke(app, ["check", out, "--json"]).stdout)["curator"] is None
    again = runner.invoke(app, ["draft", data, "--label", "label", "--out", out])
    assert again.exit_code == 2
    assert "exists: choose another name" in again.stderr
    text = Path(out).read_text(encoding="utf-8")
    Path(out).write_text(text.replace("whole = true", "hole = true", 1), encoding="utf-8")
    bad = runner.invoke(app, ["check", out])
    assert bad.exit_code == 2
    assert "columns.age: unknown key 'hole'" in bad.stderr
    assert tomllib.loads(text)["intercept"] is True


def test_names_of_columns_that_are_no_texts_are_refused() -> None:
    for frame in (pd.DataFrame({0: [1, 2], "y": [0, 1]}), pd.DataFrame([[1, 2], [3, 4]])):
        with pytest.raises(ValueError, match=r"^the names of columns must be texts, got 0: rename them"):
            draft(frame, "y")


def test_commas_that_may_separate_thousands_are_not_guessed_to_be_decimal() -> None:
    salaries = [f"{n},{n % 900 + 100}" for n in range(1, 80)] + ["500"]
    frame = pd.DataFrame({"salary": salaries, "weight": [f"{n},5" for n in range(80)], "y": ["a", "b"] * 40})
    with pytest.warns(ps.PrivacyLeakWarning):
        drafted = draft(frame, label="y").schema
    assert [column.column for column in drafted.columns] == ["weight"]
