"""The command line. Each module here holds the commands of one subject; `app` puts them together."""

from __future__ import annotations

from typing import Annotated

import typer

from privsolve._version import __version__
from privsolve.cli.lazy import Listed, lazy_group
from privsolve.safety.signals import one_command

COMMANDS = {
    "fit": Listed("fit", "fit", "From a table to a model with its page, under differential privacy."),
    "predict": Listed("predict", "predict", "Score a table with a release."),
    "evaluate": Listed("evaluate", "evaluate", "How good a release is on a table, privately."),
    "show": Listed("predict", "show", "Show a release as a scorecard or a tree."),
    "compare": Listed("compare", "compare", "Compare models on the curator's own records; not to be published."),
    "diff": Listed("diff", "diff", "What changed between two releases, for whom."),
    "plan": Listed("plan", "plan", "What a release may cost at most, with probability 0.95."),
    "schema": Listed("schema", "app", "Say what is public about a table."),
    "budget": Listed("budget", "app", "Privacy budgets on disk: one ledger per data set."),
    "audit": Listed(
        "audit", "audit", "Attack every mechanism on neighbouring data: claimed against measured privacy loss."
    ),
    "solvers": Listed("solvers", "solvers", "Which oracles there are, which solvers are installed."),
    "reproduce": Listed("reproduce", "app", "The paper's experiments."),
    "demo": Listed("demo", "demo", "The Adult data: a quick comparison of all methods, and a private scorecard."),
}

HELP = """Readable models under differential privacy: from a table to a page.

Examples:

privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

privsolve predict new.csv --release out/release.json --out scored.csv

privsolve show out/release.json --format sql
"""

app = typer.Typer(
    help=HELP,
    cls=lazy_group(COMMANDS),
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
    """The options of all commands."""


def run(arguments: list[str] | None = None) -> None:
    """The program `privsolve`: one command, then the process ends."""
    one_command()
    app(arguments)
