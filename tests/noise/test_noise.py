"""The noise laws of theory section 6, against reference laws and with crafted words."""

from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import exp, log

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats
from scipy.special import ndtri

import privsolve as ps
from privsolve.noise import discrete
from privsolve.noise.accuracy import VALUES, InexactNoise, check_scipy
from privsolve.noise.discrete import DiscreteLaplace, RoundedGaussian
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.noise.laws import Gaussian, L2Gamma, Laplace, LinfGamma, NoiseLaw, directions, gamma, standard_normal

N = 20_000
ALMOST_NEVER = 1e-4  # a correct sampler fails one fixed-seed test in ten thousand seeds


def scripted(*words: int) -> Randomness:
    """Randomness that hands out the given words in order, and fails when they run out."""
    left = list(words)

    def draw(size: int) -> npt.NDArray[np.uint64]:
        taken = [left.pop(0) for _ in range(size)]
        return np.array(taken, dtype=np.uint64)

    return Randomness(draw, seeded=True)


def assert_law(sample: npt.NDArray[np.float64], law: stats.rv_continuous) -> None:
    assert stats.kstest(sample, law.cdf).pvalue > ALMOST_NEVER


# --- words and uniforms ---------------------------------------------------------------------------


def test_uniform_exponent_is_geometric() -> None:
    u = Randomness.seeded(2).uniform(200_000)
    exponent = np.minimum(-np.frexp(u)[1], 13)  # beyond 12 a second word is used
    observed = np.bincount(exponent, minlength=14)
    expected = u.size * np.append(0.5 ** np.arange(1, 14), 0.5**13)
    assert stats.chisquare(observed, expected).pvalue > ALMOST_NEVER


def test_uniform_mantissa_is_uniform_in_every_binade() -> None:
    u = Randomness.seeded(3).uniform(100_000)
    mantissa = 2 * np.frexp(u)[0] - 1
    for binade in (u > 0.5, (u > 0.25) & (u < 0.5), u < 2.0**-6):
        assert_law(mantissa[binade], stats.uniform())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((2**64 - 1,), 1 - 2.0**-53),  # the largest
        ((2**63,), 0.5),
        ((2**62,), 0.25),
        ((2**52,), 2.0**-12),  # the last exponent that one word can give
        ((0, 2**63), 2.0**-13),
        ((0, 2**12), 2.0**-64),  # the last exponent that two words can give
        ((1, 2**12), 2.0**-64 * (1 + 2.0**-52)),  # the mantissa keeps its 52 bits that far down
        ((0, 0, 2**63), 2.0**-65),
        ((0, 2**12 - 1, 2**63), 2.0**-65),  # the 12 low bits of an exponent word are not looked at
    ],
)
def test_uniform_from_crafted_words(words: tuple[int, ...], expected: float) -> None:
    assert scripted(*words).uniform(1)[0] == expected


def test_uniform_extra_words_go_to_the_entries_that_need_them() -> None:
    u = scripted(2**63, 0, 2**62, 0, 2**63, 2**62).uniform(4)
    assert u.tolist() == [0.5, 2.0**-13, 0.25, 2.0**-14]


def test_uniform_is_never_zero() -> None:
    zeros = Randomness(lambda size: np.zeros(size, dtype=np.uint64), seeded=True)
    assert np.all(zeros.uniform(3) == 2.0**-1022)


def test_signs_are_fair_and_independent() -> None:
    sign = Randomness.seeded(4).sign(N + 1)
    assert sign.size == N + 1
    assert set(sign) == {-1.0, 1.0}
    assert abs(sign.mean()) < 4 / np.sqrt(N)
    for lag in (1, 8, 64):
        assert abs(np.mean(sign[lag:] * sign[:-lag])) < 4 / np.sqrt(N)


# --- sources --------------------------------------------------------------------------------------


def test_seeded_is_reproducible_and_says_so() -> None:
    first, second = Randomness.seeded(5), Randomness.seeded(5)
    assert first.is_seeded
    assert np.array_equal(first.words(100), second.words(100))
    assert not np.array_equal(first.words(100), Randomness.seeded(6).words(100))


def test_system_words_are_never_handed_out_twice() -> None:
    rng = Randomness.system()
    assert not rng.is_seeded
    drawn = np.concatenate([rng.words(size) for size in (1, 2, 1000, 5000, 1, 0, 3)])
    assert np.unique(drawn).size == drawn.size


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_copies_of_system_randomness_do_not_share_words(clone) -> None:
    rng = Randomness.system()
    rng.words(1)  # fills the buffer
    other = clone(rng)
    assert not set(rng.words(20).tolist()) & set(other.words(20).tolist())


