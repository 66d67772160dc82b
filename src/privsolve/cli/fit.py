"""`privsolve fit`: from a table to a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
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
    Data,
    Header,
    Json,
    Measuring,
    ModelName,
    ModelOptions,
    Releasing,
    checked_model,
    option,
    with_options,
)
from privsolve.cli.releasing import progress_line, release_from, sealed_run
from privsolve.data import Categories, EncodedTable, Schema
from privsolve.data.private import DRAFT_SHARE, default_delta
from privsolve.data.reading import check_columns
from privsolve.data.tables import open_table
from privsolve.data.weights import Weight
from privsolve.errors import PrivacyWarning
from privsolve.evaluation.measure import promise
from privsolve.evaluation.split import parts_of
from privsolve.evaluation.words import rare_line, records_in_words, useless
from privsolve.learn.base import check_paid
from privsolve.learn.evaluating import read_groups
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
from privsolve.safety.folder import RELEASE, SCORECARD, SEALED, TREE, Folder
from privsolve.safety.sealed import is_begun
from privsolve.safety.signals import Stop

LARGE_DELTA = 1e-3
"""From this delta on a fit warns: with that probability the guarantee may fail altogether."""

LARGE = 10.0
"""From this epsilon on a fit warns: the bound on what a release gives away is then a factor of 22,000."""

SCHEMA = "schema.toml"
"""The drafted schema in the curator's folder. It may be published: the release holds it too."""

MOST_COLUMNS = 8
"""So many columns are listed with what falls outside their schema."""


@with_options(table=TableOptions, choice=ModelOptions, running=Releasing, measuring=Measuring)
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
            TABLE, "Schema file: what is public about the table.", show_default="drafted privately from the records"
        ),
    ] = None,
    running: Releasing,
    measuring: Measuring,
    bands: BandsText = None,
    header: Header = None,
    yes: Annotated[bool, option(EXPERT, "Do not ask, in a terminal.", "--yes")] = False,
    json_output: Json = False,
) -> None:
    """From a table to a model with its page, under differential privacy.

    Example: privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

    Without a schema one is drafted privately, and a fifth of the records is held out to measure a model of a yes/no label.
    What must not be published goes to a folder of its own.
    """
    with one_line_errors(), _plain_warnings(), stoppable() as stop:
        running.check_note()
        wanted = _Fit(data, header, epsilon, choice, measuring, running, measuring.weights(data, header, table.decimal))
        if schema is None:
            wanted = replace(wanted, choice=checked_model(context, choice, table.several()))
            wanted.choice.checked_bands(bands)
            schema = Folder.of(out, running.curator).curator / SCHEMA
            wanted = _draft_first(wanted, table, out, schema, stop, yes)
        else:
            table.refuse_all()
        if not schema.is_file():
            raise ValueError(f"--schema {schema}: no such file; make one with `privsolve schema draft`")
        the_schema = Schema.load(schema)
        wanted = replace(wanted, choice=checked_model(context, wanted.choice, the_schema.target))
        run, paths, whole = _release(wanted, the_schema, wanted.choice.checked_bands(bands), out, stop)
        if run.release.total.epsilon > LARGE:
            warn(f"epsilon above {LARGE:g} promises very little: usual values lie between 0.1 and 3")
        if run.release.total.delta > LARGE_DELTA:
            warn(
                f"delta={run.release.total.delta:g} promises very little: keep it far below one over the number of records"
            )
        if json_output:
            kinds = ("release", "tree" if paths[1].name == TREE else "scorecard", "curator")
            typer.echo(as_json(dict(zip(kinds, map(str, paths), strict=True))))
        else:
            _show(run, paths, whole)


@dataclass(frozen=True)
class _Fit:
    """A table, and how it is fitted, evaluated and paid for."""

    data: str
    header: str | None
    epsilon: float
    choice: ModelOptions
    measuring: Measuring
    running: Releasing
    weights: Weight | None


def _release(
    wanted: _Fit, schema: Schema, bands: Bands | None, out: Path, stop: Stop
) -> tuple[Run, list[Path], EncodedTable]:
    """Check everything, pay, fit, evaluate and write; the run, the files of its folder, and the table."""
    choice, running, data = wanted.choice, wanted.running, wanted.data
    wanted.measuring.check_target(schema.target)
    check_paid(schema, choice.adjacency)
    recipe = choice.recipe(wanted.epsilon, schema)
    if wanted.weights is not None:
        assert isinstance(recipe, FullCardRecipe)
        recipe = replace(recipe, weight=wanted.weights)
    asked = recipe.encoding(schema)
    choice.check_most_features(asked)
    test = wanted.measuring.hold_out(asked, wanted.epsilon, wanted.weights)
    page = TREE if choice.model is ModelName.tree else SCORECARD
    with running.folder(out, page) as folder, sealed_run(folder.sealed, stop, running) as sealed:
        with engine_at_work("reading", data):
            column = None if test is None else test.column
            whole, groups = read_groups(
                asked, open_table(data, header=wanted.header), column, rate=sample_rate_of(recipe)
            )
        call = partial(recipe.run, whole)
        if test is not None:
            call = partial(test.fitted, recipe.run, whole, groups, choice.adjacency)
        hint = "fewer --max-features are faster; " if choice.model is ModelName.short else ""
        with nullcontext() if choice.model is ModelName.scorecard else progress_line(hint) as progress:
            run = release_from(
                sealed, stop, call, lambda made: folder.write(_banded(made, bands))[0], progress=progress
            )
        return _banded(run, bands), folder.files, whole


