"""DP-SGD: gradient descent on clipped gradients with Gaussian noise (docs, baselines, section B1)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

import numpy as np

from privsolve.baselines.accountants import check_rate, noise_multiplier
from privsolve.baselines.linear import Floats, LinearFit, Rows
from privsolve.checks import check_count, check_positive
from privsolve.data.patterns import PatternTable
from privsolve.noise.draws import standard_normal
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import Approximate


@dataclass(frozen=True)
class DPSGDSettings:
    """The public settings of one fit, fixed before looking at the data.

    `clip` bounds the norm of a record's gradient, `rate` is the probability with which a record takes part in a step (1:
    all do), `learning_rate` multiplies the estimated gradient of the *total* loss (divide a rate for the mean loss by the
    number of records), and the weights are the average of the last share `averaged` of the iterates.
    """

    clip: float
    rate: float
    steps: int
    learning_rate: float
    averaged: float = 0.5

    def __post_init__(self) -> None:
        for name in ("clip", "rate", "learning_rate", "averaged"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        check_rate(self.rate)
        object.__setattr__(self, "steps", check_count("steps", self.steps))
        if self.averaged > 1:
            raise ValueError(f"averaged must be a share of the iterates, at most 1, got {self.averaged!r}")


def dp_sgd(
    table: PatternTable,
    epsilon: float,
    delta: float,
    settings: DPSGDSettings,
    *,
    adjacency: str = "replace",
    accountant: str = "pld",
    random_state: int | np.random.SeedSequence | Randomness | None = None,
) -> LinearFit:
    """Private logistic regression by noisy gradient descent.

    Every step takes each record with probability `settings.rate`, clips its gradient, adds Gaussian noise to the sum and
    moves the weights. `accountant` is `"pld"` (tightest) or `"rdp"` (the moments accountant).

    Guarantee:
        The weights are `(epsilon, delta)`-DP under `adjacency` (`"replace"` or `"add-remove"`) for fixed `settings` (docs,
        baselines, section B1): the noise is what the accountant proves for the dominating pair of mixtures of one step,
        composed over the steps. Not covered: settings that were chosen by looking at the data (`tune_dp_sgd`), and the
        rounding of the Gaussian noise to floating point numbers.
    """
    start = time.perf_counter()
    rows = Rows.of(table)
    if not isinstance(settings, DPSGDSettings):
        raise ValueError(f"settings must be DPSGDSettings, got {type(settings).__name__}")
    multiplier = noise_multiplier(settings.rate, settings.steps, epsilon, delta, adjacency, accountant)
    rng = as_randomness(random_state)
    clips, learning_rates = np.array([settings.clip]), np.array([settings.learning_rate])
    total = np.zeros(rows.dim)
    kept = averaged_steps(settings.steps, settings.averaged)
    for k, weights in enumerate(descend(rows, settings.rate, settings.steps, multiplier, clips, learning_rates, rng)):
        if k >= settings.steps - kept:
            total += weights[:, 0]
    guarantee = Guarantee(
        Approximate(epsilon, delta), Adjacency.of(adjacency), "DP-SGD logistic regression",
        f"Gaussian noise, {accountant.upper()} accountant", theory="B1", oracle="none",
        proof=Proof.REAL_ARITHMETIC, seeded=rng.is_seeded,
    )  # fmt: skip
    return LinearFit(total / kept, guarantee, time.perf_counter() - start)


def averaged_steps(steps: int, averaged: float) -> int:
    """How many of the last iterates are averaged: at least one."""
    return max(1, round(averaged * steps))


def descend(
    rows: Rows, rate: float, steps: int, multiplier: float, clips: Floats, learning_rates: Floats, rng: Randomness
) -> Iterator[Floats]:
    """The iterates of one run per column; column k has `clips[k]` and `learning_rates[k]`.

    The columns share samples and noise: a column is one run of the mechanism, and only one of them may be released.
    """
    weights = np.zeros((rows.dim, len(clips)))
    for _ in range(steps):
        gradient = noisy_sum(rows, weights, rate, multiplier, clips, rng)
        weights = weights - learning_rates / rate * gradient
        yield weights


def noisy_sum(rows: Rows, weights: Floats, rate: float, multiplier: float, clips: Floats, rng: Randomness) -> Floats:
    """The clipped gradients of a Poisson sample, summed, with noise of deviation `multiplier·clip` per coordinate."""
    positives, negatives = poisson_counts(rows, rate, rng)
    noise = standard_normal(rng, rows.dim)
    return clipped_sum(rows, weights, clips, positives, negatives) + multiplier * clips * noise[:, None]


def clipped_sum(rows: Rows, weights: Floats, clips: Floats, positives: Floats, negatives: Floats) -> Floats:
    """The sum of clipped gradients of the logistic loss, for the given numbers of records of each row.

    With `p = 1/(1+e^{-<x,w>})` the gradient is `p·x` for a negative record and `-(1-p)·x` for a positive one: clipping
    it to norm C caps its factor at `C/‖x‖`.
    """
    p = np.asarray(rows.rows @ weights)
    with np.errstate(over="ignore", divide="ignore"):  # e^{-score} = inf gives p = 0; a row of zeros needs no cap
        cap = clips / rows.norms[:, None]
        np.exp(np.negative(p, out=p), out=p)  # in place: this is where the time goes
    np.reciprocal(np.add(p, 1.0, out=p), out=p)
    factor = negatives[:, None] * np.minimum(p, cap)
    np.minimum(np.subtract(1.0, p, out=p), cap, out=p)
    factor -= np.multiply(positives[:, None], p, out=p)
    return np.asarray(rows.columns @ factor)


def poisson_counts(rows: Rows, rate: float, rng: Randomness) -> tuple[Floats, Floats]:
    """How many positive and negative records of each row take part, each with probability `rate`.

    Equal records have equal gradients, so their number is all that a step needs. A record takes part iff its own 64-bit
    word is below `rate·2^64`, rounded down.
    """
    if rate == 1:
        return rows.positives, rows.negatives
    sizes = np.concatenate([rows.positives, rows.negatives]).astype(np.int64)
    taken = rng.words(int(sizes.sum())) < np.uint64(floor(rate * 2.0**64))
    before = np.concatenate([[0], np.cumsum(taken)])
    counts = np.diff(before[np.concatenate([[0], np.cumsum(sizes)])]).astype(np.float64)
    return counts[: len(rows.norms)], counts[len(rows.norms) :]
