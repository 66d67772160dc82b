"""Gaussian noise rounded down to integers, drawn exactly: comparisons of random bits, no function of a floating point number.

`⌊N(0, σ²)⌋` added to an integer is the Gaussian mechanism on that integer, rounded down, because `k + ⌊y⌋ = ⌊k + y⌋`. Every
proof for real Gaussian noise therefore holds for it as it is (docs, baselines, section B1).

The sampler is that of Karney, "Sampling exactly from the normal distribution" (2016), with `σ = 2^bits`: the integer part
q of `|x|` and its fraction f are accepted with probability `exp(-q²/2)·exp(-f)^q·exp(-f²/2) = exp(-(q+f)²/2)`, and the
first `bits` binary digits of f are all that is needed of it. Coins of probability `exp(-p)` are made from trials of
probability p: the number of trials in a row that succeed, the j-th only with a further chance of 1/j, is even with that
probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privsolve.arrays import Int64Array, Words
from privsolve.noise.entropy import Randomness

LARGEST_BITS = 56
"""Of the deviation `2^bits`: what is drawn stays in int64 below 127 deviations, that is but for probability e^-8000."""

_SURPLUS = 3
"""Candidates per number wanted: about half of them are kept."""

_Bools = npt.NDArray[np.bool_]


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
