"""Progress of a command: one line that keeps up with the work on a terminal, a line now and then in a log file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from privsolve.learn.progress import ShowProgress, progress_words

COMPILES = "the first run compiles"

Callback = Callable[[Any], None]
SPINNER: tuple[ProgressColumn, ...] = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
BAR: tuple[ProgressColumn, ...] = (
    TextColumn("{task.description}"),
    BarColumn(),
    TaskProgressColumn(),
    TimeElapsedColumn(),
)


@contextmanager
def work_progress(console: Console, title: str, hint: str = "") -> Iterator[Callback]:
    """A callback for samplers and searches: what they say of their progress, and the time that has passed."""
    with _line(console, SPINNER) as progress:
        words = "; ".join(filter(None, (hint, COMPILES)))
        task = progress.add_task(f"{title} ({words})", total=None)

        def update(state: object) -> None:
            work = f"{title}: {progress_words(state)}"
            progress.update(task, description=f"{work} ({hint})" if hint else work)

        yield update if console.is_terminal else ShowProgress(console.file)


@contextmanager
def share_progress(console: Console) -> Iterator[Callback]:
    """A callback with a bar: the share of the sums over trees that is made."""
    with _line(console, BAR) as progress:
        task = progress.add_task(f"summing over trees ({COMPILES})", total=1.0)

        def update(share: float) -> None:
            progress.update(task, completed=share, description="summing over trees" if share < 1 else "choosing")

        yield update if console.is_terminal else ShowProgress(console.file)


def _line(console: Console, columns: tuple[ProgressColumn, ...]) -> bars.Progress:
    return bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
