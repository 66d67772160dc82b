"""Folders that one process at a time may write to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """No other process that asks may have the folder during the block; a claim ends with its process, however that ends."""
    descriptor = _claim(folder)
    try:
        yield
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _claim(folder: Path) -> int:
        """A file that only one process can create, and that Windows deletes when it is closed."""
        try:
            return os.open(folder / ".claim", os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)
        except FileExistsError:
            raise _taken(folder) from None

else:
    import fcntl

    def _claim(folder: Path) -> int:
        """A lock on the folder itself, which leaves no file behind."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(
                os.fstat(descriptor), os.stat(folder)
            ):  # removed by its owner, made again by another
                raise BlockingIOError
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError | FileNotFoundError):
                raise _taken(folder) from None
            raise
        return descriptor


def _taken(folder: Path) -> ValueError:
    return ValueError(f"{folder} is being written to by another fit: wait for it, or choose another folder")
