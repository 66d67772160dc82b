"""The parity pair in closed form, and an exact oracle for it (theory, sections 2.3 and 3; `privsolve.audit.parity_pair`).

With `p = Pr[min|z_j| > 1/2s]`, `Pr[odd|D] = 1 - p/2` and `Pr[odd|D'] = p/2`. By symmetry "odd" is the worst event: the δ and
ε of the closed forms are exactly those of this pair of data sets.
"""

from __future__ import annotations

from math import erf, exp, expm1, log, log1p, sqrt
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from privsolve.audit import ParityProblem
from privsolve.oracles import Solution
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem


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