def _draft_first(wanted: _Fit, table: TableOptions, out: Path, place: Path, stop: Stop, yes: bool) -> _Fit:
    """Draft the schema into its place, unless an interrupted run has done so; the fit with what is left of epsilon."""
    choice, running, total = wanted.choice, wanted.running, wanted.epsilon
    left_out = [*(table.leave_out or ()), *(choice.exclude or ())]
    if wanted.weights is not None:
        wanted.weights.check_label(table.label)
        left_out.append(wanted.weights.column)
    table = replace(table, leave_out=left_out)
    if wanted.measuring.holdout is None:
        wanted = replace(wanted, measuring=replace(wanted.measuring, holdout=0.2 if table.several() is None else 0))
    share = at_most(exact(DRAFT_SHARE) * exact(check_epsilon(total)))
    draft = Draft(wanted.data, wanted.header, table, share, None, choice.adjacency, running.no_delta)
    _check_before_drafting(draft, wanted)
    if not running.resume:
        with running.folder(out):
            pass  # what is wrong with the folders is said before the draft is paid for
    if not place.exists():
        _write_draft(draft, total, place, wanted, stop, yes)
        running = replace(running, resume=False)
    elif running.resume:
        running = replace(running, resume=is_begun(place.with_name(SEALED)))
        if not running.resume and (out / RELEASE).exists():
            raise ValueError(
                f"--resume: {out / RELEASE} is complete; for another fit with its schema use --schema {place}"
            )
    else:
        raise ValueError(
            f"{place} is there from an earlier run: use it with --schema {place} and the epsilon that is left for the fit, "
            "go on with that run by --resume, or delete it"
        )
    stop.outcome = f"{place} is drafted, no model is released: the same command with --resume goes on"
    schema = Schema.load(place)
    if schema.paid is not None:
        total = at_most(exact(total) - exact(schema.paid.guarantee.epsilon))
    measuring = replace(wanted.measuring, holdout=wanted.measuring.holdout or None)  # 0: no evaluation
    return replace(wanted, epsilon=total, running=running, measuring=measuring, choice=choice.on_drafted(schema))


def _write_draft(draft: Draft, total: float, place: Path, wanted: _Fit, stop: Stop, yes: bool) -> None:
    """Say what will be done, ask a person who can answer, draft the schema and write it."""
    drafts = f"{DRAFT_SHARE:.0%} of epsilon {total:g} drafts a schema; the rest"
    if draft.asks_nothing:
        drafts = f"the names of the columns say what is asked, and all of epsilon {total:g}"
    measures = " and measures it on records that are held out." if wanted.measuring.holdout else "."
    console.print(f"Plan: {drafts} fits the model{measures}", soft_wrap=True)
    if somebody_reads() and not yes and not typer.confirm("Go on?", default=True):
        raise ValueError("stopped at the plan: nothing was read or spent")
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with engine_at_work("reading", draft.data):
        found = draft.write(place, stop, replace(wanted.running, note=None))
    show_left_out(found.left_out)


def _check_before_drafting(draft: Draft, wanted: _Fit) -> None:
    """Raise for what the fit would refuse or could not pay, before the draft of the schema is paid for."""
    target, measuring, running = draft.table.several(), wanted.measuring, wanted.running
    recipe = wanted.choice.recipe(wanted.epsilon, target=target)
    measuring.check_target(target)
    if measuring.holdout:
        parts_of(measuring.holdout)
    if measuring.evaluate_epsilon is not None:
        promise(measuring.evaluate_epsilon, wanted.choice.adjacency)
        measuring.check_epsilon(exact(wanted.epsilon) - exact(draft.epsilon))
    check_columns(wanted.choice.constraints.names, draft.opened.columns)
    if (by := measuring.by) is not None:  # which columns the draft keeps is not known yet
        column = measuring.column
        if not isinstance(column, Categories):
            raise ValueError(
                f"--by {by}: a drafted schema may leave this column out: state its public values, as --by {by}=a,b,c, or "
                "give --schema"
            )
        check_columns([column.column], draft.opened.columns)
    if (budget := running.budget) is not None and not running.resume:
        delta = getattr(recipe, "delta", 0.0) + (0.0 if running.no_delta else default_delta(1))
        both = profile_of(wanted.epsilon, delta)
        whole = Guarantee(both, budget.budget.adjacency, "draft and fit", "none yet", "12", "none")
        budget.budget.check(budget.totals(), whole)


def _banded(run: Run, bands: Bands | None) -> Run:
    """The run with bands of totals, which need no data."""
    return run if bands is None else replace(run, release=run.release.with_bands(bands))


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


def _show(run: Run, paths: list[Path], table: EncodedTable) -> None:
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
    outside, label = dict(found.outside_the_schema), table.schema.label
    if label is not None:
        outside.pop(label.column, None)  # every value but the positive one
        lines.append(f"{label.column}: {int(table.table.positives.sum()):,} of {table.table.n:,} records are positive")
    lines += outside_lines(outside, f"see {paths[2]}")
    if table.unreadable:
        names = ", ".join(table.unreadable)
        lines.append(f"No value of {names} is in the schema: correct it there, or leave the question out.")
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
