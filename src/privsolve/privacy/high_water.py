"""The high-water mark of a ledger: how many payments were made, and the digest of the last, in a small file beside it.

It is written after each payment and never goes down, so a ledger that lacks a payment it marks is an older copy, or has lost
its last entries. Nobody is kept from changing both files: it guards against accidents (docs/guides/budgets.md).
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from privsolve.errors import LedgerError

LARGEST = 4096


@dataclass(frozen=True)
class HighWater:
    """So many entries were in the ledger, the last of them with this digest."""

    entries: int
    digest: str


def high_water_path(ledger: Path) -> Path:
    """The file beside the ledger itself, wherever links to it stand."""
    place = Path(os.path.realpath(ledger))
    return place.with_name(f"{place.name}.mark")


def read_high_water(ledger: Path) -> HighWater | None:
    """The mark, or None if there is none."""
    path = high_water_path(ledger)
    try:
        content = json.loads(read_start(path, LARGEST))
        mark = HighWater(content["entries"], content["digest"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        mark = HighWater(-1, "")
    if type(mark.entries) is not int or mark.entries < 0 or not isinstance(mark.digest, str):
        raise LedgerError(
            f"{path} is damaged: put the latest one back; if it is lost and no payment is missing in the ledger, "
            "`privsolve budget accept` makes it anew"
        )
    return mark


def write_high_water(ledger: Path, mark: HighWater) -> None:
    """Replace the mark, on the disk and whole, readable to whoever may read the ledger. One process at a time."""
    path = high_water_path(ledger)
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # never through a link
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(mark)) + "\n")
            file.flush()
            draft.chmod(ledger.stat().st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(draft, path)
        sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}; check its permissions and the disk") from None


def read_start(path: Path, size: int) -> bytes:
    """The first bytes of a regular file; anything else, such as a pipe that nobody writes to, is an `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read(size)


def sync_directory(path: Path) -> None:
    """A new name in a folder is on the disk."""
    with suppress(PermissionError):  # Windows cannot open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
