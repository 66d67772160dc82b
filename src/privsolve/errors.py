"""The errors and warnings that privsolve raises, each with what to do next in its message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class PrivsolveError(Exception):
    """Base class of errors that are not plain wrong arguments (those are `ValueError`)."""


class OracleNotCertified(PrivsolveError):
    """An oracle stopped before it could prove its answer: nothing may be released from it.

    Raised by a mechanism, it has `retry(oracle)`, which solves again with the *same* noise and no further budget. Calling
    the mechanism again would draw fresh noise, which conditions on success and voids the guarantee (theory, section 7).
    One noise has one answer: after a retry that succeeded, every other gives the same run.
    """

    retry: Callable[[Any], Any] | None = None


class OracleFailed(OracleNotCertified):
    """An oracle raised an error of its own, which is the `__cause__`. The noise is kept for `retry`."""


class SolveInterrupted(KeyboardInterrupt):
    """A solve that had been paid for was interrupted: nothing was released, and the noise is kept for `retry`."""

    retry: Callable[[Any], Any] | None = None


class WorkLimitReached(OracleNotCertified):
    """A node, time or memory limit was hit. The same noise with a larger limit is safe; fresh noise is not."""


class IntegerRangeError(PrivsolveError, ValueError):
    """Scores or objective values would leave the 64-bit integers."""


class BudgetExceeded(PrivsolveError):
    """A release would exceed the privacy budget: it was refused before any noise was drawn, and nothing was spent."""


class LedgerError(PrivsolveError):
    """A ledger cannot be used: missing, foreign, damaged or busy. The file is left as it is."""


class SealedRunError(PrivsolveError):
    """A sealed run cannot be resumed: another question, damaged, busy or no sealed run at all. The file is left as it is."""


class PrivacyWarning(UserWarning):
    """A guarantee is weaker than it looks: not proved, or seeded."""


class MissingExtra(PrivsolveError, ImportError):
    """A package of an extra is not installed; the message says how to install it."""


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Imports in this block come with `pip install 'privsolve[extra]'`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{error.name} is not installed: pip install 'privsolve[{extra}]'") from None
