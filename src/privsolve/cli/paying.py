"""How a command pays for its release: once, and knowing at every moment what an interrupted run has to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privsolve.cli.common import warn
from privsolve.cli.signals import NOTHING, Stop
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger


class Payment:
    """The account of one release, with a ledger or without.

    Signals are held back while the payment is made, and again from the moment the release is drawn: whoever gets it writes
    it, calls `settle`, and lets them go. The ledger says "released" only after that.
    """

    def __init__(self, ledger: Ledger | None, stop: Stop) -> None:
        self._ledger, self._stop = ledger, stop
        self._unsettled: int | None = None

    @contextmanager
    def spending(self, guarantee: Guarantee, note: str = "") -> Iterator[None]:
        """Pay, draw in the block, and hold signals back when it has been drawn."""
        self._stop.let_go()  # whoever stopped it before now has paid nothing
        self._stop.hold()
        if self._ledger is not None:
            self._unsettled = self._ledger.spend(guarantee, note)
        self._stop.let_go()
        yield
        self._stop.hold()

    @contextmanager
    def settled_if_it_fails(self) -> Iterator[None]:
        """If the block fails after paying and nothing was released, say and note so."""
        try:
            yield
        except BaseException:
            self._stop.hold()
            if self._unsettled is not None:
                warn(
                    "the release was paid for already, and the ledger keeps the payment: see `privsolve budget history`"
                )
            self.settle("failed", NOTHING)
            raise

    def settle(self, outcome: str, words: str) -> None:
        """Note how it ended, once; `words` are what an interrupted command says from now on."""
        if self._stop.outcome == NOTHING:
            self._stop.outcome = words
        if self._ledger is not None and self._unsettled is not None:
            number, self._unsettled = self._unsettled, None
            self._ledger.try_to_mark(number, outcome)
