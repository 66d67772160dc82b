"""`privsolve compare`, the curator's view of several models, and `privsolve diff`, what changed between two releases."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from privsolve.cards.comparison import figures
from privsolve.cli.common import as_json, console, engine_at_work, one_line_errors, stoppable
from privsolve.cli.options import Adjacency, Data, Header, Json
from privsolve.data import Schema
from privsolve.data.tables import open_table
from privsolve.learn.comparing import compare_models
from privsolve.learn.full_card_recipe import DEFAULT_DELTA
from privsolve.releases.differences import Differences, differences
from privsolve.safety.folder import load_release, output_file


def compare(
    data: Data,
    schema: Annotated[Path, typer.Option(help="Schema file; a fit without one leaves it in OUT-curator/schema.toml.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget that each private model is fitted with.")],
    out: Annotated[Path, typer.Option(help="The page to write; it must stay with the curator.")],
    delta: Annotated[float, typer.Option(help="Of the full scorecard.")] = DEFAULT_DELTA,
    adjacency: Adjacency = "replace",
    header: Header = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable split and noise.")] = None,
) -> None:
    """Compare models on the curator's own records; not to be published.

    Example: privsolve compare patients.csv --schema out-curator/schema.toml --epsilon 1 --out curator.html

    The full scorecard, the short card, the tree and logistic regression without privacy are fitted on four fifths of the
    records and measured on the rest, without noise. Nothing is released, so nothing is paid for.
    """
    with one_line_errors(), stoppable("nothing was written"), output_file(out, mode=0o600) as write:
        the_schema = Schema.load(schema)
        with engine_at_work("comparing models on", data):
            table = open_table(data, header=header)
            found = compare_models(the_schema, table, epsilon, delta=delta, adjacency=adjacency, seed=seed)
        write(found.to_html())
        shown = Table(title="Curator only: do not publish", title_style="bold red")
        for heading in ("model", "privacy", "right", "AUC", "mean risk", "Brier"):
            shown.add_column(heading)
        for model, cells in found.found:
            shown.add_row(model.name, model.privacy, *figures(cells))
        console.print(shown)
        for model in found.models:
            if model.problem:
                console.print(f"{model.name}: {escape(model.problem)}", soft_wrap=True)
        console.print(f"{escape(str(out))}  [bold red](curator only: do not publish)[/bold red]", soft_wrap=True)


def diff(
    old: Annotated[Path, typer.Argument(help="The release.json of a fit.")],
    new: Annotated[Path, typer.Argument(help="Another one.")],
    json_output: Json = False,
) -> None:
    """What changed between two releases, for whom: questions, points, risks, decisions and the privacy of both together.

    It reads the two files and no data, and costs nothing.
    """
    with one_line_errors():
        found = differences(load_release(old), load_release(new))
        if json_output:
            typer.echo(as_json(asdict(found)))
            return
        for line in found.words:
            console.print(escape(line), soft_wrap=True)
        if found.changes:
            console.print(_table(found))
        for line in found.privacy:
            console.print(escape(line), soft_wrap=True)


def _table(found: Differences) -> Table:
    """What every answer adds."""
    table = Table(title=f"What an answer adds to the {found.unit}, against the first answer")
    for heading, side in (("question", "left"), ("answer", "left"), ("before", "right"), ("now", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for question, changes in groupby(found.changes, key=lambda change: change.question):
        for place, change in enumerate(changes):
            said = ("not asked" if part is None else f"{part:+.2f}" for part in (change.old, change.new))
            table.add_row("" if place else escape(question), escape(change.answer), *said)
        table.add_section()
    return table
