"""The command line as tests call it."""

import shlex

from typer.testing import CliRunner, Result

from privsolve.cli import app


def run(command: str, *more: object, typed: str | None = None) -> Result:
    """A command and its options as somebody would type them; more of them follow one by one."""
    return CliRunner().invoke(app, [*shlex.split(command), *map(str, more)], input=typed)


def done(command: str, *more: object) -> Result:
    """The same for a command that succeeds."""
    result = run(command, *more)
    assert result.exit_code == 0, result.output
    return result


def refused(words: str, command: str, *more: object) -> Result:
    """The same for a command that ends in an error with these words."""
    result = run(command, *more)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    return result
