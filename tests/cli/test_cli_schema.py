"""`privsolve schema check`: features for everybody, what falls outside for the curator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from privsolve.cli import app
from privsolve.data import Schema
from small_tables import SCHEMA, patients


def check(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["schema", "check", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    patients(400).to_csv(tmp_path / "people.csv", index=False)
    SCHEMA.save(tmp_path / "s.toml")
    return tmp_path / "people.csv", tmp_path / "s.toml"


def test_features_are_listed_and_counts_are_the_curators(files: tuple[Path, Path]) -> None:
    data, schema = files
    plain = check(schema)
    assert plain.exit_code == 0, plain.output
    assert "age" in plain.stdout
    assert "Curator" not in plain.stdout
    public, private = check(schema, data).stdout.split("Curator only")
    assert "NOT covered by the guarantee" in private
    assert "400 records" in private
    assert "400" not in public


def test_json_and_errors(files: tuple[Path, Path]) -> None:
    data, schema = files
    checked = json.loads(check(schema, data, "--json").stdout)
    assert checked["features"] == list(Schema.load(schema).features)
    assert checked["curator"]["records"] == 400
    assert "NOT covered" in checked["curator"]["note"]
    assert json.loads(check(schema, "--json").stdout)["curator"] is None
    text = schema.read_text(encoding="utf-8")
    schema.write_text(text.replace("bins = ", "bin = ", 1), encoding="utf-8")
    bad = check(schema)
    assert bad.exit_code == 2
    assert "columns.age: " in bad.stderr
    schema.write_text(f"# GUESSED: cut points near the quartiles.\n{text}", encoding="utf-8")
    leaked = check(schema)
    assert leaked.exit_code == 2
    assert "read off the records without privacy" in leaked.stderr
