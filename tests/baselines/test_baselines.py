import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.stats import binom, chi2, chisquare, gamma, kstest

import privsolve as ps
from privsolve.baselines import (
    DPSGDGrid,
    DPSGDSettings,
    dp_sgd,
    logistic_regression,
    objective_perturbation,
    tune_dp_sgd,
    tune_objective_perturbation,
)
from privsolve.baselines.accountants import noise_multiplier
from privsolve.baselines.dpsgd import descend, poisson_counts
from privsolve.baselines.lattice import SHARE_BITS, TABLE_BITS, Lattice, LatticeRows
from privsolve.baselines.linear import Rows
from privsolve.baselines.logistic import perturbation
from privsolve.baselines.tuning import _scores
from privsolve.noise.draws import l2_gamma
from privsolve.noise.entropy import as_randomness

NORM_BOUND = math.sqrt(7)  # Adult: four one-hot groups and three numbers in [0, 1]
SETTINGS = DPSGDSettings(clip=1.0, rate=1.0, steps=20, learning_rate=0.01)


@pytest.fixture(scope="module")
def adult():
    return ps.datasets.adult_paper(seed=0)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(5)
    features = rng.integers(0, 4, size=(300, 3))
    labels = features @ [1, -1, 1] + rng.normal(size=300) > 2
    return ps.PatternTable.from_records(features, labels, scales=(2, 1, 3))


def records_of(rows):
    """Every record as (x, label), label 1 or 0."""
    dense = rows.rows.toarray()
    for x, positives, negatives in zip(dense, rows.positives, rows.negatives, strict=True):
        yield from [(x, 1)] * int(positives) + [(x, 0)] * int(negatives)


def record_gradient(x, label, w):
    return (1 / (1 + math.exp(-x @ w)) - label) * x


# --- DP-SGD ---------------------------------------------------------------------------------------


def clipped_sum(rows, weights, clips, positives, negatives, multiplier=3.3):
    """Sums of clipped gradients, in the units of the gradients."""
    on_lattice = LatticeRows.of(rows, Lattice.of(multiplier))
    return on_lattice.clipped_sum(weights, clips, positives, negatives) * (clips / on_lattice.lattice.clip)


@pytest.mark.parametrize("clip", [0.05, 0.4, 100.0])
def test_clipped_sum_is_the_sum_of_every_records_clipped_gradient(small, clip):
    rows = Rows.of(small)
    w = np.random.default_rng(1).normal(size=3)
    gradients = np.array([record_gradient(x, label, w) for x, label in records_of(rows)])
    norms = np.linalg.norm(gradients, axis=1)
    assert (norms > clip).any() == (clip < 1)  # the smaller bounds do clip
    clipped = gradients * np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
    ours = clipped_sum(rows, w[:, None], np.array([clip]), rows.positives, rows.negatives)
    # per record: the table of the logistic function, the share of the clip norm, and the direction
    rounding = np.linalg.norm(rows.rows.toarray(), axis=1).max() * 2.0**-TABLE_BITS + clip * (2.0**-SHARE_BITS + 1e-4)
    np.testing.assert_allclose(ours[:, 0], clipped.sum(axis=0), atol=len(clipped) * rounding / 4)


@pytest.mark.parametrize("multiplier", [0.07, 1.0, 3.3, 46_000.0, 2.0**28])
def test_no_record_moves_the_sum_by_more_than_the_clip_norm(adult, multiplier):
    """In integers: the sum of squares of a record's vector is at most the square of the clip norm, without exception."""
    lattice = Lattice.of(multiplier)
    assert (
        (1 - 1e-3) * 2**lattice.bits <= multiplier * lattice.clip <= 2**lattice.bits
    )  # the noise is no less than asked
    rows = Rows.of(adult)
    on_lattice = LatticeRows.of(rows, lattice)
    clips = np.array([1e-9, 0.3, 1.0])
    w = np.random.default_rng(0).normal(scale=3, size=(rows.dim, 3))
    nobody = np.zeros(len(rows.norms), dtype=np.int64)
    longest = 0
    for i in range(0, len(rows.norms), 100):
        one = nobody.copy()
        one[i] = 1
        for counts in ((one, nobody), (nobody, one)):
            for vector in on_lattice.clipped_sum(w, clips, *counts).T:
                longest = max(longest, sum(int(k) ** 2 for k in vector))
    assert 0.98 * lattice.clip**2 < longest <= lattice.clip**2


