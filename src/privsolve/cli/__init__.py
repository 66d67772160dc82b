"""The command line. Each module here holds the commands of one subject, and is imported when one of them is called.

`--help` need not wait for the numerics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from privsolve._version import __version__
from privsolve.safety.signals import one_command


class Listed(NamedTuple):
    """A command that has not been imported: its module in `privsolve.cli`, its name there, and its line in the help."""

    module: str
    name: str
    summary: str

    def load(self, called: str) -> Any:
        """The command, or group of commands, itself."""
        found: typer.Typer | Callable[..., None] = getattr(import_module(f"privsolve.cli.{self.module}"), self.name)
        if isinstance(found, typer.Typer):
            group = get_group(found)
            group.name = called
            return group
        alone = typer.Typer(add_completion=False)
        paragraphs = inspect.cleandoc(found.__doc__ or "").split("\n\n")
        # lines of a paragraph are joined: the terminal decides where they break
        alone.command(called, help="\n\n".join(" ".join(lines.split()) for lines in paragraphs))(found)
        return get_command(alone)


COMMANDS = {
    "fit": Listed("fit", "fit", "From a table to a model with its page, under differential privacy."),
    "predict": Listed("predict", "predict", "Score a table with a release."),
    "evaluate": Listed("evaluate", "evaluate", "How good a release is on a table, privately."),
    "show": Listed("predict", "show", "Show a release as a scorecard or a tree."),
    "compare": Listed("compare", "compare", "Compare models on the curator's own records; not to be published."),
    "diff": Listed("compare", "diff", "What changed between two releases, for whom."),
    "plan": Listed("plan", "plan", "What a release may cost at most, with probability 0.95."),
    "schema": Listed("schema", "app", "Say what is public about a table."),
    "budget": Listed("budget", "app", "Privacy budgets on disk: one ledger per data set."),
    "audit": Listed(
        "audit", "audit", "Attack every mechanism on neighbouring data: claimed against measured privacy loss."
    ),
    "solvers": Listed("audit", "solvers", "Which oracles there are, which solvers are installed."),
    "reproduce": Listed("reproduce", "app", "The paper's experiments."),
    "demo": Listed("reproduce", "demo", "The Adult data: a quick comparison of all methods, and a private scorecard."),
}


class LazyGroup(TyperGroup):
    """The commands, in their order."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A stand-in, which has the line of the help."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name].summary) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, imported."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None or found is None else COMMANDS[name].load(name), rest


HELP = """Readable models under differential privacy: from a table to a page.

Examples:

privsolve fit patients.csv --label died --positive yes --epsilon 1 --out out

privsolve predict new.csv --release out/release.json --out scored.csv

privsolve show out/release.json --format sql
"""

app = typer.Typer(
    help=HELP,
    cls=LazyGroup,
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
