"""`privsolve predict` and `privsolve show`: what a release is for."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from privsolve.cards.scorecard import has_card
from privsolve.cards.scoring import MOST_REASONS, added_names, with_predictions
from privsolve.cli.common import as_json, console, engine_at_work, errors, one_line_errors, stoppable, write_out
from privsolve.cli.options import BandsText, Data, Header, Json
from privsolve.data import Schema
from privsolve.data.codes import run
from privsolve.data.columns import MISSING, OTHER
from privsolve.data.duckdb import interruptibly, private_folder
from privsolve.data.tables import open_for_copying
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree, with_tree_predictions
from privsolve.releases import Release
from privsolve.releases.differences import used_columns
from privsolve.safety.folder import load_release

FORMULA = r"^[=+\-@＝＋－＠]"
"""How a text starts that spreadsheets may run as a formula."""

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""Numbers start like that too, and are harmless."""


class CardFormat(StrEnum):
    """How a scorecard is written."""

    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    sql = "sql"
    python = "python"
    javascript = "javascript"
    xlsx = "xlsx"


def predict(
    data: Data,
    release: Annotated[Path, typer.Option(help="The release.json of a fit.")],
    out: Annotated[
        Path, typer.Option(help="CSV or Parquet file to write: the table with what the card says of each row.")
    ],
    max_missing: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Refuse if of a column that is used a larger share of values is missing or unknown."
        ),
    ] = 0.5,
    bands: BandsText = None,
    reasons: Annotated[
        int,
        typer.Option(min=0, max=MOST_REASONS, help="Add so many columns with the answers that raised the total most."),
    ] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    header: Header = None,
    json_output: Json = False,
) -> None:
    """Score a table with a release. Only the columns that it uses are needed; the rows stay in the engine, in their order.

    Values that are missing or unknown to the release are counted on the error stream. A column of the table that is called
    score, risk, prediction, band or reason_1 stays; what is added is then called card_score and so on.

    Spreadsheets run texts that start like a formula (=, +, -, @): in a CSV file such an added text gets an apostrophe.
    """
    with one_line_errors(), stoppable("nothing was written") as stop:
        kind = _kind_of(out, data, overwrite)
        found = _with_bands(load_release(release), bands)
        added = ["score", "prediction"] if isinstance(found.model, DecisionTree) else []
        if added and reasons:
            raise ValueError("--reasons is for scorecards: the path of a tree is its reason")
        added = added or added_names(linear_rule(found), reasons)
        with private_folder(out.absolute().parent) as folder:
            temporary = folder / f"table{kind}"
            with engine_at_work("scoring", data):
                table = open_for_copying(data, folder, header=header)
                names = {name: free_name(name, table.columns) for name in added}
                records, unread = unread_values(table, found)
                check_read(records, unread, found, max_missing)
                result = _predicted(table, found, reasons, names)
                if kind == ".csv":
                    result = result.mutate(**{n: _no_formula(result[n]) for n in names.values() if n in result.columns})
                table.get_backend().raw_sql("SET preserve_insertion_order = true")
                write = result.to_csv if kind == ".csv" else result.to_parquet
                interruptibly(table.get_backend().con, partial(write, str(temporary)))
            stop.let_go()
            os.replace(temporary, out)
            stop.outcome = f"{out} is complete"
        for name, counts in unread.items():
            said = " and ".join(f"{n:,} {fate}" for fate, n in counts.items())
            errors.print(escape(f"{name}: {said} of {records:,} values"), soft_wrap=True)
        added = [name for name in names.values() if name in result.columns and name not in table.columns]
        if json_output:
            typer.echo(as_json({"predictions": str(out), "columns": added, "records": records, "unread": unread}))
        else:
            console.print(f"{escape(str(out))}  [dim](the table with {' and '.join(added)})[/dim]", soft_wrap=True)


def _kind_of(out: Path, data: str, overwrite: bool) -> str:
    """How the name of the file to write ends; raises if it cannot be written."""
    kind = out.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ValueError(f"--out {out}: must end in .csv or .parquet")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out {out}: its folder does not exist; make it first")
    if out.exists() and not overwrite:
        raise ValueError(f"--out {out} is there: choose another name, or add --overwrite")
    if any(out.exists() and out.samefile(part) for part in glob.glob(data)):
        raise ValueError(f"--out {out} is the table itself: choose another name")
    return kind


def _no_formula(label: Any) -> Any:
    """A text that comes from the release file, so that no spreadsheet takes it for a formula."""
    import ibis

    if not label.type().is_string():
        return label
    return ibis.ifelse(label.re_search(FORMULA) & ~label.re_search(NUMBER), ibis.literal("'") + label, label)