def test_a_records_vector_depends_on_nothing_but_the_record(adult):
    """Other records, their order and their number change no bit of it: what a proof by sensitivity needs."""
    rng = np.random.default_rng(3)
    clips, w = np.array([0.5]), rng.normal(scale=2, size=(adult.dim, 1))
    everybody = LatticeRows.of(Rows.of(adult), Lattice.of(3.3))
    for i in rng.choice(len(adult.features), 40, replace=False):
        alone = ps.PatternTable(adult.features[[i]], [1], [0], scales=adult.scales)
        one = np.zeros(len(adult.features), dtype=np.int64)
        one[i] = 1
        among_others = everybody.clipped_sum(w, clips, one, 0 * one)
        by_itself = LatticeRows.of(Rows.of(alone), Lattice.of(3.3)).clipped_sum(w, clips, np.array([1]), np.array([0]))
        np.testing.assert_array_equal(among_others, by_itself)


def test_extreme_scores_and_zero_rows_are_harmless():
    table = ps.PatternTable([[0, 0], [1, 1]], [2, 3], [1, 1])
    total = clipped_sum(Rows.of(table), np.full((2, 1), -1e6), np.array([0.5]), *[np.array([2, 3])] * 2)
    np.testing.assert_allclose(total[:, 0], -3 * 0.5 / math.sqrt(2), rtol=1e-4)  # a clipped positive record each, p = 0


def test_noise_beyond_every_gradient_is_refused():
    with pytest.raises(ValueError, match="noise is too large"):
        Lattice.of(2.0**32)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_noise_has_the_variance_that_the_accountant_was_told(small, rate):
    """One step from zero with a learning rate of 1: the iterate is minus the noisy sum over the rate."""
    rows, clip, multiplier = Rows.of(small), 0.7, 3.3
    clips, rng, noise = np.array([clip]), as_randomness(0), []
    for _ in range(800):
        (first,) = descend(rows, rate, 1, multiplier, clips, np.ones(1), rng)
        noise.append(rate * first[:, 0])
    noise = np.array(noise)
    # of a Poisson sample the sum varies too: by q(1-q) times the sum of squares of the clipped gradients
    mean = rate * clipped_sum(rows, np.zeros((3, 1)), clips, rows.positives, rows.negatives)[:, 0]
    gradients = np.array([record_gradient(x, label, np.zeros(3)) for x, label in records_of(rows)])
    gradients *= np.minimum(1, clip / np.maximum(np.linalg.norm(gradients, axis=1), 1e-300))[:, None]
    variance = (multiplier * clip) ** 2 + rate * (1 - rate) * np.sum(gradients**2, axis=0)
    standardised = (noise + mean) / np.sqrt(variance)
    assert chi2.ppf(0.001, noise.size) < float(np.sum(standardised**2)) < chi2.ppf(0.999, noise.size)
    assert kstest(standardised.ravel(), "norm").pvalue > 0.001


def test_a_whole_fit_has_the_noise_of_its_epsilon(small):
    """One step from zero: the weights are the learning rate times the noisy sum, so their variance shows the noise."""
    settings = DPSGDSettings(clip=0.5, rate=1.0, steps=1, learning_rate=0.1)
    weights = np.array([dp_sgd(small, 0.5, 1e-6, settings, random_state=seed).weights for seed in range(600)])
    rows = Rows.of(small)
    centre = -0.1 * clipped_sum(rows, np.zeros((3, 1)), np.array([0.5]), rows.positives, rows.negatives)[:, 0]
    deviation = 0.1 * 0.5 * noise_multiplier(1.0, 1, 0.5, 1e-6)
    statistic = float(np.sum((weights - centre) ** 2)) / deviation**2
    assert chi2.ppf(0.001, weights.size) < statistic < chi2.ppf(0.999, weights.size)


def test_what_a_step_makes_known_is_an_integer(small):
    """Whatever the data, the weights after one step are a public unit times a whole number."""
    settings = DPSGDSettings(clip=0.5, rate=1.0, steps=1, learning_rate=1.0)
    lattice = Lattice.of(noise_multiplier(1.0, 1, 1.0, 1e-6))
    for seed in range(20):
        steps = dp_sgd(small, 1.0, 1e-6, settings, random_state=seed).weights / (0.5 / lattice.clip)
        np.testing.assert_allclose(steps, np.rint(steps), rtol=1e-14)


