"""A release is read without privsolve, by a program in R."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from privsolve.cli import app

PROGRAM = Path(__file__).parents[2] / "examples" / "read_release.R"


def has_r() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not has_r(), reason="R with jsonlite is not installed")
@pytest.mark.parametrize("drafted", [True, False])
def test_r_gives_what_predict_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drafted: bool) -> None:
    """Also where values are missing, unknown or no numbers, from a draft and from a schema that names such answers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    n = 3000
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(object),
            "pay": (rng.normal(3, 1, n).round(2) * 1e5).astype(object),
            "ward": rng.choice(["a", "b", "c"], n).astype(object),
            "smoker": rng.choice(["yes", "no"], n).astype(object),
        }
    )
    frame["ill"] = np.where(frame["age"] + 20 * (frame["ward"] == "a") + rng.normal(0, 9, n) > 60, "yes", "no")
    frame.to_csv("train.csv", index=False)
    stated = ["--label", "ill", "--positive", "yes", "--holdout", "0"]
    if not drafted:
        Path("s.toml").write_text(
            '[label]\ncolumn = "ill"\npositive = ["yes"]\n'
            '[columns.age]\nbins = [30, 50, 70]\nmissing = "unknown"\nmissing_values = [-999]\n'
            "[columns.pay]\nbins = [100000, 250000.5, 1000000]\n"
            '[columns.ward]\ncategories = ["a", "b"]\nother = "another"\nmissing_values = ["?"]\n'
            '[columns.smoker]\ncategories = ["yes"]\nno = "no"\nmissing = "not asked"\n'
        )
        stated = ["--schema", "s.toml"]
    fit = CliRunner().invoke(app, ["fit", "train.csv", *stated, "--epsilon", "3", "--out", "out", "--seed", "1"])
    assert fit.exit_code == 0, fit.output
    some = frame.head(300).drop(columns="ill")
    gaps = {"age": [None, "-999", "old", "50"], "pay": [None, "250000.5", "x"], "ward": [None, "?", "z", " a "]}
    for name, values in {**gaps, "smoker": [None, "perhaps", "no"]}.items():
        some.loc[rng.choice(300, 60), name] = rng.choice(np.array(values, dtype=object), 60)
    some.to_csv("new.csv", index=False)
    predict = ["predict", "new.csv", "--release", "out/release.json", "--out", "scored.csv"]
    assert CliRunner().invoke(app, predict).exit_code == 0
    run = subprocess.run(
        ["Rscript", str(PROGRAM), "out/release.json", "new.csv"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    found, wanted = pd.read_csv(io.StringIO(run.stdout)), pd.read_csv("scored.csv")
    assert (found["score"] == wanted["score"]).all()
    assert np.allclose(found["risk"], wanted["risk"], rtol=1e-9)
    assert found["score"].nunique() > 10


def test_the_page_shows_the_program() -> None:
    page = (PROGRAM.parents[1] / "docs" / "guides" / "release-file.md").read_text(encoding="utf-8")
    assert f"```r\n{PROGRAM.read_text(encoding='utf-8')}```" in page
