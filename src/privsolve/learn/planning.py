"""What a release may cost, before anything is spent: the proved bounds of every mechanism, side by side."""

from __future__ import annotations

from privsolve.domains import Domain
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.base import Expectation
from privsolve.mechanisms.registry import all_mechanisms
from privsolve.privacy.adjacency import Adjacency


def expectations(
    domain: Domain,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: Loss | None = None,
    beta: float = 0.05,
) -> tuple[Expectation, ...]:
    """The bounds that hold for every table. Looks at no data, so it may be called as often as one likes."""
    the_adjacency, the_loss = Adjacency.of(adjacency), loss or ZeroOneLoss()
    return tuple(
        bound
        for mechanism in all_mechanisms()
        for bound in mechanism.expectations(domain, epsilon, adjacency=the_adjacency, loss=the_loss, beta=beta)
    )
