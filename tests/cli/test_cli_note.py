"""A note that the ledger keeps of a payment."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli import app
from small_tables import INDICATORS, patients


def test_a_note_is_kept_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    patients(200).to_csv("data.csv", index=False)
    INDICATORS.save("schema.toml")
    run = CliRunner().invoke
    assert run(app, ["budget", "init", "a.ledger", "--epsilon", "3"]).exit_code == 0
    asked = [
        "fit",
        "--model",
        "short",
        "data.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--max-features",
        "2",
        "--out",
        "out",
    ]
    refused = run(app, [*asked, "--note", "for the report"])
    assert refused.exit_code == 2
    assert "--note is kept in a ledger: add --ledger" in refused.output
    done = run(app, [*asked, "--ledger", "a.ledger", "--note", "for the report"])
    assert done.exit_code == 0, done.output
    paid = ["evaluate", "data.csv", "--release", "out/release.json", "--epsilon", "1", "--ledger", "a.ledger"]
    assert run(app, [*paid, "--note", "how good"]).exit_code == 0
    notes = [entry.note for entry in ps.Ledger.open("a.ledger").history()]
    assert [note.split(" (")[0][:14] for note in notes] == ["for the report", "how good"]
