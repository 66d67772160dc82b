"""Folders for temporary files with private content: for their owner only, and gone at the latest at the next start."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where temporary folders belong to one user anyway
    fcntl = None  # type: ignore[assignment]

PREFIX = ".privsolve-"


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent` that only its owner can enter, removed after the block.

    Whoever makes one removes those of processes that were killed. A folder in use is locked by its process, and the
    system drops the lock when the process ends, however it ends.
    """
    remove_abandoned(parent)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def engine_folder() -> str:
    """Where the engine of this process spills to."""
    return _engine_folder(os.getpid(), tempfile.gettempdir())


@lru_cache
def _engine_folder(process: int, parent: str) -> str:
    stack = ExitStack()
    folder = stack.enter_context(private_folder(Path(parent)))
    atexit.register(lambda: stack.close() if os.getpid() == process else None)  # a fork must not remove it
    return str(folder)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders in `parent` whose processes are gone."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _is_ours(folder) and (lock := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _locked_folder(parent: Path) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
        try:
            lock = _lock(folder) if fcntl is not None else None
        except FileNotFoundError:  # another process took it for an abandoned one before it was locked
            continue
        except OSError:  # a file system without locks, where nobody can take it for an abandoned one either
            return folder, None
        if folder.exists():
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A lock on the folder, or None if another process has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
