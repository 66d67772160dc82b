"""The file of a sealed run: random words in the order they were drawn, what was asked, what was paid, what is remembered.

One SQLite file for its owner only (mode 0600), locked by one process at a time. Whatever is written is on the disk before the
call returns, so a process that is killed leaves every word that anybody has looked at.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from privsolve.errors import SealedRunError

APPLICATION_ID = 0x7073_7365
"""The four letters "psse" in the header of the file tell a sealed run from other databases."""

VERSION = 1
HEADER = 100

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE question (part TEXT PRIMARY KEY, fingerprint BLOB NOT NULL);
CREATE TABLE words (block INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE remembered (name TEXT PRIMARY KEY, position INTEGER NOT NULL, value TEXT NOT NULL);
"""


class Journal:
    """An open file of a sealed run; made where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_file(path)
        with _readable_errors(path):
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None)
            try:
                self._take()
            except BaseException:
                self._db.close()
                raise

    def _take(self) -> None:
        """Keep the file from other processes until it is closed, and make its tables if they are missing."""
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA synchronous = EXTRA")
        self._db.execute("PRAGMA trusted_schema = OFF")
        self._db.execute("BEGIN EXCLUSIVE")
        self.is_new = not self._db.execute("SELECT 1 FROM sqlite_schema").fetchall()
        if self.is_new:
            for statement in filter(None, map(str.strip, SCHEMA.split(";"))):
                self._db.execute(statement)
        self._db.execute("COMMIT")

    def fact(self, name: str) -> bytes | None:
        """A fact about the run, or None."""
        found = self._one("SELECT value FROM facts WHERE name = ?", name)
        return None if found is None else bytes(found[0])

    def state(self, name: str, value: bytes) -> None:
        """Write a fact down, in place of an earlier one."""
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)

    def withdraw(self, name: str) -> None:
        """Take a fact back."""
        self._write("DELETE FROM facts WHERE name = ?", name)

    def question(self) -> dict[str, bytes]:
        """The parts of the question with their fingerprints."""
        with _readable_errors(self.path):
            return {part: bytes(value) for part, value in self._db.execute("SELECT part, fingerprint FROM question")}

    def ask(self, part: str, value: bytes) -> None:
        """Write down one part of the question."""
        self._write("INSERT INTO question VALUES (?, ?)", part, value)

    def block(self, number: int) -> bytes | None:
        """The words of that block, or None if it was never drawn."""
        found = self._one("SELECT bytes FROM words WHERE block = ?", number)
        return None if found is None else bytes(found[0])

    def append(self, number: int, words: bytes) -> None:
        """Write down a block that was drawn just now."""
        self._write("INSERT INTO words VALUES (?, ?)", number, words)

    def written(self) -> int:
        """Bytes of words in the file."""
        found = self._one("SELECT coalesce(sum(length(bytes)), 0) FROM words")
        return int(found[0]) if found is not None else 0

    def remembered(self, name: str) -> tuple[int, str] | None:
        """At how many words a value was remembered, and the value."""
        found = self._one("SELECT position, value FROM remembered WHERE name = ?", name)
        return None if found is None else (int(found[0]), str(found[1]))

    def remember(self, name: str, position: int, value: str) -> None:
        """Write down a value and how many words were used when it was found."""
        self._write("INSERT INTO remembered VALUES (?, ?, ?)", name, position, value)

    def empty(self) -> None:
        """Begin anew: everything that was written down is gone, all of it or nothing."""
        with _readable_errors(self.path):
            self._db.execute("BEGIN")
            for table in ("facts", "question", "words", "remembered"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file, and leave it."""
        self._db.close()

    def destroy(self) -> None:
        """Close the file and delete it, with what SQLite may have left beside it."""
        self.close()
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            path.unlink(missing_ok=True)

    def _one(self, question: str, *values: object) -> tuple[Any, ...] | None:
        with _readable_errors(self.path):
            found: tuple[Any, ...] | None = self._db.execute(question, values).fetchone()
            return found

    def _write(self, statement: str, *values: object) -> None:
        with _readable_errors(self.path):
            self._db.execute(statement, values)  # a transaction of its own: on the disk when it returns


def _check_file(path: Path) -> None:
    """Make the file, for its owner only, or refuse one that is something else before SQLite opens it."""
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with path.open("rb") as file:
            header = file.read(HEADER)
    except OSError as error:
        raise SealedRunError(f"cannot use {path}: {error.strerror}; choose another file for the sealed run") from None
    application, version = int.from_bytes(header[68:72]), int.from_bytes(header[60:64])
    if header and (not header.startswith(b"SQLite format 3\0") or application != APPLICATION_ID):
        raise SealedRunError(f"{path} is not a sealed run: choose another file")
    if header and version != VERSION:
        raise SealedRunError(f"{path} is a sealed run of format {version}; this privsolve reads format {VERSION}")


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """What SQLite finds wrong, in our words."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SealedRunError(f"{path} is in use by another process: wait for it to end") from None
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise SealedRunError(
                f"cannot write to {path}: {error}; make room on the disk, then resume the run"
            ) from None
        raise SealedRunError(f"{path} cannot be used ({error}): it may be damaged, and cannot be resumed") from None
