"""`privsolve schema draft` and `privsolve schema check`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from privsolve.cli.common import console, one_line_errors, stoppable
from privsolve.cli.drafting import PrivateOptions, Use, Wanted
from privsolve.cli.engine import DATA_HELP, Header, engine_at_work
from privsolve.cli.options import Adjacency, Classes, Negative, Positive, Resume, Target
from privsolve.cli.releasing import release_from, sealed_run
from privsolve.data import About, Schema
from privsolve.data.about import WORDS
from privsolve.data.private import DRAFT_SHARE, PrivateDraft
from privsolve.data.tables import content_digest, decimal_sign, open_table
from privsolve.releases import NOT_PRIVATE
from privsolve.safety.folder import output_file
from privsolve.safety.signals import Stop

app = typer.Typer(help="Say what is public about a table.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@app.command("draft")
def draft_command(
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option(help="The schema file to write.")],
    positive: Positive = None,
    negative: Negative = None,
    classes: Classes = None,
    target: Target = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the draft.")] = None,
    total_epsilon: Annotated[
        float | None, typer.Option(help=f"Privacy budget of draft and fit: the draft spends {DRAFT_SHARE} of it.")
    ] = None,
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
    drop: Annotated[
        list[str] | None, typer.Option("--drop", "--leave-out", help="Columns not to use, with commas between them.")
    ] = None,
    numbers: Annotated[
        list[str] | None, typer.Option(help="Columns known to hold numbers, with commas between them.")
    ] = None,
    texts: Annotated[
        list[str] | None, typer.Option(help="Columns known to hold texts, with commas between them.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="A value that stands for no value, such as -999; NA, NULL, ? and the like always do."),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(help="Sign before decimals, '.' or ','.", show_default="',' in files with semicolons, else '.'"),
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
    ledger: Annotated[Path | None, typer.Option(help="Budget file that pays for the draft.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, for testing only.")] = None,
    as_json: AsJson = False,
    resume: Resume = False,
) -> None:
    """Draft a schema from the records, with differential privacy. See docs/guides/drafts.md."""
    with one_line_errors(), stoppable() as stop:
        if out.exists() and not resume:
            raise ValueError(f"{out} exists: choose another name or delete it")
        use, words = Use.of(columns, drop, numbers, texts, missing), _about(about or [])
        private = PrivateOptions.of(
            epsilon,
            total_epsilon,
            delta,
            Wanted(positive, negative, classes, target),
            stated,
            bounds or [],
            use,
            decimal or decimal_sign(data, header),
            adjacency,
            ledger,
            seed,
        )
        with engine_at_work("reading", data):
            found = drafted_privately(data, header, label, private, words, out, stop, resume)
        if as_json:
            written = {"schema": found.schema.to_dict(), "left_out": dict(found.left_out), "file": str(out)}
            typer.echo(json.dumps(written, indent=2, ensure_ascii=False))
            return
        _say_what_is_in_it(out, found.schema, found.left_out)
        console.print(escape(found.sentence()))


def _about(options: list[str]) -> About:
    """The words of `--about KEY=WORDS`."""
    said: dict[str, Any] = {}
    for option in options:
        key, equals, words = option.partition("=")
        if not equals or key not in WORDS or key in said:
            raise ValueError(f"--about {option!r}: give KEY=WORDS, each key once, of {', '.join(WORDS)}")
        said[key] = words
    return About(**said)


def drafted_privately(
    data: str,
    header: str | None,
    label: str,
    private: PrivateOptions,
    about: About,
    out: Path,
    stop: Stop,
    resume: bool,
) -> PrivateDraft:
    """Pay, draft, write, and note that it is written; the file has its place before anything is paid."""
    if not resume and private.asks_nothing(data, header, label):
        with output_file(out) as write:
            found = private.draft(data, header, "", label, about)
            write(found.to_toml())
        return found
    with (
        output_file(out, resume=resume) as write,
        sealed_run(
            out.with_name(f"{out.name}.sealed"), stop, resume=resume, ledger=private.ledger, seed=private.seed
        ) as sealed,
    ):

        def written(found: PrivateDraft) -> Path:
            write(found.to_toml())
            return out

        call = partial(private.draft, data, header, content_digest(data), label, about)
        return release_from(sealed, stop, call, written)


def _say_what_is_in_it(out: Path, schema: Schema, left_out: Mapping[str, str]) -> None:
    console.print(f"{escape(str(out))}: {len(schema.columns)} columns, {schema.dim} features", soft_wrap=True)
    for name, reason in left_out.items():
        console.print(f"left out {escape(name)}: {escape(reason)}", soft_wrap=True)


@app.command("check")
def check_command(
    schema_file: Annotated[Path, typer.Argument(help="The schema file.")],
    data: Annotated[str | None, typer.Argument(help=DATA_HELP)] = None,
    header: Header = None,
    as_json: AsJson = False,
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
        if as_json:
            columns = {column.column: list(column.names) for column in schema.columns}
            typer.echo(
                json.dumps({"features": list(schema.features), "columns": columns, "curator": curator}, indent=2)
            )
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


def _show_curator(curator: dict[str, object]) -> None:
    console.print(f"[bold red]{escape(str(curator['note']))}[/bold red]", soft_wrap=True)
    positives = "" if curator["positives"] is None else f"{curator['positives']:,} positive, "
    console.print(f"{curator['records']:,} records, {positives}{curator['distinct_rows']:,} distinct rows of features")
    outside = curator["outside"]
    assert isinstance(outside, dict)
    for column, counts in outside.items():
        console.print(f"  {escape(column)}: {', '.join(f'{n:,} {fate}' for fate, n in counts.items())}")
    if not outside:
        console.print("  every value is in the schema")
    if unreadable := curator["unreadable"]:
        assert isinstance(unreadable, list)
        console.print(f"[bold red]no value can be read: {escape(', '.join(unreadable))}[/bold red]", soft_wrap=True)
