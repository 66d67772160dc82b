"""Runs that can be killed and resumed: their random words are on the disk before anybody looks at them (theory, section 18).

The words are the operating system's own, written down as they are drawn, so a resumed run has exactly the law of one that was
never interrupted, and gives exactly the release that this one would have given.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self
from weakref import WeakKeyDictionary

import numpy as np

from privsolve._version import __version__
from privsolve.arrays import Words
from privsolve.errors import PrivsolveError, SealedRunError
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.noise.fingerprints import SIZE, fingerprint
from privsolve.noise.journal import Journal
from privsolve.privacy.accounting import Account
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger

FIRST_BLOCK, LARGEST_BLOCK = 1 << 11, 1 << 17
"""Words drawn ahead and written at a time, doubling: each block waits for the disk once."""

_WORD = 8

_PAID_BY: WeakKeyDictionary[Account, set[str]] = WeakKeyDictionary()
"""Which accounts in memory have paid for which runs, in this process: they forget with it, and then pay again."""


class _KeptWords:
    """Words in the order of the file, then fresh ones, each on the disk before it is handed out."""

    def __init__(self, journal: Journal, source: Randomness) -> None:
        self._journal, self._source = journal, source
        self._owner = (os.getpid(), threading.get_ident())
        self._block = self._position = 0
        self._buffer: Words = np.empty(0, dtype=np.uint64)
        self._ahead = FIRST_BLOCK
        self._at_the_end = False

    def __call__(self, size: int) -> Words:
        if self._owner != (os.getpid(), threading.get_ident()):
            raise PrivsolveError("the words of a sealed run belong to the thread that opened it: draw there")
        while self._buffer.size < size:
            self._buffer = np.concatenate([self._buffer, self._following(size - self._buffer.size)])
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        self._position += size
        return taken

    @property
    def position(self) -> int:
        """Words handed out so far."""
        return self._position

    def go_on_at(self, position: int) -> None:
        """Leave out the words up to a position that lies in the file."""
        if position < self._position:
            raise SealedRunError(f"{self._journal.path} is damaged: what it remembers is out of order")
        self(position - self._position)

    def _following(self, least: int) -> Words:
        block = self._journal.block(self._block)
        if block is None:
            block = self._fresh(max(least, self._ahead)).tobytes()
            self._journal.append(self._block, block)
            self._ahead = min(2 * self._ahead, LARGEST_BLOCK)
        self._block += 1
        return np.frombuffer(block, dtype=np.uint64)

    def _fresh(self, size: int) -> Words:
        """New words of the source; a seeded one first repeats those that are in the file."""
        if not self._at_the_end and self._source.is_seeded:
            self._source.words(self._journal.written() // _WORD)
        self._at_the_end = True
        return self._source.words(size)


class _SealedRandomness(Randomness):
    """Randomness from the words of a file, for one question, of which `given` is what is known before the mechanism."""

    def __init__(self, journal: Journal, source: Randomness, given: Mapping[str, Any]) -> None:
        self._journal, self._kept = journal, _KeptWords(journal, source)
        self._given, self._asked = given.keys(), set[str]()
        super().__init__(self._kept, seeded=source.is_seeded)
        self.ask(given)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the words of a sealed run cannot be copied: two copies would draw the same ones")

    def words(self, size: int) -> Words:
        """Words for a question that is written down: no other is ever answered by them."""
        self._check_said()
        return super().words(size)

    def ask(self, question: Mapping[str, Any]) -> None:
        """Refuse another question than the one that the words were drawn for."""
        key, before = self._journal.fact("key") or b"", self._journal.question()
        found = {part: fingerprint(key, value) for part, value in question.items()}
        closed = self._journal.fact("state") is not None
        strange = [part for part in found if part in before and before[part] != found[part]]
        strange += [part for part in found if part not in before and closed]
        if strange:
            raise self._another(strange)
        for part in found.keys() - before.keys():
            self._journal.ask(part, found[part])
        self._asked |= found.keys()

    def check_asked(self) -> None:
        """Refuse to pay before the question is known, and one that lacks a part of what it was."""
        self._check_said()
        if lacking := self._journal.question().keys() - self._asked:
            raise self._another(sorted(lacking))

    def _check_said(self) -> None:
        if self._asked <= self._given:
            raise PrivsolveError("this mechanism does not say what it asks, so it cannot be sealed: run it without")

    def _another(self, parts: list[str]) -> SealedRunError:
        return SealedRunError(
            f"{self._journal.path} was sealed for another run, the difference is in: {', '.join(parts)}. Give the same data "
            "and the same settings as before; or delete the file to give that run up (what it has paid stays paid)"
        )

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """What the file remembers by this name, with the words behind it; what `make` gives if it does not."""
        found = self._journal.remembered(name)
        if found is not None:
            self._kept.go_on_at(found[0])
            return json.loads(found[1])
        made = make()
        self._journal.remember(name, self._kept.position, json.dumps(made))
        return made


class SealedRun:
    """One release that can be resumed if its process is interrupted or killed; run the same program again to resume it.

    Use it as a block around the release and around writing it down:

    ```python
    with ps.SealedRun("run.sealed", budget=ledger) as sealed:
        run = ps.exponential(problem, 0.1, random_state=sealed.randomness, budget=sealed)
        Path("release.json").write_text(run.release.to_json())
    ```

    The block pays once, however often it is resumed. When it ends without an error the file is deleted; after an error or a
    kill it stays if the run was paid for. Data, settings and versions that differ from those before are refused.

    **The file is as secret as the data**: with it, whoever sees the release can work out much of what noise was to hide.

    Args:
        path: of the sealed file, made where there is none; keep it with the data.
        budget: an `Accountant` or a `Ledger` that pays for the release. A ledger knows a run that it has paid for; an
            accountant in memory forgets with its process, and pays again in the next.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.

    Guarantee:
        That of the mechanism: every random word is on the disk before it is used, so interruptions cannot change which
        release comes out, and fresh noise is never drawn in place of noise that was seen (theory, section 18).
    """

    def __init__(
        self, path: str | os.PathLike[str], *, budget: Account | None = None, random_state: int | None = None
    ) -> None:
        self.path = Path(path).absolute()
        self._budget, self._seed = budget, random_state
        self._journal: Journal | None = None
        self._randomness: _SealedRandomness | None = None
        self._entry: int | None = None
        self._spent_here = False

    def __enter__(self) -> Self:
        source = as_randomness(self._seed)
        journal = Journal(self.path)
        try:
            if journal.fact("state") is None:  # new, or left before it came to pay: nobody has seen its noise
                journal.empty()
                journal.state("name", secrets.token_hex(8).encode())
                journal.state("key", secrets.token_bytes(SIZE))
            self._randomness = _SealedRandomness(journal, source, _versions() | {"seed": self._seed})
        except BaseException:
            journal.close()
            raise
        self._journal = journal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._journal is None:
            return
        if kind is not None and self.committed:
            self.close()
            return
        if kind is None and isinstance(self._budget, Ledger) and self._entry is not None:
            self._budget.try_to_mark(self._entry, "released")
        self.destroy()

    @property
    def randomness(self) -> Randomness:
        """The random words of this run, for `random_state`."""
        if self._randomness is None:
            raise PrivsolveError("a sealed run is open inside its block only: use `with SealedRun(path) as sealed`")
        return self._randomness

    @property
    def resumed(self) -> bool:
        """Whether an earlier process has paid, or was about to."""
        return self.committed and not self._spent_here

    @property
    def committed(self) -> bool:
        """Whether the payment was made, or was about to be: from there on the file is kept until the release is written."""
        return self._journal is not None and self._journal.fact("state") is not None

    @property
    def _open(self) -> Journal:
        if self._journal is None:
            raise PrivsolveError("a sealed run is open inside its block only: use `with SealedRun(path) as sealed`")
        return self._journal

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "") -> Iterator[int | None]:
        """Pay for the release, unless that was done before; then run the block, which draws it."""
        with ExitStack() as stack:
            if self._budget is None or isinstance(self._budget, Ledger):
                self.pay(guarantee, note)
            else:
                with self._beginning():
                    self._pay_in_memory(stack, self._budget, guarantee, note)
                self._open.state("state", b"paid")
            yield self._entry

    def pay(self, guarantee: Guarantee, note: str = "") -> int | None:
        """Pay from the ledger, unless it has paid for this run before: the number of the entry, None without a ledger."""
        with self._beginning():
            if isinstance(self._budget, Ledger):
                self._entry = self._paid_entry(self._budget)
                if self._entry is None:
                    self._entry = self._budget.spend(guarantee, " ".join(filter(None, (note, self._note))))
                self._open.state("ledger", b"paid")
            elif self._open.fact("ledger") is not None:
                raise SealedRunError(f"{self.path} was paid from a ledger: give the same one")
        self._open.state("state", b"paid")
        return self._entry

    @contextmanager
    def _beginning(self) -> Iterator[None]:
        """From here on the run counts as made: first on the disk, then the payment in the block, so that none is ever lost.

        A payment that is refused is taken back; one that may have been made is not.
        """
        assert self._randomness is not None, "open"
        self._randomness.check_asked()
        if self._spent_here:
            raise PrivsolveError("a sealed run holds one release, and this is the second: use another file for it")
        self._spent_here, before = True, self.committed
        if not before:
            self._open.state("state", b"paying")
        try:
            yield
        except Exception:
            if not before and not self._may_have_paid():
                self._open.withdraw("state")
            raise

    def _may_have_paid(self) -> bool:
        if not isinstance(self._budget, Ledger):
            return False
        try:
            return self._paid_entry(self._budget) is not None
        except PrivsolveError:
            return True

    @property
    def _note(self) -> str:
        """By which a ledger knows the run: a random name, which says nothing."""
        return f"run {(self._open.fact('name') or b'').decode()}"

    def _paid_entry(self, ledger: Ledger) -> int | None:
        found = [entry.number for entry in ledger.history() if entry.note.endswith(self._note)]
        if not found and self._open.fact("ledger") is not None:
            raise SealedRunError(f"{self.path} was paid from another ledger than {ledger.path}: give the same one")
        return found[0] if found else None

    def _pay_in_memory(self, stack: ExitStack, account: Account, guarantee: Guarantee, note: str) -> None:
        paid = _PAID_BY.setdefault(account, set())
        if self._note not in paid:
            stack.enter_context(account.spending(guarantee, note))
            paid.add(self._note)

    def close(self) -> None:
        """Let go of the file and leave it, for whoever resumes the run."""
        self._open.close()
        self._journal = self._randomness = None

    def destroy(self) -> None:
        """Delete the file: the release is written, or nothing was paid for. Does nothing the second time."""
        if self._journal is not None:
            self._journal.destroy()
        self._journal = self._randomness = None


def was_committed(path: Path) -> bool:
    """Whether the run in a sealed file was paid for, or was about to be."""
    journal = Journal(path)
    try:
        return journal.fact("state") is not None
    finally:
        journal.close()


def _versions() -> dict[str, str]:
    """What the same words could come out differently with."""
    libraries = {f"version of {name}": version(name) for name in ("numpy", "scipy", "numba")}
    python = ".".join(map(str, sys.version_info[:2]))
    own = {"version of privsolve": __version__, "version of python": python, "machine": platform.machine()}
    return own | libraries
