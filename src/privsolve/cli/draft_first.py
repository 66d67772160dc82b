"""`privsolve fit` without a schema: a private draft comes first, and can be resumed on its own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from privsolve.cli.common import console, somebody_reads
from privsolve.cli.drafting import PrivateOptions, Use, Wanted
from privsolve.cli.engine import engine_at_work
from privsolve.cli.option_groups import EXPERT, TABLE
from privsolve.cli.options import Classes, Negative, Positive, Target
from privsolve.cli.schema import drafted_privately
from privsolve.data import About
from privsolve.data.private import DRAFT_SHARE
from privsolve.data.tables import decimal_sign
from privsolve.safety.signals import Stop

SCHEMA = "schema.toml"
"""The drafted schema in the curator's folder. It may be published: the release holds it too."""


@dataclass(frozen=True)
class TableOptions:
    """What is said on the command line about a table without a schema."""

    label: Annotated[
        str | None, typer.Option(help="The column to predict; a schema file names it.", rich_help_panel=TABLE)
    ] = None
    positive: Positive = None
    negative: Negative = None
    classes: Classes = None
    target: Target = None
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Columns not to use, with commas between them.", rich_help_panel=TABLE)
    ] = None
    numbers: Annotated[
        list[str] | None, typer.Option(help="Columns that are known to hold numbers.", rich_help_panel=EXPERT)
    ] = None
    texts: Annotated[
        list[str] | None, typer.Option(help="Columns that are known to hold texts.", rich_help_panel=EXPERT)
    ] = None

    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="A value that stands for no value, such as -999; NA, NULL, ? and the like always do.",
            rich_help_panel=EXPERT,
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            help="Sign before decimals, '.' or ','.",
            show_default="',' in files with semicolons, else '.'",
            rich_help_panel=EXPERT,
        ),
    ] = None

    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, in a terminal.", rich_help_panel=EXPERT)] = False

    @property
    def wanted(self) -> Wanted:
        """What the label says; raises unless it is stated."""
        if self.label is None or (self.positive is None and self.classes is None and self.target is None):
            raise ValueError(
                "--label and --positive: name the column to predict and its positive value, for example --label died "
                "--positive yes (or --classes, or --target); or give --schema"
            )
        return Wanted(self.positive, self.negative, self.classes, self.target)

    def refuse_all(self) -> None:
        """Raise for any of them: a schema file says it."""
        for field in fields(self):
            if field.name != "yes" and getattr(self, field.name):
                raise ValueError(f"--{field.name.replace('_', '-')}: the schema file says that: leave it out")


def draft_first(
    data: str,
    header: str | None,
    table: TableOptions,
    adjacency: str,
    seed: int | None,
    place: Path,
    epsilon: float | None,
    ledger: Path | None,
    stop: Stop,
    resume: bool,
    measured: bool = True,
) -> bool:
    """Draft the schema into its place, unless an interrupted run has done so.

    Args:
        data, header, table, adjacency, seed: as `privsolve fit` has them.
        place: of the schema file.
        epsilon: the budget of everything; a public share of it pays for the draft.
        ledger: the ledger file that pays, if there is one.
        stop: from `stoppable`.
        resume: whether an interrupted run goes on.
        measured: whether records are held out to measure the model.

    Returns:
        Whether the fit after it is to be resumed.

    Raises:
        ValueError: if the label, its positive value or the budget is not stated.
    """
    wanted = table.wanted
    assert table.label is not None
    if epsilon is None:
        raise ValueError("--epsilon: state the privacy budget of everything, for example --epsilon 1")
    if place.exists():
        if resume:
            return place.with_name("run.sealed").exists()
        raise ValueError(
            f"{place} is there from an earlier draft of these records, which was paid for: use it with --schema {place}, "
            "or delete it"
        )
    use = Use.of(None, table.leave_out, table.numbers, table.texts, table.missing)
    decimal = table.decimal or decimal_sign(data, header)
    options = PrivateOptions.of(None, epsilon, None, wanted, None, [], use, decimal, adjacency, ledger, seed)
    console.print(
        f"Plan: {DRAFT_SHARE:.0%} of epsilon {epsilon:g} drafts a schema; the rest fits the model"
        + (" and measures it on records that are held out." if measured else "."),
        soft_wrap=True,
    )
    if somebody_reads() and not table.yes and not typer.confirm("Go on?", default=True):
        raise ValueError("stopped at the plan: nothing was read or spent")
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with engine_at_work("reading", data):
        found = drafted_privately(data, header, table.label, options, About(), place, stop, resume)
    for name, reason in found.left_out.items():
        console.print(f"Left out {escape(name)}: {escape(reason)}", soft_wrap=True)
    return False
