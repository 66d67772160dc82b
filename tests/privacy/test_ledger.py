"""The ledger: payments come first, survive everything, and never exceed the budget."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from forks import processes
from ledger_processes import attempts, hold, spend_for_ever
from privsolve.errors import BudgetExceeded, LedgerError
from privsolve.privacy.ledger import APPLICATION_ID, Ledger
from promises import promise

TABLE = ps.PatternTable(np.eye(3, dtype=int), [3, 1, 0], [0, 1, 2])
PROBLEM = ps.Problem(TABLE, ps.SignCube(3))


OLD = Path(__file__).parents[1] / "data" / "v0.1.0" / "ledgers"
"""Ledgers that version 0.1.0 has written, each with what it said of them."""


def mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.mark")


def run_sql(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "survey.ledger", 1.0, dataset="survey 2024")


def test_a_ledger_keeps_its_terms_and_payments(tmp_path: Path) -> None:
    path = tmp_path / "a ledger?#.db"
    made = Ledger.create(path, 0.3, 1e-6, adjacency="add-remove", dataset="visits", composition_delta=0.0)
    guarantee = promise(0.1, 1e-7, adjacency="add-remove", seeded=True)
    assert made.spend(guarantee, "first look") == 1
    again = Ledger.open(str(path))
    assert again == made
    budget = again.budget
    assert (budget.epsilon, budget.delta, budget.adjacency, again.dataset) == (0.3, 1e-6, "add-remove", "visits")
    (entry,) = again.history()
    assert (entry.number, entry.guarantee, entry.note, entry.outcome) == (1, guarantee, "first look", "spent")
    assert again.remaining().epsilon == 0.2
    assert again.totals().seeded == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, f"{path.name}.mark"]


def test_refused_releases_leave_no_trace(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.spend(promise(0.1))
    before = ledger.path.read_bytes()
    with pytest.raises(BudgetExceeded, match="before any noise was drawn"):
        ledger.spend(promise(0.1))
    with pytest.raises(ValueError, match="under replace and the release under add-remove"):
        ledger.spend(promise(0.1, adjacency="add-remove"))
    with pytest.raises(TypeError, match="note must be a text"):
        ledger.spend(promise(0.1), 3)  # type: ignore[arg-type]
    assert ledger.path.read_bytes() == before


def test_the_payment_is_on_disk_while_the_block_runs(ledger: Ledger) -> None:
    with ledger.spending(promise(0.4), "during") as number:
        (entry,) = Ledger.open(ledger.path).history()
        assert (entry.number, entry.note, entry.outcome) == (number, "during", "spent")
    assert ledger.history()[0].outcome == "released"


@pytest.mark.parametrize("error", [RuntimeError("crash"), KeyboardInterrupt(), SystemExit(3)])
def test_a_failed_block_stays_paid(ledger: Ledger, error: BaseException) -> None:
    with pytest.raises(type(error)), ledger.spending(promise(0.4)):
        raise error
    assert [entry.outcome for entry in ledger.history()] == ["failed"]
    assert ledger.remaining().epsilon == 0.6


def test_mechanisms_pay_from_a_ledger(ledger: Ledger) -> None:
    run = ps.opdisc(PROBLEM, 0.5, oracle="enumeration", budget=ledger)
    assert [(e.guarantee, e.outcome) for e in ledger.history()] == [(run.release.guarantee, "released")]
    with pytest.raises(BudgetExceeded):
        ps.exponential(PROBLEM, 0.6, method="enumeration", budget=ledger)
    assert len(ledger.history()) == 1


def test_the_file_holds_parameters_only(ledger: Ledger) -> None:
    ps.opdisc(PROBLEM, 0.5, oracle="enumeration", random_state=1, budget=ledger)
    with sqlite3.connect(ledger.path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(releases)")]
        (guarantee,) = db.execute("SELECT guarantee FROM releases").fetchone()
    db.close()
    assert columns == ["number", "spent_at", "guarantee", "note", "digest", "outcome"]
    assert set(json.loads(guarantee)) == set(promise(1.0).to_dict())


def test_a_release_is_not_lost_because_it_cannot_be_marked(ledger: Ledger) -> None:
    def release() -> bytes:
        with ledger.spending(promise(0.1)):
            content = ledger.path.read_bytes()
            ledger.path.unlink()
        return content

    with pytest.warns(RuntimeWarning, match="entry 1 is paid for, but not marked released"):
        content = release()
    ledger.path.write_bytes(content)
    assert ledger.history()[0].outcome == "spent"


# --- other files --------------------------------------------------------------------------------------

PRAGMA = f"PRAGMA application_id = {APPLICATION_ID}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot read the ledger .*make one with `privsolve budget init`"),
        (lambda path: path.mkdir(), "cannot read the ledger"),
        (lambda path: path.touch(), "is not a privsolve ledger"),
        (lambda path: path.write_text("epsilon = 1\n" * 100), "is not a privsolve ledger"),
        (lambda path: run_sql(path, "CREATE TABLE budget (terms TEXT, digest TEXT)"), "is not a privsolve ledger"),
        (lambda path: run_sql(path, PRAGMA, "PRAGMA user_version = 2"), "version 2; this privsolve reads version 1"),
        (lambda path: run_sql(path, PRAGMA, "PRAGMA user_version = 1"), "damaged"),
    ],
)
def test_other_files_are_refused_and_left_alone(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "file"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=message):
        Ledger.open(path)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_an_existing_file_is_never_replaced(ledger: Ledger, tmp_path: Path) -> None:
    ledger.spend(promise(0.5))
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, 10.0)
    assert ledger.path.read_bytes() == before
    with pytest.raises(LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "nowhere" / "x", 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        Ledger.create(tmp_path / "wrong", -1.0)
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET guarantee = replace(guarantee, '0.2', '0.1')",
        "UPDATE releases SET note = NULL WHERE number = 2",
        "UPDATE releases SET outcome = 'free' WHERE number = 2",
        "DELETE FROM releases WHERE number = 1",
        "UPDATE releases SET number = number + 10",
        "UPDATE budget SET terms = replace(terms, '1.0', '9.0')",
        "DELETE FROM budget",
        "DROP TABLE releases",
    ],
)
def test_changed_entries_are_noticed(ledger: Ledger, change: str) -> None:
    for _ in range(3):
        ledger.spend(promise(0.2), "x")
    if "NULL" in change:
        run_sql(
            ledger.path, "PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '')"
        )
    run_sql(ledger.path, change)
    before = ledger.path.read_bytes()
    for use in (lambda: Ledger.open(ledger.path), ledger.history, lambda: ledger.spend(promise(0.1))):
        with pytest.raises(LedgerError, match="is damaged"):
            use()
    assert ledger.path.read_bytes() == before


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    ledger = Ledger.create(tmp_path_factory.mktemp("sound") / "ledger", 1.0, 1e-6, dataset="fuzz")
    for i in range(4):
        ledger.spend(promise(0.1), f"note {i}")
    return ledger


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_bytes_are_noticed_or_harmless(sound: Ledger, data: st.DataObject) -> None:
    path = sound.path.with_name("damaged")
    content = bytearray(sound.path.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "flip", "flip", "cut", "fill"]))
    place = data.draw(st.one_of(st.integers(0, 120), st.integers(0, len(content) - 1)))
    if kind == "cut":
        del content[place:]
    else:
        length = 1 if kind == "flip" else data.draw(st.integers(1, 200))
        content[place : place + length] = data.draw(st.binary(min_size=length, max_size=length))
    path.write_bytes(content)
    shutil.copy(mark_of(sound.path), mark_of(path))
    try:
        opened = Ledger.open(path, timeout=0.1)
        assert opened.history() == sound.history()
        assert opened.budget == sound.budget
    except LedgerError:
        pass
    assert path.read_bytes() == bytes(content)


def test_no_damage_gives_another_error(sound: Ledger, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 at every place of the file's first page, where the names of tables stand, and at others."""
    path, content = tmp_path / "damaged", sound.path.read_bytes()
    shutil.copy(mark_of(sound.path), mark_of(path))
    messages = set()
    written = (place for place, byte in enumerate(content[:4096]) if byte)  # the rest of the page is free
    for place in (*written, *range(4096, len(content), 37)):
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        try:
            Ledger.open(path)
        except LedgerError as error:
            messages.add(str(error))
    assert any("UTF-8" in message for message in messages)


