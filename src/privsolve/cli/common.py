"""What every command shares: the consoles, one-line errors, and how a run is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

import privsolve as ps
from privsolve.release import NOT_PRIVATE, Run

console = Console()
errors = Console(stderr=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Wrong input and failed runs end in one line that says what to do, not in a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, ps.PrivsolveError) as error:
        errors.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        errors.print("[bold red]interrupted:[/bold red] nothing was released", soft_wrap=True)
        raise typer.Exit(130) from None


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
