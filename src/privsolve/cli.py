"""The command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

import privsolve as ps
from privsolve.display import sampling_progress, search_progress
from privsolve.release import NOT_PRIVATE, Run

app = typer.Typer(
    help="Choose the best simple model under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
errors = Console(stderr=True)


class Mechanism(StrEnum):
    """What `demo` can run."""

    exponential = "exponential"
    opdisc = "opdisc"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Wrong input and failed runs end in one line that says what to do, not in a traceback."""
    try:
        yield
    except (ValueError, TypeError, ps.PrivsolveError) as error:
        errors.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        errors.print("[bold red]interrupted:[/bold red] nothing was released", soft_wrap=True)
        raise typer.Exit(130) from None


@app.callback()
def main() -> None:
    """Choose the best simple model under differential privacy."""


@app.command()
def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the release.")] = 1.0,
    mechanism: Annotated[Mechanism, typer.Option(help="How the weights are chosen.")] = Mechanism.exponential,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, for testing only.")] = None,
) -> None:
    """The paper's Adult problem, from the table to the release."""
    with one_line_errors():
        _demo(epsilon, mechanism, seed)


def _demo(epsilon: float, mechanism: Mechanism, seed: int | None) -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(dim=table.dim, radius_sq=table.dim))
    console.print(
        f"[bold]Adult[/bold]: {table.n:,} records, {table.dim} features. "
        f"Choosing among {problem.domain.size:,} integer weight vectors by their mistakes.\n"
    )
    if mechanism is Mechanism.opdisc:
        with search_progress(console, f"OPDisc at epsilon {epsilon:g}") as progress:
            run = ps.opdisc(problem, epsilon=epsilon, random_state=seed, progress=progress)
    else:
        with sampling_progress(console, f"exponential mechanism at epsilon {epsilon:g}") as counter:
            run = ps.exponential(problem, epsilon=epsilon, prior=ps.SparsePrior(), random_state=seed, progress=counter)
    show_run(run)


@app.command()
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


def show_run(run: Run) -> None:
    """Print a run: what may be published, then what may not."""
    console.print(_weights_table(run.release))
    console.print(Panel(run.release.guarantee.sentence(), title="Guarantee", border_style="green"))
    lines = [
        f"training accuracy {run.diagnostics.training_accuracy:.4f} ({run.diagnostics.mistakes:,} mistakes), "
        f"solved in {run.diagnostics.seconds:.2f} s",
        ", ".join(f"{name} {_readable(value)}" for name, value in run.diagnostics.values.items()),
    ]
    console.print(Panel("\n".join([NOT_PRIVATE, "", *lines]), title="Curator's diagnostics", border_style="red"))


def _weights_table(release: ps.Release) -> Table:
    table = Table(title="Published weights (features with weight 0 are left out)")
    table.add_column("feature")
    table.add_column("weight", justify="right")
    chosen = [(name, int(w), s) for name, w, s in zip(release.features, release.weights, release.scales, strict=True)]
    for name, weight, scale in sorted(chosen, key=lambda row: -row[1]):
        if weight:
            table.add_row(name if scale == 1 else f"{name} / {scale}", f"{weight:+d}")
    table.caption = "Predict positive if the weighted sum is above 0."
    return table


def _readable(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
