"""Work on all cores: machine code leaves the interpreter's lock to others, so threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

MOST_THREADS = 8


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Tasks on all cores, each worker with scratch of its own."""

    def __init__(self, scratch: Callable[[], Any]) -> None:
        self._spare: list[Any] = []
        self._scratch = scratch

    def run(
        self, task: Callable[[Any, int], Any], tasks: Iterable[int], progress: Callable[[int], None] | None = None
    ) -> None:
        """Run `task(scratch, number)` for all numbers; `progress` is called with how many are done."""
        with ThreadPoolExecutor(min(cores(), MOST_THREADS)) as pool:
            futures = [pool.submit(self._one, task, number) for number in tasks]
            try:
                for done, future in enumerate(as_completed(futures)):
                    future.result()
                    if progress is not None:
                        progress(done + 1)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _one(self, task: Callable[[Any, int], Any], number: int) -> None:
        scratch = self._spare.pop() if self._spare else self._scratch()
        try:
            task(scratch, number)
        finally:
            self._spare.append(scratch)
