"""Progress on a terminal: one line that keeps up with the search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from privsolve.engines.coordinates.minimise import Progress, ProgressCallback
from privsolve.engines.rejection import SamplingCallback, SamplingProgress
from privsolve.mechanisms.trees import ProgressCallback as TreeCallback
from privsolve.mechanisms.unions import UnionCallback, UnionProgress

COMPILES = "the first run compiles"


@contextmanager
def sampling_progress(console: Console, title: str, hint: str = "") -> Iterator[SamplingCallback]:
    """A line with the time that has passed, on a terminal only, and a callback for samplers that report on their way."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        words = "; ".join(filter(None, (hint, COMPILES)))
        task = progress.add_task(f"{title} ({words})", total=None)

        def update(state: SamplingProgress) -> None:
            work = f"{title}: {state.attempts:,} attempts, {state.frontier:,} nodes"
            progress.update(task, description=f"{work} ({hint})" if hint else work)

        yield update


@contextmanager
def tree_progress(console: Console) -> Iterator[TreeCallback]:
    """A bar, on a terminal only, of the share of the sums over trees that is made."""
    with _bar(console) as progress:
        task = progress.add_task(f"summing over trees ({COMPILES})", total=1.0)
        yield lambda share: progress.update(task, completed=share, description="summing over trees")


@contextmanager
def union_progress(console: Console, hint: str) -> Iterator[UnionCallback]:
    """The same, and then the attempts on cards."""
    with _bar(console) as progress:
        task = progress.add_task(f"summing over trees ({COMPILES})", total=1.0)

        def update(state: UnionProgress) -> None:
            words = "summing over trees" if state.trees < 1 else "choosing"
            if state.attempts:
                words = f"choosing: {state.attempts:,} attempts, {state.frontier:,} nodes ({hint})"
            progress.update(task, completed=state.trees, description=words)

        yield update


def _bar(console: Console) -> bars.Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def search_progress(console: Console, title: str) -> Iterator[ProgressCallback]:
    """A progress callback that shows the best objective, the bound and the gap while a search runs."""
    with console.status(f"{title}: preparing (the first run compiles, about 20 s) ...") as status:

        def update(state: Progress) -> None:
            gap = state.objective - state.bound
            status.update(
                f"{title}: best {state.objective:,.1f}, bound {state.bound:,.1f}, gap {gap:,.1f}, "
                f"{state.nodes:,} nodes, {state.seconds:.0f} s"
            )

        yield update
