"""How a command pays for its release: once, and knowing at every moment what an interrupted run has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from privsolve.cli.common import warn, write_out
from privsolve.cli.signals import NOTHING, Stop
from privsolve.learn.publishing import Folder
from privsolve.noise.sealed import SealedRun
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger
from privsolve.releases import Run

Made = TypeVar("Made")


class Payment:
    """The account of one release, with a ledger or without.

    Signals are held back while the payment is made, and again from the moment the release is drawn until it is written. Only
    then does the ledger say "released", and only then is a sealed run destroyed.
    """

    def __init__(
        self, ledger: Ledger | None, stop: Stop, sealed: SealedRun | None = None, note: str | None = None
    ) -> None:
        self._ledger, self._stop, self._sealed, self._note = ledger, stop, sealed, note
        if note is not None and ledger is None:
            raise ValueError("--note is kept in a ledger: add --ledger, or leave it out")
        self._unsettled: int | None = None

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "") -> Iterator[None]:
        """Pay, draw in the block, and hold signals back when it has been drawn."""
        self._stop.let_go()  # whoever stopped it before now has paid nothing
        self._stop.hold()
        note = note if self._note is None else self._note
        if self._sealed is not None:
            self._unsettled = self._sealed.pay(guarantee, note)
        elif self._ledger is not None:
            self._unsettled = self._ledger.spend(guarantee, note)
        self._stop.let_go()
        yield
        self._stop.hold()

    def make(self, draw: Callable[[Payment], Made], finish: Callable[[Made], str]) -> Made:
        """Draw something, which pays, then finish it, then note that it is there; `finish` says where."""
        try:
            self._stop.hold(may_die=True)  # the compiler does not survive exceptions, and nothing is paid yet
            made = draw(self)
            words = finish(made)
        except BaseException:
            self._stop.hold()
            self._say_what_is_left()
            raise
        self._settle("released", words)
        self._stop.let_go()
        return made

    def release(self, folder: Folder | None, draw: Callable[[Payment], Run]) -> tuple[Run, list[Path]]:
        """Draw the release, write it, and note that it is there: the run, and the paths of its files.

        Without a folder, to show it is the caller's.
        """
        paths: list[Path] = []

        def write(run: Run) -> str:
            paths.extend(self._write(folder, run) if folder is not None else [])
            return f"the release is complete, see {paths[0]}" if paths else "the release is complete"

        return self.make(draw, write), paths

    def _say_what_is_left(self) -> None:
        """A run that failed keeps its payment, and its sealed file if it has one."""
        words = "the release was paid for already, and the ledger keeps the payment: see `privsolve budget history`"
        if self._sealed is not None and self._sealed.committed:
            paid = f"{words}. " if self._unsettled is not None else ""
            warn(
                f"{paid}{self._sealed.path} keeps its noise, as secret as the data: the same command with --resume goes on "
                "from there and pays nothing more"
            )
        elif self._unsettled is not None:
            warn(words)
            self._settle("failed", NOTHING)

    def _write(self, folder: Folder, run: Run) -> list[Path]:
        try:
            return folder.write(run)
        except Exception as error:
            write_out(run.release.to_json())  # it is paid for: do not lose it
            why = error.strerror if isinstance(error, OSError) else str(error)
            words = "the release is printed above, save it as release.json"
            self._settle("released", words)
            raise ValueError(f"--out {folder.path} was not written: {why}; {words}") from None

    def _settle(self, outcome: str, words: str) -> None:
        """Note how it ended; `words` are what an interrupted command says from now on."""
        self._stop.outcome = words
        if self._ledger is not None and self._unsettled is not None:
            number, self._unsettled = self._unsettled, None
            self._ledger.try_to_mark(number, outcome)
        if self._sealed is not None:
            self._sealed.destroy()
