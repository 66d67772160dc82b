"""`privsolve fit`: from a table to a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel

from privsolve.cli.common import as_json, console, errors, one_line_errors, stoppable, warn
from privsolve.cli.display import share_progress, work_progress
from privsolve.cli.draft_first import SCHEMA, TableOptions, draft_first
from privsolve.cli.engine import DATA_HELP, Header, engine_at_work
from privsolve.cli.model_options import ModelName, ModelOptions, checked_model
from privsolve.cli.option_groups import EXPERT, OUTPUT, PRIVACY, TABLE, with_options
from privsolve.cli.options import BandsText, By, Json, MaxWeight, Note, Resume, WeightColumn, group_of, weight_of
from privsolve.cli.releasing import release_from, sealed_run
from privsolve.cli.summary import summary
from privsolve.cli.unread import outside_lines
from privsolve.data import Categories, EncodedTable, Schema
from privsolve.data.columns.label import Target
from privsolve.data.patterns import PatternTable
from privsolve.data.private import default_delta
from privsolve.data.reading import check_columns
from privsolve.data.tables import open_table
from privsolve.errors import PrivacyWarning
from privsolve.evaluation.measure import promise
from privsolve.evaluation.split import parts_of
from privsolve.learn.base import check_paid
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.holding_out import HoldOut
from privsolve.learn.recipe import sample_rate_of
from privsolve.models.bands import Bands
from privsolve.models.full_card import FullCard
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger
from privsolve.privacy.profiles import profile_of
from privsolve.releases import NOT_PRIVATE, Run
from privsolve.safety.folder import SCORECARD, TREE, Folder, output_folder

FASTER = "fewer --max-features are faster"

LARGE = 10.0
"""From this epsilon on a fit warns: the bound on what a release gives away is then a factor of 22,000."""


@with_options(table=TableOptions, choice=ModelOptions)
def fit(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    *,
    table: TableOptions,
    out: Annotated[Path, typer.Option(help="Folder for the release, to publish as a whole.", rich_help_panel=OUTPUT)],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget of everything the command does.", rich_help_panel=PRIVACY)
    ] = None,
    choice: ModelOptions,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Schema file: what is public about the table.",
            show_default="drafted privately from the records",
            rich_help_panel=TABLE,
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Budget file that pays for the release (`privsolve budget`).", rich_help_panel=PRIVACY),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Randomly hold out this share of the records and evaluate on them privately.",
            show_default="0.2 without --schema",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier release in the folder.", rich_help_panel=OUTPUT)
    ] = False,
    resume: Resume = False,
    curator: Annotated[
        Path | None,
        typer.Option(
            help="Folder for what must not be published.",
            show_default="beside OUT, named OUT-curator",
            rich_help_panel=EXPERT,
        ),
    ] = None,
    total_epsilon: Annotated[
        float | None,
        typer.Option(help="With a drafted schema: budget of its draft and the fit together.", rich_help_panel=EXPERT),
    ] = None,
    evaluate_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Of the evaluation on held-out records.", show_default="that of the fit", rich_help_panel=EXPERT
        ),
    ] = None,
    by: By = None,
    bands: BandsText = None,
    weight: WeightColumn = None,
    max_weight: MaxWeight = None,
    note: Note = None,
    header: Header = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for testing only.", rich_help_panel=EXPERT)
    ] = None,
    json_output: Json = False,
) -> None:
    """From a table to a model with its page, under differential privacy.

    Example: privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

    Without a schema one is drafted privately, and a fifth of the records is held out to measure the model. What must not be
    published goes to a folder of its own.
    """
    with one_line_errors(), _plain_warnings(), stoppable() as stop:
        weights = weight_of(weight, max_weight, data, header, table.decimal)
        budget = Ledger.open(ledger) if ledger else None
        if schema is None:
            schema = Folder.of(out, curator).curator / SCHEMA
            total = epsilon or total_epsilon
            target = table.wanted.stated(table.label or "")
            choice = checked_model(context, choice, target)
            choice.checked_bands(bands)
            _check_before_drafting(choice, target, total, holdout, evaluate_epsilon)
            _check_groups_before_drafting(by, data, header)
            if weights is not None:
                weights.check_label(table.label)
                table = replace(table, leave_out=[*(table.leave_out or ()), weights.column])
            if holdout is None:
                holdout = 0.2 if target is None else 0
            if not resume:
                with output_folder(out, curator=curator, overwrite=overwrite):
                    pass  # what is wrong with the folders is said before the draft is paid for
            if budget is not None and not resume and total:
                _check_both(budget, total, choice)
            resume = draft_first(
                data, header, table, choice.adjacency, seed, schema, total, ledger, stop, resume, measured=bool(holdout)
            )
            epsilon, total_epsilon = None, total
            holdout = holdout or None  # 0: no evaluation
        else:
            table.refuse_all()
        the_schema = _load_schema(schema)
        choice = checked_model(context, choice, the_schema.target)
        cut = choice.checked_bands(bands)
        _check_holdout(the_schema.target, holdout)
        epsilon = _checked_epsilon(epsilon, total_epsilon, the_schema)
        check_paid(the_schema, choice.adjacency)
        recipe = choice.recipe(epsilon, the_schema)
        if weights is not None:
            assert isinstance(recipe, FullCardRecipe)
            recipe = replace(recipe, weight=weights)
        asked = recipe.encoding(the_schema)
        choice.check_most_features(asked)
        spent = epsilon if evaluate_epsilon is None else evaluate_epsilon
        test = HoldOut.of(holdout, spent, group_of(by), asked, weights)
        if test is None and (by is not None or evaluate_epsilon is not None):
            raise ValueError(
                "--by and --evaluate-epsilon are for an evaluation: add --holdout, for example --holdout 0.2"
            )
        page = TREE if choice.model is ModelName.tree else SCORECARD
        with (
            output_folder(out, curator=curator, overwrite=overwrite, resume=resume, page=page) as folder,
            sealed_run(folder.sealed, stop, resume=resume, ledger=budget, note=note, seed=seed) as sealed,
        ):
            with engine_at_work("reading", data):
                whole, groups = _read(asked, open_table(data, header=header), test, sample_rate_of(recipe))
            call = partial(recipe.run, whole)
            if test is not None:
                call = partial(test.fitted, recipe.run, whole, groups, choice.adjacency)
            with _progress(choice) as progress:
                run = release_from(
                    sealed, stop, call, lambda made: folder.write(_banded(made, cut))[0], progress=progress
                )
            run = _banded(run, cut)
            paths = folder.files
        if run.release.total.epsilon > LARGE:
            warn(f"epsilon above {LARGE:g} promises very little: usual values lie between 0.1 and 3")
        if json_output:
            typer.echo(as_json(dict(zip(("release", choice.model.page, "curator"), map(str, paths), strict=True))))
        else:
            _show(run, paths)


def _check_before_drafting(
    choice: ModelOptions,
    target: Target | None,
    total: float | None,
    holdout: float | None,
    evaluate_epsilon: float | None,
) -> None:
    """Raise for options that the fit would refuse, before the draft of the schema is paid for."""
    choice.recipe(1.0 if total is None else total, target=target)
    _check_holdout(target, holdout)
    if holdout:
        parts_of(holdout)
    if evaluate_epsilon is not None:
        promise(evaluate_epsilon, choice.adjacency)


def _check_groups_before_drafting(by: str | None, data: str, header: str | None) -> None:
    """Raise for groups that a drafted schema may not have: which columns it keeps is not known before it is paid for."""
    if by is None:
        return
    column = group_of(by)
    if not isinstance(column, Categories):
        raise ValueError(
            f"--by {by}: a drafted schema may leave this column out: state its public values, as --by {by}=a,b,c, or give "
            "--schema"
        )
    check_columns([column.column], open_table(data, header=header).columns)


def _check_holdout(target: Target | None, holdout: float | None) -> None:
    if target is not None and holdout:
        raise ValueError(
            "--holdout: only models with a yes/no label can be evaluated: leave it out for classes and numbers"
        )


def _checked_epsilon(epsilon: float | None, total: float | None, schema: Schema) -> float:
    """The epsilon of the fit: stated, or what a drafted schema leaves of a total."""
    if epsilon is not None and total is None:
        return epsilon
    if epsilon is not None or total is None:
        raise ValueError(
            "give either --epsilon, of the fit, or --total-epsilon, of a privately drafted schema and the fit"
        )
    left = exact(check_epsilon(total)) - (exact(schema.paid.guarantee.epsilon) if schema.paid is not None else 0)
    if left <= 0:
        raise ValueError(f"--total-epsilon {total:g}: the draft of the schema has spent all of it: use more")
    return at_most(left)


def _check_both(budget: Ledger, epsilon: float, choice: ModelOptions) -> None:
    """Refuse before the draft is paid what could not be paid after it."""
    own = choice.delta or 0.0
    if choice.model is ModelName.scorecard and choice.delta is None:
        own = DEFAULT_DELTA
    drafts = default_delta(1) if budget.budget.release_delta else 0.0
    whole = Guarantee(
        profile_of(epsilon, own + drafts), budget.budget.adjacency, "draft and fit", "none yet", "12", "none"
    )
    budget.budget.check(budget.totals(), whole)


def _read(
    schema: Schema, table: Any, test: HoldOut | None, rate: float
) -> tuple[EncodedTable, tuple[PatternTable | None, ...]]:
    """The table, and its groups."""
    if test is not None and test.column is not None:
        return schema.tables(table, test.column, sample_rate=rate)
    encoded = schema.table(table, sample_rate=rate)
    return encoded, (encoded.table,)


def _banded(run: Run, bands: Bands | None) -> Run:
    """The run with bands of totals, which need no data."""
    return run if bands is None else replace(run, release=run.release.with_bands(bands))


def _progress(choice: ModelOptions) -> AbstractContextManager[Any]:
    if choice.model is ModelName.scorecard:
        return nullcontext()
    if choice.model is ModelName.tree:
        return share_progress(errors)
    return work_progress(errors, "choosing a card", FASTER)


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
    found = run.diagnostics
    said = f"{found.training_records:,} records"
    if "mistakes" in found.quality:
        weighted = "weighted " if "weight" in run.release.setting.get("objective", {}) else ""
        said = f"{weighted}training accuracy {found.training_accuracy:.4f} ({found.mistakes:,} mistakes on {said})"
    lines = [f"{said}, {found.seconds:.2f} s"]
    outside = dict(found.outside_the_schema)
    if run.release.schema is not None:
        outside.pop(run.release.schema.predicted, None)  # every value but the positive one
    lines += outside_lines(outside, f"see {paths[2]}")
    errors.print(Panel(escape("\n".join([NOT_PRIVATE, "", *lines])), title="Curator's diagnostics", border_style="red"))
    for path, words in zip(paths, ("to publish", "to publish", "curator only"), strict=True):
        console.print(f"{escape(str(path))}  [dim]({words})[/dim]", soft_wrap=True)
