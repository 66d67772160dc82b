"""Laplace and Gaussian noise of whole numbers, drawn exactly by comparing random bits (theory, section 6).

`⌊N(0, σ²)⌋` added to an integer is the Gaussian mechanism on that integer, rounded down, because `k + ⌊y⌋ = ⌊k + y⌋`. Every
proof for real Gaussian noise therefore holds for it as it is (docs, baselines, section B1). Its sampler is that of Karney,
"Sampling exactly from the normal distribution" (2016), with `σ = 2^bits`: the integer part q of `|x|` and its fraction f are
accepted with probability `exp(-q²/2)·exp(-f)^q·exp(-f²/2) = exp(-(q+f)²/2)`, and the first `bits` binary digits of f are all
that is needed of it. Coins of probability `exp(-p)` are made from trials of probability p: the number of trials in a row that
succeed, the j-th only with a further chance of 1/j, is even with that probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from privsolve.arrays import Floats, Int64Array, Words
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

LARGEST_SCALE = 2**52
"""Keeps a draw beyond int64 below probability exp(-2047)."""

LARGEST_BITS = 56
"""Of the deviation `2^bits`: what is drawn stays in int64 below 127 deviations, that is but for probability e^-8000."""

_SURPLUS = 3
"""Candidates per number wanted: about half of them are kept."""

_Bools = npt.NDArray[np.bool_]


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


@dataclass(frozen=True)
class RoundedGaussian:
    """Independent integers with exactly the law of `⌊N(0, 4^bits)⌋`."""

    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= LARGEST_BITS:
            raise ValueError(f"bits must be a whole number from 0 to {LARGEST_BITS}, got {self.bits!r}")

    def draws(self, rng: Randomness, count: int) -> Int64Array:
        """`count` independent integers."""
        found = [np.empty(0, dtype=np.int64)]
        missing = count
        while missing > 0:
            found.append(_accepted(rng, self.bits, _SURPLUS * missing + 16)[:missing])
            missing -= len(found[-1])
        return np.concatenate(found)


def _accepted(rng: Randomness, bits: int, candidates: int) -> Int64Array:
    """The integers of those candidates that are accepted, in their order."""
    whole = _whole_parts(rng, candidates)
    fraction = _Fractions(rng, len(whole))

    def half_square(rows: Int64Array) -> _Bools:
        return fraction.exceed(rows) & fraction.exceed(rows) & (rng.sign(len(rows)) < 0)

    kept = np.arange(len(whole))
    kept = kept[_exp_coins(rng, kept, half_square)]
    kept = kept[_repeated(whole[kept], lambda rows: _exp_coins(rng, kept[rows], fraction.exceed))]
    size = (whole[kept] << bits) + fraction.leading(bits)[kept]
    negative = rng.sign(len(kept)) < 0
    return np.asarray(np.where(negative, -size - 1, size), dtype=np.int64)


def _whole_parts(rng: Randomness, candidates: int) -> Int64Array:
    """Independent q with probability proportional to `exp(-q²/2)`: geometric, then accepted with `exp(-q(q-1)/2)`."""

    def coins(rows: Int64Array) -> _Bools:
        return _exp_coins(rng, rows, lambda trials: rng.sign(len(trials)) < 0)

    q = np.zeros(candidates, dtype=np.int64)
    rows = np.arange(candidates)
    while rows.size:
        rows = rows[coins(rows)]
        q[rows] += 1
    return q[_repeated(q * (q - 1), coins)]


def _repeated(counts: Int64Array, coins: Callable[[Int64Array], _Bools]) -> _Bools:
    """Where a coin comes up in all of `counts` flips; `coins` flips one for each of the given rows."""
    fine = np.ones(len(counts), dtype=bool)
    flips = 0
    while (rows := np.flatnonzero(fine & (counts > flips))).size:
        fine[rows] = coins(rows)
        flips += 1
    return fine


def _exp_coins(rng: Randomness, rows: Int64Array, trial: Callable[[Int64Array], _Bools]) -> _Bools:
    """True with probability `exp(-p)` for each row, p being the probability of `trial` for it."""
    even = np.ones(len(rows), dtype=bool)
    going = np.arange(len(rows))
    attempt = 1
    while going.size:
        going = going[trial(rows[going])]
        going = going[_one_in(rng, attempt, going.size)]
        even[going] = ~even[going]
        attempt += 1
    return even


def _one_in(rng: Randomness, n: int, size: int) -> _Bools:
    """True with probability exactly `1/n`: words beyond the last whole multiple of n are drawn again."""
    words = rng.words(size).copy()
    last = np.uint64(2**64 // n * n - 1)
    while (beyond := np.flatnonzero(words > last)).size:
        words[beyond] = rng.words(beyond.size)
    return np.asarray(words % np.uint64(n) == 0)


class _Fractions:
    """Uniform real numbers in [0, 1), known to as many 64-bit digits as comparisons have asked for."""

    def __init__(self, rng: Randomness, size: int) -> None:
        self._rng, self._size = rng, size
        self._digits: list[Words] = [_digits(rng, size)]

    def exceed(self, rows: Int64Array) -> _Bools:
        """For each row whether its number is above a fresh uniform one: decided by the first digit that differs."""
        above = np.zeros(len(rows), dtype=bool)
        tied, place = np.arange(len(rows)), 0
        while tied.size:
            if place == len(self._digits):
                self._digits.append(_digits(self._rng, self._size))
            own, fresh = self._digits[place][rows[tied]], _digits(self._rng, tied.size)
            above[tied] = own > fresh
            tied, place = tied[own == fresh], place + 1
        return above

    def leading(self, bits: int) -> Int64Array:
        """The first `bits` binary digits, as integers."""
        return np.asarray(self._digits[0] >> np.uint64(64 - bits) if bits else np.zeros(self._size), dtype=np.int64)


def _digits(rng: Randomness, size: int) -> Words:
    return rng.words(size)