def show(
    release: Annotated[Path, typer.Argument(help="The release.json of a fit.")],
    card_format: Annotated[CardFormat, typer.Option("--format", help="How to write the card.")] = CardFormat.text,
    dialect: Annotated[str, typer.Option(help="Of sql: duckdb, sqlite, postgres, tsql, ...")] = "duckdb",
    bands: BandsText = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write to; needed for xlsx.", show_default="print it")
    ] = None,
) -> None:
    """Show a release as a scorecard or a tree: in the terminal, or as Markdown, HTML, JSON or a workbook (xlsx).

    sql is one query on a table called data; python and javascript are functions that need no package. All of them give a
    record what `privsolve predict` gives it.
    """
    with one_line_errors():
        found = _with_bands(load_release(release), bands)
        if card_format is CardFormat.text and out is None:
            console.print(escape(_as_text(found, min(console.width, 100))))
            return
        content = written(found, card_format, dialect)
        if out is not None:
            try:
                out.write_bytes(content if isinstance(content, bytes) else content.encode())
            except OSError as error:
                raise ValueError(f"--out {out} cannot be written: {error.strerror}; choose another file") from None
            console.print(escape(str(out)), soft_wrap=True)
        elif isinstance(content, bytes):
            raise ValueError(f"--format {card_format}: say where to write the file with --out")
        else:
            write_out(content)


def _as_text(release: Release, width: int) -> str:
    """The card, or what the model says of itself where it is none, and the promise."""
    if has_card(release.model):
        return release.card().to_text(width)
    return f"{release.model.describe()}\n\nPrivacy: {release.total.sentence()}"


def written(release: Release, card_format: str, dialect: str = "duckdb") -> str | bytes:
    """The release in a format: what the method `to_...` of its card writes."""
    if card_format == CardFormat.json:
        return release.to_json()
    write: Callable[..., str | bytes] | None = getattr(release.card(), f"to_{card_format}", None)
    if write is None:
        raise ValueError(f"--format {card_format}: is for scorecards; a tree can be written as html or sql")
    return write(dialect) if card_format == CardFormat.sql else write()


def _with_bands(release: Release, bands: str | None) -> Release:
    return release if bands is None else release.with_bands(bands)


def _predicted(table: Any, release: Release, reasons: int, names: Mapping[str, str]) -> Any:
    if isinstance(release.model, DecisionTree):
        return with_tree_predictions(table, release.model, names["score"], names["prediction"])
    return with_predictions(table, linear_rule(release), reasons, names)


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, or if the table has such a column already, one that it does not have."""
    known = {column.casefold() for column in taken}
    more = (f"card_{name}" + (f"_{k}" if k else "") for k in count())
    return next(free for free in chain([name], more) if free not in known)


def unread_values(table: Any, release: Release) -> tuple[int, dict[str, dict[str, int]]]:
    """The number of records, and by column that is used how many values are missing, or unknown to the release."""
    columns = used_columns(release.model)
    if not columns:
        return int(run(table.aggregate(records=table.count()))["records"][0].as_py()), {}
    records, outside = Schema(tuple(columns.values()), intercept=False).unread(table)
    found: dict[str, dict[str, int]] = {}
    for name, fates in outside.items():
        column = columns[name]
        here = {MISSING: fates.get(MISSING, 0)}
        if column.outside.get(OTHER) in column.saying_nothing and getattr(column, "other", None) is None:
            here["unknown"] = fates.get(OTHER, 0)
        if any(here.values()):
            found[name] = {fate: n for fate, n in here.items() if n}
    return records, found


def check_read(records: int, unread: Mapping[str, Mapping[str, int]], release: Release, most: float) -> None:
    """Raise if too many values say nothing; missing ones that have an answer of their own count only if all are missing."""
    columns = used_columns(release.model)
    for name, counts in unread.items():
        column = columns[name]
        answered = isinstance(getattr(column, "missing", None), str) and counts.get(MISSING, 0) < records
        wrong = sum(counts.values()) - (counts.get(MISSING, 0) if answered else 0)
        if wrong > most * records:
            raise ValueError(
                f"column {name!r}: {wrong:,} of {records:,} values are missing or unknown to the release, more than "
                f"--max-missing {most:g} allows: look how the column is written, or raise --max-missing"
            )


def linear_rule(release: Release) -> LinearRule:
    """The release's model, if a table can be scored with it inside its engine."""
    if not isinstance(release.model, LinearRule):
        raise ValueError(
            f"--release: it holds a {release.model.kind}, and only a linear rule or a decision tree can score a table"
        )
    return release.model
