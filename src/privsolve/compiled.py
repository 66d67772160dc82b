"""Compiled functions: numba's decorator and its cache, which is never stale and never shared while it is written.

numba is imported when the first such function is called: full scorecards, which need none, never wait for it.

numba keeps machine code in a folder, but drops a function only when *its own* file changes, not when one that it calls does;
and two processes that write the same folder can leave an index that points to the other's code. So every process has a folder
of its own, filled from an archive: one file for this installation, marked with a digest of all sources that compiled code can
depend on. A process that has compiled something puts a new archive in place of the old one at its end. An archive that is
damaged, or of other sources, is ignored.

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
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

PACKAGE = Path(__file__).parent

_log = logging.getLogger("privsolve")
_IMPORT = re.compile(r"^(?:from (privsolve[\w.]*) import (\([^)]*\)|.*)|import (privsolve[\w.]*))", re.MULTILINE)
_DECORATED = re.compile(r"^@(compiled|helper|inlined|overload)\b", re.MULTILINE)
_LOCK = threading.RLock()
_UNTOLD: list[Callable[[Any], object]] = []
"""What `numba.extending` has to know before anything more is compiled."""

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
            numba = _numba()
            folder = None if numba.config.DISABLE_JIT else _folder()
            before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
            try:
                return numba.njit(nogil=True, cache=folder is not None, **self._options)(self._function)
            finally:
                numba.config.CACHE_DIR = before

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


def inlined(function: F) -> F:
    """Compiled, but its machine code becomes part of every compiled function that calls it, for the constants it is given."""
    return cast(F, Compiled(function, {"forceinline": True}))


def helper(function: F) -> F:
    """For functions that compiled functions call: compiled as a part of these, without a wrapper for the interpreter.

    The interpreter runs the function as it is. Wrappers for arguments of many arrays take most of the time of compiling.
    """
    _UNTOLD.append(lambda extending: extending.register_jitable(function))
    return function


def overload(function: Callable[..., Any]) -> Callable[[F], F]:
    """What compiled code runs instead of `function`; see `numba.extending.overload`."""

    def told(implementation: F) -> F:
        _UNTOLD.append(lambda extending: extending.overload(function)(implementation))
        return implementation

    return told


@_UNTOLD.append
def _of_compiled(extending: Any) -> None:
    """Inside of compiled functions a `Compiled` is what numba makes of it."""
    from numba import types

    extending.typeof_impl.register(Compiled)(lambda value, context: types.Dispatcher(value.dispatcher))


def _numba() -> Any:
    """numba, which has been told of everything that compiled functions may call."""
    import numba

    while _UNTOLD:
        _UNTOLD.pop(0)(numba.extending)
    return numba


def compile_for(function: Any, *arguments: Any) -> None:
    """Compile `function`, or load it from the cache, for the types of these arguments. Does nothing the second time."""
    if hasattr(function, "compile"):  # without NUMBA_DISABLE_JIT
        import numba

        function.compile(tuple(numba.typeof(argument) for argument in arguments))


def read_sources(package: Path) -> dict[Path, str]:
    """The modules of a package with compiled functions, and all those of its own that they import, directly or not."""
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    waiting, needed = [path for path, text in texts.items() if _DECORATED.search(text)], set[Path]()
    while waiting:
        if (path := waiting.pop()) in texts and path not in needed:
            needed.add(path)
            for module, names, whole in _IMPORT.findall(texts[path]):  # at the start of a line: others are for types
                for name in ["", *re.findall(r"\w+", names)]:
                    found = package.joinpath(*(module or whole).split(".")[1:], name)
                    waiting += [found.with_suffix(".py"), found / "__init__.py"]
    return {path: texts[path] for path in sorted(needed)}


def _digest() -> bytes:
    """Of the sources and their dates, by which numba goes too, and of the versions of what compiles them."""
    import llvmlite
    import numpy as np

    total = hashlib.sha256(f"{_numba().__version__} {llvmlite.__version__} {np.__version__}".encode())
    for path, text in read_sources(PACKAGE).items():
        total.update(f"\n{path} {path.stat().st_mtime_ns} {len(text)} {text}".encode())
    return total.hexdigest().encode()


@cache
def _folder() -> Path | None:
    """Where numba keeps the machine code of this process, filled from the archive; None if none can be kept."""
    digest, owner, forks = _digest(), os.getpid(), list[bool]()
    name = hashlib.sha256(f"{PACKAGE} {sys.version}".encode()).hexdigest()[:16]
    try:
        archive, folder = _place() / f"compiled-{name}.zip", Path(tempfile.mkdtemp(prefix="privsolve-"))
    except OSError:
        _log.warning(
            "privsolve: no folder to keep compiled code in, so every process compiles anew, which takes some seconds; "
            "set NUMBA_CACHE_DIR to a folder that can be written"
        )
        return None
    loaded = _read(archive, digest)
    for part, content in loaded.items():
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).write_bytes(content)
    if not loaded:
        _log.warning("privsolve: compiling for this machine; the first use takes some seconds, later ones do not")
    known = set(loaded)

    def keep() -> None:
        if os.getpid() == owner:
            mine = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.nb[ic]")}
            if not forks and mine.keys() != known and _digest() == digest:
                _write(archive, digest, mine)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(keep)
    if hasattr(os, "register_at_fork"):  # from then on two processes write the folder
        os.register_at_fork(before=lambda: forks.append(True))
    return folder


def _place() -> Path:
    """The first that can be written of, as in numba, the folder that was asked for, one beside the sources, the user's own."""
    asked = _numba().config.CACHE_DIR
    mine = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "privsolve")
    for place in [*([Path(asked, "privsolve")] if asked else []), PACKAGE / "__pycache__", mine]:
        with contextlib.suppress(OSError, RuntimeError):  # without a home
            place.expanduser().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place.expanduser()):
                return place.expanduser()
    raise OSError("no folder can be written")


def _read(archive: Path, digest: bytes) -> dict[str, bytes]:
    """The files of an archive; nothing if it is of other sources, or anything is wrong with it."""
    with contextlib.suppress(Exception), zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist() if file.comment == digest}
    return {}


def _write(archive: Path, digest: bytes, mine: dict[str, bytes]) -> None:
    """Replace the archive as a whole, with what other processes have added meanwhile about other functions."""
    function = re.compile(
        r"(\.\d+)?\.nb[ic]$"
    )  # numba has an index (`.nbi`) for each, and code for some types (`.1.nbc`)
    functions = {function.sub("", name) for name in mine}
    others = {n: content for n, content in _read(archive, digest).items() if function.sub("", n) not in functions}
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=archive.parent) as place:
        with zipfile.ZipFile(Path(place, "archive"), "w") as file:
            file.comment = digest
            for name, content in (mine | others).items():
                file.writestr(name, content)
        os.replace(Path(place, "archive"), archive)
