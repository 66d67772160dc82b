"""Where releases are written: a folder to publish, and beside it one that stays with the curator; or one file.

While a run writes to a file or folder it holds a lock on it, which ends with its process, however that ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from privsolve.data.tables import read_text
from privsolve.privacy.high_water import sync_directory
from privsolve.releases import Release, Run

RELEASE = "release.json"
SCORECARD = "scorecard.html"
TREE = "tree.html"
DIAGNOSTICS = "diagnostics.json"
SEALED = "run.sealed"
ROOM = 1 << 20
"""So many bytes are set aside for each file before anything is spent: a full disk is found in time."""


@dataclass(frozen=True)
class Folder:
    """Where a release goes: `path` is published as a whole, `curator` is outside of it, for its owner only."""

    path: Path
    curator: Path
    page: str = SCORECARD
    overwrite: bool = False

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        curator: str | os.PathLike[str] | None = None,
        page: str = SCORECARD,
        overwrite: bool = False,
    ) -> Folder:
        """The folder and the curator's, `<path>-curator` unless another is given; refuses one that would be published."""
        out = Path(path)
        named = out if out.name not in ("", "..") else Path(os.path.abspath(out))
        apart = named.with_name(f"{named.name}-curator") if curator is None else Path(curator)
        if Path(os.path.realpath(apart)).is_relative_to(os.path.realpath(out)):
            raise ValueError(
                f"--curator {apart} lies in --out {out}, which is published: choose a folder outside of it"
            )
        return cls(out, apart, page, overwrite)

    @property
    def files(self) -> list[Path]:
        """The release, its page, and the curator's diagnostics."""
        return [self.path / RELEASE, self.path / self.page, self.curator / DIAGNOSTICS]

    @property
    def sealed(self) -> Path:
        """What an interrupted run is resumed from; it is gone when the release is written."""
        return self.curator / SEALED

    def write(self, run: Run) -> list[Path]:
        """Write the release and its page, and the curator's diagnostics apart from them.

        Returns:
            The paths of the three files, in this order.

        Raises:
            ValueError: if another release is there, unless it may be overwritten. One that this very run has written may stay.
        """
        texts = (run.release.to_json(), run.release.card().to_html(date.today().isoformat()), run.diagnostics.to_json())
        first = self.path / RELEASE
        if first.exists() and not self.overwrite and first.read_text(encoding="utf-8") != texts[0]:
            raise _taken(first)
        for path, text in zip(self.files, texts, strict=True):
            _fill(_draft(path), text)
        for path in reversed(self.files):  # the release last: where it is, everything is
            os.replace(_draft(path), path)
        for place in (self.path, self.curator):
            sync_directory(place)
        return self.files

    def check_free(self) -> None:
        """Refuse to replace files, unless told to, and to publish what an earlier version left for the curator."""
        for path in self.files:
            if path.exists() and not self.overwrite:
                raise _taken(path)
        if (old := self.path / "curator").exists():
            raise ValueError(
                f"{old} is the curator's, of an earlier version, and not to be published: move it elsewhere"
            )


def _taken(path: Path) -> ValueError:
    return ValueError(f"{path} exists already: choose another --out, or pass --overwrite")


@contextmanager
def output_folder(
    path: str | os.PathLike[str],
    *,
    curator: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    page: str = SCORECARD,
) -> Iterator[Folder]:
    """A folder for the release that the block makes, locked against other processes and with room for it on the disk.

    What is wrong with it is said here, before any budget is spent. An earlier release is kept until the new one is written.
    If the block makes none, new folders are removed again. With `resume` the folder may hold what the run has written before.
    """
    folder = Folder.of(path, curator, page, overwrite)
    with ExitStack() as stack:
        try:
            for place, mode in ((folder.path, 0o777), (folder.curator, 0o700)):
                made = _make(place, mode)
                stack.enter_context(locked(place))
                stack.callback(_remove_empty, made)
            if not resume:
                folder.check_free()
            for file, mode in zip(folder.files, (0o666, 0o666, 0o600), strict=True):
                stack.enter_context(_set_aside(file, mode))
        except LockedError:
            raise ValueError(
                f"{folder.path} is being written to by another fit: wait for it, or choose another folder"
            ) from None
        except OSError as error:
            raise ValueError(
                f"--out {folder.path} cannot be written to: {error.strerror}; choose another folder"
            ) from None
        yield folder


@contextmanager
def output_file(path: Path, *, resume: bool = False, mode: int = 0o666) -> Iterator[Callable[[str], None]]:
    """A function that writes the text of a new file, for which there is room on the disk.

    It writes the whole file or nothing. With `resume` the file may be there already, with this very text. `mode` says who
    may read it.
    """
    if path.exists() and not resume:
        raise ValueError(f"{path} exists: choose another name or delete it")

    def write(text: str) -> None:
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise ValueError(f"{path} exists, with another content: choose another name or delete it")
        _fill(_draft(path), text)
        os.replace(_draft(path), path)
        sync_directory(path.parent)

    with ExitStack() as stack:
        try:
            stack.enter_context(_set_aside(path, mode))
        except OSError as error:
            raise ValueError(f"--out {path} cannot be written to: {error.strerror}; choose another file") from None
        yield write


def load_release(path: str | os.PathLike[str]) -> Release:
    """The release in a file, with the file named if it is something else."""
    try:
        return Release.from_json(read_text(path))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; give the release.json of a fit") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _make(place: Path, mode: int) -> list[Path]:
    """Make a folder and those above it; what was made, innermost first."""
    made: list[Path] = []
    for folder in reversed([above for above in (place, *place.parents) if not above.exists()]):
        with suppress(FileExistsError):  # somebody else just did
            folder.mkdir(mode if folder == place else 0o777)
            made.insert(0, folder)
    return made


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # not empty: it holds the release
            folder.rmdir()


@contextmanager
def _set_aside(path: Path, mode: int) -> Iterator[None]:
    """Room for the content of the file, on the disk, which is given back after the block."""
    if path.is_dir():
        raise IsADirectoryError(0, f"{path.name} is a folder")
    draft = _draft(path)
    draft.unlink(missing_ok=True)  # of a run that was killed
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(bytes(ROOM))
            file.flush()
            os.fsync(file.fileno())
        yield
    finally:
        draft.unlink(missing_ok=True)


def _fill(draft: Path, text: str) -> None:
    """Write over what was set aside: that needs no more room."""
    with draft.open("r+b") as file:
        file.write(text.encode())
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


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
