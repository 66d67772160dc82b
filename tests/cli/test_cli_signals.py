"""Real signals to real command lines: what they say is true, what is paid for is not lost, and nobody pays in vain."""

import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fit_processes import LEAVING, MOMENTS, SIGNALS, SWALLOWED, prepared, run_fit
from forks import processes
from privsolve import Ledger
from privsolve.safety.folder import load_release

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

FIT = "fit --model short data.csv --schema s.toml --epsilon 0.01 --out out --max-features 2"
SEALED = ["out-curator/run.sealed"]
FILES = ["out-curator/diagnostics.json", "out/release.json", "out/scorecard.html"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def start(folder: Path, *options: str, moment: str | None = None, number: int = 0) -> BaseProcess:
    process = processes.Process(target=run_fit, args=(str(folder), [*FIT.split(), *options], moment, number))
    process.start()
    return process


def end(process: BaseProcess) -> int:
    process.join(120)
    assert process.exitcode is not None
    return process.exitcode


def check_what_it_says(folder: Path, status: int, number: int) -> str:
    """The last line, the files and the ledger say the same; "complete", "nothing" or "paid" is what they say."""
    said = (folder / "stderr").read_text()
    assert "Traceback" not in said
    files = sorted(str(p.relative_to(folder)) for p in folder.glob("out*/**/*") if p.is_file())
    entries = Ledger.open(folder / "ledger").history()
    outcomes = [entry.outcome for entry in entries]
    if status == -number:  # one more signal, before the payment or after the last word, ends the process at once
        assert (files, outcomes) in (([], []), (SEALED, ["spent"]), (FILES, ["released"]))
        return "complete" if files == FILES else "paid" if outcomes else "nothing"
    if status == 0 or f"interrupted: the release is complete, see {Path('out/release.json')}" in said:
        assert status in (0, 128 + number)
        assert (files, outcomes) == (FILES, ["released"])
        assert load_release(folder / "out" / "release.json").guarantee == entries[0].guarantee
        assert "nothing was released" not in said
        return "complete"
    assert status == 128 + number
    assert said.splitlines()[-1] == "interrupted: nothing was released"
    assert not (folder / "out").exists()
    assert (files, outcomes) in (([], []), (SEALED, ["spent"]))
    assert ("the ledger keeps the payment" in said) == ("with --resume" in said) == (outcomes != [])
    return "paid" if outcomes else "nothing"


PAID = ("before paying", "paid", "drawing", "drawn", "making the release")
EXPECTED = dict.fromkeys(("reading", "preparing"), "nothing") | dict.fromkeys(PAID, "paid")
"""Elsewhere the release is complete. A signal that comes while the payment is made takes effect when it has been made."""


@pytest.mark.parametrize(
    ("moment", "number"),
    [*zip(MOMENTS, itertools.cycle(SIGNALS), strict=False), *itertools.product(("drawing", "writing"), SIGNALS)],
)
def test_a_signal_at_every_moment(here: Path, moment: str, number: int) -> None:
    status = end(start(here, "--ledger", "ledger", moment=moment, number=number))
    found = check_what_it_says(here, status, number)
    assert found == EXPECTED.get(moment, "complete")
    assert status == 128 + number
    if found == "paid":
        assert check_what_it_says(here, end(start(here, "--ledger", "ledger", "--resume")), number) == "complete"


@pytest.mark.parametrize("more", ["", "+", "++++"])
def test_an_interrupt_that_python_swallows_stops_the_run_before_it_pays(here: Path, more: str) -> None:
    """Inside a destructor Python prints an exception and carries on: with no other signal, and with more of them."""
    process = start(here, "--ledger", "ledger", moment=f"{SWALLOWED}{more}", number=signal.SIGINT)
    assert end(process) == 128 + signal.SIGINT
    assert (here / "swallowed").exists()
    said = (here / "stderr").read_text()
    assert "Exception ignored in" in said
    assert said.splitlines()[-1] == "interrupted: nothing was released"
    assert Ledger.open(here / "ledger").history() == ()
    assert not (here / "out").exists()


PREDICT = "predict data.csv --release out/release.json --out scored.csv"


def test_a_signal_leaves_no_temporary_folder_of_predictions(here: Path) -> None:
    assert end(start(here)) == 0
    before = sorted(path.name for path in here.iterdir())
    for number in SIGNALS:
        process = processes.Process(target=run_fit, args=(str(here), PREDICT.split(), "predict: scoring", int(number)))
        process.start()
        assert end(process) == 128 + number
        assert (here / "stderr").read_text().splitlines()[-1] == "interrupted: nothing was written"
        assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_the_last_word_ends_the_process_without_another(here: Path, number: int) -> None:
    assert end(start(here, "--ledger", "ledger", moment=LEAVING, number=number)) == -number
    assert check_what_it_says(here, -number, number) == "complete"
    assert "interrupted" not in (here / "stderr").read_text()


def test_without_a_ledger_too(here: Path) -> None:
    for moment, released, options in (("drawing", False, []), ("written", True, ["--resume"])):
        assert end(start(here, *options, moment=moment, number=signal.SIGTERM)) == 128 + signal.SIGTERM
        assert (here / "out" / "release.json").exists() == released
        words = "the release is complete" if released else "nothing was released"
        assert words in (here / "stderr").read_text()


def test_signals_at_random_moments_around_the_payment(tmp_path_factory: pytest.TempPathFactory) -> None:
    rng, seen = random.Random(0), []
    for i in range(9):
        folder = prepared(tmp_path_factory.mktemp(f"fit{i}"))
        process = start(folder, "--ledger", "ledger")
        number = SIGNALS[i % 3]
        deadline = time.monotonic() + 60
        while process.is_alive() and not (folder / "paying").exists() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, 0.06))
        for _ in range(rng.randint(1, 3)):
            if process.is_alive() and process.pid:
                os.kill(process.pid, number)
            time.sleep(rng.uniform(0, 0.004))
        seen.append(check_what_it_says(folder, end(process), number))
    assert {"complete", "paid"} & set(seen)  # which of them depends on the machine


def test_a_signal_that_is_ignored_stays_so(here: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        call = (str(here), f"{FIT} --ledger ledger".split(), "drawing", int(signal.SIGHUP))
        process = multiprocessing.get_context("fork").Process(target=run_fit, args=call)
        process.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert end(process) == 0
    assert check_what_it_says(here, 0, signal.SIGHUP) == "complete"


def test_six_fits_into_one_folder(here: Path) -> None:
    """One pays and is kept; the others are refused before they pay."""
    folders = []
    for i in range(6):
        folders.append(here / f"process{i}")
        folders[i].mkdir()
    paths = {name: str(here / name) for name in ("data.csv", "s.toml", "out")}
    arguments = [paths.get(word, word) for word in f"{FIT} --json".split()] + ["--ledger", str(here / "ledger")]
    workers = [processes.Process(target=run_fit, args=(str(folder), arguments, None, 0)) for folder in folders]
    for worker in workers:
        worker.start()
    assert sorted(end(worker) for worker in workers) == [0, 2, 2, 2, 2, 2]
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["released"]
    said = [(folder / "stderr").read_text().strip() for folder in folders]
    refused = [line for line in said if "error: " in line]
    assert len(refused) == 5
    assert all("is being written to by another fit" in line or "exists already" in line for line in refused)
    assert json.loads((folders[said.index("")] / "stdout").read_text())["release"] == str(here / "out" / "release.json")