def test_poisson_counts_are_binomial():
    table = ps.PatternTable([[0], [1], [2]], [0, 12, 4], [5, 0, 40])
    rows, rate = Rows.of(table), 0.35
    rng = as_randomness(3)
    draws = np.array([np.concatenate(poisson_counts(rows, rate, rng)) for _ in range(3000)])
    for column, size in enumerate([0, 12, 4, 5, 0, 40]):
        expected = binom.pmf(np.arange(size + 1), size, rate) * len(draws)
        observed = np.bincount(draws[:, column].astype(int), minlength=size + 1)
        assert len(observed) == size + 1
        big = expected >= 5
        if big.sum() > 1:
            rest = [[counts[~big].sum()] if (~big).any() else [] for counts in (observed, expected)]
            groups = [np.append(counts[big], r) for counts, r in zip((observed, expected), rest, strict=True)]
            assert chisquare(*groups).pvalue > 0.001
    correlation = np.corrcoef(draws[:, [1, 2, 3, 5]].T)
    assert np.abs(correlation - np.eye(4)).max() < 0.08


def test_averaging_is_over_the_last_share(small):
    def weights(steps, averaged):
        return dp_sgd(small, 1.0, 1e-6, replace(tiny, steps=steps, averaged=averaged), random_state=1).weights

    tiny = DPSGDSettings(clip=1.0, rate=1.0, steps=4, learning_rate=1e-3)
    last, half, full = (weights(4, share) for share in (0.01, 0.5, 1.0))
    assert not np.allclose(last, half)
    third = 2 * half - last
    with_quarters = weights(4, 0.75)
    second = 3 * with_quarters - third - last
    first = 4 * full - second - third - last
    rows = Rows.of(small)
    multiplier = noise_multiplier(1.0, 4, 1.0, 1e-6)
    step = next(descend(rows, 1.0, 4, multiplier, np.ones(1), np.array([1e-3]), as_randomness(1)))
    np.testing.assert_allclose(first, step[:, 0], atol=1e-12)


def test_accuracy_at_epsilon_one(adult):
    settings = DPSGDSettings(clip=1.0, rate=1.0, steps=1000, learning_rate=10 / 15682)
    fits = [dp_sgd(adult, 1.0, 1 / 15682**2, settings, random_state=seed) for seed in range(5)]
    assert np.mean([fit.accuracy(adult) for fit in fits]) >= 0.77
    assert min(fit.accuracy(ps.datasets.adult_paper(0, split="test")) for fit in fits) >= 0.75


def test_subsampled_fit_on_adult(adult):
    settings = DPSGDSettings(clip=1.0, rate=0.1, steps=100, learning_rate=3 / 15682)
    assert dp_sgd(adult, 1.0, 1 / 15682**2, settings, random_state=0).accuracy(adult) >= 0.75


def test_what_the_fit_says(small):
    fit = dp_sgd(small, 1.0, 1e-6, SETTINGS, random_state=0)
    assert (fit.guarantee.epsilon, fit.guarantee.delta, fit.guarantee.adjacency) == (1.0, 1e-6, "replace")
    assert fit.guarantee.seeded
    assert fit.guarantee.proved
    assert "Seeded: for testing only." in str(fit.guarantee)
    assert "REAL ARITHMETIC" not in str(fit.guarantee)
    assert "PLD" in fit.guarantee.noise
    other = dp_sgd(small, 1.0, 1e-6, SETTINGS, adjacency="add-remove", accountant="rdp")
    assert (other.guarantee.adjacency, other.guarantee.seeded) == ("add-remove", False)
    assert not np.array_equal(other.weights, dp_sgd(small, 1.0, 1e-6, SETTINGS).weights)
    with pytest.raises(ValueError, match="read-only"):
        fit.weights[0] = 0
    assert DPSGDSettings(**json.loads(json.dumps(asdict(SETTINGS)))) == SETTINGS


def test_accuracy_counts_ties_as_negative(small):
    fit = replace(logistic_regression(small), weights=np.zeros(3))
    assert fit.accuracy(small) == small.negatives.sum() / small.n


