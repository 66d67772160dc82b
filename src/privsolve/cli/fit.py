"""`privsolve fit`: from a table to a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from privsolve.cards.words import badge, privacy_warnings
from privsolve.cli.common import (
    as_json,
    console,
    engine_at_work,
    one_line_errors,
    show_curators,
    show_paths,
    somebody_reads,
    stoppable,
    warn,
)
from privsolve.cli.drafting import Draft, TableOptions, show_left_out
from privsolve.cli.options import (
    EXPERT,
    OUTPUT,
    PRIVACY,
    TABLE,
    BandsText,
    Counting,
    Data,
    Header,
    Json,
    ModelName,
    ModelOptions,
    Releasing,
    checked_model,
    option,
    with_options,
)
from privsolve.cli.releasing import progress_line, release_from, sealed_run
from privsolve.data import Categories, Schema
from privsolve.data.columns.label import Target
from privsolve.data.private import DRAFT_SHARE, default_delta
from privsolve.data.reading import check_columns
from privsolve.data.tables import open_table
from privsolve.errors import PrivacyWarning
from privsolve.evaluation.measure import promise
from privsolve.evaluation.split import parts_of
from privsolve.evaluation.words import rare_line, records_in_words, useless
from privsolve.learn.base import check_paid
from privsolve.learn.evaluating import HoldOut, read_groups
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.learn.recipe import sample_rate_of
from privsolve.models.bands import Bands
from privsolve.models.full_card import FullCard
from privsolve.models.linear import decision_words
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import profile_of
from privsolve.releases import Release, Run
from privsolve.safety.folder import SCORECARD, SEALED, TREE, Folder
from privsolve.safety.signals import Stop

LARGE = 10.0
"""From this epsilon on a fit warns: the bound on what a release gives away is then a factor of 22,000."""

SCHEMA = "schema.toml"
"""The drafted schema in the curator's folder. It may be published: the release holds it too."""

MOST_COLUMNS = 8
"""So many columns are listed with what falls outside their schema."""


