"""A choice between frontiers, in proportion to their current bounds (theory, unions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from privsolve.noise.coins import Uniforms, choose_log
from privsolve.noise.entropy import Randomness

ROUNDING = 2.0**-53
IN_LARGE_LOGS = 12
"""Roundings of logarithms on the way to the choice (theory, unions: "Rounding")."""

RESERVE, BLOCK = 64, 1 << 12
"""Uniforms for one choice, and drawn at a time."""


def choosing_error(largest: float) -> float:
    """What the choice adds to the relative error of every weight, if no logarithm on the way is larger than this."""
    return ROUNDING * IN_LARGE_LOGS * largest


class FrontierChoice:
    """Coins for choosing; one thread at a time."""

    def __init__(self, rng: Randomness) -> None:
        self._uniforms = Uniforms(rng)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else chooses in the block."""
        self._uniforms.claim()
        try:
            yield
        finally:
            self._uniforms.release()

    def among(self, log_bounds: Sequence[float]) -> int:
        """One of them, by a coin of full relative precision."""
        self._uniforms.at_least(RESERVE, BLOCK)
        return int(choose_log(self._uniforms.stream, np.array(log_bounds), len(log_bounds)))
