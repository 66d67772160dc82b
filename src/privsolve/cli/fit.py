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

from privsolve.cli.common import console, errors, one_line_errors, warn
from privsolve.cli.display import sampling_progress, search_progress, tree_progress, union_progress
from privsolve.cli.engine import DATA_HELP, engine_at_work
from privsolve.cli.options import (
    DEPTH,
    Adjacency,
    CardWeight,
    Depth,
    Epsilon,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    LeavesName,
    MaxFeatures,
    MaxPoints,
    Mechanism,
    Model,
    ModelName,
    Noise,
    TreeLeaves,
    class_weights,
    refuse_strange_options,
)
from privsolve.cli.paying import Payment
from privsolve.cli.signals import stoppable
from privsolve.data import EncodedTable, Schema
from privsolve.data.tables import open_table
from privsolve.errors import PrivacyWarning
from privsolve.learn.choosing import UnionRecipe
from privsolve.learn.fitting import MAX_FEATURES, Recipe, scorecard_domain
from privsolve.learn.growing import TreeRecipe
from privsolve.learn.publishing import MODEL, SCORECARD, TREE, as_json, output_folder
from privsolve.privacy.ledger import Ledger
from privsolve.releases import NOT_PRIVATE, Run

FASTER = "fewer --max-features are faster"
PAGES = {ModelName.card: SCORECARD, ModelName.tree: TREE, ModelName.auto: MODEL}


def fit(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    schema: Annotated[Path, typer.Option(help="Schema file: what is public about the table.")],
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="Folder for the release, to publish as a whole.")],
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
    curator: Annotated[
        Path | None,
        typer.Option(help="Folder for what must not be published.", show_default="beside OUT, named OUT-curator"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release in the folder.")] = False,
    publish_guessed: Annotated[
        bool,
        typer.Option("--publish-guessed", help="Write files to publish although the schema was guessed from the data."),
    ] = False,
    model: Model = ModelName.card,
    depth: Depth = DEPTH,
    leaves: TreeLeaves = LeavesName.labels,
    card_weight: CardWeight = 0.5,
    json_output: Json = False,
) -> None:
    """Choose a scorecard, a tree or whichever fits better privately and write it to a folder: what may be published, and
    the curator's diagnostics apart.
    """
    with one_line_errors(), _plain_warnings(), stoppable() as stop:
        refuse_strange_options(context, model)
        if model is not ModelName.card and mechanism != "exponential":
            raise ValueError(f"--mechanism {mechanism}: trees are drawn by the exponential mechanism; leave it out")
        costs = (false_positive, false_negative)
        cards = Recipe(epsilon, mechanism, adjacency, None, oracle, noise, delta, *costs)
        the_schema = _load_schema(schema, publish_guessed)
        domain = scorecard_domain(
            the_schema.dim, max_features, max_points, (-intercept, intercept) if the_schema.intercept else None
        )
        recipe: TreeRecipe | UnionRecipe | None = None
        if model is ModelName.tree:
            recipe = TreeRecipe(epsilon, the_schema, depth, leaves.value, adjacency, *costs)
        elif model is ModelName.auto:
            recipe = UnionRecipe(
                epsilon, the_schema, depth, max_features, max_points, (-intercept, intercept), adjacency, *costs,
                weights=class_weights(card_weight),
            )  # fmt: skip
        asked = recipe.asked if recipe else the_schema
        budget = Ledger.open(ledger) if ledger else None
        with output_folder(out, curator=curator, overwrite=overwrite, page=PAGES[model]) as folder:
            with engine_at_work("reading", data):
                encoded = asked.table(open_table(data))

            def draw(account: Payment) -> Run:
                options: dict[str, Any] = {"random_state": seed, "budget": account}
                with _progress(model, mechanism) as progress:
                    if recipe:
                        return recipe.run(encoded, progress=progress, **options)
                    return cards.run(encoded, domain, progress=progress, **options)

            run, paths = Payment(budget, stop).release(folder, draw)
        if json_output:
            typer.echo(as_json(dict(zip(("release", model.page, "curator"), map(str, paths), strict=True))))
        else:
            _show(run, encoded, paths)


def _progress(model: ModelName, mechanism: str) -> AbstractContextManager[Any]:
    if model is ModelName.tree:
        return tree_progress(errors)
    if model is ModelName.auto:
        return union_progress(errors, FASTER)
    if mechanism == "exponential":
        return sampling_progress(errors, "sampling", FASTER)
    return search_progress(errors, mechanism)


def _load_schema(path: Path, publish_guessed: bool) -> Schema:
    if not path.is_file():
        raise ValueError(f"--schema {path}: no such file; make one with `privsolve schema draft`")
    schema = Schema.load(path)
    if schema.guessed and not publish_guessed:
        raise ValueError(
            f"{path}: the values of {_some(schema.guessed)} were guessed from the data, and no guarantee covers what they "
            "give away. Check them and take their names off the list `guessed`, or pass --publish-guessed"
        )
    if schema.guessed:
        warn(
            f"the guarantee does not cover what the guessed values of {_some(schema.guessed)} give away; the card says so"
        )
    return schema


def _some(names: tuple[str, ...]) -> str:
    """A few names, and how many more."""
    listed = ", ".join(names[:3])
    return listed if len(names) <= 3 else f"{listed} and {len(names) - 3} more"


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings about privacy as lines without code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        original = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: object) -> None:
            if issubclass(category, PrivacyWarning | RuntimeWarning):
                warn(str(message))
            else:
                original(message, category, *where)  # type: ignore[arg-type]

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _show(run: Run, encoded: EncodedTable, paths: list[Path]) -> None:
    console.print(escape(run.release.card().to_text(min(console.width, 100))))
    lines = [
        f"training accuracy {run.diagnostics.training_accuracy:.4f} ({run.diagnostics.mistakes:,} mistakes on "
        f"{encoded.table.n:,} records), {run.diagnostics.seconds:.2f} s"
    ]
    for column, counts in encoded.outside.items():
        lines.append(f"{column}: " + ", ".join(f"{count:,} {fate}" for fate, count in counts.items()))
    errors.print(Panel(escape("\n".join([NOT_PRIVATE, "", *lines])), title="Curator's diagnostics", border_style="red"))
    for path, words in zip(paths, ("to publish", "to publish", "curator only"), strict=True):
        console.print(f"{escape(str(path))}  [dim]({words})[/dim]", soft_wrap=True)
