"""The privacy loss of the exponential mechanism to the last digit, by listing a small domain (theory, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsolve.arrays import Floats
from privsolve.mechanisms.exponential import exponential_law
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import Prior
from privsolve.problems.problem import BaseProblem


@dataclass(frozen=True)
class ExactFinding:
    """Between two data sets exactly `epsilon` is lost, in the worse direction: no more and, up to rounding, no less."""

    epsilon: float
    members: int

    def refutes(self, claimed_epsilon: float) -> bool:
        """Whether a pure claim of `claimed_epsilon` is broken by this pair."""
        return self.epsilon > claimed_epsilon


def exact_epsilon(log_law: Floats, neighbour_log_law: Floats) -> float:
    """The smallest pure epsilon for two laws on one finite set, given as log probabilities: both directions."""
    first, second = np.asarray(log_law, dtype=np.float64), np.asarray(neighbour_log_law, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(f"the two laws must be vectors of one length, got shapes {first.shape} and {second.shape}")
    for name, law in (("log_law", first), ("neighbour_log_law", second)):
        if not abs(np.logaddexp.reduce(law)) < 1e-9:
            raise ValueError(f"{name} must hold logarithms of probabilities that add up to 1")
    possible = np.maximum(first, second) > -np.inf
    return float(np.abs(first[possible] - second[possible]).max())


def exact_exponential(
    problem: BaseProblem,
    neighbour: BaseProblem,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    prior: Prior | None = None,
) -> ExactFinding:
    """What `ps.exponential` loses between two neighbouring problems over one domain that can be listed."""
    if problem.domain != neighbour.domain:
        raise ValueError("problem and neighbour must have the same domain: it is public")
    laws = [exponential_law(p, epsilon, adjacency=adjacency, prior=prior) for p in (problem, neighbour)]
    return ExactFinding(exact_epsilon(*laws), len(laws[0]))
