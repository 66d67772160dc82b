"""`privsolve audit`: attack the guarantees of every mechanism; `privsolve solvers`: what they rest on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from privsolve.audit import Check, Row, checks, run_checks
from privsolve.cli.common import console, errors, one_line_errors
from privsolve.oracles import SOLVERS
from privsolve.privacy.guarantee import Proof

CONFIDENCE = 0.999

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def audit(
    long: Annotated[
        bool, typer.Option("--long/--quick", help="All cases and many runs (minutes), or the telling ones (a minute).")
    ] = False,
    as_json: AsJson = False,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise.")] = None,
) -> None:
    """Attack every mechanism on neighbouring data: claimed against measured privacy loss.

    Fails if a proved claim is refuted, or if one that is known to be wrong is not caught.
    """
    with one_line_errors():
        to_run = checks(long=long, random_state=seed)
        rows = list(_with_progress(run_checks(to_run, CONFIDENCE), to_run))
    as_expected = all(row.as_expected for row in rows)
    if as_json:
        result = {"confidence": CONFIDENCE, "as_expected": as_expected, "rows": [row.to_dict() for row in rows]}
        typer.echo(json.dumps(result, indent=2))
    else:
        _show(rows, as_expected)
    if not as_expected:
        raise typer.Exit(1)


def _with_progress(rows: Iterator[Row], to_run: Sequence[Check]) -> Iterator[Row]:
    """The rows as they come, with a bar on the error stream (of a terminal only)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("auditing", total=len(to_run))
        for check in to_run:
            progress.update(task, description=f"{check.mechanism}, {check.case.name}")
            yield next(rows)
            progress.advance(task)


def _show(rows: Sequence[Row], as_expected: bool) -> None:
    table = Table(title="Privacy loss: claimed, and measured on neighbouring data")
    for name in ("mechanism", "noise law", "case", "claimed", "measured", "verdict"):
        table.add_column(name, justify="right" if name in ("claimed", "measured") else "left")
    for row in rows:
        check = row.check
        claimed = f"{check.epsilon:g}" + (f", {check.delta:.0e}" if check.delta else "")
        measured = f"{'>=' if check.runs else '='} {row.finding.epsilon:.3f}"
        colour = "bold red" if not row.as_expected else "green" if check.proof is Proof.COMPLETE else "yellow"
        verdict = f"[{colour}]{row.words}[/{colour}]"
        table.add_row(check.mechanism, check.noise, check.case.name, claimed, measured, verdict)
    table.caption = (
        f"claimed is epsilon, or epsilon, delta. With probability {CONFIDENCE:g} no true claim in the table is called "
        "refuted. An audit can refute a claim, never prove one."
    )
    console.print(table)
    console.print(
        "Proved claims stand; what is not proved, or for real numbers only, is caught."
        if as_expected
        else "[bold red]Not as expected: a proved claim was refuted, or a wrong one was not caught.[/bold red]"
    )


def solvers(
    as_json: AsJson = False,
) -> None:
    """Which oracles there are, which solvers are installed, and what their guarantees rest on."""
    fields = ("name", "status", "licence", "arithmetic", "note")
    rows = [{name: getattr(entry, name) for name in fields} for entry in SOLVERS]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="Oracles")
    for name in fields:
        table.add_column(name)
    for row in rows:
        table.add_row(*(escape(str(row[name])) for name in fields))
    console.print(table)
