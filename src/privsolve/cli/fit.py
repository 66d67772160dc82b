"""`privsolve fit`: from a table and a schema to a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel

from privsolve.cli.common import as_json, console, errors, one_line_errors, stoppable, warn
from privsolve.cli.display import share_progress, work_progress
from privsolve.cli.draft_first import SCHEMA, DraftFirst
from privsolve.cli.engine import DATA_HELP, Header, engine_at_work
from privsolve.cli.options import (
    DEPTH,
    EXPERT,
    OUTPUT,
    PRIVACY,
    TABLE,
    Adjacency,
    By,
    CardWeight,
    Depth,
    Directions,
    Exclude,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    LogOdds,
    MaxCuts,
    MaxFeatures,
    MaxPoints,
    MaxQuestions,
    Mechanism,
    Model,
    ModelName,
    Noise,
    Note,
    ObjectiveOption,
    OneOf,
    Require,
    Resume,
    Sparsity,
    TreeLeaves,
    card_limits,
    check_most_features,
    group_of,
    refuse_strange_options,
)
from privsolve.cli.recipes import Wanted
from privsolve.cli.releasing import release_from, sealed_run
from privsolve.cli.summary import summary
from privsolve.cli.unread import outside_lines
from privsolve.data import EncodedTable, Schema
from privsolve.data.patterns import PatternTable
from privsolve.data.private import default_delta
from privsolve.data.tables import open_table
from privsolve.errors import PrivacyWarning
from privsolve.learn.base import check_paid
from privsolve.learn.fitting import Objective
from privsolve.learn.full_cards import DEFAULT_DELTA
from privsolve.learn.holding_out import HoldOut
from privsolve.models.leaves import LeafKind
from privsolve.models.risk import FullCard
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger
from privsolve.privacy.profiles import profile_of
from privsolve.releases import NOT_PRIVATE, Run
from privsolve.safety.folder import MODEL, SCORECARD, TREE, Folder, output_folder

FASTER = "fewer --max-features are faster"
PAGES = {ModelName.scorecard: SCORECARD, ModelName.short: SCORECARD, ModelName.tree: TREE, ModelName.auto: MODEL}


def fit(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path, typer.Option(help="Folder for the release, to publish as a whole.", rich_help_panel=OUTPUT)],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget of everything the command does.", rich_help_panel=PRIVACY)
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column to predict; a schema file names it.", rich_help_panel=TABLE)
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The positive value of the label.", rich_help_panel=TABLE)
    ] = None,
    negative: Annotated[
        str | None, typer.Option(help="The negative value; every other one if left out.", rich_help_panel=TABLE)
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Columns not to use, with commas between them.", rich_help_panel=TABLE)
    ] = None,
    numbers: Annotated[
        list[str] | None, typer.Option(help="Columns that are known to hold numbers.", rich_help_panel=TABLE)
    ] = None,
    texts: Annotated[
        list[str] | None, typer.Option(help="Columns that are known to hold texts.", rich_help_panel=TABLE)
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Schema file: what is public about the table.",
            show_default="drafted privately from the records",
            rich_help_panel=TABLE,
        ),
    ] = None,
    total_epsilon: Annotated[
        float | None,
        typer.Option(help="With a drafted schema: budget of its draft and the fit together.", rich_help_panel=EXPERT),
    ] = None,
    mechanism: Mechanism = "exponential",
    objective: ObjectiveOption = Objective.MISTAKES,
    log_odds: LogOdds = 0.5,
    max_features: MaxFeatures = None,
    max_questions: MaxQuestions = None,
    max_cuts: MaxCuts = None,
    require: Require = None,
    exclude: Exclude = None,
    one_of: OneOf = None,
    direction: Directions = None,
    max_points: MaxPoints = None,
    sparsity: Sparsity = 0.0,
    intercept: Intercept = 8,
    false_positive: FalsePositive = 1,
    false_negative: FalseNegative = 1,
    adjacency: Adjacency = "replace",
    oracle: Annotated[str, typer.Option(help="Solver for opdisc and rspm; see `privsolve solvers`.")] = "tree",
    noise: Noise = None,
    delta: Annotated[
        float | None, typer.Option(help="Of a full scorecard; or for Gaussian noise.", show_default="1e-6")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Budget file that pays for the release (`privsolve budget`).")
    ] = None,
    note: Note = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, for testing only.")] = None,
    curator: Annotated[
        Path | None,
        typer.Option(help="Folder for what must not be published.", show_default="beside OUT, named OUT-curator"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release in the folder.")] = False,
    model: Model = ModelName.scorecard,
    depth: Depth = DEPTH,
    leaves: TreeLeaves = LeafKind.LABELS,
    card_weight: CardWeight = 0.5,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Randomly hold out this share of the records and evaluate on them privately.",
            show_default="0.2 without --schema",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    evaluate_epsilon: Annotated[
        float | None, typer.Option(help="Of the evaluation on held-out records.", show_default="that of the fit")
    ] = None,
    by: By = None,
    header: Header = None,
    json_output: Json = False,
    resume: Resume = False,
) -> None:
    """From a table to a model with its page, under differential privacy.

    Example: privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

    Without a schema one is drafted privately, and a fifth of the records is held out to measure the model. What must not be
    published goes to a folder of its own.
    """
    with one_line_errors(), _plain_warnings(), stoppable() as stop:
        refuse_strange_options(context, model)
        budget = Ledger.open(ledger) if ledger else None
        drafted = schema is None
        if drafted:
            schema = Folder.of(out, curator).curator / SCHEMA
            first = DraftFirst(
                data,
                header,
                label,
                positive,
                negative,
                tuple(leave_out or ()),
                tuple(numbers or ()),
                tuple(texts or ()),
                adjacency,
                seed,
            )
            if budget is not None and not resume and (epsilon or total_epsilon):
                _check_both(budget, epsilon or total_epsilon or 0.0, model, delta)
            resume = first.draft(schema, epsilon or total_epsilon, ledger, stop, resume)
            epsilon, total_epsilon = None, epsilon or total_epsilon
            holdout = 0.2 if holdout is None else holdout or None  # 0: no evaluation
        elif label is not None or positive is not None or negative is not None or leave_out or numbers or texts:
            raise ValueError(
                "--label, --positive, --negative, --leave-out, --numbers, --texts: the schema file says that: leave them out"
            )
        assert schema is not None
        epsilon = _checked_epsilon(epsilon, total_epsilon, schema)
        the_schema = _load_schema(schema)
        check_paid(the_schema, adjacency)
        wanted = Wanted(
            model, adjacency, (false_positive, false_negative), objective, log_odds,
            card_limits(max_questions, max_cuts, require, exclude, one_of, direction), max_features, max_points, intercept,
            depth, leaves, card_weight, mechanism, oracle, noise, delta, sparsity,
        )  # fmt: skip
        asked, choose = wanted.recipe(epsilon, the_schema)
        check_most_features(max_features, asked)
        test = HoldOut.of(holdout, evaluate_epsilon if evaluate_epsilon is not None else epsilon, group_of(by), asked)
        if test is None and (by is not None or evaluate_epsilon is not None):
            raise ValueError(
                "--by and --evaluate-epsilon are for an evaluation: add --holdout, for example --holdout 0.2"
            )
        with (
            output_folder(out, curator=curator, overwrite=overwrite, resume=resume, page=PAGES[model]) as folder,
            sealed_run(folder.sealed, stop, resume=resume, ledger=budget, note=note, seed=seed) as sealed,
        ):
            with engine_at_work("reading", data):
                whole, groups = _read(asked, open_table(data, header=header), test)
            call = partial(choose, whole) if test is None else partial(test.fitted, choose, whole, groups, adjacency)
            with _progress(model, mechanism) as progress:
                run = release_from(sealed, stop, call, lambda made: folder.write(made)[0], progress=progress)
            paths = folder.files
        if json_output:
            typer.echo(as_json(dict(zip(("release", model.page, "curator"), map(str, paths), strict=True))))
        else:
            _show(run, paths)


def _checked_epsilon(epsilon: float | None, total: float | None, schema: Path) -> float:
    """The epsilon of the fit: stated, or what a drafted schema leaves of a total."""
    if epsilon is not None and total is None:
        return epsilon
    if epsilon is not None or total is None:
        raise ValueError(
            "give either --epsilon, of the fit, or --total-epsilon, of a privately drafted schema and the fit"
        )
    paid = Schema.load(schema).paid if schema.is_file() else None
    left = exact(check_epsilon(total)) - (exact(paid.guarantee.epsilon) if paid is not None else 0)
    if left <= 0:
        raise ValueError(f"--total-epsilon {total:g}: the draft of the schema has spent all of it: use more")
    return at_most(left)


def _check_both(budget: Ledger, epsilon: float, model: ModelName, delta: float | None) -> None:
    """Refuse before the draft is paid what could not be paid after it."""
    own = (DEFAULT_DELTA if delta is None else delta) if model is ModelName.scorecard else delta or 0.0
    drafts = default_delta(1) if budget.budget.release_delta else 0.0
    whole = Guarantee(
        profile_of(epsilon, own + drafts), budget.budget.adjacency, "draft and fit", "none yet", "12", "none"
    )
    budget.budget.check(budget.totals(), whole)


def _read(schema: Schema, table: Any, test: HoldOut | None) -> tuple[EncodedTable, tuple[PatternTable | None, ...]]:
    """The table, and its groups."""
    if test is not None and test.column is not None:
        return schema.tables(table, test.column)
    encoded = schema.table(table)
    return encoded, (encoded.table,)


def _progress(model: ModelName, mechanism: str) -> AbstractContextManager[Any]:
    if model is ModelName.scorecard:
        return nullcontext()
    if model is ModelName.short:
        return work_progress(errors, mechanism, FASTER if mechanism == "exponential" else "")
    return share_progress(errors, FASTER)


def _load_schema(path: Path) -> Schema:
    if not path.is_file():
        raise ValueError(f"--schema {path}: no such file; make one with `privsolve schema draft`")
    return Schema.load(path)


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


def _show(run: Run, paths: list[Path]) -> None:
    card = run.release.card()
    if isinstance(run.release.model, FullCard):
        for line in summary(run.release):
            console.print(escape(line), soft_wrap=True)
    else:
        console.print(escape(card.to_text(min(console.width, 100))))
    lines = [
        f"training accuracy {run.diagnostics.training_accuracy:.4f} ({run.diagnostics.mistakes:,} mistakes on "
        f"{run.diagnostics.training_records:,} records), {run.diagnostics.seconds:.2f} s"
    ]
    lines += outside_lines(run.diagnostics.outside_the_schema, f"see {paths[2]}")
    errors.print(Panel(escape("\n".join([NOT_PRIVATE, "", *lines])), title="Curator's diagnostics", border_style="red"))
    for path, words in zip(paths, ("to publish", "to publish", "curator only"), strict=True):
        console.print(f"{escape(str(path))}  [dim]({words})[/dim]", soft_wrap=True)
