"""Progress on a terminal: one line that keeps up with the search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from privsolve.tree.minimise import Progress, ProgressCallback
from privsolve.tree.sample import SamplingCallback


@contextmanager
def sampling_progress(console: Console, title: str) -> Iterator[SamplingCallback]:
    """A progress callback that shows attempts and frontier while a sampler runs."""
    with console.status(f"{title}: preparing (the first run compiles, about 20 s) ...") as status:
        yield lambda state: status.update(
            f"{title}: {state.attempts:,} attempts, {state.frontier:,} frontier nodes, {state.seconds:.0f} s"
        )


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
