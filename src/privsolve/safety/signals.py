"""Signals that stop a command: they take effect where it is known what was paid and released, and the last line says so."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
NOTHING = "nothing was released"
STOPPING = b"stopping as soon as the preparations are done; once more to stop at once\n"

_one_command = False


def one_command() -> None:
    """State that this process runs one command and ends.

    A signal after the command's last line then ends the process at once. Python's own handler would raise an exception there,
    and nothing that catches it knows what was released.
    """
    global _one_command
    _one_command = True


class Stop:
    """Turns signals into `KeyboardInterrupt`; those that arrive while signals are held back wait.

    `outcome` is what an interrupted command says: change it while signals are held back. Python may swallow an interrupt, for
    example in a destructor. So a signal that has arrived is remembered, `check` raises it again before anything is paid or
    written, and later signals raise it as well.
    """

    def __init__(self, outcome: str = NOTHING) -> None:
        self.outcome = outcome
        self.caught: int | None = None
        self._held = self._may_die = False

    def hold(self, *, may_die: bool = False) -> None:
        """Hold signals back from here on; with `may_die` a second one ends the process at once."""
        self._held, self._may_die = True, may_die

    def let_go(self) -> None:
        """End the holding: a signal that came meanwhile takes effect here."""
        self._held = False
        self.check()

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if any signal has arrived so far."""
        if self.caught is not None:
            raise KeyboardInterrupt

    def receive(self, number: int, _: FrameType | None) -> None:
        """The handler. While an interrupt is on its way out, other signals change nothing."""
        again, self.caught = self.caught is not None, self.caught or number
        if self._held and again and self._may_die:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif self._held and self._may_die:
            os.write(2, STOPPING)
        elif not self._held and not isinstance(sys.exception(), KeyboardInterrupt):
            raise KeyboardInterrupt


@contextmanager
def stoppable(say: Callable[[str], None], outcome: str = NOTHING) -> Iterator[Stop]:
    """A block that signals end with one line, told to `say`, and the exit code 128 + number. Ignored signals stay ignored."""
    stop = Stop(outcome)
    before = _install(stop.receive)
    try:
        yield stop
        stop.let_go()
    except BaseException as error:
        stop.hold()
        if stop.caught is None and not isinstance(error, KeyboardInterrupt):
            raise
        with suppress(OSError):  # the terminal is gone
            say(stop.outcome)
        raise SystemExit(128 + (stop.caught or signal.SIGINT)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if _one_command and handler is signal.default_int_handler else handler)


def _install(receive: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    if threading.current_thread() is not threading.main_thread():
        return {}  # signals are the main thread's
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return {n: signal.signal(n, receive) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
