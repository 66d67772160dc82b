"""`privsolve fit` on tables as they come: it ends with a page, or with one sentence before anything is paid."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commands import done, refused, run
from privsolve import Ledger
from privsolve.safety.folder import load_release
from raw_tables import RAW_TABLES, RawTable

ENOUGH = 5000
"""Records from which on a private card comes close to logistic regression."""

MOST = 16_000
"""Larger tables are cut to so many records here, to save time."""

HARD = {"stroke": 0.2, "fraud": 0.1, "survey": 0.06}
"""Tables with few positive records (255 and 240), or with 24 of 30 columns that say nothing: what may be lost there."""


@pytest.mark.parametrize("name", RAW_TABLES)
def test_one_command(name: str, here: Path) -> None:
    raw = replace(RAW_TABLES[name], records=min(RAW_TABLES[name].records, MOST))
    raw.write(Path("raw.csv"))
    Ledger.create("ledger", 1.0, delta=1e-5)
    positive = f"={raw.positive}" if raw.positive == "<30" else raw.positive  # a text, not a comparison
    stated = ["--label", raw.label, "--positive", positive, *(f"--missing={code}" for code in raw.missing)]
    result = run("fit raw.csv --epsilon 1 --out out --ledger ledger --seed 0", *stated)
    if result.exit_code != 0:
        assert raw.records < 1000
        assert result.stderr.count("error:") == 1
        assert not Ledger.open("ledger").history()
        return
    assert Path("out/scorecard.html").is_file()
    release = load_release("out/release.json")
    assert release.total.epsilon <= 1.0
    assert release.evaluation is not None
    assert not set(release.schema.names if release.schema else ()) & set(raw.absent)
    if raw.records >= ENOUGH:
        others = raw.frame(seed=1)
        found = roc_auc_score(others[raw.label] == raw.positive, release.model.totals(others))  # type: ignore[attr-defined]
        assert found > without_privacy(raw, others) - HARD.get(name, 0.03)


FIT = "fit raw.csv --label Survived --positive 1 --epsilon 1"


def test_wrong_options_are_refused_before_the_draft(here: Path) -> None:
    RAW_TABLES["titanic"].write(Path("raw.csv"))
    Ledger.create("ledger", 1.0, delta=1e-5)
    for options, words in (
        ("--out raw.csv", "--out raw.csv cannot be written to"),
        ("--out out --delta 0", "delta must be above 0 for a full scorecard"),
        ("--out out --max-points 0", "max_points must"),
        ("--out out --holdout 1.5", "holdout must lie strictly between 0 and 1"),
        ("--out out --evaluate-epsilon -1", "epsilon must"),
        ("--out out --evaluate-epsilon 0.8", "the fit has 0.75, and more than that would go beyond --epsilon"),
        ("--out out --epsilon 2", "refused before any noise was drawn"),
        ("--out out --require sexx", "no column 'sexx'"),
        ("--out out --exclude sexx", "no column 'sexx'"),
        ("--out out --direction sexx=up", "no column 'sexx'"),
        ("--out out --label Sex --positive '<30'", "write --positive '=<30'"),
        ("--out out --by Sex", "state its public values, as --by Sex=a,b,c"),
        ("--out out --by Sexes=male,female", "Sexes"),
        ("--out out --positive yes", "no record has a value that the schema lists"),
        ("--out out --model tree --depth 99", "depth"),
        ("--out out --epsilon 100", "epsilon must be at most 3"),
    ):
        refused(words, f"{FIT} --ledger ledger {options}")
    refused("--note is kept in a ledger", f"{FIT} --out out --note 'for the report'")
    assert not Ledger.open("ledger").history()
    assert not list(Path().rglob("schema.toml"))


def test_a_large_epsilon_is_warned_of_and_predict_overwrites_nothing(here: Path) -> None:
    RAW_TABLES["titanic"].write(Path("raw.csv"))
    assert "promises very little" in done(f"{FIT} --epsilon 20 --out out --seed 1").stderr
    before = Path("raw.csv").read_bytes()
    predict = "predict raw.csv --release out/release.json --out"
    for out in ("raw.csv", "raw.csv --overwrite", "out/release.json"):
        assert run(f"{predict} {out}").exit_code == 2
    assert Path("raw.csv").read_bytes() == before
    for more in ("", "--overwrite"):
        done(f"{predict} scored.csv {more}")
    assert run(f"{predict} scored.csv").exit_code == 2


def test_what_is_complete_is_not_resumed_and_what_is_drafted_goes_on(here: Path) -> None:
    RAW_TABLES["titanic"].write(Path("raw.csv"))
    Ledger.create("ledger", 2.0, delta=1e-5)
    fit = f"{FIT} --out out --ledger ledger --exclude Sex"
    done(fit)
    paid, first = len(Ledger.open("ledger").history()), Path("out/release.json").read_text()
    refused("out/release.json is complete", f"{fit} --resume --overwrite")
    assert len(Ledger.open("ledger").history()) == paid
    assert Path("out/release.json").read_text() == first
    shutil.rmtree("out")
    Path("out-curator/diagnostics.json").unlink()
    Path("out-curator/run.sealed").touch()  # a process that ended between the draft and the payment for the fit
    done(f"{fit} --resume")
    schema = load_release("out/release.json").schema
    assert schema is not None
    assert "Sex" not in schema.names
    assert len(Ledger.open("ledger").history()) == paid + 1


def test_at_a_terminal_it_asks_before_anything_is_spent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privsolve.cli.fit.somebody_reads", lambda: True)
    RAW_TABLES["titanic"].write(Path("raw.csv"))
    stopped = run(f"{FIT} --out out --seed 1", typed="n\n")
    assert stopped.exit_code == 2
    assert "nothing was read or spent" in stopped.output
    assert [path.name for path in here.iterdir()] == ["raw.csv"]
    assert run(f"{FIT} --out out --seed 1", typed="\n").exit_code == 0
    done(f"{FIT} --out again --yes")


def test_too_many_cards_have_no_time() -> None:
    said = done("plan --model short --features 300 --max-features 12 --records 100 --epsilon 1").stdout
    assert "inf" not in said
    assert "use fewer --max-features" in " ".join(said.split())


def without_privacy(raw: RawTable, others: pd.DataFrame) -> float:
    """The area under the ROC curve of logistic regression, on the same columns."""
    train = raw.frame()
    columns = [name for name in train.columns if name not in (raw.label, *raw.absent)]
    numbers = [name for name in columns if pd.to_numeric(train[name], errors="coerce").notna().mean() > 0.5]
    texts = [name for name in columns if name not in numbers]

    def features(frame: pd.DataFrame) -> pd.DataFrame:
        read = {name: pd.to_numeric(frame[name], errors="coerce").astype(np.float64) for name in numbers}
        return pd.DataFrame(read | {name: frame[name].astype(str) for name in texts})

    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=20), texts),
    )
    model = make_pipeline(steps, LogisticRegression(max_iter=500)).fit(features(train), train[raw.label])
    scores = model.decision_function(features(others)) * (1 if model.classes_[1] == raw.positive else -1)
    return float(roc_auc_score(others[raw.label] == raw.positive, scores))


def test_a_label_by_a_threshold_is_said_in_words(here: Path) -> None:
    """From a file with decimal commas; what stands for no value is no small number."""
    rng = np.random.default_rng(1)
    ages = rng.integers(20, 80, 2000)
    sugar = [f"{100 + s:.1f}".replace(".", ",") for s in ages + rng.normal(size=2000)]
    table = pd.DataFrame({"age": ages, "sugar": sugar})
    table.to_csv("raw.csv", index=False, sep=";")
    fit = "fit raw.csv --label sugar --positive '<150' --epsilon 3 --missing -999 --seed 1 --out"
    assert "Full scorecard for sugar below 150" in done(f"{fit} out").stdout
    for form in ("--format sql", "--format html", ""):
        assert "sugar at least 150" in run(f"show out/release.json {form}").stdout
    done("predict raw.csv --release out/release.json --out scored.csv")
    right = (ages < 50) == (pd.read_csv("scored.csv", sep=",")["prediction"] == "sugar below 150")
    assert right.mean() > 0.9
    table.assign(sugar=["-999", *sugar[1:]]).to_csv("raw.csv", index=False, sep=";")
    refused("at least one record has none that is a number", f"{fit} other")


def test_a_reader_that_leaves_early_loses_nothing(tmp_path: Path) -> None:
    """`privsolve fit ... | head -1` ended after the draft was paid for, without a release."""
    RAW_TABLES["titanic"].write(tmp_path / "raw.csv")
    program = [sys.executable, "-m", "privsolve", *FIT.split(), "--out", "out"]
    with Popen(program, cwd=tmp_path, stdout=PIPE, stderr=DEVNULL) as fit:
        assert fit.stdout is not None
        fit.stdout.close()
    assert fit.returncode == 0
    assert (tmp_path / "out" / "release.json").is_file()
