"""Signals that stop a command: they take effect where it is known what was paid and released, and the last line says so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import typer

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
NOTHING = "nothing was released"
STOPPING = b"stopping as soon as the preparations are done; once more to stop at once\n"

_one_command = False


def one_command() -> None:
    """This process runs one command and ends: what comes after the last word of a stoppable block ends it at once.

    Python's own handler would raise there, and whoever catches that does not know what was released.
    """
    global _one_command
    _one_command = True


class Stop:
    """Turns signals into `KeyboardInterrupt`, but for those that arrive while they are held back: these wait.

    `outcome` is what an interrupted command says; whoever changes what is true changes it in the same held stretch.
    """

    def __init__(self) -> None:
        self.outcome = NOTHING
        self.caught: int | None = None
        self._held = False
        self._stopping = False
        self._may_die = False

    def hold(self, *, may_die: bool = False) -> None:
        """Hold signals back from here on; with `may_die` a second one ends the process at once."""
        self._held, self._may_die = True, may_die

    def let_go(self) -> None:
        """End the holding: a signal that came meanwhile takes effect here."""
        self._held = False
        if self.caught is not None:
            self._raise()

    def receive(self, number: int, _: FrameType | None) -> None:
        """The handler; after a signal has taken effect, others change nothing: the command is on its way out."""
        again, self.caught = self.caught is not None, self.caught or number
        if self._held and again and self._may_die:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not self._held:
            self._raise()
        elif self._may_die:
            os.write(2, STOPPING)

    def _raise(self) -> None:
        if not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[Stop]:
    """A block that signals end with one line and the exit code 128 + number. Signals that were ignored stay so."""
    stop = Stop()
    before = _install(stop.receive)
    try:
        yield stop
        stop.let_go()
    except BaseException as error:
        stop.hold()
        interrupted = stop.caught is not None or isinstance(error, KeyboardInterrupt)
        if isinstance(error, typer.Exit) or not interrupted:
            raise
        with suppress(OSError):  # the terminal is gone
            _say(stop.outcome)
        raise typer.Exit(128 + (stop.caught or signal.SIGINT)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if _one_command and handler is signal.default_int_handler else handler)


def _say(outcome: str) -> None:
    from rich.markup import escape  # here, because every command loads this module and --help does without rich

    from privsolve.cli.common import errors

    errors.print(f"[bold red]interrupted:[/bold red] {escape(outcome)}", soft_wrap=True)


def _install(receive: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    if threading.current_thread() is not threading.main_thread():
        return {}  # signals are the main thread's
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return {n: signal.signal(n, receive) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
