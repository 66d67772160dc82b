"""The parity pair: neighbours on which Gaussian noise that ignores the dimension fails (theory, sections 2.3 and 3).

`W = {-1,1}^d`; one record costs 1 for an even number of -1s on D, and for an odd one on D'. The perturbation is `Σ s·z_j·w_j`
with z standard normal, so its best point has a fair parity, and changing that costs `2s·min|z_j|` while the record offers 1.
With `p = Pr[min|z_j| > 1/2s]`, `Pr[odd|D] = 1 - p/2` and `Pr[odd|D'] = p/2`. By symmetry "odd" is the worst event: the δ and
ε of the closed forms are exactly those of this pair of data sets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import erf, exp, expm1, log, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from privsolve.arrays import Int64Array
from privsolve.data.patterns import checked_names
from privsolve.domains import SignCube
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.opdisc import Sphere
from privsolve.mechanisms.perturbed import BLOCK, Noise
from privsolve.noise.entropy import Randomness
from privsolve.oracles.base import Solution
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, MemberProblem


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


class ParityOracle:
    """Exact minimiser for `ParityProblem`: the best point without the loss, or the same with its cheapest sign flipped."""

    name: ClassVar[str] = "parity"
    tolerance: ClassVar[float] = 0.0

    def check(self, problem: BaseProblem) -> None:
        """Raise before any noise is drawn if the problem is another."""
        if not isinstance(problem, ParityProblem):
            raise ValueError("the parity oracle solves a ParityProblem only")

    def minimise(self, problem: ParityProblem, perturbation: Perturbation) -> Solution:
        """In integers: flipping pays if it costs less than the record, which is one mistake."""
        tables = np.array(perturbation.coordinate)
        weights = np.where(tables[:, 0] <= tables[:, 1], -1, 1)
        if problem.total_loss(weights):
            price = np.abs(tables[:, 1] - tables[:, 0])
            if price.min() < UNIT:
                weights[price.argmin()] *= -1
        value = problem.objective(weights, perturbation)
        return Solution(weights, value, value)


def parity_draws(problem: ParityProblem, noise: Noise, runs: int, rng: Randomness) -> Int64Array:
    """1 where the released sign vector has an odd number of -1s, in `runs` runs of OPDisc or RSPM, in any dimension.

    The noise is drawn coordinate by coordinate and the minimiser is exact: the signs that the noise prefers, or those with
    the cheapest one flipped if that costs less than the record does.
    """
    scale = parity_scale_sphere(noise.dim, 1.0) if isinstance(noise.geometry, Sphere) else parity_scale_separator(1.0)
    odd = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // noise.dim)
    for start in range(0, runs, block):
        eta = scale * noise.law.draws(rng, min(block, runs - start))
        preferred = (eta < 0).sum(axis=1) % 2
        price = 2 * np.abs(eta).min(axis=1)
        flipped = (preferred == problem.odd_costs) & (price < 1)
        odd[start : start + len(eta)] = np.where(flipped, 1 - preferred, preferred)
    return odd


def parity_scale_sphere(dim: int, sigma: float) -> float:
    """s for OPDisc: the coefficient of w_j is η_j/D with D = √d (section 2.3)."""
    return sigma / sqrt(dim)


def parity_scale_separator(sigma: float) -> float:
    """s for RSPM: 1[w_j<=0] = (1-w_j)/2, so the coefficient of w_j is -η_j/2 (section 3)."""
    return sigma / 2


def parity_odd_probabilities(dim: int, scale: float) -> tuple[float, float]:
    """(Pr[odd|D], Pr[odd|D']) = (1 - p/2, p/2) for the coefficient scale s = `scale`."""
    half = exp(_log_p(dim, scale)) / 2
    return 1 - half, half


def parity_true_delta(dim: int, epsilon: float, scale: float) -> float:
    """The smallest δ at `epsilon`: Pr[odd|D] - e^ε·Pr[odd|D'], at least 0.

    A larger value than the claimed δ refutes a guarantee; a smaller one proves nothing.
    """
    log_mean = epsilon + log1p(expm1(-epsilon) / 2)  # ln((1+e^ε)/2), without overflow
    return max(0.0, -expm1(min(_log_p(dim, scale) + log_mean, 0.0)))


def parity_true_epsilon(dim: int, delta: float, scale: float) -> float:
    """The smallest ε at `delta`: ln((1 - p/2 - δ)/(p/2)), at least 0."""
    log_p = _log_p(dim, scale)
    excess = -expm1(log_p) - 2 * delta  # (2 - p - 2δ) - 1
    return max(0.0, log1p(excess) - log_p) if excess > -1 else 0.0


def _log_p(dim: int, scale: float) -> float:
    """ln p, p = (2Φ(-1/2s))^d."""
    x = 1 / (2 * scale)
    # log1p keeps the relative precision of a small x, log_ndtr that of a large one.
    return dim * (log1p(-erf(x / sqrt(2))) if x < 1 else log(2) + float(log_ndtr(-x)))
