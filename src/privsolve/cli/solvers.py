"""`privsolve solvers`: which oracles are installed."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

import privsolve as ps
from privsolve.cli.common import console


def solvers(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Which oracles there are, which solvers are installed, and what their guarantees rest on."""
    fields = ("name", "status", "licence", "arithmetic", "note")
    rows = [{name: getattr(entry, name) for name in fields} for entry in ps.oracles.SOLVERS]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="Oracles")
    for name in fields:
        table.add_column(name)
    for row in rows:
        table.add_row(*(escape(str(row[name])) for name in fields))
    console.print(table)