def test_threads_do_not_share_words() -> None:
    rng = Randomness.system()
    rng.words(1)
    with ThreadPoolExecutor(4) as threads:
        drawn = np.concatenate(list(threads.map(lambda _: rng.words(5), range(800))))
    assert len(np.unique(drawn)) == len(drawn) == 4000


def test_a_forked_process_does_not_repeat_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Randomness.system()
    rng.words(1)
    expected = copy.copy(rng._draw._buffer[:20])
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)  # what a child sees after the fork
    assert not set(rng.words(20).tolist()) & set(expected.tolist())


def test_as_randomness() -> None:
    rng = Randomness.seeded(7)
    assert as_randomness(rng) is rng
    assert not as_randomness(None).is_seeded
    words = Randomness.seeded(7).words(3).tolist()
    for seed in (7, np.int64(7), np.random.SeedSequence(7)):
        assert as_randomness(seed).words(3).tolist() == words  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.random.default_rng(0), "7", 1.0, True, -1])
def test_as_randomness_rejects_other_things(bad: object) -> None:
    with pytest.raises(ValueError if bad == -1 else TypeError, match="random_state"):
        as_randomness(bad)  # type: ignore[arg-type]


# --- exact integers -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64])
def test_integer_below_is_uniform(n: int) -> None:
    rng = Randomness.seeded(n)
    drawn = np.bincount([rng.integer_below(n) for _ in range(200 * n)], minlength=n)
    assert drawn.size == n
    assert n == 1 or stats.chisquare(drawn).pvalue > ALMOST_NEVER


def test_integer_below_large_numbers() -> None:
    n = 3**200  # 317 bits: five words
    rng = Randomness.seeded(8)
    drawn = [rng.integer_below(n) for _ in range(3000)]
    assert max(drawn) < n
    assert_law(np.array([x / n for x in drawn]), stats.uniform())
    low_digit = np.bincount([x % 7 for x in drawn], minlength=7)  # the low bits must be random too
    assert stats.chisquare(low_digit).pvalue > ALMOST_NEVER


def test_integer_below_rejects_and_uses_the_top_bits() -> None:
    # n = 5 needs 3 bits: 7, 6 and 5 are rejected, 4 is kept.
    assert scripted(7 << 61, 6 << 61, 5 << 61, 4 << 61).integer_below(5) == 4
    assert scripted().integer_below(1) == 0  # no word is spent on a certainty
    with pytest.raises(ValueError, match="n must be"):
        scripted().integer_below(0)


# --- continuous laws ------------------------------------------------------------------------------


def test_normal_law() -> None:
    assert_law(standard_normal(Randomness.seeded(11), N), stats.norm())


@pytest.mark.parametrize("shape", [1.0, 3.0, 24.0, 5000.0])
def test_gamma_law(shape: float) -> None:
    assert_law(gamma(Randomness.seeded(13), shape, 2.0, N), stats.gamma(shape, scale=2.0))


def test_laplace_law() -> None:
    assert_law(Laplace(N, 3.0).draw(Randomness.seeded(14)), stats.laplace(scale=3.0))


# Three words for a uniform of 2^-100, then one word of signs (the first byte is used first).
TINY, PLUS, MINUS = (0, 0, 2**28), 2**64 - 1, 0


