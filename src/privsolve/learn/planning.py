"""What a release may cost, before anything is spent: proved bounds that hold for every table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privsolve.domains import SparsePoints
from privsolve.domains.trees import DecisionTrees
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import SHORT, inverse_temperature
from privsolve.mechanisms.trees import tree_temperature
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import default_prior, least_log_of_short

BETA = 0.05
"""A bound fails with at most this probability."""


@dataclass(frozen=True)
class Expectation:
    """With probability 0.95 a release costs at most `excess` more than the best of the models `compared_with`."""

    mechanism: str
    excess: float
    compared_with: str


def card_expectation(
    domain: SparsePoints,
    epsilon: float,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: ZeroOneLoss | None = None,
) -> Expectation:
    """What a short card may cost at most beyond the best small one, under the prior that fitting uses.

    Looks at no data, so it may be called as often as one likes (theory, section 4).
    """
    features, log_p = least_log_of_short(default_prior(domain), domain, SHORT)
    excess = -(log_p + math.log(BETA)) / inverse_temperature(epsilon, adjacency, loss or ZeroOneLoss())
    words = f"{features} features, 1 point each" if features > 1 else "1 feature, 1 point"
    return Expectation("exponential", excess, words)


def tree_expectations(
    trees: DecisionTrees, epsilon: float, adjacency: Adjacency | str = Adjacency.REPLACE
) -> tuple[Expectation, ...]:
    """What a private tree may lose at most beyond the best tree of each depth, in the whole units of the loss.

    Looks at no data (theory, trees: utility).
    """
    kappa = tree_temperature(trees, epsilon, str(adjacency))
    found = []
    for depth in range(1, trees.depth + 1):
        words = "trees with 1 question" if depth == 1 else f"trees of depth {depth}"
        found.append(Expectation("tree", -(trees.least_log_prior(depth) + math.log(BETA)) / kappa, words))
    return tuple(found)


SMALLEST, LARGEST = 1e-4, 100.0


def smallest_epsilon(share: Callable[[float], float], lose: float) -> float:
    """The smallest epsilon, to three digits, with a promised share of at most `lose`; `share` falls as epsilon grows."""
    if not 0 < lose < 1:
        raise ValueError(f"lose must be a share between 0 and 1, for example 0.02, got {lose:g}")
    if share(LARGEST) > lose:
        raise ValueError(
            f"lose={lose:g}: no epsilon up to {LARGEST:g} promises that; use more records or smaller cards"
        )
    low, high = SMALLEST, LARGEST
    while high > low * 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if share(middle) <= lose else (middle, high)
    digits = 10.0 ** (math.floor(math.log10(high)) - 2)
    rounded = math.ceil(high / digits) * digits
    return float(f"{rounded:.3g}")
