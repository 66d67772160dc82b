"""What commands share that read a table through its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.markup import escape

from privsolve.cli.common import errors
from privsolve.cli.option_groups import EXPERT
from privsolve.data.duckdb import in_our_words

DATA_HELP = "CSV or Parquet file (or a quoted glob), or file.duckdb::table."

Header = Annotated[
    str | None,
    typer.Option(
        help="Of a text file without one: the header line it lacks, with its separator, as 'age,sex,ill'.",
        rich_help_panel=EXPERT,
    ),
]


@contextmanager
def engine_at_work(words: str, source: str) -> Iterator[None]:
    """Says what is going on, on a terminal; what the engine complains about becomes an error that names the source."""
    with in_our_words(source), errors.status(escape(f"{words} {source} ...")):
        yield
