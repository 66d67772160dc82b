"""Many runs at once on the parity problem, in any dimension: the noise laws of the mechanisms and an exact minimiser."""

from __future__ import annotations

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.audit.cases import ParityProblem
from privsolve.mechanisms.perturbed import Noise
from privsolve.noise.entropy import Randomness

BLOCK = 4_000_000
"""Numbers held at a time."""


def parity_draws(problem: ParityProblem, noise: Noise, runs: int, rng: Randomness) -> Int64Array:
    """1 where the released sign vector has an odd number of -1s, in `runs` runs of OPDisc or RSPM, in any dimension.

    The noise is drawn coordinate by coordinate and the minimiser is exact: the signs that the noise prefers, or those with
    the cheapest one flipped if that costs less than the record does.
    """
    odd = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // noise.dim)
    for start in range(0, runs, block):
        eta = noise.geometry.parity_scale() * noise.law.draws(rng, min(block, runs - start))
        preferred = (eta < 0).sum(axis=1) % 2
        price = 2 * np.abs(eta).min(axis=1)
        flipped = (preferred == problem.odd_costs) & (price < 1)
        odd[start : start + len(eta)] = np.where(flipped, 1 - preferred, preferred)
    return odd
