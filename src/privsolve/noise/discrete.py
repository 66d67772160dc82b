"""Discrete Laplace and Gaussian noise, drawn exactly, with integers only, and the coins it is made of (theory, section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from scipy.special import ndtri

from privsolve.arrays import Floats, Int64Array
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

LARGEST_SCALE = 2**52
"""Keeps a draw beyond int64 below probability exp(-2047)."""


@dataclass(frozen=True)
class DiscreteLaplace:
    """Independent integers with `P(k)` proportional to `exp(-|k|/scale)`: pure privacy at scale `Δ/ε` for whole numbers.

    `scale` is a fraction, in steps of whatever grid is counted on, so that the law has no rounding at all.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= LARGEST_SCALE:
            raise ValueError(
                f"the scale of discrete noise must be positive and at most 2^52 steps (use a coarser grid), got {self.scale}"
            )

    @classmethod
    def on_cells(cls, epsilon: Fraction, adjacency: Adjacency, units: int = 1) -> Self:
        """On the counts of cells, of which a record is in one with up to `units`: replacing it changes two (theory, 11.1)."""
        return cls((2 if adjacency is Adjacency.REPLACE else 1) * units / epsilon)

    def draws(self, rng: Randomness, count: int) -> Int64Array:
        """`count` independent integers."""
        exact = Fraction(self.scale)
        return np.array([_draw(rng, exact) for _ in range(count)], dtype=np.int64)

    @property
    def deviation(self) -> float:
        """The standard deviation, or slightly more."""
        return math.sqrt(2) * float(self.scale)

    def margin(self, delta: float) -> int:
        """The least t with `P(Z >= t) = e^(-t/s)/(1 + e^(-1/s)) <= delta`, one more for rounding."""
        scale = float(self.scale)
        return max(1, math.ceil(-scale * (math.log(delta) + math.log1p(math.exp(-1 / scale)))) + 1)

    def log_probability(self, z: Int64Array) -> Floats:
        """`log P(Z = z)`, in floating point."""
        scale = float(self.scale)
        return np.asarray(math.log(math.tanh(0.5 / scale)) - np.abs(z) / scale)

    def log_cdf(self, z: Int64Array) -> Floats:
        """`log P(Z <= z)`, in floating point: `q^-z/(1+q)` below 0, otherwise `1 - q^(z+1)/(1+q)`, `q = exp(-1/scale)`."""
        scale = float(self.scale)
        log_half = math.log1p(math.exp(-1.0 / scale))
        return np.where(
            z < 0, np.minimum(z, 0) / scale - log_half, np.log1p(-np.exp(-(np.maximum(z, 0) + 1) / scale - log_half))
        )


@dataclass(frozen=True)
class DiscreteGaussian:
    """Independent integers with `P(k)` proportional to `exp(-k²/(2·variance))`.

    On whole numbers that change by Δ in Euclidean length it is `Δ²/(2·variance)`-zCDP (Canonne, Kamath and Steinke, "The
    discrete Gaussian for differential privacy", Theorem 14). `variance` is a fraction, so the law has no rounding at all.
    """

    variance: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.variance <= LARGEST_SCALE**2:
            raise ValueError(f"the variance of discrete noise must be positive and at most 2^104, got {self.variance}")

    @property
    def deviation(self) -> float:
        """The standard deviation, or slightly more."""
        return math.sqrt(self.variance)

    def draws(self, rng: Randomness, count: int) -> Int64Array:
        """`count` independent integers, by Algorithm 3 of the paper."""
        scale = math.isqrt(math.floor(self.variance)) + 1
        found: list[int] = []
        while len(found) < count:
            value = _draw(rng, Fraction(scale))
            if exp_coin(rng, (abs(value) - self.variance / scale) ** 2 / (2 * self.variance)):
                found.append(value)
        return np.array(found, dtype=np.int64)

    def margin(self, delta: float) -> int:
        """A whole t with `P(Z >= t) <= delta`: at most the normal tail from `t - 1` on (Proposition 25 of the paper)."""
        return max(1, math.ceil(self.deviation * float(-ndtri(delta)) * (1 + 1e-9)) + 2)


def _draw(rng: Randomness, scale: Fraction) -> int:
    """Algorithm 2 of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy"."""
    t, s = scale.numerator, scale.denominator
    while True:
        remainder = rng.integer_below(t)
        if not _bernoulli_exp(rng, remainder, t):
            continue
        quotient = 0
        while _bernoulli_exp(rng, 1, 1):
            quotient += 1
        # remainder + t*quotient is geometric with ratio exp(-1/t); s of its steps make one of ours.
        size = (remainder + t * quotient) // s
        negative = rng.integer_below(2) == 1
        if size or not negative:  # otherwise 0 would be counted twice
            return -size if negative else size


def exp_coin(rng: Randomness, exponent: Fraction) -> bool:
    """True with probability exactly `exp(-exponent)`, for a fraction of at least 0: a coin for every whole 1 of it first."""
    if exponent < 0:
        raise ValueError("exponent must not be negative")
    whole, rest = divmod(exponent.numerator, exponent.denominator)
    return all(_bernoulli_exp(rng, 1, 1) for _ in range(whole)) and _bernoulli_exp(rng, rest, exponent.denominator)


def _bernoulli_exp(rng: Randomness, numerator: int, denominator: int) -> bool:
    """True with probability exactly `exp(-g)`, `g = numerator/denominator` in [0, 1].

    The first k at which a Bernoulli(g/k) fails is odd with probability 1 - g + g^2/2! - ... = exp(-g).
    """
    k = 1
    while rng.integer_below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
