"""`privsolve schema draft` and `privsolve schema check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from privsolve.cli.common import as_json, console, engine_at_work, one_line_errors, stoppable
from privsolve.cli.drafting import Draft, TableOptions, show_left_out
from privsolve.cli.options import Adjacency, Data, Header, Json, Running, with_options
from privsolve.data import About, Schema
from privsolve.data.constraints import WORDS
from privsolve.data.tables import open_table
from privsolve.releases import NOT_PRIVATE

app = typer.Typer(help="Say what is public about a table.", no_args_is_help=True)


@app.command("draft")
@with_options(table=TableOptions, running=Running)
def draft_command(
    data: Data,
    *,
    out: Annotated[Path, typer.Option(help="The schema file to write.")],
    table: TableOptions,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the draft.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Of the draft; left out: 1e-6 or less, 0 if the ledger has none.")
    ] = None,
    stated: Annotated[
        Path | None, typer.Option(help="Schema file with columns that are public; they cost nothing.")
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(help="Public bounds of a number, as COLUMN=LOW:HIGH or COLUMN=LOW:HIGH:STEP.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns to use, with commas between them; all if left out.")
    ] = None,
    header: Header = None,
    about: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=WORDS",
            help=f"Public words for the card: {', '.join(WORDS)}, as question='Will it rain?'; may be repeated.",
        ),
    ] = None,
    adjacency: Adjacency = "replace",
    running: Running,
    json_output: Json = False,
) -> None:
    """Draft a schema from the records, with differential privacy. See docs/guides/drafts.md."""
    with one_line_errors(), stoppable() as stop:
        if out.exists() and not running.resume:
            raise ValueError(f"{out} exists: choose another name or delete it")
        table.check()
        draft = Draft(
            data,
            header,
            table,
            _stated(epsilon),
            delta,
            adjacency,
            running.no_delta,
            tuple(columns or ()),
            Schema.load(stated).columns if stated else (),
            tuple(bounds or ()),
            _about(about or []),
        )
        with engine_at_work("reading", data):
            found = draft.write(out, stop, running)
        if json_output:
            typer.echo(as_json({"schema": found.schema.to_dict(), "left_out": dict(found.left_out), "file": str(out)}))
            return
        console.print(
            f"{escape(str(out))}: {len(found.schema.columns)} columns, {found.schema.dim} features", soft_wrap=True
        )
        show_left_out(found.left_out)
        console.print(escape(found.sentence()))


def _stated(epsilon: float | None) -> float:
    if epsilon is None:
        raise ValueError(
            "a draft reads private records, so it needs a privacy budget: give --epsilon, for example 0.25; if the values "
            "of the columns are public, write the schema by hand (docs/guides/schema.md)"
        )
    return epsilon


def _about(options: list[str]) -> About:
    """The words of `--about KEY=WORDS`."""
    said: dict[str, Any] = {}
    for option in options:
        key, equals, words = option.partition("=")
        if not equals or key not in WORDS or key in said:
            raise ValueError(f"--about {option!r}: give KEY=WORDS, each key once, of {', '.join(WORDS)}")
        said[key] = words
    return About(**said)


@app.command("check")
def check_command(
    schema_file: Annotated[Path, typer.Argument(help="The schema file.")],
    data: Annotated[str | None, typer.Argument(help="The table, to count what falls outside.")] = None,
    header: Header = None,
    json_output: Json = False,
) -> None:
    """Check a schema file and list its features; with data, count for the curator what falls outside."""
    with one_line_errors():
        schema = Schema.load(schema_file)
        curator = None
        if data is not None:
            with engine_at_work("reading", data):
                encoded = schema.table(open_table(data, header=header))
            table = encoded.table
            curator = {
                "note": NOT_PRIVATE,
                "records": table.n,
                "positives": None if schema.label is None else int(table.positives.sum()),
                "distinct_rows": len(table.features),
                "outside": {column: dict(counts) for column, counts in encoded.outside.items()},
                "unreadable": list(encoded.unreadable),
            }
        if json_output:
            columns = {column.column: list(column.names) for column in schema.columns}
            typer.echo(as_json({"features": list(schema.features), "columns": columns, "curator": curator}))
            return
        _show(schema)
        if curator is not None:
            _show_curator(curator)


def _show(schema: Schema) -> None:
    table = Table(title=f"{len(schema.columns)} columns, {schema.dim} features")
    for heading in ("column", "kind", "features"):
        table.add_column(heading)
    for column in schema.columns:
        table.add_row(escape(column.column), type(column).__name__.lower(), escape(", ".join(column.names)))
    console.print(table)
    if schema.label is not None:
        console.print(escape(f"label {schema.label.column}, positive: {schema.label.words[0]}"), soft_wrap=True)
    if schema.target is not None:
        console.print(escape(f"label {schema.target.column}: {schema.target.words}"), soft_wrap=True)


def _show_curator(curator: dict[str, Any]) -> None:
    console.print(f"[bold red]{escape(curator['note'])}[/bold red]", soft_wrap=True)
    positives = "" if curator["positives"] is None else f"{curator['positives']:,} positive, "
    console.print(f"{curator['records']:,} records, {positives}{curator['distinct_rows']:,} distinct rows of features")
    for column, counts in curator["outside"].items():
        console.print(f"  {escape(column)}: {', '.join(f'{n:,} {fate}' for fate, n in counts.items())}")
    if not curator["outside"]:
        console.print("  every value is in the schema")
    if unreadable := curator["unreadable"]:
        console.print(f"[bold red]no value can be read: {escape(', '.join(unreadable))}[/bold red]", soft_wrap=True)
