"""DP-SGD for logistic regression: the baseline that the experiment and the benchmarks compare with.

It works in floating point and is accounted for by dp-accounting. It exists to draw curves, not to release models: its
weights carry no guarantee object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log, sqrt

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import privsolve as ps
from privsolve.arrays import Floats, Int64Array
from privsolve.errors import from_extra
from privsolve.privacy.adjacency import Adjacency

with from_extra("experiments"):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

RELATIONS = {
    Adjacency.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
    Adjacency.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}
RDP_ORDERS = [*range(2, 64), *(2**k for k in range(6, 13))]
"""Of the moments accountant; small epsilons need the large ones."""


@dataclass(frozen=True)
class DPSGDSettings:
    """Settings of one fit.

    Args:
        clip: bound on the norm of one record's gradient.
        rate: probability that a record takes part in a step; 1 is the full batch.
        steps: number of steps.
        learning_rate: multiplies the estimated gradient of the total loss.
        averaged: the weights are the mean of this share of the iterates, the last ones, but of at least one.
    """

    clip: float
    rate: float
    steps: int
    learning_rate: float
    averaged: float = 0.5


@dataclass(frozen=True)
class Accounting:
    """How the noise is set: `(epsilon, delta)` under an adjacency, by the tight accountant or the moments accountant."""

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.REPLACE
    moments: bool = False

    def __post_init__(self) -> None:
        if self.moments and self.adjacency is not Adjacency.ADD_REMOVE:
            # under replace, dp-accounting 0.6 ignores the relation for the full batch and refuses sampling
            raise ValueError("moments=True needs adjacency='add-remove': dp-accounting has no moments for replace")

    def accountant(self) -> dp_accounting.PrivacyAccountant:
        """A fresh accountant; its grid of privacy losses is fine beside the loss of one step."""
        relation = RELATIONS[self.adjacency]
        return RdpAccountant(RDP_ORDERS, relation) if self.moments else PLDAccountant(relation, self.epsilon / 5000)


def noise_multiplier(accounting: Accounting, rate: float, steps: int) -> float:
    """The noise over the clip norm that dp-accounting asks for; k steps of the full batch are one step with noise over √k."""
    return sqrt(steps) * _calibrated(accounting, 1.0, 1) if rate == 1 else _calibrated(accounting, rate, steps)


@cache
def _calibrated(accounting: Accounting, rate: float, steps: int) -> float:
    factor = accounting.adjacency.range_factor
    guess = factor * rate * sqrt(-2 * steps * log(accounting.delta)) / accounting.epsilon
    found = dp_accounting.calibrate_dp_mechanism(
        accounting.accountant,
        lambda z: event(z, rate, steps),
        accounting.epsilon,
        accounting.delta,
        dp_accounting.LowerEndpointAndGuess(guess / 4, guess),
        tol=1e-4 * guess,
    )
    return float(found)


def event(multiplier: float, rate: float, steps: int) -> dp_accounting.DpEvent:
    """All steps of DP-SGD as dp-accounting states them."""
    step = dp_accounting.GaussianDpEvent(multiplier)
    if rate < 1:
        step = dp_accounting.PoissonSampledDpEvent(rate, step)
    return dp_accounting.SelfComposedDpEvent(step, steps)


def dp_sgd(
    table: ps.PatternTable, accounting: Accounting, settings: DPSGDSettings, seed: int | np.random.SeedSequence
) -> Floats:
    """The weights of logistic regression fitted by DP-SGD."""
    multiplier = noise_multiplier(accounting, settings.rate, settings.steps)
    kept = max(1, round(settings.averaged * settings.steps))
    total = np.zeros(table.dim)
    for k, weights in enumerate(descend(table, settings, multiplier, np.random.default_rng(seed))):
        if k >= settings.steps - kept:
            total += weights
    return total / kept


def descend(
    table: ps.PatternTable, settings: DPSGDSettings, multiplier: float, rng: np.random.Generator
) -> Iterator[Floats]:
    """The iterates of one run."""
    rows, clip, rate = features(table), settings.clip, settings.rate
    with np.errstate(divide="ignore"):
        allowed = clip / np.linalg.norm(rows, axis=1)  # largest factor of a row whose gradient is not clipped
    weights = np.zeros(table.dim)
    for _ in range(settings.steps):
        positives, negatives = (_sampled(counts, rate, rng) for counts in (table.positives, table.negatives))
        p = expit(rows @ weights)
        factors = negatives * np.minimum(p, allowed) - positives * np.minimum(1 - p, allowed)
        noise = multiplier * clip * rng.normal(size=table.dim)
        weights = weights - settings.learning_rate / rate * (rows.T @ factors + noise)
        yield weights


def _sampled(counts: Int64Array, rate: float, rng: np.random.Generator) -> Int64Array:
    """How many records of each row take part in a step: equal records have equal gradients."""
    return counts if rate == 1 else rng.binomial(counts, rate)


def logistic_regression(table: ps.PatternTable) -> Floats:
    """Weights of logistic regression without privacy, for a reference line."""
    rows = features(table)
    labels = np.repeat([1, 0], len(rows))
    model = LogisticRegression(C=1000.0, fit_intercept=False, tol=1e-8, max_iter=10_000)
    model.fit(np.vstack([rows, rows]), labels, sample_weight=np.concatenate([table.positives, table.negatives]))
    return np.asarray(model.coef_[0])


def features(table: ps.PatternTable) -> Floats:
    """The distinct rows as real numbers: features over their scales."""
    return np.asarray(table.features / np.array(table.scales, dtype=np.float64))


def accuracy(table: ps.PatternTable, weights: Floats) -> float:
    """Share of records that "positive iff the score is above 0" classifies correctly."""
    positive = features(table) @ weights > 0
    return float((table.positives @ positive + table.negatives @ ~positive) / table.n)
