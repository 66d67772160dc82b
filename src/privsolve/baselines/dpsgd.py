"""DP-SGD: gradient descent on clipped gradients with Gaussian noise (docs, baselines, section B1)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.baselines.accountants import AccountantKind, check_rate, noise_multiplier
from privsolve.baselines.lattice import Lattice, LatticeRows
from privsolve.baselines.linear import LinearFit, Rows
from privsolve.checks import check_count, check_positive
from privsolve.data.patterns import PatternTable
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.noise.rounded import RoundedGaussian
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import Approximate

NOISE_BLOCK = 8192
"""Numbers of noise drawn at a time: few at a time are slow."""


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
    adjacency: Adjacency | str = Adjacency.REPLACE,
    accountant: AccountantKind | str = AccountantKind.PLD,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
) -> LinearFit:
    """Private logistic regression by noisy gradient descent.

    Every step takes each record with probability `settings.rate`, clips its gradient, adds Gaussian noise to the sum and
    moves the weights. Gradients and noise are integers, multiples of a public unit. `accountant` is `"pld"` (tightest) or
    `"rdp"` (the moments accountant).

    Guarantee:
        The weights are `(epsilon, delta)`-DP under `adjacency` (`"replace"` or `"add-remove"`) for fixed `settings` (docs,
        baselines, section B1): the noise is what the accountant proves for the dominating pair of mixtures of one step,
        composed over the steps, and it is drawn exactly: what a step makes known is the Gaussian mechanism on an integer
        vector, rounded down. Not covered: settings that were chosen by looking at the data (`tune_dp_sgd`).
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
        f"rounded Gaussian noise, {accountant.upper()} accountant", theory="B1", oracle="none", seeded=rng.is_seeded,
        schema_guessed=table.guessed,
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
    on_lattice = LatticeRows.of(rows, Lattice.of(multiplier))
    weights = np.zeros((rows.dim, len(clips)))
    unit = clips / on_lattice.lattice.clip
    for noise in _noise(on_lattice.lattice.bits, steps, rows.dim, rng):
        total = on_lattice.clipped_sum(weights, clips, *poisson_counts(rows, rate, rng)) + noise[:, None]
        weights = weights - learning_rates / rate * (unit * total)
        yield weights


def _noise(bits: int, steps: int, dim: int, rng: Randomness) -> Iterator[Int64Array]:
    """A vector of rounded Gaussian noise for each step, drawn many steps at a time."""
    block = max(1, NOISE_BLOCK // dim)
    for first in range(0, steps, block):
        size = min(block, steps - first)
        yield from RoundedGaussian(bits).draws(rng, size * dim).reshape(size, dim)


def poisson_counts(rows: Rows, rate: float, rng: Randomness) -> tuple[Int64Array, Int64Array]:
    """How many positive and negative records of each row take part, each with probability `rate`.

    Equal records have equal gradients, so their number is all that a step needs. A record takes part iff its own 64-bit
    word is below `rate·2^64`, rounded down.
    """
    if rate == 1:
        return rows.positives, rows.negatives
    sizes = np.concatenate([rows.positives, rows.negatives])
    taken = rng.words(int(sizes.sum())) < np.uint64(floor(rate * 2.0**64))
    before = np.concatenate([[0], np.cumsum(taken)])
    counts = np.diff(before[np.concatenate([[0], np.cumsum(sizes)])])
    return counts[: len(rows.norms)], counts[len(rows.norms) :]
