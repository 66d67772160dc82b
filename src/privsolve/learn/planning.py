"""What a release may cost, before anything is spent: the proved bounds of every mechanism, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsolve.domains import SparsePoints
from privsolve.learn.fitting import default_prior
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import exponential_utility_bound
from privsolve.mechanisms.opdisc import sphere_noise
from privsolve.mechanisms.rspm import separator_noise

ALL = "any points"
SHORT = 3
"""The sparsity prior helps cards with about so many features; the bound is for them."""


@dataclass(frozen=True)
class Expectation:
    """With probability `1 - beta` a release costs at most `excess` more than the best of the cards `compared_with`."""

    mechanism: str
    excess: float
    compared_with: str


def expectations(
    domain: SparsePoints,
    epsilon: float,
    *,
    adjacency: str = "replace",
    loss: ZeroOneLoss | None = None,
    beta: float = 0.05,
) -> tuple[Expectation, ...]:
    """The bounds that hold for every table. Looks at no data, so it may be called as often as one likes."""
    features = min(SHORT, domain.max_features)
    short = np.zeros(domain.dim, dtype=np.int64)
    short[:features] = 1
    short[domain.columns :] = domain.values(domain.dim - 1)[0]  # all intercepts are as likely
    sparse = exponential_utility_bound(
        domain, epsilon, weights=short, prior=default_prior(domain), adjacency=adjacency, loss=loss, beta=beta
    )
    uniform = exponential_utility_bound(domain, epsilon, adjacency=adjacency, loss=loss, beta=beta)
    sphere = sphere_noise(domain, epsilon, adjacency=adjacency, loss=loss).utility_bound(beta)
    separators = separator_noise(domain, epsilon, adjacency=adjacency, loss=loss).utility_bound(beta)
    return (
        Expectation(
            "exponential", sparse, f"{features} features, 1 point each" if features > 1 else "1 feature, 1 point"
        ),
        Expectation("exponential (uniform)", uniform, ALL),
        Expectation("opdisc", sphere, ALL),
        Expectation("rspm", separators, ALL),
    )