# --- objective perturbation -----------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "regularisation"), [(1.0, 10.0), (0.1, 50.0), (3.0, 0.4)])
def test_budget_splits_into_noise_and_curvature(epsilon, regularisation):
    penalty, scale = perturbation(epsilon, regularisation, 2.0)
    assert penalty == regularisation
    assert 2 * 2.0 / scale + math.log(1 + 2.0**2 / (4 * penalty)) == pytest.approx(epsilon, rel=1e-12)


def test_small_regularisation_is_raised_until_half_is_left_for_noise():
    penalty, scale = perturbation(0.1, 1e-6, 2.0)
    assert math.log(1 + 1 / penalty) == pytest.approx(0.05, rel=1e-12)
    assert 2 * 2.0 / scale == pytest.approx(0.05, rel=1e-12)


def perturbation_of(rows, weights, penalty):
    """The linear term whose minimiser the weights are."""
    total = sum(record_gradient(x, label, weights) for x, label in records_of(rows))
    return -(total + penalty * weights)


def test_released_weights_are_stationary_and_the_noise_has_its_law(small):
    rows, bound = Rows.of(small), 4.0
    penalty, scale = perturbation(2.0, 3.0, bound)
    lengths, directions = [], []
    for seed in range(150):
        fit = objective_perturbation(small, 2.0, 3.0, bound, random_state=seed)
        noise = perturbation_of(rows, fit.weights, penalty)
        if seed < 3:  # the same seed draws the same vector: the gradient at the weights is zero
            drawn = l2_gamma(as_randomness(seed), 3, scale)
            np.testing.assert_allclose(noise, drawn, rtol=1e-9, atol=1e-9)
        lengths.append(np.linalg.norm(noise))
        directions.append(noise / lengths[-1])
    assert kstest(lengths, gamma(3, scale=scale).cdf).pvalue > 0.001
    assert kstest(np.array(directions)[:, 0], "uniform", args=(-1, 2)).pvalue > 0.001  # Archimedes: uniform in R^3


@pytest.mark.parametrize(("epsilon", "regularisation"), [(0.5, 2.0), (0.5, 1e-3), (2.0, 0.3)])
def test_density_ratio_in_one_dimension_is_within_epsilon(epsilon, regularisation):
    """The density of the weight is known in closed form: `ν(b(w))·|b'(w)|`. Neighbours: one record changes its label."""
    penalty, scale = perturbation(epsilon, regularisation, 1.0)
    w = np.linspace(-60, 60, 200_001) * scale / penalty
    p = 1 / (1 + np.exp(-np.clip(w, -700, 700)))

    def log_density(xs, labels):
        b = penalty * w + sum(
            1 / (1 + np.exp(-np.clip(x * w, -700, 700))) * x - y * x for x, y in zip(xs, labels, strict=True)
        )
        slope = penalty + sum(x * x * p * (1 - p) for x in xs)
        return -np.abs(b) / scale - math.log(2 * scale) + np.log(slope)

    worst = 0.0
    base = ([1.0] * 3, [1, 0, 1])
    for x, y in ((1.0, 1), (1.0, 0), (-1.0, 1), (0.0, 0)):
        first = log_density([*base[0], x], [*base[1], y])
        assert np.trapezoid(np.exp(first), w) == pytest.approx(1, abs=2e-3)
        for other_x, other_y in ((1.0, 1), (1.0, 0), (-1.0, 1), (0.0, 0)):
            second = log_density([*base[0], other_x], [*base[1], other_y])
            worst = max(worst, float(np.max(np.abs(first - second))))
    assert epsilon / 4 < worst <= epsilon * (1 + 1e-9)


def test_objective_perturbation_on_adult(adult):
    fit = objective_perturbation(adult, 1.0, 30.0, NORM_BOUND, random_state=0)
    assert fit.accuracy(adult) >= 0.75
    assert (fit.guarantee.delta, fit.guarantee.adjacency, fit.guarantee.seeded) == (0.0, "replace", True)
    assert "trusted" in fit.guarantee.oracle
    assert not fit.guarantee.proved
    assert "PROVED IN REAL ARITHMETIC ONLY" in str(fit.guarantee)


