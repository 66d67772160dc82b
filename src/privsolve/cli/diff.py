"""`privsolve diff`: what changed between two releases."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from privsolve.cli.common import as_json, console, one_line_errors
from privsolve.cli.options import Json
from privsolve.releases.differences import Differences, differences
from privsolve.safety.folder import load_release


def diff(
    old: Annotated[Path, typer.Argument(help="The release.json of a fit.")],
    new: Annotated[Path, typer.Argument(help="Another one.")],
    json_output: Json = False,
) -> None:
    """What changed between two releases, for whom: questions, points, risks, decisions and the privacy of both together.

    It reads the two files and no data, and costs nothing.
    """
    with one_line_errors():
        found = differences(load_release(old), load_release(new))
        if json_output:
            typer.echo(as_json(asdict(found)))
            return
        for line in found.words:
            console.print(escape(line), soft_wrap=True)
        if found.changes:
            console.print(_table(found))
        for line in found.privacy:
            console.print(escape(line), soft_wrap=True)


def _table(found: Differences) -> Table:
    """What every answer adds."""
    table = Table(title=f"What an answer adds to the {found.unit}, against the first answer")
    for heading, side in (("question", "left"), ("answer", "left"), ("before", "right"), ("now", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for question, changes in groupby(found.changes, key=lambda change: change.question):
        for place, change in enumerate(changes):
            said = ("not asked" if part is None else f"{part:+.2f}" for part in (change.old, change.new))
            table.add_row("" if place else escape(question), escape(change.answer), *said)
        table.add_section()
    return table
