"""`privsolve budget`: tables for people, JSON for programs, one line for errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from privsolve.cli import budget
from privsolve.privacy.guarantee import Proof
from privsolve.privacy.ledger import Ledger
from promises import promise


def run(*arguments: object) -> Result:
    return CliRunner().invoke(budget.app, [str(a) for a in arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = run("init", tmp_path / "survey.ledger", "--epsilon", 1, "--delta", 1e-6, "--dataset", "survey [2024]")
    assert made.exit_code == 0, made.output
    return tmp_path / "survey.ledger"


def test_init_makes_a_ledger(path: Path) -> None:
    ledger = Ledger.open(path)
    assert (ledger.budget.epsilon, ledger.budget.delta, ledger.dataset) == (1.0, 1e-6, "survey [2024]")
    assert ledger.history() == ()


def test_show_tells_budget_spending_and_what_is_left(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.spend(promise(0.25, 1e-7, proof=Proof.NONE))
    ledger.spend(promise(0.5, seeded=True))
    shown = run("show", path)
    assert shown.exit_code == 0
    words = " ".join(shown.output.replace("│", " ").split())
    for part in ("survey [2024]", "epsilon 1 0.75 0.25", "delta of releases 5e-07 1e-07 4e-07", "2 releases"):
        assert part in words
    assert "1 of 2 releases not proved; 1 of 2 releases seeded" in words
    values = json.loads(run("show", path, "--json").output)
    assert values["spent"] == {
        "epsilon": 0.75,
        "delta": 1e-7,
        "rho": 0.15625,
        "releases": 2,
        "not_proved": 1,
        "seeded": 1,
        "negligible": 0.0,
    }
    assert values["remaining"]["epsilon"] == 0.25
    assert values["budget"]["rho"] == ledger.budget.rho_limit
    assert "(1, 1e-06)-DP for changing one record" in values["promise"]


def test_history_lists_payments(path: Path) -> None:
    assert "Nothing has been spent" in run("history", path).output
    ledger = Ledger.open(path)
    with ledger.spending(promise(0.25), "north [a]"):
        pass
    ledger.spend(promise(0.125), "south")
    shown = run("history", path)
    assert shown.exit_code == 0
    assert all(part in shown.output for part in ("north [a]", "released", "south", "spent", "0.125"))
    rows = json.loads(run("history", path, "--json").output)
    assert [(row["number"], row["note"]) for row in rows] == [(1, "north [a]"), (2, "south")]
    assert [row["outcome"] for row in rows] == ["released", "spent"]
    assert rows[0]["guarantee"] == promise(0.25).to_dict()


def test_one_release_is_one(path: Path) -> None:
    assert "0 releases" in run("show", path).output
    Ledger.open(path).spend(promise(0.25))
    assert "1 release " in run("show", path).output


def test_an_older_copy_is_refused_until_it_is_accepted(path: Path) -> None:
    older = path.read_bytes()
    Ledger.open(path).spend(promise(0.25))
    path.write_bytes(older)
    refused = run("show", path)
    assert refused.exit_code == 2
    assert "is not the latest: 1 payments were made" not in refused.stderr
    assert "is not the latest: 1 payment was made" in refused.stderr
    accepted = run("accept", path)
    assert accepted.exit_code == 0, accepted.output
    assert "0 releases" in accepted.output
    assert run("show", path).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "missing"), "cannot read the ledger"),
        (("history", "missing"), "cannot read the ledger"),
        (("init", "new", "--epsilon", "-1"), "epsilon must be finite and positive"),
        (("init", "new", "--epsilon", "1", "--adjacency", "swap"), "adjacency must be one of"),
        (("init", "new", "--epsilon", "1", "--composition-delta", "0.1"), "composition_delta must be between"),
        (("init", "survey.ledger", "--epsilon", "9"), "exists already"),
        (("show", "text"), "is not a privsolve ledger"),
    ],
)
def test_errors_are_one_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(path.parent)
    Path("text").write_text("hello")
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not Path("new").exists()
