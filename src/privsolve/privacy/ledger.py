"""A privacy budget on disk: one SQLite file per data set, in which every release is paid for before it is made.

The payment is on the disk before the mechanism draws its noise, so a crash can lose a release but never a payment. Several
processes may share a ledger. Each operation opens the file anew, so a ledger may be passed to threads and forks.

Beside the ledger lies its high-water mark (`high_water`), by which an older copy put in its place is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import reprlib
import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from privsolve.checks import check_between, check_integer
from privsolve.errors import LedgerError, OracleNotCertified, SolveInterrupted
from privsolve.privacy.accounting import Budget, Known, Remaining, Totals, check_adjacency
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Paid
from privsolve.privacy.high_water import (
    HighWater,
    high_water_path,
    read_high_water,
    read_start,
    sync_directory,
    write_high_water,
)
from privsolve.privacy.version_0_1 import stored_guarantee

if TYPE_CHECKING:
    import pandas as pd

APPLICATION_ID = 0x7073_6C67
"""The four letters "pslg" in the header of the file tell a ledger from other databases."""

VERSION = 1
HEADER = 100
LONGEST_WAIT = 86_400
"""Seconds that anybody may wait for other processes: a day."""

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

TABLES = {
    "budget": "CREATE TABLE budget (terms TEXT NOT NULL, digest TEXT NOT NULL)",
    "releases": """CREATE TABLE releases (
    number INTEGER PRIMARY KEY,
    spent_at TEXT NOT NULL,
    guarantee TEXT NOT NULL,
    note TEXT NOT NULL,
    digest TEXT NOT NULL,
    outcome TEXT NOT NULL
)""",
    "marked": "CREATE TABLE marked (since TEXT NOT NULL)",
    "names": "CREATE TABLE names (name TEXT NOT NULL, number INTEGER NOT NULL, answer TEXT)",
}
"""A ledger holds these tables and nothing else, so nothing in it can interfere with a payment.

