"""Packages that only some uses need: installed with an extra, and asked for by name where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privsolve.errors import PrivsolveError


class MissingExtra(PrivsolveError, ImportError):
    """A package of an extra is not installed; the message says how to install it."""


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Imports in this block come with `pip install 'privsolve[extra]'`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{error.name} is not installed: pip install 'privsolve[{extra}]'") from None