def test_laws_reach_both_far_tails() -> None:
    for sign, word in ((1, PLUS), (-1, MINUS)):
        z = standard_normal(scripted(word, *TINY), 1)[0]
        assert sign * z > 10
        assert stats.norm.sf(sign * z) == pytest.approx(2.0**-101, rel=1e-12)
        x = Laplace(1, 2.0).draw(scripted(word, *TINY))[0]
        assert x == pytest.approx(sign * 2.0 * 100 * log(2), rel=1e-14)
    law = stats.gamma(24, scale=3.0)
    upper = gamma(scripted(*TINY, PLUS), 24, 3.0, 1)[0]
    lower = gamma(scripted(*TINY, MINUS), 24, 3.0, 1)[0]
    assert law.sf(upper) == pytest.approx(2.0**-101, rel=1e-11)
    assert law.cdf(lower) == pytest.approx(2.0**-101, rel=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_l2_gamma_norm_and_direction(dim: int) -> None:
    eta = L2Gamma(dim, 2.0).draws(Randomness.seeded(15), 3000)
    norm = np.linalg.norm(eta, axis=1)
    assert_law(norm, stats.gamma(dim, scale=2.0))
    for j in range(dim):
        cosine = eta[:, j] / norm
        assert abs(np.mean(np.sign(cosine))) < 4 / np.sqrt(cosine.size)
        if dim > 1:  # the square of a coordinate of a uniform direction; independent of the norm
            assert_law(cosine**2, stats.beta(0.5, (dim - 1) / 2))
            assert abs(stats.spearmanr(np.abs(cosine), norm).statistic) < 4 / np.sqrt(norm.size)


NEAREST_ONE = 2**64 - 1  # the word of the largest uniform below 1, whose |z| is about 1.4e-16


def test_short_normal_vectors_point_everywhere() -> None:
    """In two dimensions both entries can be tiny: their ratio must not be one of a few small fractions."""
    angles = []
    for seed in range(300):
        rest = Randomness.seeded(seed)
        first = iter([0, NEAREST_ONE, NEAREST_ONE])  # signs, then both uniforms

        def draw(size: int, rest: Randomness = rest, first=first) -> npt.NDArray[np.uint64]:
            words = [next(first, None) for _ in range(size)]
            fresh = rest.words(size)
            return np.array([f if w is None else w for w, f in zip(words, fresh, strict=True)], dtype=np.uint64)

        eta = L2Gamma(2, 1.0).draw(Randomness(draw, seeded=True))
        angles.append(float(eta[0] / eta[1]))
    assert len(set(angles)) == 300
    ratio = np.array(angles)  # of two uniforms: below 1 half of the time, and then uniform
    assert_law(np.minimum(ratio, 1 / ratio), stats.uniform())


def test_complements_have_full_relative_precision() -> None:
    # 1 - 2^-53 is all reals up to 1: what is missing to 1 is 2^-53 times a new uniform, here 2^-100
    assert scripted(*TINY).complement(np.array([1 - 2.0**-53]))[0] == 2.0**-153
    assert scripted(2**63).complement(np.array([0.75]))[0] == 0.25 - 2.0**-54
    u = np.concatenate([Randomness.seeded(0).uniform(N), np.full(10, 1 - 2.0**-53)])
    u = u[u > 0.5]
    rest = Randomness.seeded(1).complement(u)
    assert ((rest > 0) & (rest <= 1 - u) & (rest >= 1 - u - 2.0**-53)).all()
    assert_law(2 * rest[:-10], stats.uniform())


def test_directions_are_continuous_where_the_method_changes() -> None:
    """Vectors a little shorter and a little longer than the limit are drawn by different functions of the same uniforms."""
    rng, again = Randomness.seeded(3), Randomness.seeded(3)
    rows = directions(rng, 2, 50_000)
    signs, u = again.sign(100_000).reshape(-1, 2), again.uniform(100_000).reshape(-1, 2)
    plain = signs * -ndtri(0.5 * u)
    short = np.linalg.norm(plain, axis=1) < 0.25
    assert 0.02 < short.mean() < 0.04
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    assert np.abs(rows[~short] - plain[~short]).max() < 1e-15
    assert 0 < np.abs(rows[short] - plain[short]).max() < 1e-12


# --- the accuracy that is assumed of SciPy ---


def test_this_scipy_is_exact_enough() -> None:
    check_scipy.cache_clear()
    check_scipy()


@pytest.mark.parametrize("function", sorted({value.function for value in VALUES}))
def test_an_inexact_scipy_costs_nothing(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(special, function)
    monkeypatch.setattr(special, function, lambda *x: right(*x) * (1 + 2.0**-40))
    check_scipy.cache_clear()
    budget = ps.Accountant(1.0)
    problem = ps.Problem(ps.PatternTable([[1, 0]], [1], [0]), ps.SignCube(2))
    for mechanism in (ps.opdisc, ps.rspm):
        with pytest.raises(InexactNoise, match=f"{function}.*Nothing was drawn; install another version"):
            mechanism(problem, 0.5, oracle="enumeration", budget=budget)
    assert not budget.history
    monkeypatch.undo()
    check_scipy.cache_clear()
    check_scipy()


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_linf_gamma_law(dim: int) -> None:
    """Density exp(-|x|_inf/s): the norm is Gamma(dim, s), and x/|x| is uniform on the surface of the cube."""
    eta = LinfGamma(dim, 2.0).draws(Randomness.seeded(18), 3000)
    norm = np.abs(eta).max(axis=1)
    assert_law(norm, stats.gamma(dim, scale=2.0))
    largest = np.abs(eta).argmax(axis=1)
    if dim > 1:
        assert stats.chisquare(np.bincount(largest, minlength=dim)).pvalue > ALMOST_NEVER
        assert_law((eta[:, 0] / norm)[largest != 0], stats.uniform(-1, 2))
    assert abs(np.sign(eta).mean()) < 4 / np.sqrt(eta.size)


@pytest.mark.parametrize("law", [L2Gamma, LinfGamma, Laplace, Gaussian])
def test_scale_and_dimension_are_checked(law: type[NoiseLaw]) -> None:
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="scale"):
            law(2, bad)
    with pytest.raises(ValueError, match="dim"):
        law(0, 1.0)


# --- the discrete Laplace law ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(40)])
def test_discrete_laplace_law(scale: Fraction) -> None:
    sample = DiscreteLaplace(scale).draws(Randomness.seeded(19), 6000)
    assert sample.dtype == np.int64
    ratio = exp(-1 / scale)
    edge = int(4 * scale) + 1
    inside = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-edge, edge + 1)]
    tail = (1 - sum(inside)) / 2
    expected = np.array([tail, *inside, tail]) * sample.size
    observed = np.bincount(np.clip(sample, -edge - 1, edge + 1) + edge + 1, minlength=expected.size)
    keep = expected > 5
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] == 0:
        observed, expected = observed[:-1], expected[:-1]
    assert stats.chisquare(observed, expected).pvalue > ALMOST_NEVER


