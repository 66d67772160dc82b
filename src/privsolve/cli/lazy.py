"""A group of commands that imports only the one that is called: `--help` need not wait for the numerics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


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


def lazy_group(commands: dict[str, Listed]) -> type[TyperGroup]:
    """A class of groups with these commands, in this order."""

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return TyperCommand(cmd_name, help=commands[cmd_name].summary) if cmd_name in commands else None

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, found, rest = super().resolve_command(ctx, args)
            return name, found if name is None or found is None else commands[name].load(name), rest

    return LazyGroup
