"""`privsolve fit`: from a table and a schema to a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel

from privsolve.cli.common import console, errors, one_line_errors
from privsolve.cli.display import sampling_progress, search_progress
from privsolve.cli.engine import DATA_HELP, engine_at_work
from privsolve.cli.options import (
    Adjacency,
    Epsilon,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    MaxFeatures,
    MaxPoints,
    Mechanism,
    Noise,
)
from privsolve.data import EncodedTable, Schema
from privsolve.data.tables import open_table
from privsolve.errors import PrivacyWarning
from privsolve.learn.fitting import MAX_FEATURES, Choice, scorecard_domain
from privsolve.learn.publishing import Folder, as_json, output_folder
from privsolve.models.release import NOT_PRIVATE, Run
from privsolve.privacy.ledger import Ledger

FASTER = "fewer --max-features are faster"

GUESSED = "# GUESSED"
"""How `privsolve schema draft` marks what it read off the data."""


def fit(
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    schema: Annotated[Path, typer.Option(help="Schema file: what is public about the table.")],
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="Folder for the release.")],
    mechanism: Mechanism = "exponential",
    max_features: MaxFeatures = MAX_FEATURES,
    max_points: MaxPoints = 3,
    intercept: Intercept = 8,
    false_positive: FalsePositive = 1,
    false_negative: FalseNegative = 1,
    adjacency: Adjacency = "replace",
    oracle: Annotated[str, typer.Option(help="Solver for opdisc and rspm; see `privsolve solvers`.")] = "tree",
    noise: Noise = None,
    delta: Annotated[float | None, typer.Option(help="For Gaussian noise.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Budget file that pays for the release (`privsolve budget`).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, for testing only.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release in the folder.")] = False,
    json_output: Json = False,
) -> None:
    """Choose a scorecard privately and write it to a folder: what may be published, and the curator's diagnostics apart."""
    with one_line_errors(), _plain_warnings():
        choice = Choice(
            epsilon, mechanism, adjacency, None, oracle, noise, delta,
            false_positive, false_negative,
        )  # fmt: skip
        the_schema = _load_schema(schema)
        domain = scorecard_domain(
            the_schema.dim, max_features, max_points, (-intercept, intercept) if the_schema.intercept else None
        )
        budget = Ledger.open(ledger) if ledger else None
        with output_folder(out, overwrite=overwrite) as folder:
            with engine_at_work("reading", data):
                encoded = the_schema.table(open_table(data))
            exponential = choice.mechanism == "exponential"
            shown: AbstractContextManager[Any] = (
                sampling_progress(errors, "sampling", FASTER)
                if exponential
                else search_progress(errors, choice.mechanism)
            )
            with _payments_noted(budget), shown as progress:
                options: dict[str, Any] = {"random_state": seed, "progress": progress, "budget": budget}
                run = choice.run(encoded.table, domain, the_schema, **options)
            paths = _write(folder, run, encoded)
        if json_output:
            typer.echo(as_json(dict(zip(("release", "scorecard", "curator"), map(str, paths), strict=True))))
        else:
            _show(run, encoded, paths)


def _load_schema(path: Path) -> Schema:
    if not path.is_file():
        raise ValueError(f"--schema {path}: no such file; make one with `privsolve schema draft`")
    schema = Schema.load(path)
    guesses = sum(line.startswith(GUESSED) for line in path.read_text(encoding="utf-8").splitlines())
    if guesses:
        _warn(
            f"{path} has {guesses} lines marked GUESSED: the guarantee does not cover what these values give away. Check "
            "them, and delete the marks."
        )
    return schema


def _write(folder: Folder, run: Run, encoded: EncodedTable) -> list[Path]:
    try:
        return folder.write(run, encoded.outside)
    except Exception as error:
        typer.echo(run.release.to_json())  # it is paid for: do not lose it
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"--out {folder.path} was not written: {why}; the release is printed above, save it as release.json"
        ) from None


@contextmanager
def _payments_noted(ledger: Ledger | None) -> Iterator[None]:
    """If the block fails after the ledger has paid, say so."""
    before = len(ledger.history()) if ledger else 0
    try:
        yield
    except BaseException:
        if ledger and len(ledger.history()) > before:
            _warn("the release was paid for already, and the ledger keeps the payment: see `privsolve budget history`")
        raise


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings about privacy as lines without code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        original = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: object) -> None:
            if issubclass(category, PrivacyWarning):
                _warn(str(message))
            else:
                original(message, category, *where)  # type: ignore[arg-type]

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _warn(words: str) -> None:
    errors.print(f"[bold yellow]warning:[/bold yellow] {escape(words)}", soft_wrap=True)


def _show(run: Run, encoded: EncodedTable, paths: list[Path]) -> None:
    console.print(escape(run.release.scorecard().to_text(min(console.width, 100))))
    lines = [
        f"training accuracy {run.diagnostics.training_accuracy:.4f} ({run.diagnostics.mistakes:,} mistakes on "
        f"{encoded.table.n:,} records), {run.diagnostics.seconds:.2f} s"
    ]
    for column, counts in encoded.outside.items():
        lines.append(f"{column}: " + ", ".join(f"{count:,} {fate}" for fate, count in counts.items()))
    errors.print(Panel(escape("\n".join([NOT_PRIVATE, "", *lines])), title="Curator's diagnostics", border_style="red"))
    for path, words in zip(paths, ("to publish", "to publish", "curator only"), strict=True):
        console.print(f"{escape(str(path))}  [dim]({words})[/dim]", soft_wrap=True)
