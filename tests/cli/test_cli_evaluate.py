"""`privsolve evaluate` and `privsolve fit --holdout`: what is shown, written and paid."""

import json
from pathlib import Path

import pytest

from commands import done, refused
from privsolve import Ledger
from privsolve.evaluation import MeasuredOn
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.releases import NOT_PRIVATE
from privsolve.safety.folder import load_release
from small_tables import INDICATORS, patients

FIT = "fit --model short data.csv --schema s.toml --epsilon 2 --out out --max-features 2"


@pytest.fixture
def here(here: Path) -> Path:
    patients(500).to_csv("data.csv", index=False)
    patients(400, seed=3).to_csv("other.csv", index=False)
    INDICATORS.save("s.toml")
    Ledger.create("ledger", 10.0)
    return here


@pytest.mark.parametrize("model", ["scorecard", "short", "tree"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_fit_of_which_every_record_is_held_out_is_released(model: str, adjacency: str, here: Path) -> None:
    """How many records are left to fit on is a matter of coins and, under add-remove, of single records."""
    patients(500).dropna().head(1).to_csv("data.csv", index=False)
    fit = "fit data.csv --schema s.toml --out out --epsilon 1 --holdout 0.99999"
    done(f"{fit} --model {model} --adjacency {adjacency}")
    assert json.loads(Path("out-curator/diagnostics.json").read_text())["training_records"] == 0
    assert load_release("out/release.json").evaluation is not None


def test_a_fit_with_holdout_publishes_its_quality_and_pays_once(here: Path) -> None:
    how = "--holdout 0.3 --evaluate-epsilon 1.5 --by colour=red,blue --ledger ledger --note 'for the report'"
    result = done(f"{FIT} {how}")
    assert "Decisions that are right" in result.stdout
    release = load_release("out/release.json")
    evaluation = release.evaluation
    assert evaluation is not None
    assert evaluation.tested is MeasuredOn.HELD_OUT
    assert evaluation.groups == ("red", "blue", "other", "missing")
    assert (release.guarantee.epsilon, evaluation.guarantee.epsilon, release.total.epsilon) == (2.0, 1.5, 2.0)
    (entry,) = Ledger.open("ledger").history()
    assert (entry.guarantee.epsilon, entry.outcome) == (2.0, "released")
    assert entry.note.startswith("for the report")
    assert entry.guarantee.profile == release.total.profile
    page = Path("out/scorecard.html").read_text()
    assert "How good it is" in page
    assert page.count("<svg") == 2
    curator = json.loads(Path("out-curator/diagnostics.json").read_text())
    assert curator["warning"] == NOT_PRIVATE
    held = curator["held_out"]["records"]
    assert 100 < held < 200
    shown = evaluation.cells.records()  # with noise, which may be 0
    assert f"about {shown:,} records" in page
    assert held == shown or f"{held:,} records" not in page
    assert not result.stderr.count("warning")


def test_trees_with_holdout(here: Path) -> None:
    fit = "fit --model tree data.csv --schema s.toml --epsilon 2 --out out --depth 2 --holdout 0.3 --json"
    files = {"release": "out/release.json", "tree": "out/tree.html", "curator": "out-curator/diagnostics.json"}
    assert json.loads(done(fit).stdout) == files
    assert "By leaf" in Path("out/tree.html").read_text()
    assert done("show out/release.json").stdout.count("How good it is") == 1


def test_evaluate_a_release(here: Path) -> None:
    done(FIT)
    before = Path("out/release.json").read_text()
    evaluate = "evaluate other.csv --release out/release.json --epsilon 1"
    result = done(f"{evaluate} --ledger ledger --note 'how good'")
    assert "Decisions that are right" in result.stdout
    assert "e^3 = " in " ".join(result.stdout.split())
    assert "accuracy" in result.stderr
    (entry,) = Ledger.open("ledger").history()
    assert (entry.guarantee.mechanism, entry.outcome) == ("noisy histogram", "released")
    assert entry.note.startswith("how good")
    written = done(f"{evaluate} --other-records --out tested --by colour --json")
    content = json.loads(written.stdout)
    assert content["total"]["profile"]["epsilon"] == 2.0
    assert set(content["groups"]) == {"red", "blue", "another", "missing"}
    again = load_release("tested/release.json")
    assert again.evaluation is not None
    assert again.evaluation.to_dict() == content["evaluation"]
    assert Path("out/release.json").read_text() == before


def test_wrong_evaluations_draw_no_noise(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done(FIT)
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_: pytest.fail("noise was drawn"))
    for options, words in (
        ("--epsilon 0", "epsilon must be"),
        ("--epsilon 1 --release s.toml", "not a release file"),
        ("--epsilon 1 --by height", "no column 'height'"),
        ("--epsilon 1 --by height=1,2", "no column 'height'"),
        ("--epsilon 11 --ledger ledger", "refused before any noise was drawn"),
    ):
        result = refused(words, f"evaluate other.csv --release out/release.json {options}")
        assert len(result.stderr.splitlines()) == 1
    assert Ledger.open("ledger").history() == ()


def test_wrong_holdouts_spend_nothing(here: Path) -> None:
    for options, words in (
        ("--holdout 0", "holdout must lie"),
        ("--holdout 0.2 --evaluate-epsilon -1", "epsilon must be"),
        ("--holdout 0.2 --evaluate-epsilon 2.5", "the fit has 2, and more than that would go beyond --epsilon"),
        ("--holdout 0.2 --by height", "no column 'height'"),
        ("--by colour", "add --holdout"),
        ("--evaluate-epsilon 1", "add --holdout"),
    ):
        assert len(refused(words, f"{FIT} --ledger ledger {options}").stderr.splitlines()) == 1
    refused("--note is kept in a ledger: add --ledger", f"{FIT} --note 'for the report'")
    assert Ledger.open("ledger").history() == ()
    assert not Path("out").exists()