# --- older copies, and who may read -------------------------------------------------------------------


def _an_older_copy_with_another_payment(path: Path) -> None:
    lone = path.with_name("lone")
    lone.mkdir()
    shutil.copy(path.with_name("older"), lone / path.name)
    shutil.copy(path.with_name("older.mark"), mark_of(lone / path.name))
    other = Ledger.open(lone / path.name)
    other.spend(promise(0.01), "another")
    shutil.copy(other.path, path)


@pytest.mark.parametrize(
    "happens",
    [
        lambda path: run_sql(path, "DELETE FROM releases WHERE number = 3"),
        lambda path: shutil.copy(path.with_name("older"), path),
        _an_older_copy_with_another_payment,
    ],
    ids=["the last is deleted", "an older copy", "an older copy with another payment"],
)
def test_a_ledger_that_lacks_payments_is_noticed(ledger: Ledger, happens: Callable[[Path], object]) -> None:
    for i in range(3):
        ledger.spend(promise(0.2), f"{i}")
        if i == 1:
            shutil.copy(ledger.path, ledger.path.with_name("older"))
            shutil.copy(mark_of(ledger.path), ledger.path.with_name("older.mark"))
    happens(ledger.path)
    before = ledger.path.read_bytes()
    for use in (lambda: Ledger.open(ledger.path), ledger.history, lambda: ledger.spend(promise(0.1))):
        with pytest.raises(LedgerError, match="is not the latest: 3 payments were made"):
            use()
    assert ledger.path.read_bytes() == before
    accepted = Ledger.accept(ledger.path)
    assert accepted.spend(promise(0.2), "spent again") == len(accepted.history())


