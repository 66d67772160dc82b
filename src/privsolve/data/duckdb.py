"""DuckDB: settings under which one record cannot change how another one is read, private folders to spill to, plain errors."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

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


Result = TypeVar("Result")

MEMORY_LIMIT = "1GB"
"""What the engine may use before it spills to disk."""

BY_STATISTICS = "statistics_propagation"
"""The optimiser that answers questions about a value from the least and largest one of its column. Writers of Parquet leave
NaN out of these, so that whether a NaN is seen would depend on other records (theory, section 10)."""

NO_EXTENSIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}
"""Nothing is loaded but what DuckDB brings along, and no variable of the calling program is a table."""


def connect(database: str | None = None, *, writing_to: str | os.PathLike[str] | None = None) -> Any:
    """DuckDB with bounded memory that spills to a private folder.

    A `database` file may come from anybody: nothing in it can read other files, and it is not written to. Files can then be
    written to the folder `writing_to` only.
    """
    import ibis

    settings = {"memory_limit": MEMORY_LIMIT, "temp_directory": engine_folder(), **NO_EXTENSIONS}
    engine = ibis.duckdb.connect(database or ":memory:", read_only=database is not None, **settings)
    engine.raw_sql("SET preserve_insertion_order = false")
    # in a prompt, or under `python -c`, a progress bar would be drawn on standard output
    engine.raw_sql("SET enable_progress_bar = false")
    if database is not None:
        if writing_to is not None:
            engine.raw_sql(f"SET allowed_directories = [{quoted(os.path.abspath(writing_to))}]")
        engine.raw_sql("SET enable_external_access = false")
    return engine


IN_MEMORY = {
    **NO_EXTENSIONS,
    "disabled_optimizers": BY_STATISTICS,
    "temp_directory": "",
}
"""For tables of the calling program: nothing is spilled to disk, and rows stay in order."""

FEW = 50_000
"""Rows up to which one thread is enough."""


@lru_cache(maxsize=1)
def _engine_for_few() -> Any:
    """An engine with one thread, which is kept: to start one takes as long as to ask it."""
    import duckdb

    return duckdb.connect(config=IN_MEMORY | {"threads": 1})


if hasattr(os, "register_at_fork"):  # a forked process must not end an engine of its parent
    os.register_at_fork(before=_engine_for_few.cache_clear)


def ask_in_memory(frame: Any, sql: str) -> dict[str, Any]:
    """The columns of the answer to a query of an Arrow table, which it calls `frame`, by their names."""
    import duckdb

    few = frame.num_rows <= FEW
    with in_our_words("the data cannot be read"):
        try:
            with _engine_for_few().cursor() if few else duckdb.connect(config=IN_MEMORY) as engine:
                engine.execute("SET enable_progress_bar = false")
                engine.register("frame", frame)

                def answer() -> dict[str, Any]:
                    return engine.execute(sql).fetchnumpy()  # a relation would be planned twice

                return answer() if few else interruptibly(engine, answer)
        except BaseException:
            _engine_for_few.cache_clear()  # some errors end an engine for good
            raise


def interruptibly(engine: Any, work: Callable[[], Result]) -> Result:
    """The result of `work`, which queries this connection of DuckDB; an interrupt stops the engine, and then is raised.

    DuckDB does not look at signals in all of its versions and functions, so it works in a thread of its own.
    """
    with ThreadPoolExecutor(1) as worker:  # waits for the thread in the end
        future = worker.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # the engine forgets an interrupt that comes before its query has begun
                engine.interrupt()
                wait([future], timeout=0.1)
            raise


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def read_each_value(table: Any) -> Any:
    """The Ibis table, whose engine from now on looks at each value instead of at statistics of its column.

    Only of DuckDB is it known that a record is read by itself (theory, section 10), so other engines are refused.
    """
    engine = table.get_backend()
    if engine.name != "duckdb":
        raise ValueError(f"the table is held by {engine.name}, and only DuckDB is read: export it to Parquet")
    ((off,),) = engine.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    if BY_STATISTICS not in off.split(","):
        engine.raw_sql(f"SET disabled_optimizers = {quoted(','.join(filter(None, [off, BY_STATISTICS])))}")
    return table


_LINE = re.compile(r"CSV Error on Line: (\d+)")
_SAYS: tuple[tuple[str, str], ...] = (
    (r"Expected Number of Columns: (\d+) Found: (\d+)", "has {1} values where the header names {0}"),
    (r"unterminated quote", "has a quote that does not end as it should"),
    (r"not utf-8 encoded", "is not text in UTF-8: convert the file"),
    (r"Maximum line size", "is longer than 2 MB"),
)
_KINDS: tuple[tuple[str, str, str], ...] = (
    # the class of the error, what its text contains, what it means
    (
        "OutOfMemoryException",
        "",
        "the engine needs more memory or disk space than it has: use fewer or coarser columns, or Parquet instead of text",
    ),
    ("PermissionException", "", "it reads other files, or writes some, which an opened table must not: copy the rows"),
    ("Error", "No magic bytes", "it is not a Parquet file"),
    ("Error", "too small to be a Parquet file", "it is not a Parquet file"),
    ("Error", "not a valid DuckDB database file", "it is not a DuckDB file"),
    ("Error", "end of GZIP stream", "it is cut off or not compressed by gzip"),
    ("Error", "No space left", "the disk is full"),
    ("Error", "Could not set lock", "another process is writing to it"),
    ("Error", "newer version of DuckDB", "it was written by a newer version of DuckDB: export it as Parquet"),
    ("ConversionException", "", "a value does not fit the type of its column"),
)


@contextmanager
def in_our_words(about: str) -> Iterator[None]:
    """An error of DuckDB in the block becomes a `ValueError` of one line about `about`, an interrupt an interrupt.

    Nothing of DuckDB's text is repeated but numbers of lines and of columns, so no value of the data is shown.
    """
    try:
        yield
    except Exception as error:
        duckdb = sys.modules.get("duckdb")
        if duckdb is None or not isinstance(error, duckdb.Error):
            if str(error) == "Query interrupted":  # a RuntimeError
                raise KeyboardInterrupt from None
            raise
        if isinstance(error, duckdb.InterruptException):
            raise KeyboardInterrupt from None
        raise ValueError(f"{about}: {_meaning(error)}") from None


def _meaning(error: Exception) -> str:
    text, kinds = str(error), {kind.__name__ for kind in type(error).__mro__}
    if line := _LINE.search(text):
        return f"line {line[1]} {_of_line(text)}"
    for kind, part, words in _KINDS:
        if kind in kinds and part in text:
            return words
    return f"it is damaged, or not of the kind its name says (DuckDB raised {type(error).__name__})"


def _of_line(text: str) -> str:
    for pattern, words in _SAYS:
        if found := re.search(pattern, text):
            return words.format(*found.groups())
    return "cannot be read"
