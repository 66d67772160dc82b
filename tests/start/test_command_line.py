"""The installed command line in real processes: what every allowed version of its libraries must run."""

import subprocess
import sys
from pathlib import Path

import privsolve as ps
from small_tables import INDICATORS, patients


def privsolve(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privsolve", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def test_help_then_fit_then_predict(tmp_path: Path) -> None:
    result = privsolve(tmp_path, "--help")
    assert result.returncode == 0, result.stderr
    assert "Usage: " in result.stdout
    assert all(f" {name} " in result.stdout for name in ("fit", "predict", "plan", "schema", "budget", "audit"))
    patients().to_csv(tmp_path / "data.csv", index=False)
    INDICATORS.save(tmp_path / "s.toml")
    options = ("--schema", "s.toml", "--epsilon", "2", "--max-features", "2", "--out", "out")
    fitted = privsolve(tmp_path, "fit", "--model", "short", "data.csv", *options)
    assert fitted.returncode == 0, fitted.stderr
    assert "Scorecard: ill yes or ill no?" in fitted.stdout
    release = ps.Release.from_json((tmp_path / "out" / "release.json").read_text())
    assert release.guarantee.epsilon == 2
    predicted = privsolve(tmp_path, "predict", "data.csv", "--release", "out/release.json", "--out", "predicted.csv")
    assert predicted.returncode == 0, predicted.stderr
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 301