def test_discrete_laplace_of_a_huge_scale_is_laplace() -> None:
    scale = Fraction(2**50 + 1, 3)
    sample = DiscreteLaplace(scale).draws(Randomness.seeded(20), 3000)
    assert_law(sample / float(scale), stats.laplace())
    assert stats.chisquare(np.bincount(sample % 5, minlength=5)).pvalue > ALMOST_NEVER


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1), Fraction(2**52 + 1)])
def test_discrete_laplace_scale_is_checked(bad: Fraction) -> None:
    with pytest.raises(ValueError, match="the scale of discrete noise must be positive and at most"):
        DiscreteLaplace(bad)


# --- rounded Gaussian noise: the law of a real Gaussian rounded down ---

MANY = 100_000


def rounded_p_value(bits: int, seed: int) -> float:
    """Of the counts of `⌊N(0, 4^bits)⌋`, cell by cell out to three and a half deviations."""
    draws, deviation = RoundedGaussian(bits).draws(Randomness.seeded(seed), MANY), 2.0**bits
    ends = np.arange(-np.ceil(3.5 * deviation), np.ceil(3.5 * deviation) + 1)
    expected = MANY * np.diff(stats.norm.cdf(np.concatenate([[-np.inf], ends / deviation, [np.inf]])))
    observed = np.bincount(np.searchsorted(ends, draws, side="right"), minlength=len(expected))
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("bits", [0, 1, 2, 4])
def test_law_is_that_of_a_gaussian_rounded_down(bits: int) -> None:
    assert rounded_p_value(bits, seed=bits) > 1e-3


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_ties_are_decided_by_further_digits(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With digits of two bits every fourth comparison is a tie: what happens once in 2^64 words happens all the time."""
    digits = discrete._digits
    monkeypatch.setattr(discrete, "_digits", lambda rng, size: digits(rng, size) & np.uint64(3 << 62))
    assert rounded_p_value(bits, seed=20 + bits) > 1e-3


def test_wide_noise_is_gaussian_in_all_of_its_digits() -> None:
    draws = RoundedGaussian(45).draws(Randomness.seeded(5), MANY)
    assert stats.kstest(draws / 2.0**45, "norm").pvalue > 1e-3
    low = draws & 1023  # the last bits are uniform and independent of the size
    assert stats.chisquare(np.bincount(low, minlength=1024)).pvalue > 1e-3
    assert abs(np.corrcoef(low, np.abs(draws))[0, 1]) < 0.02


def test_numbers_are_fresh_and_as_many_as_asked_for() -> None:
    system = Randomness.system()
    assert not np.array_equal(*(RoundedGaussian(30).draws(system, 5) for _ in range(2)))
    for size in (0, 1, 7, 1000):
        draws = RoundedGaussian(10).draws(Randomness.seeded(1), size)
        assert (draws.shape, draws.dtype) == ((size,), np.int64)


@pytest.mark.parametrize("bits", [-1, 57])
def test_deviations_beyond_int64_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits must be"):
        RoundedGaussian(bits)
