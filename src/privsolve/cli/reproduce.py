"""`privsolve reproduce`: the paper's experiments, with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import joblib
import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from privsolve.cli.common import console, errors, one_line_errors

if TYPE_CHECKING:
    from privsolve.experiments.adult import Results

app = typer.Typer(help="The paper's experiments.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """The paper's experiments."""


@app.command()
def adult(
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of each method at each epsilon; 15, or 3 if quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three epsilons: a few minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results; an interrupted run goes on here.")] = Path("adult"),
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at the same time; all cores if left out.")] = None,
) -> None:
    """The paper's Figure 1 on Adult, and an extended comparison: 15 runs of every method in under an hour on 2 cores."""
    with one_line_errors():
        results, written = run_adult(out, runs=runs or (3 if quick else 15), quick=quick, jobs=jobs)
        show_results(results)
        show_paths(written)


def run_adult(out: Path, *, runs: int, quick: bool, jobs: int | None) -> tuple[Results, list[Path]]:
    """Run what is missing and write the report: the results, and the paths of what was written."""
    from privsolve.experiments.adult import EPSILONS, QUICK_EPSILONS, Plan, run_experiment
    from privsolve.experiments.figures import write_report

    plan = Plan(QUICK_EPSILONS if quick else EPSILONS, runs)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("runs", total=len(plan.tasks))
        try:
            results = run_experiment(
                out, plan, jobs or joblib.cpu_count(), lambda done, total: progress.update(bar, completed=done)
            )
        except KeyboardInterrupt:
            progress.stop()
            errors.print(f"interrupted: finished runs are kept in {out / 'runs'}; the same command goes on from there")
            raise typer.Exit(130) from None
    return results, write_report(results, out)


def show_results(results: Results) -> None:
    """The table of accuracies and what it says."""
    from privsolve.experiments.methods import EXTENDED, PRINTED
    from privsolve.experiments.report import NOTE, accuracy_table, claims, opening, reading

    console.print(opening(results))
    for title, keys, sentences in (("As printed", PRINTED, claims(results)), ("Extended", EXTENDED, reading(results))):
        table = Table(title=f"{title}: training accuracy, mean ± standard deviation of {results.plan.runs} runs")
        (first, _, *heads), *rows = accuracy_table(results, keys)
        table.add_column(first)
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for label, _, *cells in rows:
            table.add_row(label, *cells)
        console.print(table)
        for sentence in sentences:
            console.print(f"• {sentence}")
    console.print(f"[dim]{NOTE}[/dim]")


def show_paths(paths: list[Path]) -> None:
    """Where everything was written."""
    console.print("\n[bold]Written[/bold]")
    for path in paths:
        console.print(f"  {escape(str(path))}", soft_wrap=True)
