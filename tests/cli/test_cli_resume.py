"""`privsolve fit --resume`: real processes that are killed at every moment, and go on with the noise that they had."""

import itertools
import json
import os
import shutil
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fit_processes import MOMENTS, OTHERS, prepared, run_fit
from forks import processes
from privsolve import Ledger
from privsolve.safety.folder import load_release
from small_tables import patients

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

FIT = "fit --model short data.csv --schema s.toml --epsilon 0.05 --out out --ledger ledger"
KINDS = {
    "card": "--max-features 2",
    "full card": "--model scorecard",
    "held out": "--max-features 2 --holdout 0.3 --evaluate-epsilon 0.05 --by colour",
    "tree": "--model tree --depth 2",
}
SEALED = Path("out-curator", "run.sealed")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The release of a run with a seed that nobody has interrupted."""
    folder = prepared(tmp_path_factory.mktemp("untouched"))
    assert run(folder, KINDS["card"], "--seed 7") == 0, (folder / "stderr").read_text()
    return released(folder)


def run(folder: Path, *options: str, moment: str | None = None, number: int = 0) -> int:
    return command(folder, FIT, *options, moment=moment, number=number)


def command(folder: Path, *arguments: str, moment: str | None = None, number: int = 0) -> int:
    call = (str(folder), " ".join(arguments).split(), moment, number)
    process: BaseProcess = processes.Process(target=run_fit, args=call)
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
    assert run(here, KINDS[kind], moment="written", number=signal.SIGKILL) == -signal.SIGKILL
    first = (here / "out" / "release.json").read_text()
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["spent"]
    assert (here / SEALED).stat().st_mode & 0o777 == 0o600
    (here / "out" / "release.json").unlink()
    assert run(here, KINDS[kind], "--resume") == 0, (here / "stderr").read_text()
    assert released(here) == first
    assert not load_release(here / "out" / "release.json").guarantee.seeded


BEFORE_PAYING = ("reading", "preparing")


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_at_every_moment(here: Path, moment: str, untouched: str) -> None:
    """What comes out is what a run with this seed gives that nobody has touched, and it is paid for once."""
    options = KINDS["card"] + " --seed 7"
    assert run(here, options, moment=moment, number=signal.SIGKILL) == -signal.SIGKILL
    refused = run(here, options)
    said = (here / "stderr").read_text()
    if moment in BEFORE_PAYING:
        assert refused == 0, said  # nothing was paid, nothing is lost: it simply runs
    elif moment == "showing":
        assert refused == 2
        assert "exists already" in said
    else:
        assert refused == 2
        assert "exists already" in said or "pass --resume" in said
        assert run(here, options, "--resume") == 0, (here / "stderr").read_text()
    assert released(here) == untouched


@pytest.mark.parametrize("kind", ["tree", "held out"])
def test_killed_again_and_again(here: Path, kind: str) -> None:
    """Ctrl-C, SIGTERM and kill -9 by turns while it draws; the release is written in the end, for one payment."""
    moments = {"tree": "making the release", "held out": "drawn"}
    for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        resume = "--resume" if (here / SEALED).exists() else ""
        status = run(here, KINDS[kind], resume, moment=moments[kind], number=number)
        assert status in (-number, 128 + number)
        if not (here / SEALED).exists():
            break
        assert len(Ledger.open(here / "ledger").history()) == 1
    if (here / SEALED).exists():
        assert run(here, KINDS[kind], "--resume") == 0, (here / "stderr").read_text()
    released(here)


CHANGES = ("--epsilon 0.06", "--max-features 1", "--false-negative 2", "--seed 1", "--holdout 0.2")


def test_another_run_is_refused(here: Path) -> None:
    assert run(here, KINDS["card"], moment="drawing", number=signal.SIGKILL) == -signal.SIGKILL
    sealed = (here / SEALED).read_bytes()
    original = {name: (here / name).read_bytes() for name in ("data.csv", "s.toml")}
    for change in (*CHANGES, *original):
        if change == "data.csv":
            lines = original["data.csv"].decode().splitlines()
            (here / "data.csv").write_text("\n".join([*lines[:-1], lines[1] + "\n"]))
        if change == "s.toml":
            (here / "s.toml").write_text(original["s.toml"].decode().replace('"another"', '"something else"'))
        assert run(here, KINDS["card"], "--resume", "" if change in original else change) == 2
        said = (here / "stderr").read_text()
        assert "was sealed for another run: give the same data, settings, limits" in said, said
        for changed, content in original.items():
            (here / changed).write_bytes(content)
        assert (here / SEALED).read_bytes() == sealed
        assert len(Ledger.open(here / "ledger").history()) == 1
    assert run(here, KINDS["card"], "--resume") == 0
    released(here)


def test_resuming_does_not_replace_an_unrelated_release(here: Path) -> None:
    """The same curator's folder, and another place to write to, where somebody else's release is."""
    options = KINDS["card"] + " --curator curator"
    assert run(here, KINDS["card"], "--out", "theirs") == 0
    theirs = (here / "theirs" / "release.json").read_text()
    assert run(here, options, moment="drawing", number=signal.SIGKILL) == -signal.SIGKILL
    assert run(here, options, "--out", "theirs", "--resume") == 2
    assert "exists already" in (here / "stderr").read_text()
    assert (here / "theirs" / "release.json").read_text() == theirs
    assert run(here, options, "--resume") == 0
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["released"] * 2


def test_copies_of_a_sealed_file_give_one_release(here: Path) -> None:
    """Copies taken when the payment was made, each resumed in a place of its own after the first has released."""
    assert run(here, KINDS["card"], moment="paid", number=signal.SIGKILL) == -signal.SIGKILL
    for i in range(3):
        (here / f"curator{i}").mkdir()
        shutil.copy(here / SEALED, here / f"curator{i}" / "run.sealed")
    assert run(here, KINDS["card"], "--resume") == 0
    first = released(here)
    for i in range(3):
        again = f"--resume --out out{i} --curator curator{i}"
        assert run(here, KINDS["card"], again) == 0, (here / "stderr").read_text()
        assert (here / f"out{i}" / "release.json").read_text() == first
    assert len(Ledger.open(here / "ledger").history()) == 1


DRAFT = "schema draft data.csv --label ill --positive yes --epsilon 0.5 --bounds age=0:99"


@pytest.mark.parametrize(
    ("moment", "number"),
    [*((moment, signal.SIGKILL) for moment in OTHERS["draft"]), ("drawn", signal.SIGTERM), ("filled", signal.SIGINT)],
)
def test_a_private_draft_is_resumed_and_never_deleted(here: Path, moment: str, number: int) -> None:
    draft = f"{DRAFT} --out d.toml --ledger ledger"
    status = command(here, draft, moment=f"draft: {moment}", number=number)
    assert status == -number if number == signal.SIGKILL else 128 + number
    complete = (here / "d.toml").exists()
    first = (here / "d.toml").read_text() if complete else None
    if number != signal.SIGKILL:
        assert complete == (moment == "filled")  # from the answer on the signal waits
    if (here / "d.toml.sealed").exists():
        assert command(here, draft, "--resume") == 0, (here / "stderr").read_text()
    assert first is None or (here / "d.toml").read_text() == first
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["released"]
    assert sorted(path.name for path in here.glob("*d.toml*")) == ["d.toml"]


@pytest.mark.parametrize("moment", OTHERS["evaluate"])
def test_an_evaluation_is_resumed(here: Path, moment: str) -> None:
    assert run(here, KINDS["card"]) == 0
    evaluate = "evaluate data.csv --release out/release.json --epsilon 0.1 --ledger ledger --out good"
    assert command(here, evaluate, moment=f"evaluate: {moment}", number=signal.SIGKILL) == -signal.SIGKILL
    assert (here / "good-curator" / "run.sealed").exists()
    written = here / "good" / "release.json"
    first = written.read_text() if written.exists() else None
    assert command(here, evaluate, "--resume") == 0, (here / "stderr").read_text()
    assert first is None or written.read_text() == first
    assert [entry.outcome for entry in Ledger.open(here / "ledger").history()] == ["released"] * 2
    assert not (here / "good-curator" / "run.sealed").exists()


def test_nothing_to_resume(here: Path) -> None:
    assert run(here, KINDS["card"], "--resume") == 2
    assert "nothing was interrupted after it was paid for" in (here / "stderr").read_text()
    assert not (here / "out").exists()
    assert run(here, KINDS["card"]) == 0
    released(here)


def test_the_sealed_file_has_no_record(here: Path) -> None:
    """It holds a key and a digest of the question, not the data."""
    assert run(here, KINDS["card"], moment="drawn", number=signal.SIGKILL) == -signal.SIGKILL
    content = (here / SEALED).read_bytes()
    assert len(content) < 1000
    for text in itertools.chain(("red", "blue", "green"), json.dumps(patients().iloc[0].to_dict()).split()):
        if len(text) > 3:
            assert text.encode() not in content
