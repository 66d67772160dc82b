"""The parity pair: neighbours on which Gaussian noise that ignores the dimension fails (theory, sections 2.3 and 3).

`W = {-1,1}^d`; one record costs 1 for an even number of -1s on D, and for an odd one on D'. The perturbation is `Σ s·z_j·w_j`
with z standard normal, so its best point has a fair parity, and changing that costs `2s·min|z_j|` while the record offers 1.
With `p = Pr[min|z_j| > 1/2s]`, `Pr[odd|D] = 1 - p/2` and `Pr[odd|D'] = p/2`. By symmetry "odd" is the worst event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.data.patterns import checked_names
from privsolve.domains import SignCube
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.opdisc import Sphere
from privsolve.mechanisms.perturbed import BLOCK, Noise
from privsolve.noise.entropy import Randomness
from privsolve.problems.problem import MemberProblem


@dataclass(frozen=True, eq=False)
class ParityProblem(MemberProblem):
    """One record that costs 1 if the number of -1s in a sign vector is odd, or if it is even."""

    domain: SignCube
    odd_costs: bool
    loss: Loss = field(default_factory=ZeroOneLoss)
    records: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Numbered coordinates."""
        return checked_names(None, self.domain.dim)

    def losses_of(self, members: Int64Array) -> Int64Array:
        """1 where the parity is the one that costs."""
        odd = (np.asarray(members) < 0).sum(axis=1) % 2 == 1
        return np.asarray(odd == self.odd_costs, dtype=np.int64)

    def total_loss(self, weights: ArrayLike) -> int:
        """0 or 1."""
        return int(self.losses_of(np.asarray(weights)[None, :])[0])

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """The loss."""
        return {"total_cost": self.total_loss(weights)}


def parity_draws(problem: ParityProblem, noise: Noise, runs: int, rng: Randomness) -> Int64Array:
    """1 where the released sign vector has an odd number of -1s, in `runs` runs of OPDisc or RSPM, in any dimension.

    The noise is drawn coordinate by coordinate and the minimiser is exact: the signs that the noise prefers, or those with
    the cheapest one flipped if that costs less than the record does.
    """
    # of the coefficient of w_j: η_j/√d on the sphere (section 2.3); on separators 1[w_j<=0] = (1-w_j)/2 (section 3)
    scale = 1 / sqrt(noise.dim) if isinstance(noise.geometry, Sphere) else 0.5
    odd = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // noise.dim)
    for start in range(0, runs, block):
        eta = scale * noise.law.draws(rng, min(block, runs - start))
        preferred = (eta < 0).sum(axis=1) % 2
        price = 2 * np.abs(eta).min(axis=1)
        flipped = (preferred == problem.odd_costs) & (price < 1)
        odd[start : start + len(eta)] = np.where(flipped, 1 - preferred, preferred)
    return odd