def test_a_ledger_without_its_mark_is_refused(ledger: Ledger) -> None:
    ledger.spend(promise(0.2))
    mark = mark_of(ledger.path)
    wrong = [f'{{"entries": {entries}, "digest": ""}}' for entries in ('"1"', "true")]
    for damage in ("", "{}", "[1, 2]", "\x00" * 9000, *wrong):
        mark.write_text(damage)
        with pytest.raises(LedgerError, match=r"mark is damaged: .*`privsolve budget accept`"):
            ledger.history()
    mark.unlink()
    with pytest.raises(LedgerError, match=r"mark is missing.*`privsolve budget accept`"):
        ledger.spend(promise(0.1))
    assert [entry.note for entry in Ledger.accept(ledger.path).history()] == [""]
    assert ledger.spend(promise(0.1)) == 2


def test_a_mark_left_behind_is_no_new_ledger(ledger: Ledger) -> None:
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="a ledger of this name was here"):
        Ledger.create(ledger.path, 1.0)
    mark_of(ledger.path).unlink()
    assert Ledger.create(ledger.path, 1.0).history() == ()


def test_a_payment_is_not_lost_because_it_cannot_be_marked(ledger: Ledger) -> None:
    mark_of(ledger.path).with_name(f"{mark_of(ledger.path).name}.new").mkdir()
    with pytest.warns(RuntimeWarning, match="entry 1 is paid for, but not in the mark"):
        assert ledger.spend(promise(0.1)) == 1
    assert Ledger.open(ledger.path).totals().releases == 1  # a mark that is behind is no error