One with `marked` has a high-water mark beside it. `names` are those of the sealed runs and drafts that were paid for, with the
digest of the answer once there is one. Ledgers of version 0.1.0 get both with their next payment.
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
        block runs and is never taken back. Damage, edited or deleted entries, and an older copy of the file alone are
        noticed; a ledger that was restored together with its high-water mark is not, and is outside the guarantee.
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
        adjacency: Adjacency | str = Adjacency.REPLACE,
        dataset: str = "",
        composition_delta: float | None = None,
    ) -> Ledger:
        """A new ledger with nothing spent; never replaces a file. `dataset` says in words what it is for."""
        budget = Budget(epsilon, delta, Adjacency.of(adjacency), composition_delta)
        terms = {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "adjacency": budget.adjacency,
            "composition_delta": budget.composition_delta,
            "dataset": _text("dataset", dataset),
            "created": _now(),
        }
        _write_new(Path(path).absolute(), json.dumps(terms))
        return cls.open(path)

    @classmethod
    def accept(cls, path: str | os.PathLike[str]) -> Ledger:
        """Take a ledger whose high-water mark is lost, or ahead of it, for the latest one, and mark it anew.

        Only for when the latest file is gone: then `spend` again for every release that is missing in it.
        """
        place = Path(path).absolute()
        with _connection(place, 60.0) as db:
            db.execute("BEGIN IMMEDIATE")
            content = _read(place, db)
            _add_tables(db)
            write_high_water(place, content.high_water)
            db.execute("COMMIT")
        return cls.open(place)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 60.0) -> Ledger:
        """An existing ledger, checked from end to end. `timeout`: seconds to wait for other processes."""
        timeout = check_between("timeout", timeout, 0, LONGEST_WAIT)
        place = Path(path).absolute()  # the same file after a change of folder
        with _connection(place, timeout) as db:
            content = _checked(place, db)
        return cls(place, content.budget, content.dataset, timeout)

    def spend(
        self,
        guarantee: Guarantee,
        note: str = "",
        *,
        run: str = "",
        names: Sequence[str] = (),
        draft: Paid | None = None,
    ) -> int:
        """Pay for a release that is about to be made, in one transaction.

        Args:
            guarantee: what the release promises.
            note: words for the history.
            run: the name of a sealed run, which is paid for once.
            names: by which later releases know that this one is paid for.
            draft: a private draft that the release rests on. It is paid for as well, unless this ledger has done so.

        Returns:
            The number of the entry.

        Raises:
            BudgetExceeded: if the release, with the draft, is beyond the budget. Then nothing is paid.
        """
        check_adjacency(guarantee, self.budget.adjacency)
        _text("note", note)
        with _connection(self.path, self.timeout) as db:
            db.execute("BEGIN IMMEDIATE")  # nobody else can pay between this look at the sums and the commit
            now = _checked(self.path, db)
            if run in now.names:
                return now.names[run]
            owed = None if draft is None or now.paid_for(draft.note) == draft.guarantee else draft
            now.budget.check_with_draft(Totals.of(e.guarantee for e in now.entries), guarantee, owed)
            if not now.marked:
                write_high_water(self.path, now.high_water)  # while nothing is spent: it may fail
            _add_tables(db)
            number, digest = len(now.entries), now.high_water.digest
            if owed is not None:
                number, digest = _insert(db, number + 1, digest, owed.guarantee, owed.note, "released", [owed.note])
            number, digest = _insert(db, number + 1, digest, guarantee, note, "spent", [run, *names])
            db.execute("COMMIT")
            self._try_to_raise_high_water(db, number)
        return number

    def _try_to_raise_high_water(self, db: sqlite3.Connection, number: int) -> None:
        """The payment stands in the ledger; a mark that stays behind is a weaker check, no reason to lose the release."""
        try:
            db.execute("BEGIN IMMEDIATE")  # one at a time, so that the mark never goes down
            write_high_water(self.path, _read(self.path, db).high_water)
            db.execute("ROLLBACK")
        except (LedgerError, sqlite3.Error) as error:
            warnings.warn(f"entry {number} is paid for, but not in the mark: {error}", RuntimeWarning, stacklevel=3)

    def mark(self, number: int, outcome: str) -> None:
        """Note how a paid run ended: `"released"` or `"failed"`. The payment stands."""
        if outcome not in OUTCOMES[1:]:
            raise ValueError(f"outcome must be released or failed, got {reprlib.repr(outcome)}")
        with self._changing(number) as db:
            db.execute("UPDATE releases SET outcome = ? WHERE number = ?", (outcome, number))

    def number_of(self, name: str) -> int | None:
        """The number of the entry that has paid for that name, or None."""
        with _connection(self.path, self.timeout) as db:
            return _checked(self.path, db).names.get(name)

    def bind(self, number: int, answer: str) -> None:
        """Bind a payment to the one answer that may be released for it.

        Args:
            number: of the entry.
            answer: a digest of the answer.

        Raises:
            LedgerError: if the payment was used for another answer.
        """
        with self._changing(number) as db:
            db.execute("UPDATE names SET answer = ? WHERE number = ? AND answer IS NULL", (answer, number))
            bound = db.execute("SELECT answer FROM names WHERE number = ?", (number,)).fetchall()
        if any(found != answer for (found,) in bound):
            raise LedgerError(
                f"entry {number} of {self.path} has paid for another release, and one payment is for one release: nothing "
                "may be released from this copy of the run; delete it, and pay for a new run"
            )

    @contextmanager
    def _changing(self, number: int) -> Iterator[sqlite3.Connection]:
        """A transaction that changes what is noted about an entry, of a ledger that is not damaged."""
        with _connection(self.path, self.timeout) as db:
            db.execute("BEGIN IMMEDIATE")
            check_integer("number", number, 1, len(_checked(self.path, db).entries))
            yield db
            db.execute("COMMIT")

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "", **known: Unpack[Known]) -> Iterator[int]:
        """Pay as `spend` does, then run the block, then note how it ended; whatever happens in it, the payment stands."""
        number = self.spend(guarantee, note, **known)
        try:
            yield number
        except (OracleNotCertified, SolveInterrupted):
            raise  # a retry with the same noise may still release, and is paid for
        except BaseException:
            self.try_to_mark(number, "failed")
            raise
        self.try_to_mark(number, "released")

    def try_to_mark(self, number: int, outcome: str) -> None:
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
            return _checked(self.path, db).entries

    def to_frame(self) -> pd.DataFrame:
        """One row per payment. Outcomes are the curator's, not private."""
        import pandas as pd

        heads = ["number", "spent_at", "epsilon", "delta", "note", "outcome (not private)"]
        lines = [
            (e.number, e.spent_at, e.guarantee.epsilon, e.guarantee.delta, e.note, e.outcome) for e in self.history()
        ]
        return pd.DataFrame(lines, columns=heads)

    def totals(self) -> Totals:
        """Exact sums over all payments."""
        return Totals.of(entry.guarantee for entry in self.history())

    def remaining(self) -> Remaining:
        """What the next release may ask for at most."""
        return self.budget.remaining(self.totals())


def _write_new(path: Path, terms: str) -> None:
    """The file appears whole or not at all, for its owner only, and only where there is none."""
    mark, taken = high_water_path(path), f"{path} exists already: choose another name, or use it as it is"
    if path.exists():
        raise LedgerError(taken)
    if mark.exists():
        raise LedgerError(
            f"{mark} exists: a ledger of this name was here; put it back, choose another name, or delete the mark"
        )
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as place:
            draft = Path(place) / "ledger"
            draft.touch(0o600)
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
                db.execute("BEGIN")
                _add_tables(db)
                db.execute("INSERT INTO budget VALUES (?, ?)", (terms, _digest(terms)))
                db.execute("COMMIT")
            write_high_water(draft, HighWater(0, _digest(terms)))
            os.link(high_water_path(draft), mark)  # first: where the ledger is, its mark is
            try:
                os.link(draft, path)
            except BaseException:
                mark.unlink()
                raise
        sync_directory(path.parent)
    except FileExistsError:
        raise LedgerError(taken) from None
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"cannot create the ledger {path}: {error}") from None


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
    except UnicodeDecodeError:  # of a message about names in the file
        raise _damaged(path, "it holds text that is not UTF-8") from None


