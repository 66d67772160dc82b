"""`privsolve fit --resume`: real processes that are killed at every moment, and go on with the noise that they had."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fit_processes import MOMENTS, prepared, run_fit
from forks import processes
from privsolve.learn.publishing import load_release
from privsolve.privacy.ledger import Ledger
from small_tables import patients

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

FIT = [
    "fit",
    "--model",
    "short",
    "data.csv",
    "--schema",
    "s.toml",
    "--epsilon",
    "0.05",
    "--out",
    "out",
    "--ledger",
    "ledger",
]
KINDS = {
    "card": ["--max-features", "2"],
    "held out": ["--max-features", "2", "--holdout", "0.3", "--evaluate-epsilon", "0.5", "--by", "colour"],
    "risk": ["--objective", "risk", "--max-features", "1"],
    "tree": ["--model", "tree", "--depth", "2"],
    "card or tree": ["--model", "auto", "--depth", "2", "--max-features", "2"],
    "opdisc": ["--mechanism", "opdisc", "--max-features", "2"],
}
SEALED = Path("out-curator", "run.sealed")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The release of a run with a seed that nobody has interrupted."""
    folder = prepared(tmp_path_factory.mktemp("untouched"))
    assert run(folder, *KINDS["card"], "--seed", "7") == 0, (folder / "stderr").read_text()
    return released(folder)


def run(folder: Path, *options: str, moment: str | None = None, number: int = 0) -> int:
    process: BaseProcess = processes.Process(target=run_fit, args=(str(folder), [*FIT, *options], moment, number))
    process.start()
    process.join(240)
    assert process.exitcode is not None
    return process.exitcode


def released(folder: Path) -> str:
    """The release, when the ledger says that it was paid for once and nothing sealed is left."""
    assert [entry.outcome for entry in Ledger.open(folder / "ledger").history()] == ["released"]
    assert not (folder / SEALED).exists()
    assert not [path for path in folder.glob("out*/*") if path.name.startswith(".")]
    return (folder / "out" / "release.json").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_killed_when_the_release_was_just_written(here: Path, kind: str) -> None:
    """The resumed run writes the same release once more: noise of the operating system, not of a seed."""
    assert run(here, *KINDS[kind], moment="written", number=signal.SIGKILL) == -signal.SIGKILL
    first = (here / "out" / "release.json").read_text()
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["spent"]
    assert (here / SEALED).stat().st_mode & 0o777 == 0o600
    (here / "out" / "release.json").unlink()
    assert run(here, *KINDS[kind], "--resume") == 0, (here / "stderr").read_text()
    assert released(here) == first
    assert not load_release(here / "out" / "release.json").guarantee.seeded


BEFORE_PAYING = ("reading", "preparing")


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_at_every_moment(here: Path, moment: str, untouched: str) -> None:
    """What comes out is what a run with this seed gives that nobody has touched, and it is paid for once."""
    options = [*KINDS["card"], "--seed", "7"]
    assert run(here, *options, moment=moment, number=signal.SIGKILL) == -signal.SIGKILL
    refused = run(here, *options)
    said = (here / "stderr").read_text()
    if moment in BEFORE_PAYING:
        assert refused == 0, said  # nothing was paid, nothing is lost: it simply runs
    elif moment == "showing":
        assert refused == 2
        assert "exists already" in said
    else:
        assert refused == 2
        assert "exists already" in said or "pass --resume" in said
        assert run(here, *options, "--resume") == 0, (here / "stderr").read_text()
    assert released(here) == untouched


@pytest.mark.parametrize("kind", ["risk", "held out", "card or tree"])
def test_killed_again_and_again(here: Path, kind: str) -> None:
    """Ctrl-C, SIGTERM and kill -9 by turns while it draws; the release is written in the end, for one payment."""
    moments = {"risk": "making the release", "held out": "drawn", "card or tree": "making the release"}
    for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        resume = ["--resume"] if (here / SEALED).exists() else []
        status = run(here, *KINDS[kind], *resume, moment=moments[kind], number=number)
        assert status in (-number, 128 + number)
        if not (here / SEALED).exists():
            break
        assert len(Ledger.open(here / "ledger").history()) == 1
    if (here / SEALED).exists():
        assert run(here, *KINDS[kind], "--resume") == 0, (here / "stderr").read_text()
    released(here)


CHANGES = {
    "epsilon": (["--epsilon", "0.06"], "epsilon"),
    "features": (["--max-features", "1"], "domain"),
    "costs": (["--false-negative", "2"], "loss"),
    "seed": (["--seed", "1"], "seed"),
    "holdout": (["--holdout", "0.2"], "holdout. Give"),
    "data": ([], "data"),
    "schema": ([], "schema"),
}


def test_another_run_is_refused_and_says_what_differs(here: Path) -> None:
    assert run(here, *KINDS["card"], moment="drawing", number=signal.SIGKILL) == -signal.SIGKILL
    sealed = (here / SEALED).read_bytes()
    original = {name: (here / name).read_bytes() for name in ("data.csv", "s.toml")}
    for name, (options, words) in CHANGES.items():
        if name == "data":
            lines = original["data.csv"].decode().splitlines()
            (here / "data.csv").write_text("\n".join([*lines[:-1], lines[1] + "\n"]))
        if name == "schema":
            (here / "s.toml").write_text(original["s.toml"].decode().replace('"another"', '"something else"'))
        assert run(here, *KINDS["card"], "--resume", *options) == 2
        said = (here / "stderr").read_text()
        assert f"the difference is in: {words}" in said, said
        assert "Give the same data and the same settings as before" in " ".join(said.split())
        for changed, content in original.items():
            (here / changed).write_bytes(content)
        assert (here / SEALED).read_bytes() == sealed
        assert len(Ledger.open(here / "ledger").history()) == 1
    assert run(here, *KINDS["card"], "--resume") == 0
    released(here)


def test_nothing_to_resume(here: Path) -> None:
    assert run(here, *KINDS["card"], "--resume") == 2
    assert "nothing was interrupted after it was paid for" in (here / "stderr").read_text()
    assert not (here / "out").exists()
    assert run(here, *KINDS["card"]) == 0
    released(here)


def test_the_sealed_file_has_no_record_and_every_word(here: Path) -> None:
    """It holds fingerprints of the data, not the data; the words that were drawn are in it before the draw ends."""
    assert run(here, *KINDS["card"], moment="drawn", number=signal.SIGKILL) == -signal.SIGKILL
    with sqlite3.connect(here / SEALED) as db:
        tables = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in
                  db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}  # fmt: skip
        parts = [part for (part,) in db.execute("SELECT part FROM question")]
        sizes = [size for (size,) in db.execute("SELECT length(fingerprint) FROM question")]
    db.close()
    assert set(tables) == {"facts", "question", "words", "remembered"}
    assert tables["words"] >= 1
    assert {"data", "domain", "loss", "schema", "epsilon", "prior"} <= set(parts)
    assert set(sizes) == {32}
    for text in itertools.chain(("red", "blue", "green"), json.dumps(patients().iloc[0].to_dict()).split()):
        if len(text) > 3:
            assert text.encode() not in (here / SEALED).read_bytes()
