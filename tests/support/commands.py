"""The command line as tests call it."""

from __future__ import annotations

import shlex

from typer.testing import CliRunner, Result

from privsolve.cli import app


def run(command: str, *more: object) -> Result:
    """A command and its options as somebody would type them; more of them follow one by one."""
    return CliRunner().invoke(app, [*shlex.split(command), *map(str, more)])