@with_options(table=TableOptions, choice=ModelOptions, running=Releasing, counting=Counting)
def fit(
    context: typer.Context,
    data: Data,
    *,
    table: TableOptions,
    out: Annotated[Path, option(OUTPUT, "Folder for the release, to publish as a whole.")],
    epsilon: Annotated[float, option(PRIVACY, "Privacy budget of everything the command does.")],
    choice: ModelOptions,
    schema: Annotated[
        Path | None,
        option(
            TABLE,
            "Schema file: what is public about the table.",
            show_default="drafted privately from the records",
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        option(
            PRIVACY,
            "Randomly hold out this share of the records and evaluate on them privately.",
            show_default="0.2 without --schema",
        ),
    ] = None,
    running: Releasing,
    evaluate_epsilon: Annotated[
        float | None,
        option(EXPERT, "Of the evaluation on held-out records.", show_default="that of the fit"),
    ] = None,
    counting: Counting,
    bands: BandsText = None,
    header: Header = None,
    yes: Annotated[bool, option(EXPERT, "Do not ask, in a terminal.", "--yes")] = False,
    json_output: Json = False,
) -> None:
    """From a table to a model with its page, under differential privacy.

    Example: privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

    Without a schema one is drafted privately, and a fifth of the records is held out to measure the model. What must not be
    published goes to a folder of its own.
    """
    with one_line_errors(), _plain_warnings(), stoppable() as stop:
        weights = counting.weights(data, header, table.decimal)
        if schema is None:
            choice = checked_model(context, choice, target := table.several())
            choice.checked_bands(bands)
            if weights is not None:
                weights.check_label(table.label)
                table = replace(table, leave_out=[*(table.leave_out or ()), weights.column])
            if holdout is None:
                holdout = 0.2 if target is None else 0
            share = at_most(exact(DRAFT_SHARE) * exact(check_epsilon(epsilon)))
            draft = Draft(data, header, table, share, None, choice.adjacency, running.no_delta)
            _check_before_drafting(draft, choice, epsilon, holdout, evaluate_epsilon, counting, running)
            if not running.resume:
                with running.folder(out):
                    pass  # what is wrong with the folders is said before the draft is paid for
            schema = Folder.of(out, running.curator).curator / SCHEMA
            running = _draft_first(draft, epsilon, schema, running, stop, yes, bool(holdout))
            if (paid := Schema.load(schema).paid) is not None:
                epsilon = at_most(exact(epsilon) - exact(paid.guarantee.epsilon))
            holdout = holdout or None  # 0: no evaluation
        else:
            table.refuse_all()
        if not schema.is_file():
            raise ValueError(f"--schema {schema}: no such file; make one with `privsolve schema draft`")
        the_schema = Schema.load(schema)
        choice = checked_model(context, choice, the_schema.target)
        cut = choice.checked_bands(bands)
        _check_holdout(the_schema.target, holdout)
        check_paid(the_schema, choice.adjacency)
        recipe = choice.recipe(epsilon, the_schema)
        if weights is not None:
            assert isinstance(recipe, FullCardRecipe)
            recipe = replace(recipe, weight=weights)
        asked = recipe.encoding(the_schema)
        choice.check_most_features(asked)
        spent = epsilon if evaluate_epsilon is None else evaluate_epsilon
        test = HoldOut.of(holdout, spent, counting.column, asked, weights)
        if test is None and (counting.by is not None or evaluate_epsilon is not None):
            raise ValueError(
                "--by and --evaluate-epsilon are for an evaluation: add --holdout, for example --holdout 0.2"
            )
        page = TREE if choice.model is ModelName.tree else SCORECARD
        with running.folder(out, page) as folder, sealed_run(folder.sealed, stop, running) as sealed:
            with engine_at_work("reading", data):
                column = None if test is None else test.column
                whole, groups = read_groups(asked, open_table(data, header=header), column, rate=sample_rate_of(recipe))
            call = partial(recipe.run, whole)
            if test is not None:
                call = partial(test.fitted, recipe.run, whole, groups, choice.adjacency)
            hint = "fewer --max-features are faster; " if choice.model is ModelName.short else ""
            with nullcontext() if choice.model is ModelName.scorecard else progress_line(hint) as progress:
                run = release_from(
                    sealed, stop, call, lambda made: folder.write(_banded(made, cut))[0], progress=progress
                )
            run = _banded(run, cut)
            paths = folder.files
        if run.release.total.epsilon > LARGE:
            warn(f"epsilon above {LARGE:g} promises very little: usual values lie between 0.1 and 3")
        if json_output:
            kinds = ("release", "tree" if page == TREE else "scorecard", "curator")
            typer.echo(as_json(dict(zip(kinds, map(str, paths), strict=True))))
        else:
            _show(run, paths)


def _check_before_drafting(
    draft: Draft,
    choice: ModelOptions,
    total: float,
    holdout: float | None,
    evaluate_epsilon: float | None,
    counting: Counting,
    running: Releasing,
) -> None:
    """Raise for what the fit would refuse or could not pay, before the draft of the schema is paid for."""
    target, budget = draft.table.several(), running.budget
    recipe = choice.recipe(total, target=target)
    _check_holdout(target, holdout)
    if holdout:
        parts_of(holdout)
    if evaluate_epsilon is not None:
        promise(evaluate_epsilon, choice.adjacency)
    if (by := counting.by) is not None:  # which columns the draft keeps is not known yet
        column = counting.column
        if not isinstance(column, Categories):
            raise ValueError(
                f"--by {by}: a drafted schema may leave this column out: state its public values, as --by {by}=a,b,c, or "
                "give --schema"
            )
        check_columns([column.column], open_table(draft.data, header=draft.header).columns)
    if budget is not None and not running.resume:
        delta = getattr(recipe, "delta", 0.0) + (0.0 if running.no_delta else default_delta(1))
        both = profile_of(total, delta)
        whole = Guarantee(both, budget.budget.adjacency, "draft and fit", "none yet", "12", "none")
        budget.budget.check(budget.totals(), whole)


def _check_holdout(target: Target | None, holdout: float | None) -> None:
    if target is not None and holdout:
        raise ValueError(
            "--holdout: only models with a yes/no label can be evaluated: leave it out for classes and numbers"
        )


def _banded(run: Run, bands: Bands | None) -> Run:
    """The run with bands of totals, which need no data."""
    return run if bands is None else replace(run, release=run.release.with_bands(bands))


def _draft_first(
    draft: Draft, total: float, place: Path, running: Releasing, stop: Stop, yes: bool, measured: bool
) -> Releasing:
    """Draft the schema into its place, unless an interrupted run has done so; how the fit after it runs."""
    if place.exists():
        if running.resume:
            return replace(running, resume=place.with_name(SEALED).exists())
        raise ValueError(
            f"{place} is there from an earlier draft of these records, which was paid for: use it with --schema {place}, "
            "or delete it"
        )
    console.print(
        f"Plan: {DRAFT_SHARE:.0%} of epsilon {total:g} drafts a schema; the rest fits the model"
        + (" and measures it on records that are held out." if measured else "."),
        soft_wrap=True,
    )
    if somebody_reads() and not yes and not typer.confirm("Go on?", default=True):
        raise ValueError("stopped at the plan: nothing was read or spent")
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with engine_at_work("reading", draft.data):
        found = draft.write(place, stop, replace(running, note=None))
    show_left_out(found.left_out)
    return replace(running, resume=False)


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
        for line in _summary(run.release):
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
    show_curators(lines)
    show_paths(paths)


def _summary(release: Release) -> list[str]:
    """What the model is, how good it is, and what it cost; warnings come first."""
    lines = [f"WARNING: {text}" for text in privacy_warnings(release.total)]
    evaluation = release.evaluation
    if evaluation is not None and (bad := useless(evaluation)) is not None:
        lines.append(bad)
    schema = release.schema
    assert schema is not None
    yes, _ = decision_words(schema)
    asked = "1 question" if len(schema.columns) == 1 else f"{len(schema.columns)} questions"
    lines.append(f"Full scorecard for {yes}: {asked}, points for every answer, a risk for every total.")
    if evaluation is not None:
        lines.append(
            f"How good it is, on {records_in_words(evaluation)} that were held out: area under the ROC curve "
            f"{evaluation.auc.percent()}, decisions that are right {evaluation.accuracy.percent()}."
        )
        if (rare := rare_line(evaluation)) is not None:
            lines.append(rare)
    lines.append(f"Privacy of all of it: {badge(release.total)}, {release.total.adjacency.words}.")
    return lines


def outside_lines(outside: Mapping[str, Mapping[str, int]], where: str) -> list[str]:
    """How many values fell outside the schema, of the columns with most of them first."""
    more = len(outside) - MOST_COLUMNS
    listed = list(outside) if more <= 0 else sorted(outside, key=lambda name: -sum(outside[name].values()))
    said = {name: ", ".join(f"{count:,} {fate}" for fate, count in outside[name].items()) for name in listed}
    lines = [f"{name}: {words}" for name, words in said.items()]
    return lines if more <= 0 else [*lines[:MOST_COLUMNS], f"and {more} more columns, {where}"]
