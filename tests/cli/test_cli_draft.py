"""`privsolve schema draft --epsilon`: files, what is paid, and how `fit` adds it up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run
from privsolve.data import Schema
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.privacy.ledger import Ledger
from privsolve.safety.folder import load_release
from small_tables import patients

DRAFT = ("schema", "draft", "data.csv", "--label", "ill", "--positive", "yes", "--negative", "no", "--out", "d.toml")
FIT = ("fit", "--model", "short", "data.csv", "--schema", "d.toml", "--out", "out", "--max-features", 2)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    patients(3000).to_csv("data.csv", index=False)
    Ledger.create("ledger", 10.0, 1e-3)
    return tmp_path


def test_from_a_csv_to_a_page_without_a_warning(here: Path) -> None:
    drafted = run(*DRAFT, "--total-epsilon", 4, "--delta", 1e-6)
    assert drafted.exit_code == 0, drafted.output
    assert "d.toml: 3 columns" in drafted.stdout
    assert drafted.stderr == ""
    schema = Schema.load("d.toml")
    assert schema.paid is not None
    assert (schema.paid.guarantee.epsilon, schema.paid.guarantee.delta) == (1.0, 1e-6)
    fitted = run(*FIT, "--total-epsilon", 4, "--holdout", 0.25)
    assert fitted.exit_code == 0, fitted.output
    assert "warning" not in fitted.output.lower()
    release = load_release("out/release.json")
    assert (release.guarantee.epsilon, release.total.epsilon, release.total.delta) == (3.0, 4.0, 1e-6)
    page = Path("out/scorecard.html").read_text()
    assert "e<sup>4</sup> = " in page
    assert "How good it is" in page


def test_a_ledger_pays_for_a_draft_once(here: Path) -> None:
    assert run(*DRAFT, "--epsilon", 0.5, "--delta", 1e-6).exit_code == 0  # no ledger has heard of it
    assert run(*FIT, "--epsilon", 1, "--ledger", "ledger").exit_code == 0
    drafted, fitted = Ledger.open("ledger").history()
    assert (drafted.guarantee.epsilon, fitted.guarantee.epsilon) == (0.5, 1.0)
    assert drafted.note.startswith("schema draft ")
    assert {drafted.outcome, fitted.outcome} == {"released"}
    assert run(*FIT, "--epsilon", 1, "--ledger", "ledger", "--overwrite").exit_code == 0
    assert len(Ledger.open("ledger").history()) == 3
    again = [*DRAFT[:-1], "e.toml"]
    assert run(*again, "--epsilon", 0.5, "--delta", 1e-6, "--ledger", "ledger").exit_code == 0
    assert run(*FIT, "--schema", "e.toml", "--epsilon", 1, "--ledger", "ledger", "--overwrite").exit_code == 0
    history = Ledger.open("ledger").history()
    assert [entry.guarantee.epsilon for entry in history] == [0.5, 1.0, 1.0, 0.5, 1.0]


def test_public_knowledge_is_used(here: Path) -> None:
    Path("stated.toml").write_text('[columns.colour]\ncategories = ["red", "blue"]\n')
    result = run(
        *DRAFT, "--epsilon", 2, "--stated", "stated.toml", "--bounds", "age=0:100:10", "--leave-out", "dose", "--json"
    )
    assert result.exit_code == 0, result.output
    columns = json.loads(result.stdout)["schema"]["columns"]
    assert set(columns) == {"colour", "age"}
    assert columns["colour"] == {"categories": ["red", "blue"]}
    assert all(cut % 10 == 0 for cut in columns["age"]["bins"])


def test_names_may_have_commas(here: Path) -> None:
    patients(300).rename(columns={"dose": "dose, mg"}).to_csv("data.csv", index=False)
    for number, columns in enumerate((("--columns", "dose, mg", "--columns", "age"), ("--drop", "colour,age"))):
        assert run(*DRAFT[:-1], f"{number}.toml", *columns, "--epsilon", 2).exit_code == 0
    assert {column.column for column in Schema.load("0.toml").columns} == {"dose, mg", "age"}
    assert {column.column for column in Schema.load("1.toml").columns} == {"dose, mg"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--epsilon", 0), "epsilon must be"),
        (("--epsilon", 1, "--decimal", ";"), "decimal must be"),
        ((), "it needs a privacy budget: give --epsilon"),
        (("--epsilon", 1, "--total-epsilon", 1), "give either --epsilon"),
        (("--epsilon", 1, "--delta", 2), "delta must lie"),
        (("--epsilon", 1, "--bounds", "age"), "must be COLUMN=LOW:HIGH"),
        (("--epsilon", 1, "--bounds", "size=0:1"), "no column 'size'"),
        (("--epsilon", 1, "--stated", "none.toml"), "none.toml"),
        (("--epsilon", 1, "--label", "size"), "no column 'size'"),
        (("--epsilon", 11, "--ledger", "ledger"), "refused before any noise was drawn"),
        (("--epsilon", 1, "--adjacency", "add-remove", "--ledger", "ledger"), "the budget is under replace"),
        (("--delta", 1e-6), "write the schema by hand (docs/guides/schema.md)"),
    ],
)
def test_wrong_drafts_spend_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], words: str
) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_: pytest.fail("noise was drawn"))
    result = run(*DRAFT, *arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert words in line
    assert Ledger.open("ledger").history() == ()
    assert not Path("d.toml").exists()


def test_positive_must_be_stated(here: Path) -> None:
    result = run("schema draft data.csv --label ill --out d.toml --epsilon 1")
    assert result.exit_code == 2
    assert "name the column to predict and its positive value" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--total-epsilon", 0.25), "has spent all of it"),
        (("--total-epsilon", 1, "--epsilon", 1), "give either --epsilon"),
        ((), "give either --epsilon"),
        (("--epsilon", 1, "--adjacency", "add-remove"), "drafted under replace"),
    ],
)
def test_fits_that_do_not_add_up(here: Path, arguments: tuple[object, ...], words: str) -> None:
    assert run(*DRAFT, "--epsilon", 0.25, "--delta", 1e-6, "--seed", 1).exit_code == 0
    result = run(*FIT, *arguments, "--ledger", "ledger")
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert Ledger.open("ledger").history() == ()


def test_words_for_people_are_in_the_draft(here: Path) -> None:
    said = ("--about", "question=Ill?", "--about", "positive=ill = treat", "--about", "subject=patient")
    assert run(*DRAFT, "--epsilon", 1, *said).exit_code == 0
    about = Schema.load("d.toml").about
    assert (about.question, about.positive, about.subject) == ("Ill?", "ill = treat", "patient")
    for wrong in ("questoin=x", "question", "question=a\tb", "link=nowhere"):
        refused = run(*DRAFT[:-1], "e.toml", "--epsilon", 1, "--about", wrong)
        assert refused.exit_code == 2, wrong
        assert "about" in refused.stderr
    assert not Path("e.toml").exists()


def test_a_draft_of_public_facts_spends_nothing(here: Path) -> None:
    drafted = run(*DRAFT, "--epsilon", 0.01, "--columns", "age", "--ledger", "ledger")  # too little to ask anything
    assert drafted.exit_code == 0, drafted.output
    assert "nothing was spent" in " ".join(drafted.stdout.split())
    assert Schema.load("d.toml").paid is None
    assert Ledger.open("ledger").history() == ()
    fitted = run(*FIT, "--epsilon", 1, "--ledger", "ledger")
    assert fitted.exit_code == 0, fitted.output
    assert load_release("out/release.json").total.epsilon == 1.0
