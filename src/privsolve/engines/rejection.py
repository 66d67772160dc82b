"""The loop that all samplers share: attempts until one is kept, with limits, statistics and progress between attempts.

An attempt proposes an entry of a *frontier* in proportion to its bound and follows it down; bounds are tightened by what
was seen, kept or not (theory, section 4). What an attempt looks like is the engine's; when to stop is decided here, and
only between attempts: a limit inside one would bias the law.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from privsolve.checks import check_count
from privsolve.errors import PrivsolveError, WorkLimitReached
from privsolve.noise.coins import Uniforms
from privsolve.noise.entropy import Randomness

# How an attempt ends, in compiled code too: kept, lost, a bound that grew (a defect), or more is needed to go on.
LOST, KEPT, GREW, NEEDS_ROOM, NEEDS_LOGS = range(5)

BLOCK = 1 << 12
"""Attempts at most between two looks at the limits."""

SPARE_UNIFORMS = 1024
"""Room, beside the choices of an attempt, for proposing an entry, and for coins below the range of floats, each of which
takes a second uniform only after an event of probability 2^-800 or less."""


@dataclass(frozen=True)
class SamplingProgress:
    """How far a draw is: attempts made, entries of the frontier, and seconds since the sampler was made. Not private."""

    attempts: int
    frontier: int
    seconds: float


SamplingCallback = Callable[[SamplingProgress], None]


@dataclass(frozen=True)
class SamplingStatistics:
    """Work done so far. It depends on the data: for the curator, never published (theory, section 7).

    `frontier` entries have bounds, which add up to `exp(log_frontier)` relative to the reference loss; `nodes` were
    bounded or opened on the way; `opened` counts how far the bounds of supports were tightened.
    """

    attempts: int
    accepted: int
    frontier: int
    nodes: int
    log_frontier: float
    seconds: float
    opened: dict[str, int] = field(default_factory=dict)


Drawn = TypeVar("Drawn")


class RejectionSampler(ABC):
    """Draws by rejection: each one is independent of the others and has exactly the target law.

    `max_attempts` counts over all draws. Copies and forked processes draw uniforms of their own. One sampler cannot be
    used by two threads at a time: the second one gets an error.
    """

    reference: int
    """The loss that is subtracted before exponentials are taken."""

    def __init__(
        self, rng: Randomness, reserve: int, refill: int, max_attempts: int, progress: SamplingCallback | None
    ) -> None:
        self._start = time.monotonic()
        self._uniforms = Uniforms(rng)
        self._reserve, self._refill = reserve, refill
        self._max_attempts = check_count("max_attempts", max_attempts)
        self._progress = progress
        self._attempts_made = self._kept = 0

    @abstractmethod
    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every probability; losses differ by at most `largest_difference`."""

    @abstractmethod
    def log_partition(self) -> float:
        """`log Σ f(w)` relative to the reference, by visiting everything: for small problems and tests."""

    @abstractmethod
    def _attempt(self, most: int) -> tuple[int, int]:
        """Up to `most` attempts, to the first that is not lost or until fewer than `reserve` uniforms are left.

        Returns how the last one ended, and how many were made.
        """

    @abstractmethod
    def _frontier_size(self) -> int:
        """Entries of the frontier."""

    @abstractmethod
    def _engine_statistics(self) -> dict[str, Any]:
        """The fields of `SamplingStatistics` that the engine counts."""

    @property
    def statistics(self) -> SamplingStatistics:
        """What sampling has cost so far."""
        return SamplingStatistics(
            attempts=self._attempts_made,
            accepted=self._kept,
            frontier=self._frontier_size(),
            seconds=time.monotonic() - self._start,
            **self._engine_statistics(),
        )

    def _until_kept(self, read: Callable[[], Drawn]) -> Drawn:
        """Attempts until one is kept, and what it has drawn: `read` where the engine put it, before anybody else may draw."""
        self._uniforms.claim()
        try:
            while not self._try():
                pass
            self._kept += 1
            return read()
        finally:
            self._uniforms.release()

    def _try(self) -> bool:
        left = self._max_attempts - self._attempts_made
        if left <= 0:
            raise WorkLimitReached(
                f"no sample was accepted within max_attempts={self._max_attempts:,}: nothing is released; raise it, or "
                "use a smaller epsilon or a smaller domain"
            )
        self._uniforms.at_least(self._reserve, self._refill)
        outcome, made = self._attempt(min(BLOCK, left))
        self._attempts_made += made
        if self._progress is not None:
            seconds = time.monotonic() - self._start
            self._progress(SamplingProgress(self._attempts_made, self._frontier_size(), seconds))
        if outcome == GREW:
            raise PrivsolveError(
                "a bound grew when it was tightened, which is a defect of the sampler: nothing is released, and running "
                "again would not have the stated law; please report this"
            )
        return outcome == KEPT
