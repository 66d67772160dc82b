"""The command line. Each module here holds the commands of one subject; `app` puts them together."""

from __future__ import annotations

from typing import Annotated

import typer

from privsolve._version import __version__
from privsolve.cli import audit, budget, demo, fit, plan, predict, reproduce, schema, solvers

app = typer.Typer(
    help="Choose the best simple model under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privsolve {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Choose the best simple model under differential privacy."""


app.command()(fit.fit)
app.command()(predict.predict)
app.command()(predict.show)
app.command()(plan.plan)
app.add_typer(schema.app, name="schema")
app.add_typer(budget.app, name="budget")
app.command()(audit.audit)
app.command()(solvers.solvers)
app.add_typer(reproduce.app, name="reproduce")
app.command()(demo.demo)
