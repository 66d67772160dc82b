"""`privsolve reproduce`: the paper's experiments, with one command; `privsolve demo`: a short one, and a scorecard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import joblib
import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

import privsolve as ps
from privsolve.cli.common import console, errors, one_line_errors, stoppable
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.learn.recipe import encode
from privsolve.privacy.calibration import check_epsilon
from privsolve.safety.folder import Folder, output_folder
from privsolve.safety.signals import Stop

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
        results, written = _run_adult(out, runs=runs or (3 if quick else 15), quick=quick, jobs=jobs)
        _show_results(results)
        _show_paths(written)


def _run_adult(out: Path, *, runs: int, quick: bool, jobs: int | None) -> tuple[Results, list[Path]]:
    """Run what is missing and write the report: the results, and the paths of what was written."""
    from privsolve.experiments.adult import EPSILONS, QUICK_EPSILONS, Plan, run_experiment
    from privsolve.experiments.report import write_report

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


def _show_results(results: Results) -> None:
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


def _show_paths(paths: list[Path]) -> None:
    """Where everything was written."""
    console.print("\n[bold]Written[/bold]")
    for path in paths:
        console.print(f"  {escape(str(path))}", soft_wrap=True)


def demo(
    out: Annotated[Path, typer.Option(help="Folder of everything it writes.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the scorecard.")] = 1.0,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each method at each epsilon.")] = 3,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at the same time; all cores if left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable scorecard, for testing only.")] = None,
) -> None:
    """The Adult data: a quick comparison of all methods, and a private scorecard. A few minutes."""
    with one_line_errors(), stoppable() as stop:
        check_epsilon(epsilon)
        with output_folder(out / "scorecard", overwrite=True) as folder:
            results, written = _run_adult(out / "adult", runs=runs, quick=True, jobs=jobs)
            _show_results(results)
            published = _scorecard(folder, epsilon, seed, stop)
        _show_paths([*written, *published])


def _scorecard(folder: Folder, epsilon: float, seed: int | None, stop: Stop) -> list[Path]:
    records = ps.datasets.adult()
    recipe = FullCardRecipe(epsilon)
    encoded = encode(recipe, ps.datasets.adult_schema(), records[records["split"] == "train"])
    console.print(
        f"\n[bold]A scorecard to publish[/bold]: points for every answer, from {encoded.table.n:,} records, epsilon "
        f"{epsilon:g}, delta {recipe.delta:g}"
    )
    run = recipe.run(encoded, random_state=seed)
    stop.check()
    stop.hold()
    paths = folder.write(run)
    stop.outcome = f"the release is complete, see {paths[0]}"
    stop.let_go()
    console.print(escape(run.release.card().to_text(min(console.width, 100))))
    return paths
