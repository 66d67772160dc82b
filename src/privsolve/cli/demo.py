"""`privsolve demo`: the experiment in a few minutes, then one scorecard to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

import privsolve as ps
from privsolve.cli.common import console, one_line_errors, stoppable
from privsolve.cli.reproduce import run_adult, show_paths, show_results
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.learn.recipe import encode
from privsolve.privacy.calibration import check_epsilon
from privsolve.safety.folder import Folder, output_folder
from privsolve.safety.signals import Stop


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
            results, written = run_adult(out / "adult", runs=runs, quick=True, jobs=jobs)
            show_results(results)
            published = _scorecard(folder, epsilon, seed, stop)
        show_paths([*written, *published])


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