def test_a_link_to_a_ledger_is_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to(ledger.path)
    assert Ledger.open(link).spend(promise(0.1)) == 1
    assert ledger.history() == Ledger.open(link).history()
    assert [path.name for path in link.parent.iterdir()] == ["link"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_the_owner_may_read_a_ledger(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        ledger = Ledger.create(tmp_path / "ledger", 1.0)
        ledger.spend(promise(0.1))
        assert [path.stat().st_mode & 0o777 for path in (ledger.path, mark_of(ledger.path))] == [0o600, 0o600]
        ledger.path.chmod(0o640)  # shared on purpose: the mark follows
        ledger.spend(promise(0.1))
        assert mark_of(ledger.path).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize("note", ["\ud800", "a\udfffb"])
def test_a_note_that_cannot_be_written_spends_nothing(ledger: Ledger, note: str) -> None:
    with pytest.raises(ValueError, match="note must be a text that can be written"):
        ledger.spend(promise(0.1), note)
    assert ledger.history() == ()


# --- ledgers of version 0.1.0 -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["empty", "survey", "add-remove"])
def test_old_ledgers_say_the_same_and_can_be_continued(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger"
    shutil.copy(OLD / f"{name}.ledger", path)
    said = json.loads((OLD / f"{name}.json").read_text(encoding="utf-8"))
    ledger = Ledger.open(path)
    budget = ledger.budget
    assert [budget.epsilon, budget.delta, budget.adjacency, budget.composition_delta] == said["budget"]
    assert ledger.dataset == said["dataset"]
    for entry, old in zip(ledger.history(), said["entries"], strict=True):
        assert {key: getattr(entry, key) for key in ("number", "note", "outcome")}.items() <= old.items()
        keys = ("epsilon", "delta", "adjacency", "proved", "seeded")
        assert {key: getattr(entry.guarantee, key) for key in keys}.items() <= old.items()
    totals, remaining = ledger.totals(), ledger.remaining()
    rho = Fraction(said["totals"].pop("rho"))  # of decimals that version 0.1.0 had rounded
    assert float(totals.rho) == pytest.approx(float(rho), rel=1e-15)
    assert {key: str(getattr(totals, key)) for key in said["totals"]} == {k: str(v) for k, v in said["totals"].items()}
    assert [remaining.epsilon, remaining.exponential, remaining.delta] == said["remaining"]
    assert not mark_of(path).exists()  # reading writes nothing
    assert path.read_bytes() == (OLD / f"{name}.ledger").read_bytes()
    with ledger.spending(promise(0.1, adjacency=budget.adjacency), "continued") as number:
        assert number == len(said["entries"]) + 1
    assert Ledger.open(path).history()[-1].outcome == "released"
    shutil.copy(OLD / f"{name}.ledger", path)
    with pytest.raises(LedgerError, match=f"is not the latest: {number} payment"):
        Ledger.open(path)


# --- a full disk --------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_loses_no_payment(small_disk: Path) -> None:
    """The disk is filled to the last bytes; then payments succeed and are there, or fail and leave no trace."""
    ledger = Ledger.create(small_disk / "ledger", 1.0)
    filler, paid, refused = small_disk / "filler", 0, 0
    for _ in range(300):
        with suppress(OSError), filler.open("ab") as file:
            file.write(b"x" * random.Random(paid + refused).randrange(30_000))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the mark is behind
                number = ledger.spend(promise(0.001), "x" * 100)
            paid += 1
            assert number == paid
        except LedgerError:
            refused += 1
            if refused % 3 == 0:
                filler.write_bytes(b"")
    filler.unlink()
    assert len(Ledger.open(ledger.path).history()) == paid
    assert min(paid, refused) > 20
    assert ledger.spend(promise(0.001)) == paid + 1


def test_a_limit_on_file_sizes_loses_no_payment(ledger: Ledger) -> None:
    """The same where the file may not grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    paid = 0
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.path.stat().st_size + 4096, hard))
        for _ in range(100):
            with suppress(LedgerError):
                paid = ledger.spend(promise(0.001), "x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert 0 < paid < 100
    assert len(Ledger.open(ledger.path).history()) == paid


# --- many at once -------------------------------------------------------------------------------------


def test_eight_processes_never_overspend(ledger: Ledger, tmp_path: Path) -> None:
    """104 attempts at 0.02 on a budget of 1: exactly 50 succeed, each with its own number."""
    start, lines = processes.Event(), str(tmp_path / "acknowledged")
    workers = [processes.Process(target=attempts, args=(str(ledger.path), 13, start, lines)) for _ in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 8
    numbers = [int(line) for line in Path(lines).read_text().split()]
    assert len(numbers) == 104
    assert sorted(number for number in numbers if number) == list(range(1, 51))
    assert ledger.totals().epsilon == 1
    assert len(ledger.history()) == 50


def test_kill_9_loses_no_payment(tmp_path: Path) -> None:
    """Twenty-five times, a process that spends without pause is killed at a random moment."""
    ledger = Ledger.create(tmp_path / "ledger", 1.0)
    lines = tmp_path / "acknowledged"
    lines.touch()
    rng = random.Random(0)
    seen = 0
    for kills in range(1, 26):
        worker = processes.Process(target=spend_for_ever, args=(str(ledger.path), str(lines)))
        worker.start()
        deadline = time.monotonic() + 60
        while lines.read_text().count("\n") <= seen and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.03))
        worker.kill()
        worker.join()
        assert worker.exitcode == -9
        acknowledged = [int(line) for line in lines.read_text().split()]
        history = Ledger.open(ledger.path).history()
        assert len(acknowledged) > seen
        assert set(acknowledged) <= {entry.number for entry in history}
        seen = len(acknowledged)
        assert 0 <= len(history) - seen <= kills  # at most the last payment of each process was not acknowledged
    assert Ledger.open(ledger.path).spend(promise(0.1)) == len(history) + 1


def test_threads_take_turns(ledger: Ledger) -> None:
    def spend(_: int) -> int:
        with suppress(BudgetExceeded):
            return ledger.spend(promise(0.05))
        return 0

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(spend, range(30))) == [0] * 10 + list(range(1, 21))


def test_a_busy_ledger_says_so(ledger: Ledger) -> None:
    held, done = processes.Event(), processes.Event()
    worker = processes.Process(target=hold, args=(str(ledger.path), held, done))
    worker.start()
    assert held.wait(60)
    with pytest.raises(LedgerError, match="in use by other processes: nothing was spent"):
        Ledger.open(ledger.path, timeout=0.05).spend(promise(0.1))
    done.set()
    worker.join(60)
    ledger.spend(promise(0.1))
    assert ledger.totals().releases == 1
