"""What a release may cost, before anything is spent: the proved bounds of every mechanism, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable

from privsolve.domains import ConstrainedPoints, Domain
from privsolve.domains.trees import DecisionTrees, TreePrior
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.base import Expectation
from privsolve.mechanisms.exponential import Exponential
from privsolve.mechanisms.registry import all_mechanisms
from privsolve.mechanisms.trees import prior_or_plain, tree_temperature
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_beta


def expectations(
    domain: Domain,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: Loss | None = None,
    beta: float = 0.05,
    expert: bool = True,
) -> tuple[Expectation, ...]:
    """The bounds that hold for every table, of all mechanisms or of the one that newcomers use.

    Looks at no data, so it may be called as often as one likes.
    """
    the_adjacency, the_loss = Adjacency.of(adjacency), loss or ZeroOneLoss()
    return tuple(
        bound
        for mechanism in all_mechanisms()
        if (expert or isinstance(mechanism, Exponential))
        and (mechanism.keeps_constraints or not isinstance(domain, ConstrainedPoints))
        for bound in mechanism.expectations(domain, epsilon, adjacency=the_adjacency, loss=the_loss, beta=beta)
    )


def tree_expectations(
    trees: DecisionTrees,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    prior: TreePrior | None = None,
    beta: float = 0.05,
) -> tuple[Expectation, ...]:
    """What a private tree may lose at most beyond the best tree of each depth, in the whole units of the loss.

    Looks at no data (theory, trees: utility).
    """
    kappa, stated = tree_temperature(trees, epsilon, str(adjacency)), prior_or_plain(prior)
    found = []
    for depth in range(1, trees.depth + 1):
        log_p = stated.least_log_of_depth(trees, depth)
        if log_p > -math.inf:
            excess = -(log_p + math.log(check_beta(beta))) / kappa
            words = "trees with 1 question" if depth == 1 else f"trees of depth {depth}"
            found.append(Expectation("tree", excess, words))
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
