"""What the processes of the sealed-run tests do."""

from __future__ import annotations

import os

import numpy as np

from privsolve.noise.sealed import SealedRun


def draw_until_killed(path: str, shown: str) -> None:
    """Draw words from a sealed file for ever; each is written to another file after it was handed out."""
    with SealedRun(path) as sealed, open(shown, "wb", buffering=0) as file:
        rng = np.random.default_rng(os.getpid())
        sealed.randomness.ask({"data": 1})
        while True:
            file.write(sealed.randomness.words(int(rng.integers(1, 3000))).tobytes())
