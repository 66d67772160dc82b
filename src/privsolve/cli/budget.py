"""`privsolve budget`: the ledger of a data set, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from privsolve.cli.common import console, one_line_errors
from privsolve.privacy.decimals import at_least, at_most
from privsolve.privacy.ledger import Entry, Ledger

app = typer.Typer(help="Privacy budgets on disk: one ledger per data set.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The ledger's file.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]

OUTCOME_NOTE = (
    "Every payment counts, whatever became of it. Outcomes are the curator's, not private: spent means still running, "
    "interrupted, or waiting for a retry."
)


@app.command()
def init(
    file: File,
    epsilon: Annotated[float, typer.Option(help="Epsilon of all releases together.", show_default=False)],
    delta: Annotated[float, typer.Option(help="Delta of all releases together.")] = 0.0,
    adjacency: Annotated[str, typer.Option(help="replace, or add-remove.")] = "replace",
    dataset: Annotated[str, typer.Option(help="What the budget is for, in words.")] = "",
    composition_delta: Annotated[
        float | None,
        typer.Option(help="Part of delta that pays for composition; the rest is for releases.", show_default="half"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a ledger with nothing spent; an existing file is never replaced."""
    with one_line_errors():
        ledger = Ledger.create(
            file, epsilon, delta, adjacency=adjacency, dataset=dataset, composition_delta=composition_delta
        )
        _show(ledger, as_json)


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """What may be spent, what has been spent, and what the next release may ask for."""
    with one_line_errors():
        _show(Ledger.open(file), as_json)


@app.command()
def history(file: File, as_json: AsJson = False) -> None:
    """Every payment, oldest first."""
    with one_line_errors():
        entries = Ledger.open(file).history()
    if as_json:
        typer.echo(json.dumps([_entry_values(entry) for entry in entries], indent=2))
        return
    table = Table(title="Payments", caption=OUTCOME_NOTE if entries else "Nothing has been spent.")
    for name in ("", "spent at", "epsilon", "delta", "what for", "outcome"):
        table.add_column(name, justify="right" if name in ("", "epsilon", "delta") else "left")
    for entry in entries:
        g = entry.guarantee
        facts = (("not proved", not g.proved), ("seeded", g.seeded))
        marks = [word for word, holds in facts if holds]
        mechanism = f"{g.mechanism}, {g.noise}" + (f" ({', '.join(marks)})" if marks else "")
        table.add_row(
            str(entry.number),
            entry.spent_at[:16].replace("T", " "),
            f"{g.epsilon:.12g}",
            f"{g.delta:.6g}",
            escape("\n".join(filter(None, (entry.note, mechanism)))),
            entry.outcome,
        )
    console.print(table)


@app.command()
def accept(file: File, as_json: AsJson = False) -> None:
    """Take this ledger for the latest, when its mark or the latest file is lost; then spend again for what is missing in it."""
    with one_line_errors():
        _show(Ledger.accept(file), as_json)


def _show(ledger: Ledger, as_json: bool) -> None:
    values = _budget_values(ledger)
    if as_json:
        typer.echo(json.dumps(values, indent=2))
        return
    budget, spent, left = values["budget"], values["spent"], values["remaining"]
    table = Table(title=f"Privacy budget: {escape(ledger.dataset)}" if ledger.dataset else "Privacy budget")
    for name in ("", "budget", "spent", "next release at most"):
        table.add_column(name, justify="left" if not name else "right")
    most = f"{left['epsilon']:.6g}\n{left['epsilon_exponential']:.6g} (exponential mechanism)"
    table.add_row("epsilon", f"{budget['epsilon']:.12g}", f"{spent['epsilon']:.12g}", most)
    deltas = (budget["release_delta"], spent["delta"], left["delta"])
    table.add_row("delta of releases", *(f"{delta:.6g}" for delta in deltas))
    if budget["rho"]:
        table.add_row("rho", f"{budget['rho']:.6g}", f"{spent['rho']:.6g}", "")
        table.caption = "The sum of the epsilons may exceed the budget while the sum of the rhos does not."
    console.print(table)
    releases = "1 release" if spent["releases"] == 1 else f"{spent['releases']} releases"
    console.print(Panel(values["promise"], title=releases, border_style="green"))


def _budget_values(ledger: Ledger) -> dict[str, Any]:
    budget, totals = ledger.budget, ledger.totals()
    remaining = budget.remaining(totals)
    promise = (
        f"All releases paid from this ledger, past and future, are together ({budget.epsilon:g}, {budget.delta:g})-DP "
        f"for {budget.adjacency.words}."
    )
    return {
        "dataset": ledger.dataset,
        "adjacency": budget.adjacency,
        "budget": {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "composition_delta": budget.composition_delta,
            "release_delta": at_most(budget.release_delta),
            "rho": budget.rho_limit,
        },
        "spent": {
            "epsilon": at_least(totals.epsilon),
            "delta": at_least(totals.delta),
            "rho": at_least(totals.rho),
            "releases": totals.releases,
            "not_proved": totals.unproved,
            "seeded": totals.seeded,
            "negligible": at_least(totals.negligible),
        },
        "remaining": {
            "epsilon": remaining.epsilon,
            "epsilon_exponential": remaining.exponential,
            "delta": remaining.delta,
        },
        "promise": f"{promise} Except: {caveat}." if (caveat := totals.caveat()) else promise,
    }


def _entry_values(entry: Entry) -> dict[str, Any]:
    plain = {name: getattr(entry, name) for name in ("number", "spent_at", "outcome", "note")}
    return plain | {"guarantee": entry.guarantee.to_dict()}
