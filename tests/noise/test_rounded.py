"""Rounded Gaussian noise: exactly the law of a real Gaussian rounded down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from privsolve.noise import discrete
from privsolve.noise.entropy import Randomness

DRAWS = 100_000


def p_value(bits: int, seed: int) -> float:
    """Of the counts of `⌊N(0, 4^bits)⌋`, cell by cell out to three and a half deviations."""
    draws, deviation = discrete.RoundedGaussian(bits).draws(Randomness.seeded(seed), DRAWS), 2.0**bits
    ends = np.arange(-np.ceil(3.5 * deviation), np.ceil(3.5 * deviation) + 1)
    expected = DRAWS * np.diff(norm.cdf(np.concatenate([[-np.inf], ends / deviation, [np.inf]])))
    observed = np.bincount(np.searchsorted(ends, draws, side="right"), minlength=len(expected))
    return float(chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("bits", [0, 1, 2, 4])
def test_law_is_that_of_a_gaussian_rounded_down(bits: int) -> None:
    assert p_value(bits, seed=bits) > 1e-3


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_ties_are_decided_by_further_digits(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With digits of two bits every fourth comparison is a tie: what happens once in 2^64 words happens all the time."""
    digits = discrete._digits
    monkeypatch.setattr(discrete, "_digits", lambda rng, size: digits(rng, size) & np.uint64(3 << 62))
    assert p_value(bits, seed=20 + bits) > 1e-3


def test_wide_noise_is_gaussian_in_all_of_its_digits() -> None:
    draws = discrete.RoundedGaussian(45).draws(Randomness.seeded(5), DRAWS)
    assert kstest(draws / 2.0**45, "norm").pvalue > 1e-3
    low = draws & 1023  # the last bits are uniform and independent of the size
    assert chisquare(np.bincount(low, minlength=1024)).pvalue > 1e-3
    assert abs(np.corrcoef(low, np.abs(draws))[0, 1]) < 0.02


def test_numbers_are_fresh_and_as_many_as_asked_for() -> None:
    system = Randomness.system()
    assert not np.array_equal(*(discrete.RoundedGaussian(30).draws(system, 5) for _ in range(2)))
    for size in (0, 1, 7, 1000):
        draws = discrete.RoundedGaussian(10).draws(Randomness.seeded(1), size)
        assert (draws.shape, draws.dtype) == ((size,), np.int64)


@pytest.mark.parametrize("bits", [-1, 57])
def test_deviations_beyond_int64_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits must be"):
        discrete.RoundedGaussian(bits)