def _check_header(path: Path) -> None:
    """Refuse other files before SQLite opens them: opening a database can already change it."""
    try:
        header = read_start(path, HEADER)
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


@dataclass(frozen=True)
class _Content:
    """All that a ledger holds, and its own digests: of the terms, then of every entry."""

    budget: Budget
    dataset: str
    entries: tuple[Entry, ...]
    digests: tuple[str, ...]
    names: dict[str, int]
    marked: bool

    @property
    def high_water(self) -> HighWater:
        return HighWater(len(self.entries), self.digests[-1])

    def paid_for(self, name: str) -> Guarantee | None:
        """What was paid for under that name."""
        return self.entries[self.names[name] - 1].guarantee if name in self.names else None


def _checked(path: Path, db: sqlite3.Connection) -> _Content:
    """The ledger's content, held to its high-water mark; the mark is read first, since payments may be made meanwhile."""
    mark = read_high_water(path)
    content = _read(path, db)
    if mark is None and content.marked:
        raise LedgerError(
            f"{high_water_path(path)} is missing, so an older copy of the ledger would go unnoticed: put it back beside "
            f"{path.name}; if it is lost and no payment is missing, `privsolve budget accept` makes it anew"
        )
    if mark is not None and mark.digest not in content.digests[mark.entries : mark.entries + 1]:
        made = "1 payment was" if mark.entries == 1 else f"{mark.entries} payments were"
        raise LedgerError(
            f"{path} is not the latest: {made} made from it, and it does not hold all. Put the latest file back; if it is "
            "lost, `privsolve budget accept` takes this one, and what is missing must be spent again"
        )
    return content


def _read(path: Path, db: sqlite3.Connection) -> _Content:
    """The ledger's content, after checking that the digests chain from the first to the last."""
    problems = db.execute("PRAGMA quick_check(1)").fetchall()
    if problems != [("ok",)]:
        raise _damaged(path, str(problems[0][0]))
    tables = dict(db.execute("SELECT name, sql FROM sqlite_schema").fetchall())
    if not tables.items() <= TABLES.items():
        raise _damaged(path, "it holds something else than the tables of a ledger")
    head = db.execute("SELECT terms, digest FROM budget").fetchall()
    if len(head) != 1 or head[0][1] != _digest(head[0][0]):
        raise _damaged(path, "the terms of its budget do not match their digest")
    digests = [head[0][1]]
    entries = []
    columns = "number, spent_at, guarantee, note, digest, outcome"
    for expected, row in enumerate(db.execute(f"SELECT {columns} FROM releases ORDER BY number"), 1):
        digests.append(_digest(digests[-1], *row[:4]))
        if row[0] != expected or row[4] != digests[-1] or row[5] not in OUTCOMES:
            raise _damaged(path, f"entry {expected} does not match its digest")
        entries.append(row)
    names = dict(db.execute("SELECT name, number FROM names ORDER BY rowid").fetchall()) if "names" in tables else {}
    if not set(names.values()) <= set(range(1, len(entries) + 1)):
        raise _damaged(path, "it names payments that it does not hold")
    try:
        terms = json.loads(head[0][0])
        budget = Budget(terms["epsilon"], terms["delta"], terms["adjacency"], terms["composition_delta"])
        history = tuple(Entry(n, at, stored_guarantee(json.loads(g)), note, o) for n, at, g, note, _, o in entries)
        return _Content(budget, _text("dataset", terms["dataset"]), history, tuple(digests), names, "marked" in tables)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from None


def _add_tables(db: sqlite3.Connection) -> None:
    """The tables that are missing: all of them in a new ledger."""
    for statement in TABLES.values():
        db.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))


def _insert(
    db: sqlite3.Connection,
    number: int,
    before: str,
    guarantee: Guarantee,
    note: str,
    outcome: str,
    names: Sequence[str],
) -> tuple[int, str]:
    """Write one entry and its names, if it has any: its number and its digest, which covers that of the entry before."""
    content = (number, _now(), json.dumps(guarantee.to_dict()), note)
    digest = _digest(before, *content)
    db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", (*content, digest, outcome))
    db.executemany("INSERT INTO names VALUES (?, ?, NULL)", [(name, number) for name in names if name])
    return number, digest


def _digest(*parts: object) -> str:
    """Every digest covers the one before it: a changed entry, or one missing before the last, breaks the chain."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def _damaged(path: Path, what: str) -> LedgerError:
    return LedgerError(f"{path} is damaged ({what}): restore it from a backup and add what was released since")


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {type(value).__name__}")
    if not value.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{name} must be a text that can be written as UTF-8, got half of a pair of surrogates")
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
