"""What every command shares: consoles that show names without obeying them, warnings and errors in one line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.status import Status
from rich.text import Text

import privsolve as ps
from privsolve.safety import signals
from privsolve.safety.signals import NOTHING, Stop

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it, and what turns the direction of text around. Line ends and tabs stay."""


def shown(text: str) -> str:
    """The text with every control character in a form that can be seen, such as `\\x1b`."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PlainConsole(Console):
    """A console on which names, notes and labels from files cannot move the cursor, change colours or hide."""

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        """As rich does, without control characters."""
        return super().render_str(shown(text), *args, **options)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """As rich does, without control characters."""
        return super().status(shown(status) if isinstance(status, str) else status, **options)

    def on_broken_pipe(self) -> None:
        """Go on without output: a reader such as `head` that leaves early must not end a run that is paid for."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


console = PlainConsole()
errors = PlainConsole(stderr=True)


def write_out(text: str) -> None:
    """A whole document to the standard output: as it is into a file or a pipe, without control characters on a terminal."""
    try:
        typer.echo(shown(text) if on_a_terminal() else text, nl=False)
    except BrokenPipeError:
        console.on_broken_pipe()


def on_a_terminal() -> bool:
    """Whether somebody reads the standard output as it comes."""
    return sys.stdout.isatty()


def somebody_reads() -> bool:
    """Whether a person sits at a terminal and can be asked."""
    return sys.stdin.isatty() and on_a_terminal()


def warn(words: str) -> None:
    """One line on the error stream."""
    errors.print(f"[bold yellow]warning:[/bold yellow] {escape(_one_line(words))}", soft_wrap=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Wrong input and failed runs end in one line that says what to do, not in a traceback."""
    what, code = "error", 2
    try:
        yield
        return
    except (ValueError, TypeError, OSError, ps.PrivsolveError) as error:
        words = escape(_one_line(str(error)))
    except MemoryError:  # its own words are about arrays
        words = (
            "not enough memory: use fewer or coarser columns, fewer features or a smaller depth, or a larger machine"
        )
    except KeyboardInterrupt:
        what, words, code = "interrupted", "nothing was released", 130
    errors.print(f"[bold red]{what}:[/bold red] {words}", soft_wrap=True)
    raise typer.Exit(code)


def stoppable(outcome: str = NOTHING) -> AbstractContextManager[Stop]:
    """A block that signals end with one line, which says `outcome`, and the exit code 128 + number."""
    return signals.stoppable(
        lambda words: errors.print(f"[bold red]interrupted:[/bold red] {escape(words)}", soft_wrap=True), outcome
    )


def as_json(value: object) -> str:
    """For `--json`."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n")


@contextmanager
def engine_at_work(words: str, source: str) -> Iterator[None]:
    """Says what is going on, on a terminal; what the engine complains about becomes an error that names the source."""
    from privsolve.data.duckdb import in_our_words

    with in_our_words(source), errors.status(escape(f"{words} {source} ...")):
        yield


def show_paths(paths: Sequence[Path]) -> None:
    """Where a release, its page and the curator's diagnostics were written."""
    for path, words in zip(paths, ("to publish", "to publish", "curator only"), strict=False):
        console.print(f"{escape(str(path))}  [dim]({words})[/dim]", soft_wrap=True)


def show_curators(lines: Sequence[str]) -> None:
    """What is the curator's alone, in a red box on the error stream."""
    from privsolve.releases import NOT_PRIVATE

    words = escape("\n".join([NOT_PRIVATE, "", *lines]))
    errors.print(Panel(words, title="Curator's diagnostics", border_style="red"))
