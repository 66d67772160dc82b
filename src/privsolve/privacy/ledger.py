"""A privacy budget on disk: one SQLite file per data set, in which every release is paid for before it is made.

The payment is on the disk before the mechanism draws its noise, so a crash can lose a release but never a payment. Several
processes may share a ledger. Each operation opens the file anew, so a ledger may be passed to threads and forks.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privsolve.errors import LedgerError, OracleNotCertified, SolveInterrupted
from privsolve.privacy.accounting import Budget, Remaining, Totals, check_adjacency
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee

APPLICATION_ID = 0x7073_6C67
"""The four letters "pslg" in the header of the file tell a ledger from other databases."""

VERSION = 1
HEADER = 100
OUTCOMES = ("spent", "released", "failed")
UNUSABLE = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_PERM,
)

_FILES = threading.Lock()
"""Closing a file drops the locks that this process holds on it through other threads, so threads take turns."""

if hasattr(os, "register_at_fork"):  # no fork while a ledger is open
    os.register_at_fork(before=_FILES.acquire, after_in_parent=_FILES.release, after_in_child=_FILES.release)

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
BEGIN;
CREATE TABLE budget (terms TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE releases (
    number INTEGER PRIMARY KEY,
    spent_at TEXT NOT NULL,
    guarantee TEXT NOT NULL,
    note TEXT NOT NULL,
    digest TEXT NOT NULL,
    outcome TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class Entry:
    """One payment. `outcome` is the curator's, not private: a run can fail for reasons that lie in the data.

    `"spent"`: paid for, and still running, interrupted, or waiting for a retry with the same noise; `"released"`;
    `"failed"`: nothing was released. All of them count in full.
    """

    number: int
    spent_at: str
    guarantee: Guarantee
    note: str
    outcome: str


@dataclass(frozen=True)
class Ledger:
    """The budget of one data set in a file; make one with `create`, use one with `open`.

    Pass it to a mechanism, `ps.opdisc(problem, 0.5, budget=ledger)`, or enclose your own in
    `with ledger.spending(guarantee, note): ...`. It holds parameters, times and notes, nothing computed from the data; see
    that your notes do not either.

    Guarantee:
        That of `Budget`, for all processes that share the file: everything released inside `spending` is together
        `(epsilon, delta)`-DP, with each release chosen freely after the ones before. A payment is on the disk before the
        block runs and is never taken back. A file that was copied, restored from a backup or edited is outside the
        guarantee: damage is detected, an older copy is not.
    """

    path: Path
    budget: Budget
    dataset: str
    timeout: float

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: float,
        delta: float = 0.0,
        *,
        adjacency: str = "replace",
        dataset: str = "",
        composition_delta: float | None = None,
    ) -> Ledger:
        """A new ledger with nothing spent; never replaces a file. `dataset` says in words what it is for."""
        budget = Budget(epsilon, delta, Adjacency.of(adjacency), composition_delta)
        terms = {
            "epsilon": budget.epsilon, "delta": budget.delta, "adjacency": budget.adjacency,
            "composition_delta": budget.composition_delta, "dataset": _text("dataset", dataset), "created": _now(),
        }  # fmt: skip
        _write_new(Path(path), json.dumps(terms))
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 60.0) -> Ledger:
        """An existing ledger, checked from end to end. `timeout`: seconds to wait for other processes."""
        place = Path(path).absolute()  # the same file after a change of folder
        with _connection(place, timeout) as db:
            budget, dataset, _, _ = _read(place, db)
        return cls(place, budget, dataset, timeout)

    def spend(self, guarantee: Guarantee, note: str = "") -> int:
        """Pay for a release that is about to be made; its number in the ledger. Raises `BudgetExceeded` beyond the budget."""
        check_adjacency(guarantee, self.budget.adjacency)
        content = (_now(), json.dumps(guarantee.to_dict()), _text("note", note))
        with _connection(self.path, self.timeout) as db:
            db.execute("BEGIN IMMEDIATE")  # nobody else can pay between this look at the sums and the commit
            budget, _, entries, digest = _read(self.path, db)
            budget.check(Totals.of(e.guarantee for e in entries), guarantee)
            number = len(entries) + 1
            row = (number, *content, _digest(digest, number, *content), "spent")
            db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", row)
            db.execute("COMMIT")
        return number

    def mark(self, number: int, outcome: str) -> None:
        """Note how a paid run ended: `"released"` or `"failed"`. The payment stands."""
        if outcome not in OUTCOMES[1:]:
            raise ValueError(f"outcome must be released or failed, got {outcome!r}")
        with _connection(self.path, self.timeout) as db:
            db.execute("BEGIN IMMEDIATE")
            _read(self.path, db)  # nothing is written to a damaged file
            changed = db.execute("UPDATE releases SET outcome = ? WHERE number = ?", (outcome, number)).rowcount
            db.execute("COMMIT")
        if changed != 1:
            raise ValueError(f"number must be that of an entry of the ledger, got {number!r}")

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "") -> Iterator[int]:
        """Pay, then run the block, then note how it ended; whatever happens in it, the payment stands."""
        number = self.spend(guarantee, note)
        try:
            yield number
        except (OracleNotCertified, SolveInterrupted):
            raise  # a retry with the same noise may still release, and is paid for
        except BaseException:
            self._try_to_mark(number, "failed")
            raise
        self._try_to_mark(number, "released")

    def _try_to_mark(self, number: int, outcome: str) -> None:
        """The outcome is a courtesy: a release that was paid for is not lost because it could not be noted."""
        try:
            self.mark(number, outcome)
        except LedgerError as error:
            warnings.warn(
                f"entry {number} is paid for, but not marked {outcome}: {error}", RuntimeWarning, stacklevel=4
            )

    def history(self) -> tuple[Entry, ...]:
        """All payments, oldest first."""
        with _connection(self.path, self.timeout) as db:
            return _read(self.path, db)[2]

    def totals(self) -> Totals:
        """Exact sums over all payments."""
        return Totals.of(entry.guarantee for entry in self.history())

    def remaining(self) -> Remaining:
        """What the next release may ask for at most."""
        return self.budget.remaining(self.totals())


def _write_new(path: Path, terms: str) -> None:
    """The file appears whole or not at all, and only where there is none."""
    if path.exists():
        raise LedgerError(f"{path} exists already: choose another name, or open it")
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as place:
            draft = Path(place) / "ledger"
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.executescript(SCHEMA)
                db.execute("INSERT INTO budget VALUES (?, ?)", (terms, _digest(terms)))
                db.execute("COMMIT")
            os.link(draft, path)
        _sync_directory(path.parent)
    except FileExistsError:
        raise LedgerError(f"{path} exists already: choose another name, or open it") from None
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"cannot create the ledger {path}: {error}") from None


def _sync_directory(path: Path) -> None:
    with suppress(PermissionError):  # Windows cannot open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _connection(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """A connection to a file that has the header of a ledger; what SQLite finds wrong becomes a `LedgerError`."""
    try:
        with _FILES:
            _check_header(path)
            address = f"{path.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = EXTRA")  # a commit is on the disk, and so is the end of its journal
                db.execute("PRAGMA trusted_schema = OFF")
                yield db
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerError(f"{path} is in use by other processes: nothing was spent, try again") from None
        if code in UNUSABLE:
            raise LedgerError(f"cannot use the ledger {path}: {error}; check its permissions and the disk") from None
        raise _damaged(path, str(error)) from None


def _check_header(path: Path) -> None:
    """Refuse other files before SQLite opens them: opening a database can already change it."""
    try:
        with path.open("rb") as file:
            header = file.read(HEADER)
    except OSError as error:
        raise LedgerError(
            f"cannot read the ledger {path}: {error.strerror}; make one with `privsolve budget init`"
        ) from None
    application, version = int.from_bytes(header[68:72]), int.from_bytes(header[60:64])
    if not header.startswith(b"SQLite format 3\0") or len(header) < HEADER or application != APPLICATION_ID:
        raise LedgerError(f"{path} is not a privsolve ledger; make one with `privsolve budget init`")
    if version != VERSION:
        raise LedgerError(f"{path} is a ledger of version {version}; this privsolve reads version {VERSION}")
    if header[18:20] != b"\1\1":  # a journal mode that ledgers never use
        raise _damaged(path, "its header is not that of a ledger")


def _read(path: Path, db: sqlite3.Connection) -> tuple[Budget, str, tuple[Entry, ...], str]:
    """Budget, data set, entries and the last digest, after checking that the digests chain from the first to the last."""
    problems = db.execute("PRAGMA quick_check(1)").fetchall()
    if problems != [("ok",)]:
        raise _damaged(path, str(problems[0][0]))
    head = db.execute("SELECT terms, digest FROM budget").fetchall()
    if len(head) != 1 or head[0][1] != _digest(head[0][0]):
        raise _damaged(path, "the terms of its budget do not match their digest")
    digest = head[0][1]
    entries = []
    columns = "number, spent_at, guarantee, note, digest, outcome"
    for expected, row in enumerate(db.execute(f"SELECT {columns} FROM releases ORDER BY number"), 1):
        digest = _digest(digest, *row[:4])
        if row[0] != expected or row[4] != digest or row[5] not in OUTCOMES:
            raise _damaged(path, f"entry {expected} does not match its digest")
        entries.append(row)
    try:
        terms = json.loads(head[0][0])
        budget = Budget(terms["epsilon"], terms["delta"], terms["adjacency"], terms["composition_delta"])
        history = tuple(Entry(n, at, Guarantee.from_dict(json.loads(g)), note, o) for n, at, g, note, _, o in entries)
        return budget, _text("dataset", terms["dataset"]), history, digest
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from None


def _digest(*parts: object) -> str:
    """Every digest covers the one before it: a changed entry, or one missing before the last, breaks the chain."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def _damaged(path: Path, what: str) -> LedgerError:
    return LedgerError(f"{path} is damaged ({what}): restore it from a backup and add what was released since")


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {type(value).__name__}")
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
