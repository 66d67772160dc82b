"""How far a run is, shown where it runs: one line that changes in a notebook or on a terminal, lines in a log file."""

from __future__ import annotations

import sys
import time
from typing import IO, Any

from privsolve.engines.coordinates.minimise import Progress
from privsolve.engines.rejection import SamplingProgress

OFTEN, SELDOM = 0.2, 30.0
"""Seconds between two changes of a line, and between two lines of a log file."""


def progress_words(state: object) -> str:
    """What a run says of its progress, in words. Depends on the data: for the curator."""
    if isinstance(state, SamplingProgress) and not state.attempts:
        return f"listing: {state.frontier:,} nodes"
    if isinstance(state, SamplingProgress):
        return f"sampling: {state.attempts:,} attempts, {state.frontier:,} nodes"
    if isinstance(state, Progress):
        gap = state.objective - state.bound
        return f"best {state.objective:,.1f}, bound {state.bound:,.1f}, gap {gap:,.1f}, {state.nodes:,} nodes"
    return f"summing over trees: {state:.0%}" if isinstance(state, int | float) else str(state)


class ShowProgress:
    """Shows how far a run is: pass it as `progress` to an estimator or a mechanism.

    In a notebook and on a terminal one line changes in place; anywhere else, such as in a log file, there is a line every
    half a minute. What it shows depends on the data: it is for the curator, not for publication.

    Args:
        file: where the line goes outside of notebooks; the error stream by default.
        seconds: between two changes; by default 0.2 where the line changes in place, and 30 elsewhere.
    """

    def __init__(self, file: IO[str] | None = None, *, seconds: float | None = None) -> None:
        self.file = file
        self.seconds = seconds
        self._start: float | None = None
        self._shown = 0.0
        self._handle: Any = None

    def __call__(self, state: object) -> None:
        """Show the state, unless another one was shown just now."""
        now = time.monotonic()
        if self._start is None:
            self._start = now
        in_a_cell, file = self.file is None and _in_a_notebook(), self.file or sys.stderr
        in_place = in_a_cell or file.isatty()
        pause = self.seconds if self.seconds is not None else OFTEN if in_place else SELDOM
        if now - max(self._start, self._shown) < pause:
            return
        self._shown = now
        line = f"privsolve: {progress_words(state)}, {now - self._start:.0f} s"
        if in_a_cell:
            self._in_the_cell(line)
        else:
            file.write(f"\r\x1b[K{line}\r" if in_place else f"{line}\n")
            file.flush()

    def _in_the_cell(self, line: str) -> None:
        from IPython.display import display

        content = {"text/plain": line}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def __repr__(self) -> str:
        return "ShowProgress()"

    def __reduce__(self) -> tuple[Any, ...]:
        return ShowProgress, ()  # where it shows is this process's


def _in_a_notebook() -> bool:
    """Whether a kernel runs this: only its front end can change what a cell shows."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")
