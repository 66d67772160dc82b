"""The embedded engine: DuckDB with settings under which one record cannot change how another one is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from privsolve.data.scratch import engine_folder

Result = TypeVar("Result")

MEMORY_LIMIT = "1GB"
"""What the engine may use before it spills to disk."""

BY_STATISTICS = "statistics_propagation"
"""The optimiser that answers questions about a value from the least and largest one of its column. Writers of Parquet leave
NaN out of these, so that whether a NaN is seen would depend on other records (theory, section 10)."""

NO_EXTENSIONS = {
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


def interruptibly(table: Any, work: Callable[[], Result]) -> Result:
    """The result of `work`, which queries the table's engine; an interrupt stops the engine, and then is raised.

    DuckDB does not look at signals in all of its versions and functions, so it works in a thread of its own.
    """
    engine = table.get_backend()
    if engine.name != "duckdb":
        return work()
    with ThreadPoolExecutor(1) as worker:  # waits for the thread in the end
        future = worker.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # the engine forgets an interrupt that comes before its query has begun
                engine.con.interrupt()
                wait([future], timeout=0.1)
            raise


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def read_each_value(table: Any) -> Any:
    """The Ibis table, whose engine from now on looks at each value instead of at statistics of its column."""
    engine = table.get_backend()
    if engine.name == "duckdb":
        ((off,),) = engine.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
        if BY_STATISTICS not in off.split(","):
            engine.raw_sql(f"SET disabled_optimizers = {quoted(','.join(filter(None, [off, BY_STATISTICS])))}")
    return table
