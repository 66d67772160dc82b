"""Compiled functions: numba's decorator and its cache, which is never stale and never shared while it is written.

numba is imported when the first such function is called: full scorecards, which need none, never wait for it.

Compiling takes seconds, so numba keeps machine code in a folder. Two things have to be added to that. numba drops a function
when *its own* file changes, but machine code also contains the functions that it calls, wherever these are written. And two
processes that write the same folder can leave an index that points to the other's code. So every process has a folder of its
own, which is filled from one archive file and kept as such: the archive is named after a digest of all sources that compiled
code can depend on, it is replaced as a whole, and a damaged one is ignored. Then the functions are compiled anew.

The first use of a compiled function can take half a minute, and an interrupt meanwhile can crash the interpreter. So whatever
a release needs is compiled before it is paid for, by `compile_for`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Hashable, Iterator
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

PACKAGE = Path(__file__).parent
ARCHIVES_KEPT = 8
"""Archives of other versions that stay, latest first: switching back and forth between two need not compile."""

MARK = b"compiled functions of privsolve"
"""The comment of every archive: files without it are not ours, and are neither read nor deleted."""

_NAME = re.compile(r"compiled-[0-9a-f]{16}\.zip")
_IMPORT = re.compile(r"^(?:from (privsolve[\w.]*) import (\([^)]*\)|.*)|import (privsolve[\w.]*))", re.MULTILINE)
_DECORATED = re.compile(rb"^@(compiled|helper|inlined|overload)\b", re.MULTILINE)
_log = logging.getLogger("privsolve")

F = TypeVar("F", bound=Callable[..., Any])


class Compiled:
    """A function that is compiled when it is first called; compiled functions can call it.

    What numba's own functions have (`py_func`, `signatures`, `compile`, `stats`) it has too.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options

    @cached_property
    def dispatcher(self) -> Any:
        """numba's function, or the one that was given under `NUMBA_DISABLE_JIT=1`."""
        with _LOCK:
            return _dispatcher(self._function, self._options)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def compiled(function: F) -> F:
    """Compiled on first use, without the interpreter's lock, and kept on disk.

    With the environment variable `NUMBA_DISABLE_JIT=1` the function stays as it is: slow, but it can be stepped through.
    """
    return cast(F, Compiled(function, {}))


def helper(function: F) -> F:
    """For functions that compiled functions call: compiled as a part of these, without a wrapper for the interpreter.

    The interpreter runs the function as it is. Wrappers for arguments of many arrays take most of the time of compiling.
    """
    _tell_numba(lambda extending: extending.register_jitable(function))
    return function


def inlined(function: F) -> F:
    """Compiled, but its machine code becomes part of every compiled function that calls it, for the constants it is given."""
    return cast(F, Compiled(function, {"forceinline": True}))


def overload(function: Callable[..., Any]) -> Callable[[F], F]:
    """What compiled code runs instead of `function`; see `numba.extending.overload`."""

    def told(implementation: F) -> F:
        _tell_numba(lambda extending: extending.overload(function)(implementation))
        return implementation

    return told


def compile_for(function: Any, *arguments: Any) -> None:
    """Compile `function`, or load it from the cache, for the types of these arguments. Does nothing the second time."""
    if hasattr(function, "compile"):  # without NUMBA_DISABLE_JIT
        import numba

        function.compile(tuple(numba.typeof(argument) for argument in arguments))


def compile_once(key: Hashable, compile_all: Callable[[], None]) -> None:
    """Run `compile_all` the first time it is asked for under this key, which decides the types of all that it compiles.

    Finding that everything is ready already takes milliseconds, as long as a small draw.
    """
    if key not in _DONE:
        compile_all()
        if not _numba().config.DISABLE_JIT and (store := _store()):
            store.save()
        _DONE.add(key)


_DONE: set[Hashable] = set()

_LOCK = threading.RLock()
_UNTOLD: list[Callable[[Any], object]] = []
"""What numba has to know before it compiles anything."""


def _tell_numba(fact: Callable[[Any], object]) -> None:
    _UNTOLD.append(fact)
    if "numba" in sys.modules:
        _numba()


def _numba() -> Any:
    """numba, which has been told of everything that compiled functions may call."""
    import numba

    with _LOCK:
        _teach()
        while _UNTOLD:
            _UNTOLD.pop(0)(numba.extending)
    return numba


@cache
def _teach() -> None:
    """Inside of compiled functions a `Compiled` is what numba makes of it."""
    from numba import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Compiled)  # type: ignore[untyped-decorator]
    def _(value: Compiled, context: Any) -> Any:
        return types.Dispatcher(value.dispatcher)


def _dispatcher(function: Callable[..., Any], options: dict[str, bool]) -> Any:
    numba = _numba()
    store = None if numba.config.DISABLE_JIT else _store()
    if store is None:
        return numba.njit(nogil=True, **options)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(store.folder)
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


# --- what compiled code depends on ----------------------------------------------------------------


