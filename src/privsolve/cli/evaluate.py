"""`privsolve evaluate`: how good a release is on a table, by one noisy histogram."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any

import typer
from rich.markup import escape

from privsolve.cli.common import (
    as_json,
    console,
    engine_at_work,
    one_line_errors,
    show_curators,
    show_paths,
    stoppable,
)
from privsolve.cli.options import Counting, Data, Epsilon, Header, Json, Releasing, with_options
from privsolve.cli.releasing import release_from, sealed_run
from privsolve.data.duckdb import private_folder
from privsolve.data.tables import open_table
from privsolve.evaluation import Evaluation, MeasuredOn
from privsolve.evaluation.measure import promise, summary
from privsolve.learn.evaluating import counted, evaluated
from privsolve.models.tree import DecisionTree
from privsolve.releases import Release
from privsolve.safety.folder import SCORECARD, SEALED, TREE, load_release


@with_options(counting=Counting, running=Releasing)
def evaluate(
    data: Data,
    *,
    release: Annotated[Path, typer.Option(help="The release.json of a fit.")],
    epsilon: Epsilon,
    counting: Counting,
    other_records: Annotated[
        bool, typer.Option("--other-records", help="These records are of people none of whom was in the fit.")
    ] = False,
    running: Releasing,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the release with its evaluation, to publish as a whole.")
    ] = None,
    header: Header = None,
    json_output: Json = False,
) -> None:
    """How good a release is on a table, privately: accuracy, mistakes of both kinds, ROC and calibration, with noise."""
    with one_line_errors(), stoppable() as stop:
        running.check_note()
        found = load_release(release)
        promise(epsilon, found.guarantee.adjacency)
        weights = counting.weights(data, header)
        page = TREE if isinstance(found.model, DecisionTree) else SCORECARD
        if out is None and running.resume:
            raise ValueError(
                "--resume goes on with an evaluation that is written to a folder: add --out, or leave it out"
            )
        with ExitStack() as stack:
            folder = None if out is None else stack.enter_context(running.folder(out, page))
            sealed_in = stack.enter_context(private_folder(Path(gettempdir()))) if folder is None else folder.curator
            sealed = stack.enter_context(sealed_run(sealed_in / SEALED, stop, running))
            with engine_at_work("reading", data):
                records = counted(found.model, open_table(data, header=header), counting.column, weight=weights)
            tested = MeasuredOn.OTHERS if other_records else MeasuredOn.SAME
            run = release_from(
                sealed,
                stop,
                partial(evaluated, found, records, epsilon, tested),
                lambda made: None if folder is None else folder.write(made)[0],
                resumable=folder is not None,
            )
            paths = [] if folder is None else folder.files
        assert run.release.evaluation is not None
        if json_output:
            typer.echo(as_json(_content(run.release, run.release.evaluation)))
        else:
            _show(run.release, run.release.evaluation, run.diagnostics.quality, paths)


def _content(release: Release, evaluation: Evaluation) -> dict[str, Any]:
    groups = {name: summary(evaluation.of_group(name)) for name in evaluation.groups} if evaluation.by else {}
    return {
        "figures": summary(evaluation.cells),
        "groups": groups,
        "risks": list(evaluation.cells.risks()),
        "evaluation": evaluation.to_dict(),
        "total": release.total.to_dict(),
    }


def _show(release: Release, evaluation: Evaluation, exact: dict[str, Any], paths: list[Path]) -> None:
    console.print(escape(evaluation.to_text().rstrip()))
    console.print(escape(f"\nPrivacy of the evaluation: {evaluation.guarantee.sentence()}"))
    console.print(escape(f"Of the release with it: {release.total.sentence()}"))
    auc = exact["auc"]["value"]
    area = "" if auc is None else f", area under the ROC curve {auc:.4f}"
    words = f"accuracy {exact['accuracy']['value']:.4f}{area}"
    counted = next(name for name in ("records", "weights") if name in exact)
    show_curators([f"{words} on {exact[counted]:,} {counted}"])
    show_paths(paths)
