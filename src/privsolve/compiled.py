"""Machine code that is never stale: the decorator of all compiled functions, and the place where their code is kept.

Compiling takes seconds, so compiled functions are kept on disk. numba's own store drops a function when *its own* file
changes, but machine code also contains the functions it calls and the constants it reads, wherever these are written:
after an edit of the coins, callers elsewhere would go on flipping the old ones. Here the store is named after a digest of
every source that compiled code can depend on, and of the versions of what compiles it. The processor and the types of
the arguments are part of each file's key, as in numba. A store that cannot be read or written is never an error: then
the function is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from privsolve.linking import Entry, load_part, save_part

PACKAGE = Path(__file__).parent
STORES_KEPT = 8
"""Stores of other versions that stay, latest first: switching back and forth between two need not compile."""

_IMPORT = re.compile(r"^(?:from (privsolve[\w.]*) import (\([^)]*\)|.*)|import (privsolve[\w.]*))", re.MULTILINE)
_log = logging.getLogger("privsolve")

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compiled on first use, without the interpreter's lock, and kept on disk."""
    return _compile(function)


def inlined(function: F) -> F:
    """The same, but its machine code becomes part of every compiled function that calls it, for the constants it is given."""
    return _compile(function, forceinline=True)


def is_missing(function: Callable[..., Any]) -> bool:
    """Whether there is a store, and nothing in it of what compiled callers link of this function."""
    return bool(cast(Entry, function).part._cache.is_missing())


def _compile(function: F, **further: bool) -> F:
    options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, **further}  # nobody calls them from C
    made = Entry(function, targetoptions=options)
    folder = store() if Path(function.__code__.co_filename) in _sources().stamps else None
    made._cache = _OnDisk(function, folder) if folder else _InMemory()
    made.part._cache = _PartOnDisk(function, folder) if folder else _InMemory()
    return cast(F, made)


# --- what compiled code depends on ----------------------------------------------------------------


class Sources(NamedTuple):
    """The files that compiled code can depend on, with what tells whether they have changed, and their digest."""

    stamps: dict[Path, tuple[int, int]]
    digest: str

    def changed(self) -> bool:
        """Whether a file has been edited since: then the functions in memory may be neither the old nor the new."""
        return any(_stamp(path) != stamp for path, stamp in self.stamps.items())


@cache
def _sources() -> Sources:
    return read_sources(PACKAGE)


def read_sources(package: Path) -> Sources:
    """The modules of a package that use this one, and all those of its own that they import, directly or not."""
    texts: dict[Path, bytes] = {}
    stamps: dict[Path, tuple[int, int]] = {}
    for path in sorted(package.rglob("*.py")):
        stamps[path], texts[path] = _stamp(path), path.read_bytes()
    waiting = [path for path, text in texts.items() if b"privsolve.compiled import" in text]
    needed: set[Path] = set()
    while waiting:
        if (path := waiting.pop()) not in needed:
            needed.add(path)
            waiting.extend(other for other in _imported(package, texts[path].decode()) if other in texts)
    return Sources({path: stamps[path] for path in sorted(needed)}, _digest(package, sorted(needed), texts))


def _imported(package: Path, text: str) -> Iterator[Path]:
    """The files that may be meant by the imports at the start of a line; those further in are for types or not compiled."""
    for module, names, whole in _IMPORT.findall(text):
        for name in ["", *re.findall(r"\w+", names)]:
            path = package.joinpath(*(module or whole).split(".")[1:], name)
            yield from (path.with_suffix(".py"), path / "__init__.py")


def _digest(package: Path, paths: list[Path], texts: dict[Path, bytes]) -> str:
    total = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    for path in paths:
        total.update(f"\n{path.relative_to(package).as_posix()} {hashlib.sha256(texts[path]).hexdigest()}".encode())
    return total.hexdigest()[:16]


def _stamp(path: Path) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return 0, 0


# --- where it is kept -----------------------------------------------------------------------------


@cache
def store() -> Path | None:
    """The folder of this version's machine code; None, with one line of warning, where nothing can be written."""
    for folder in (place / _sources().digest for place in _places()):
        if _writable(folder):
            _forget_old(folder.parent)
            return folder
    _log.warning(
        "privsolve: no folder to keep compiled code in, so every process compiles anew; "
        "set NUMBA_CACHE_DIR to a folder that can be written"
    )
    return None


def _places() -> Iterator[Path]:
    """As in numba: a folder that was asked for, beside the sources, the user's own."""
    if asked := getattr(config, "CACHE_DIR", ""):
        yield Path(asked) / "privsolve"
    yield PACKAGE / "__pycache__" / "compiled"
    yield Path(AppDirs(appname="privsolve", appauthor=False).user_cache_dir) / "compiled"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.utime(folder)  # used last: forgotten last
    except OSError:
        return False
    return True


def _forget_old(place: Path) -> None:
    stores = sorted(place.iterdir(), key=_stamp, reverse=True)
    for old in stores[STORES_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


@cache
def _say_once() -> None:
    kept = store()
    if kept is None or not any(kept.glob("*.nbc")):
        later = "" if kept is None else ", later ones do not"
        _log.warning("privsolve: compiling for this machine; the first use takes some seconds%s", later)


class _InMemory(NullCache):  # type: ignore[misc]
    """Nothing is kept; it only says so."""

    def is_missing(self) -> bool:
        """There is no store to look in."""
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        _say_once()


class _OnDisk(NullCache):  # type: ignore[misc]
    """The machine code of one function: one file for each key, written whole or not at all.

    numba numbers its files and keeps an index of them, which two processes at once can leave pointing to each other's.
    """

    _suffix = ".nbc"

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        source = Path(function.__code__.co_filename).relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        self._name = f"{source}.{function.__qualname__}-{function.__code__.co_firstlineno}"
        self._code = hashlib.sha256(function.__code__.co_code).hexdigest()
        self._folder = folder

    def is_missing(self) -> bool:
        """Whether the store has nothing of this function, for any types."""
        return not any(self._folder.glob(f"{self._name}-*{self._suffix}"))

    @property
    def cache_path(self) -> str:
        """For numba's statistics."""
        return str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function for these types, if its code is here."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            found, payload = pickle.loads(self._path(key).read_bytes())
            if found == key and not _sources().changed():
                return self._load(payload, target_context)
        _say_once()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless it holds addresses of this process or the sources have changed meanwhile."""
        if data.lifted or data.library.has_dynamic_globals or _sources().changed():
            return
        key = self._key(sig, data.codegen)
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._path(key), dumps((key, self._saved(data))))

    def _load(self, payload: Any, target_context: Any) -> Any:
        return CompileResult._rebuild(target_context, *payload)

    def _saved(self, data: Any) -> Any:
        return data._reduce()

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), sys.version_info[:2], sys.abiflags, self._code

    def _path(self, key: tuple[Any, ...]) -> Path:
        """Types may share a name, so the file holds the key too."""
        return self._folder / f"{self._name}-{hashlib.sha256(str(key).encode()).hexdigest()[:24]}{self._suffix}"


class _PartOnDisk(_OnDisk):
    """What compiled callers link of one function."""

    _suffix = ".part.nbc"

    def _load(self, payload: Any, target_context: Any) -> Any:
        return load_part(payload, target_context)

    def _saved(self, data: Any) -> Any:
        return save_part(data)


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
