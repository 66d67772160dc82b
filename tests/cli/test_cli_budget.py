"""`privsolve budget`: tables for people, JSON for programs, one line for errors."""

import json
from pathlib import Path

import pytest

from commands import done, refused
from privsolve import Ledger
from privsolve.privacy.guarantee import Proof
from promises import promise


@pytest.fixture
def ledger(here: Path) -> Ledger:
    done("budget init survey --epsilon 1 --delta 1e-6 --dataset 'survey [2024]'")
    assert "0 releases" in done("budget show survey").stdout
    return Ledger.open("survey")


def test_show_tells_budget_spending_and_what_is_left(ledger: Ledger) -> None:
    ledger.spend(promise(0.25, 1e-7, proof=Proof.NONE))
    assert "1 release " in done("budget show survey").stdout
    ledger.spend(promise(0.5, seeded=True))
    words = " ".join(done("budget show survey").output.replace("│", " ").split())
    for part in ("survey [2024]", "epsilon 1 0.75 0.25", "delta of releases 5e-07 1e-07 4e-07", "2 releases"):
        assert part in words
    assert "1 of 2 releases not proved; 1 of 2 releases seeded" in words
    values = json.loads(done("budget show survey --json").output)
    spent = {"epsilon": 0.75, "delta": 1e-7, "rho": 0.15625, "negligible": 0.0}
    assert values["spent"] == spent | {"releases": 2, "not_proved": 1, "seeded": 1}
    assert values["remaining"]["epsilon"] == 0.25
    assert values["budget"]["rho"] == ledger.budget.rho_limit
    assert "(1, 1e-06)-DP for changing one record" in values["promise"]


def test_history_lists_payments(ledger: Ledger) -> None:
    assert "Nothing has been spent" in done("budget history survey").output
    with ledger.spending(promise(0.25), "north [a]"):
        pass
    ledger.spend(promise(0.125), "south")
    shown = done("budget history survey").output
    assert all(part in shown for part in ("north [a]", "released", "south", "spent", "0.125"))
    rows = json.loads(done("budget history survey --json").output)
    assert [(row["number"], row["note"]) for row in rows] == [(1, "north [a]"), (2, "south")]
    assert [row["outcome"] for row in rows] == ["released", "spent"]
    assert rows[0]["guarantee"] == promise(0.25).to_dict()


def test_an_older_copy_is_refused_until_it_is_accepted(ledger: Ledger) -> None:
    older = Path("survey").read_bytes()
    ledger.spend(promise(0.25))
    Path("survey").write_bytes(older)
    refused("is not the latest: 1 payment was made", "budget show survey")
    assert "0 releases" in done("budget accept survey").output
    done("budget show survey")


def test_errors_are_one_line(ledger: Ledger) -> None:
    Path("text").write_text("hello")
    for command, message in (
        ("show missing", "cannot read the ledger"),
        ("history missing", "cannot read the ledger"),
        ("init new --epsilon -1", "epsilon must be finite and positive"),
        ("init new --epsilon 1 --adjacency swap", "adjacency must be one of"),
        ("init new --epsilon 1 --composition-delta 0.1", "composition_delta must be between"),
        ("init survey --epsilon 9", "exists already"),
        ("show text", "is not a privsolve ledger"),
    ):
        (line,) = refused(message, f"budget {command}").stderr.strip().splitlines()
        assert line.startswith("error: ")
        assert not Path("new").exists()
