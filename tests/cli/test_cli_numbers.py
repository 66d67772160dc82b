"""`privsolve fit --target LOW:HIGH`: a full scorecard for a number, on real files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import done, refused, run
from privsolve import Ledger
from privsolve.safety.folder import load_release


def stays(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age, ward = rng.integers(18, 90, n), rng.choice(["north", "south"], n)
    cost = 2000 + 3000 * (age >= 50) + 1500 * (ward == "south") + rng.normal(0, 300, n)
    return pd.DataFrame({"age": age, "ward": ward, "cost": cost.round(2)})


def test_from_a_table_to_a_card_for_a_number(here: Path) -> None:
    """Draft, ledger, page, predictions and comparison; what is for yes/no labels is refused before anything is paid."""
    stays().to_csv("data.csv", index=False)
    Ledger.create("ledger", 10.0, delta=1e-4)
    fit = ("fit", "data.csv", "--label", "cost", "--target", "0:10000", "--epsilon", 3, "--ledger", "ledger", "--out")
    for wrong, words in (
        (["--holdout", 0.2], "--holdout: only models with a yes/no label"),
        (["--bands", "5%"], "--bands is for a yes/no label"),
        (["--by", "ward"], "--by is for a yes/no label"),
        (["--weight", "age"], "--max-weight"),
        (["--weight", "age", "--max-weight", 90], "--max-weight is for a yes/no label"),
        (["--sample-rate", 0.5], "--sample-rate is for a yes/no label"),
        (["--false-positive", 2], "--false-positive is for a yes/no label"),
        (["--depth", 2], "--depth is for --model tree"),
        (["--model", "short"], "--model short: says yes or no"),
    ):
        refused(words, *fit, "out", *wrong)
    assert not Ledger.open("ledger").history()
    assert "Predicted cost" in done(*fit, "out").stdout
    assert len(Ledger.open("ledger").history()) == 2
    assert "Predicted cost" in Path("out/scorecard.html").read_text(encoding="utf-8")
    assert "The predicted cost is" in run("show out/release.json --format markdown").stdout
    assert "cannot be written as a program" in run("show out/release.json --format sql").stderr
    done("predict data.csv --release out/release.json --out scored.csv --reasons 1")
    said = pd.read_csv("scored.csv")
    release = load_release(Path("out/release.json"))
    assert said["prediction"].to_numpy() == pytest.approx(release.predict(stays()))
    assert release.scored(stays())["prediction"].to_numpy() == pytest.approx(release.predict(stays()))
    assert (said["prediction"] - said["cost"]).abs().mean() < 400
    evaluate = "evaluate data.csv --release out/release.json --epsilon 1 --ledger ledger"
    refused("only models of a yes/no label can be evaluated", evaluate)
    plan = "plan --schema out-curator/schema.toml --records 3000 --epsilon 1"
    refused("no error can be stated for a number", plan)
    done(*fit, "again", "--max-questions", 1)
    changed = run("diff", "out/release.json", "again/release.json").stdout
    assert "Both are a full scorecard for a number." in changed
    assert "What an answer adds to the predicted cost" in " ".join(changed.split())
    assert "the predictions are at most" in changed
    assert "Positive from" not in changed
