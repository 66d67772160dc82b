"""Many runs of a mechanism at once, for audits: the same noise laws and objectives as the mechanisms, vectorised.

The domain is listed and the perturbation is rounded to the unit of the exact oracles after it is summed rather than per table
entry. Tests compare these draws with those of the mechanisms themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privsolve.audit.cases import ParityProblem
from privsolve.data.patterns import Int64Array
from privsolve.mechanisms.opdisc import SphereNoise
from privsolve.mechanisms.rspm import SeparatorNoise
from privsolve.mechanisms.running import NoiseLaw
from privsolve.noise import draws as noise
from privsolve.noise.draws import Randomness
from privsolve.privacy.calibration import parity_scale_separator, parity_scale_sphere
from privsolve.problems.perturbation import UNIT
from privsolve.problems.problem import BaseProblem

Floats = NDArray[np.float64]
BLOCK = 4_000_000
"""Numbers held at a time."""


def opdisc_draws(problem: BaseProblem, law: SphereNoise, runs: int, rng: Randomness) -> Int64Array:
    """Indices among `problem.domain.members()` that OPDisc releases in `runs` independent runs."""
    return _minimisers(problem, -problem.domain.lift(problem.domain.members()), law, runs, rng)


def rspm_draws(problem: BaseProblem, law: SeparatorNoise, runs: int, rng: Randomness) -> Int64Array:
    """Indices among `problem.domain.members()` that RSPM releases in `runs` independent runs, on the thresholds."""
    members = problem.domain.members()
    columns = [members[:, j] <= t for j in range(problem.domain.dim) for t in problem.domain.values(j)[:-1]]
    return _minimisers(problem, np.array(columns, dtype=np.float64).T, law, runs, rng)


def _minimisers(problem: BaseProblem, features: Floats, law: NoiseLaw, runs: int, rng: Randomness) -> Int64Array:
    """The first minimiser of `L(w) + <η, features(w)>` for each of `runs` draws of η."""
    loss = problem.losses_of(problem.domain.members()).astype(np.float64)
    chosen = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // (len(loss) + law.dim))
    for start in range(0, runs, block):
        size = min(block, runs - start)
        objective = loss + _noise_block(law, size, rng) @ features.T
        chosen[start : start + size] = np.argmin(np.rint(objective * UNIT), axis=1)
    return chosen


def parity_draws(problem: ParityProblem, law: SphereNoise | SeparatorNoise, runs: int, rng: Randomness) -> Int64Array:
    """1 where the released sign vector has an odd number of -1s, in `runs` runs of OPDisc or RSPM, in any dimension.

    The noise is drawn coordinate by coordinate and the minimiser is exact: the signs that the noise prefers, or those with
    the cheapest one flipped if that costs less than the record does.
    """
    scale_of = parity_scale_sphere(law.dim, 1.0) if isinstance(law, SphereNoise) else parity_scale_separator(1.0)
    odd = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // law.dim)
    for start in range(0, runs, block):
        eta = scale_of * _noise_block(law, min(block, runs - start), rng)
        preferred = (eta < 0).sum(axis=1) % 2
        price = 2 * np.abs(eta).min(axis=1)
        flipped = (preferred == problem.odd_costs) & (price < 1)
        odd[start : start + len(eta)] = np.where(flipped, 1 - preferred, preferred)
    return odd


def _noise_block(law: NoiseLaw, size: int, rng: Randomness) -> Floats:
    """`size` independent draws of the law, as rows."""
    shape, total = (size, law.dim), size * law.dim
    if law.law == "laplace":
        return noise.laplace(rng, law.scale, total).reshape(shape)
    if law.law == "linf-gamma":
        cube = (rng.sign(total) * rng.uniform(total)).reshape(shape)
        return noise.gamma(rng, law.dim + 1, law.scale, size)[:, None] * cube
    normal = noise.standard_normal(rng, total).reshape(shape)
    if law.law == "l2-gamma":
        length = noise.gamma(rng, law.dim, law.scale, size)[:, None]
        return np.asarray(length * normal / np.linalg.norm(normal, axis=1, keepdims=True))
    return law.scale * normal
