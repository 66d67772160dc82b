"""Locks on files and folders: one process at a time. A lock ends with its process, however that ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LockedError(Exception):
    """Somebody else holds the lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on an existing file or folder during the block.

    Raises:
        LockedError: if another process holds it, or another block of this one.
    """
    descriptor = _lock(path)
    try:
        yield
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(path: Path) -> int:
        """A file that only one process can create, and that Windows deletes when it is closed."""
        name = path / ".lock" if path.is_dir() else path.with_name(f"{path.name}.lock")
        try:
            return os.open(name, os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)
        except FileExistsError:
            raise LockedError from None

else:
    import fcntl

    def _lock(path: Path) -> int:
        """A lock on the file or folder itself, which leaves nothing behind."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), os.stat(path)):  # removed by its owner, made again by another
                raise BlockingIOError
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError | FileNotFoundError):
                raise LockedError from None
            raise
        return descriptor
