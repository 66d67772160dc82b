"""DP-SGD for logistic regression: the baseline that the experiment and the benchmarks compare with.

It works in floating point and is accounted for by dp-accounting. It exists to draw curves, not to release models: its
weights carry no guarantee object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import log, sqrt

import numpy as np
from joblib import Parallel, delayed
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

TUNING = 1_953_852_005
"""Part of every seed of the tuning, so that a reported fit never reuses noise that its settings were tuned on."""


@dataclass(frozen=True)
class DPSGDSettings:
    """Settings of one fit.

    Args:
        clip: bound on the norm of one record's gradient.
        rate: probability that a record takes part in a step; 1 is the full batch.
        steps: number of steps.
        learning_rate: multiplies the estimated gradient of the total loss.
        averaged: the weights are the mean of this share of the iterates, the last ones.
    """

    clip: float
    rate: float
    steps: int
    learning_rate: float
    averaged: float = 0.5

    @property
    def averaged_steps(self) -> int:
        """How many of the last iterates are averaged: at least one."""
        return max(1, round(self.averaged * self.steps))


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
    return next(_fits(table, accounting, [settings], seed))[1]


def settings_grid(
    n: int,
    *,
    clips: Sequence[float] = (0.3, 1.0),
    rates: Sequence[float] = (1.0,),
    steps: Sequence[int] = (16, 64, 250, 1000, 2000),
    reaches: Sequence[float] = (0.3, 1.0, 3.0, 10.0),
    averaged: Sequence[float] = (0.1, 0.5, 1.0),
) -> list[DPSGDSettings]:
    """All combinations; `reaches` is how far a step goes if all n gradients are as long as the clip norm."""
    return [
        DPSGDSettings(clip, rate, count, reach / (clip * n), share)
        for clip, rate, count, reach, share in product(clips, rates, steps, reaches, averaged)
    ]


def tune_dp_sgd(
    table: ps.PatternTable,
    accounting: Accounting,
    candidates: Sequence[DPSGDSettings],
    *,
    seeds: int = 2,
    finalists: int = 8,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> DPSGDSettings:
    """The candidate with the best mean training accuracy. The choice is NOT private.

    All candidates run `seeds` times, then the best `finalists` four times as often with other noise.
    """
    remaining = list(candidates)
    for runs in (range(seeds), range(seeds, 5 * seeds)):
        seeded = (np.random.SeedSequence((random_state, run, TUNING)) for run in runs)
        scores = Parallel(n_jobs)(delayed(_scores)(table, accounting, remaining, seed) for seed in seeded)
        order = np.argsort(-np.sum(scores, axis=0), kind="stable")
        remaining = [remaining[i] for i in order[:finalists]]
    return remaining[0]


def _scores(
    table: ps.PatternTable, accounting: Accounting, candidates: Sequence[DPSGDSettings], seed: np.random.SeedSequence
) -> Floats:
    scores = np.zeros(len(candidates))
    for i, weights in _fits(table, accounting, candidates, seed):
        scores[i] = accuracy(table, weights)
    return scores


def _fits(
    table: ps.PatternTable,
    accounting: Accounting,
    candidates: Sequence[DPSGDSettings],
    seed: int | np.random.SeedSequence,
) -> Iterator[tuple[int, Floats]]:
    """Number and weights of every candidate; those of one rate and number of steps share a pass, its samples and noise."""
    for rate, steps in dict.fromkeys((c.rate, c.steps) for c in candidates):
        group = [i for i, c in enumerate(candidates) if (c.rate, c.steps) == (rate, steps)]
        columns = sorted({(candidates[i].clip, candidates[i].learning_rate) for i in group})
        multiplier = noise_multiplier(accounting, rate, steps)
        sums = {candidates[i].averaged_steps: np.zeros((table.dim, len(columns))) for i in group}
        iterates = descend(table, rate, steps, multiplier, np.array(columns).T, np.random.default_rng(seed))
        for k, weights in enumerate(iterates):
            for kept, total in sums.items():
                if k >= steps - kept:
                    total += weights
        for i in group:
            c = candidates[i]
            yield i, sums[c.averaged_steps][:, columns.index((c.clip, c.learning_rate))] / c.averaged_steps


def descend(
    table: ps.PatternTable, rate: float, steps: int, multiplier: float, columns: Floats, rng: np.random.Generator
) -> Iterator[Floats]:
    """The iterates of one run per column; `columns` holds the clip norms and the learning rates."""
    clips, learning_rates = columns
    rows = features(table)
    norms = np.linalg.norm(rows, axis=1)[:, None]
    with np.errstate(divide="ignore"):
        allowed = clips / norms  # largest factor of a row whose gradient is not clipped
    weights = np.zeros((table.dim, len(clips)))
    for _ in range(steps):
        positives, negatives = (_sampled(counts, rate, rng) for counts in (table.positives, table.negatives))
        p = expit(rows @ weights)
        factors = negatives[:, None] * np.minimum(p, allowed) - positives[:, None] * np.minimum(1 - p, allowed)
        noise = multiplier * clips * rng.normal(size=(table.dim, 1))
        weights = weights - learning_rates / rate * (rows.T @ factors + noise)
        yield weights


def _sampled(counts: Int64Array, rate: float, rng: np.random.Generator) -> Int64Array:
    """How many records of each row take part in a step: equal records have equal gradients."""
    return counts if rate == 1 else rng.binomial(counts, rate)


def logistic_regression(table: ps.PatternTable, regularisation: float = 1e-3) -> Floats:
    """Weights of logistic regression without privacy, for a reference line."""
    rows = features(table)
    labels = np.repeat([1, 0], len(rows))
    model = LogisticRegression(C=1 / regularisation, fit_intercept=False, tol=1e-8, max_iter=10_000)
    model.fit(np.vstack([rows, rows]), labels, sample_weight=np.concatenate([table.positives, table.negatives]))
    return np.asarray(model.coef_[0])


def features(table: ps.PatternTable) -> Floats:
    """The distinct rows as real numbers: features over their scales."""
    return np.asarray(table.features / np.array(table.scales, dtype=np.float64))


def accuracy(table: ps.PatternTable, weights: Floats) -> float:
    """Share of records that "positive iff the score is above 0" classifies correctly."""
    positive = features(table) @ weights > 0
    return float((table.positives @ positive + table.negatives @ ~positive) / table.n)
