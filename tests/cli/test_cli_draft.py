"""`privsolve schema draft --epsilon`: files, what is paid, and how `fit` adds it up."""

import json
from pathlib import Path

import pytest

from commands import done, refused
from privsolve import Ledger, Schema
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.safety.folder import load_release
from small_tables import patients

DRAFT = "schema draft data.csv --label ill --positive yes --negative no --out d.toml"
FIT = "fit --model short data.csv --schema d.toml --out out --max-features 2"


@pytest.fixture
def here(here: Path) -> Path:
    patients(3000).to_csv("data.csv", index=False)
    Ledger.create("ledger", 10.0, 1e-3)
    return here


def test_from_a_csv_to_a_page_without_a_warning(here: Path) -> None:
    drafted = done(f"{DRAFT} --epsilon 1 --delta 1e-6")
    assert "d.toml: 3 columns" in drafted.stdout
    assert drafted.stderr == ""
    schema = Schema.load("d.toml")
    assert schema.paid is not None
    assert (schema.paid.guarantee.epsilon, schema.paid.guarantee.delta) == (1.0, 1e-6)
    assert "warning" not in done(f"{FIT} --epsilon 3 --holdout 0.25").output.lower()
    release = load_release("out/release.json")
    assert (release.guarantee.epsilon, release.total.epsilon, release.total.delta) == (3.0, 4.0, 1e-6)
    page = Path("out/scorecard.html").read_text()
    assert "e<sup>4</sup> = " in page
    assert "How good it is" in page


def test_a_ledger_pays_for_a_draft_once(here: Path) -> None:
    done(f"{DRAFT} --epsilon 0.5 --delta 1e-6")  # no ledger has heard of it
    fit = f"{FIT} --epsilon 1 --ledger ledger"
    done(fit)
    drafted, fitted = Ledger.open("ledger").history()
    assert (drafted.guarantee.epsilon, fitted.guarantee.epsilon) == (0.5, 1.0)
    assert drafted.note.startswith("schema draft ")
    assert {drafted.outcome, fitted.outcome} == {"released"}
    done(f"{fit} --overwrite")
    assert len(Ledger.open("ledger").history()) == 3
    done(f"{DRAFT} --out e.toml --epsilon 0.5 --delta 1e-6 --ledger ledger")
    done(f"{fit} --overwrite --schema e.toml")
    history = Ledger.open("ledger").history()
    assert [entry.guarantee.epsilon for entry in history] == [0.5, 1.0, 1.0, 0.5, 1.0]


def test_public_knowledge_is_used(here: Path) -> None:
    Path("stated.toml").write_text('[columns.colour]\ncategories = ["red", "blue"]\n')
    said = "--about question=Ill? --about 'positive=ill = treat' --about subject=patient"
    stated = "--stated stated.toml --bounds age=0:100:10 --leave-out dose"
    result = done(f"{DRAFT} --epsilon 2 {stated} {said} --json")
    about = Schema.load("d.toml").about
    assert (about.question, about.positive, about.subject) == ("Ill?", "ill = treat", "patient")
    columns = json.loads(result.stdout)["schema"]["columns"]
    assert set(columns) == {"colour", "age"}
    assert columns["colour"] == {"categories": ["red", "blue"]}
    assert all(cut % 10 == 0 for cut in columns["age"]["bins"])


def test_names_may_have_commas(here: Path) -> None:
    patients(300).rename(columns={"dose": "dose, mg"}).to_csv("data.csv", index=False)
    for out, options in (("0.toml", "--columns 'dose, mg' --columns age"), ("1.toml", "--drop colour,age")):
        done(f"{DRAFT} --out {out} {options} --epsilon 2")
    assert {column.column for column in Schema.load("0.toml").columns} == {"dose, mg", "age"}
    assert {column.column for column in Schema.load("1.toml").columns} == {"dose, mg"}


def test_wrong_drafts_spend_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_: pytest.fail("noise was drawn"))
    for options, words in (
        ("--epsilon 0", "epsilon must be"),
        ("--epsilon 1 --decimal ';'", "decimal must be"),
        ("", "it needs a privacy budget: give --epsilon"),
        ("--epsilon 1 --delta 2", "delta must lie"),
        ("--epsilon 1 --bounds age", "must be COLUMN=LOW:HIGH"),
        ("--epsilon 1 --bounds size=0:1", "no column 'size'"),
        ("--epsilon 1 --stated none.toml", "none.toml"),
        ("--epsilon 1 --label size", "no column 'size'"),
        ("--epsilon 11 --ledger ledger", "refused before any noise was drawn"),
        ("--epsilon 1 --adjacency add-remove --ledger ledger", "the budget is under replace"),
        ("--delta 1e-6", "write the schema by hand (docs/guides/schema.md)"),
        ("--epsilon 1 --about questoin=x", "about"),
        ("--epsilon 1 --about question", "about"),
        ("--epsilon 1 --about 'question=a\tb'", "about"),
        ("--epsilon 1 --about link=nowhere", "about"),
    ):
        assert len(refused(words, f"{DRAFT} {options}").stderr.splitlines()) == 1
    unstated = DRAFT.replace("--positive yes --negative no", "")
    refused("name the column to predict and its positive value", f"{unstated} --epsilon 1")
    assert Ledger.open("ledger").history() == ()
    assert not Path("d.toml").exists()


def test_fits_that_do_not_add_up(here: Path) -> None:
    done(f"{DRAFT} --epsilon 0.25 --delta 1e-6 --seed 1")
    for options, words in (
        ("--epsilon 0", "epsilon must be"),
        ("--epsilon 1 --adjacency add-remove", "drafted under replace"),
    ):
        refused(words, f"{FIT} --ledger ledger {options}")
    assert Ledger.open("ledger").history() == ()


def test_a_draft_of_public_facts_spends_nothing(here: Path) -> None:
    drafted = done(f"{DRAFT} --epsilon 0.01 --columns age --ledger ledger")  # too little to ask anything
    assert "nothing was spent" in " ".join(drafted.stdout.split())
    assert Schema.load("d.toml").paid is None
    assert Ledger.open("ledger").history() == ()
    done(f"{FIT} --epsilon 1 --ledger ledger")
    assert load_release("out/release.json").total.epsilon == 1.0


def test_the_delta_of_a_draft_is_chosen_by_public_facts(here: Path) -> None:
    Ledger.create("pure", 10.0)
    for options, delta in (("--ledger pure", 0), ("--adjacency add-remove", 1e-9)):
        done(f"{DRAFT} --epsilon 4 {options}")
        paid = Schema.load("d.toml").paid
        assert paid is not None
        assert paid.guarantee.delta == delta
        Path("d.toml").unlink()