def read_sources(package: Path) -> dict[Path, bytes]:
    """The modules of a package with compiled functions, and all those of its own that they import, directly or not."""
    texts = {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    waiting = [path for path, text in texts.items() if _DECORATED.search(text)]
    needed: set[Path] = set()
    while waiting:
        if (path := waiting.pop()) not in needed:
            needed.add(path)
            waiting.extend(other for other in _imported(package, texts[path].decode()) if other in texts)
    return {path: texts[path] for path in sorted(needed)}


def _imported(package: Path, text: str) -> Iterator[Path]:
    """The files that may be meant by the imports at the start of a line; those further in are for types or not compiled."""
    for module, names, whole in _IMPORT.findall(text):
        for name in ["", *re.findall(r"\w+", names)]:
            path = package.joinpath(*(module or whole).split(".")[1:], name)
            yield from (path.with_suffix(".py"), path / "__init__.py")


def _digest() -> str:
    """Of the sources and where they are, and of the versions of what compiles them."""
    import llvmlite

    numba = _numba()
    versions = numba.__version__, llvmlite.__version__, np.__version__, sys.version
    total = hashlib.sha256(f"{versions} {PACKAGE}".encode())
    for path, text in read_sources(PACKAGE).items():
        total.update(f"\n{path.relative_to(PACKAGE).as_posix()} {hashlib.sha256(text).hexdigest()}".encode())
    return total.hexdigest()[:16]


# --- where it is kept -----------------------------------------------------------------------------


class Store:
    """The folder in which numba keeps the machine code of this process, and the archive that outlives it."""

    def __init__(self, folder: Path, archive: Path | None, digest: str) -> None:
        self.folder, self._archive, self._digest, self._owner = folder, archive, digest, os.getpid()
        kept = {} if archive is None else _read(archive)
        for name, content in kept.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        self._loaded = self._indices()
        if not kept:
            later = "" if archive is None else ", later ones do not"
            _log.warning("privsolve: compiling for this machine; the first use takes some seconds%s", later)

    def save(self) -> None:
        """Add to the archive what this process has compiled, unless the sources have changed since."""
        found = self._indices()
        new = {_function(path) for path, time in found.items() if self._loaded.get(path) != time}
        if self._archive is None or not new or self._owner != os.getpid():
            return
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=self._archive.parent) as place:
            if _digest() != self._digest:
                return
            others = _read(self._archive)  # other processes may have added to it
            files = {name: content for name, content in others.items() if _function(name) not in new}
            mine = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.nb[ic]"))
            files |= {name: (self.folder / name).read_bytes() for name in mine if _function(name) in new}
            written = Path(place, "archive")
            with zipfile.ZipFile(written, "w") as file:
                file.comment = MARK
                for name, content in files.items():
                    file.writestr(name, content)
            os.replace(written, self._archive)
            self._loaded = found

    def stop_saving(self) -> None:
        """Two processes will write this folder from now on."""
        self._archive = None

    def remove(self) -> None:
        """At the end of the process: keep what is new, and remove the folder."""
        if self._owner == os.getpid():
            self.save()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _indices(self) -> dict[str, int]:
        """When the index of every function was written."""
        indices = self.folder.rglob("*.nbi")
        return {path.relative_to(self.folder).as_posix(): path.stat().st_mtime_ns for path in indices}


def _function(name: str) -> str:
    """The function that a file of numba's is about: an index (`.nbi`), or the code for some types (`.1.nbc`)."""
    return re.sub(r"(\.\d+)?\.nb[ic]$", "", name)


def _read(archive: Path) -> dict[str, bytes]:
    """What an archive holds; nothing if there is none, it is not ours, or anything is wrong with it."""
    try:
        with zipfile.ZipFile(archive) as file:
            if file.comment != MARK:
                return {}
            os.utime(archive)  # used last: forgotten last
            return {name: file.read(name) for name in file.namelist()}
    except Exception:  # whatever is wrong with it
        return {}


@cache
def _store() -> Store | None:
    """The store of this process; None, with one line of warning, where there is no temporary folder."""
    digest = _digest()
    archive = next((place / f"compiled-{digest}.zip" for place in _places() if _writable(place)), None)
    try:
        folder = Path(tempfile.mkdtemp(prefix="privsolve-"))
    except OSError:
        archive, folder = None, None  # type: ignore[assignment]
    if archive is None:
        _log.warning(
            "privsolve: no folder to keep compiled code in, so every process compiles anew; "
            "set NUMBA_CACHE_DIR to a folder that can be written"
        )
    if folder is None:
        return None
    if archive is not None:
        _forget_old(archive.parent)
    store = Store(folder, archive, digest)
    atexit.register(store.remove)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=store.stop_saving)
    return store


def _places() -> Iterator[Path]:
    """As in numba: a folder that was asked for, beside the sources, the user's own."""
    if asked := _numba().config.CACHE_DIR:
        yield Path(asked) / "privsolve"
    yield PACKAGE / "__pycache__"
    with contextlib.suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "privsolve"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _forget_old(place: Path) -> None:
    """Delete all archives but the latest; whatever else is in the folder stays."""
    with contextlib.suppress(OSError):
        ours = [path for path in place.iterdir() if _NAME.fullmatch(path.name) and _is_ours(path)]
        for old in sorted(ours, key=lambda path: path.stat().st_mtime_ns)[:-ARCHIVES_KEPT]:
            old.unlink()


def _is_ours(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return file.comment == MARK
    except (OSError, zipfile.BadZipFile):
        return False
