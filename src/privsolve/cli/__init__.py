"""The command line. Each module here holds the commands of one subject; `app` puts them together."""

from __future__ import annotations

import typer

from privsolve.cli import demo, solvers

app = typer.Typer(
    help="Choose the best simple model under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Choose the best simple model under differential privacy."""


app.command()(demo.demo)
app.command()(solvers.solvers)