def test_row_beyond_the_norm_bound_is_refused(adult):
    with pytest.raises(ValueError, match=r"norm_bound=2 is exceeded by a row: state"):
        objective_perturbation(adult, 1.0, 30.0, 2.0)


# --- not private ----------------------------------------------------------------------------------


def test_logistic_regression_is_the_minimiser(small, adult):
    rows = Rows.of(small)
    fit = logistic_regression(small, regularisation=0.5)
    assert fit.guarantee is None
    np.testing.assert_allclose(perturbation_of(rows, fit.weights, 0.5), 0, atol=1e-9)
    assert logistic_regression(adult).accuracy(adult) == pytest.approx(0.788, abs=0.001)


def test_tuning_runs_the_mechanism_itself(small):
    """A candidate's score is the accuracy of `dp_sgd` with the same seed: columns of a pass do not disturb each other."""
    candidates = [
        DPSGDSettings(clip, rate, 10, learning_rate, averaged)
        for clip in (0.3, 1.0)
        for rate in (1.0, 0.4)
        for learning_rate in (0.01, 0.1)
        for averaged in (0.1, 1.0)
    ]
    multipliers = {(rate, 10): noise_multiplier(rate, 10, 3.0, 1e-5) for rate in (1.0, 0.4)}
    scores = _scores(Rows.of(small), candidates, multipliers, np.random.SeedSequence(7))
    assert len(set(scores)) > 4
    for settings, score in zip(candidates, scores, strict=True):
        assert dp_sgd(small, 3.0, 1e-5, settings, random_state=7).accuracy(small) == score


def test_tuning_finds_good_settings_and_says_that_it_looked(small):
    grid = DPSGDGrid(clips=(1.0,), rates=(1.0,), steps=(1, 20), reaches=(1e-9, 1.0), averaged=(0.5,))
    with pytest.warns(ps.PrivacyLeakWarning, match="not private"):
        best = tune_dp_sgd(small, 3.0, 1e-5, grid=grid, seeds=2)
    assert best.learning_rate == 1 / 300
    with pytest.warns(ps.PrivacyLeakWarning, match="not private"):
        chosen = tune_objective_perturbation(small, 3.0, 4.0, regularisations=(1e9, 5.0, 1e8), seeds=2)
    assert chosen == 5.0


# --- wrong inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip": 0.0}, "clip must be"),
        ({"rate": 1.5}, "rate must be at most 1"),
        ({"rate": 0}, "rate must be"),
        ({"steps": 2.5}, "steps must be"),
        ({"learning_rate": math.nan}, "learning_rate must be"),
        ({"averaged": 2}, "averaged must be"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **change)


def test_wrong_arguments(small):
    for arguments, message in [
        (("table", 1.0, 1e-6, SETTINGS), "table must be a PatternTable"),
        ((small, -1.0, 1e-6, SETTINGS), "epsilon must be"),
        ((small, 1.0, 0.0, SETTINGS), "delta must lie"),
        ((small, 1.0, 1e-15, SETTINGS), "delta must be at least 1e-11"),
        ((small, 1.0, 1e-6, {"clip": 1}), "settings must be DPSGDSettings"),
    ]:
        with pytest.raises(ValueError, match=message):
            dp_sgd(*arguments)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        dp_sgd(small, 1.0, 1e-6, SETTINGS, adjacency="swap")
    with pytest.raises(ValueError, match="accountant must be one of"):
        dp_sgd(small, 1.0, 1e-6, SETTINGS, accountant="gdp")
    for arguments, message in [
        ((small, 0.0, 1.0, 4.0), "epsilon must be"),
        ((small, 1.0, 0.0, 4.0), "regularisation must be"),
        ((small, 1.0, 1.0, -4.0), "norm_bound must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            objective_perturbation(*arguments)
    with pytest.raises(ValueError, match="regularisation must be"):
        logistic_regression(small, regularisation=0.0)
    with pytest.raises(ValueError, match="grid has no settings"):
        tune_dp_sgd(small, 1.0, 1e-6, grid=DPSGDGrid(clips=()))
    with pytest.raises(ValueError, match="regularisations is empty"):
        tune_objective_perturbation(small, 1.0, 4.0, regularisations=())
    with pytest.raises(ValueError, match="table has 23 features but the fit has 3 weights"):
        logistic_regression(small).accuracy(ps.datasets.adult_paper())
