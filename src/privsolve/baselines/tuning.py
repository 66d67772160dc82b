"""Settings chosen by looking at the data, as the literature's baselines do: the choice itself is NOT private."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from joblib import Parallel, delayed

from privsolve.arrays import Floats
from privsolve.baselines.accountants import AccountantKind, noise_multiplier
from privsolve.baselines.dpsgd import DPSGDSettings, averaged_steps, descend
from privsolve.baselines.linear import Rows
from privsolve.baselines.logistic import objective_perturbation
from privsolve.checks import check_count
from privsolve.data.patterns import PatternTable
from privsolve.errors import PrivacyLeakWarning
from privsolve.noise.entropy import as_randomness
from privsolve.privacy.adjacency import Adjacency

_LEAK = (
    "{} chosen by training accuracy, which is not private: a guarantee of a fit with it covers that fit as if the choice "
    "had been made without the data"
)

_TUNING = 1_953_852_005


@dataclass(frozen=True)
class DPSGDGrid:
    """The settings that `tune_dp_sgd` tries: all combinations.

    `reaches` are learning rates in another unit: how far one step could move the weights if all gradients were as long as
    the clip norm allows. `averaged` costs nothing, since one run gives all averages.
    """

    clips: Sequence[float] = (0.3, 1.0, 2.5)
    rates: Sequence[float] = (1.0, 0.1)
    steps: Sequence[int] = (4, 16, 64, 250, 500, 1000, 2000)
    reaches: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0, 25.0)
    averaged: Sequence[float] = (0.1, 0.5, 1.0)


def tune_dp_sgd(
    table: PatternTable,
    epsilon: float,
    delta: float,
    *,
    grid: DPSGDGrid | None = None,
    seeds: int = 2,
    finalists: int = 8,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    accountant: AccountantKind | str = AccountantKind.PLD,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> DPSGDSettings:
    """The settings with the best mean training accuracy: the best `finalists` of the grid, on fresh seeds.

    The first round runs the grid `seeds` times, the second the finalists six times as often with other noise, so that
    the winner is not merely the luckiest. `n_jobs` is joblib's; the result does not depend on it. NOT private, and
    warns with `PrivacyLeakWarning`: a guarantee of a fit with these settings covers that fit, not this choice.
    """
    rows = Rows.of(table)
    check_count("seeds", seeds)
    check_count("finalists", finalists)
    grid = DPSGDGrid() if grid is None else grid
    candidates = [
        DPSGDSettings(clip, rate, steps, reach / (clip * table.n), averaged)
        for clip, rate, steps, reach, averaged in product(
            grid.clips, grid.rates, grid.steps, grid.reaches, grid.averaged
        )
    ]
    if not candidates:
        raise ValueError("grid has no settings: give at least one value of each")
    warnings.warn(_LEAK.format("DP-SGD settings"), PrivacyLeakWarning, stacklevel=2)
    multipliers = {
        (rate, steps): noise_multiplier(rate, steps, epsilon, delta, adjacency, accountant)
        for rate, steps in product(grid.rates, grid.steps)
    }
    for runs in (range(seeds), range(seeds, 7 * seeds)):
        scores = Parallel(n_jobs)(
            delayed(_scores)(rows, candidates, multipliers, _tuning_seed(random_state, run)) for run in runs
        )
        order = np.argsort(-np.sum(scores, axis=0), kind="stable")
        candidates = [candidates[i] for i in order[:finalists]]
    return candidates[0]


def tune_objective_perturbation(
    table: PatternTable,
    epsilon: float,
    norm_bound: float,
    *,
    regularisations: Sequence[float] | None = None,
    seeds: int = 10,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> float:
    """The regularisation with the best mean training accuracy. NOT private, and warns with `PrivacyLeakWarning`."""
    check_count("seeds", seeds)
    values = np.geomspace(0.3, 1e5, 16).tolist() if regularisations is None else list(regularisations)
    if not values:
        raise ValueError("regularisations is empty: give at least one value")
    warnings.warn(_LEAK.format("regularisation"), PrivacyLeakWarning, stacklevel=2)
    scores = Parallel(n_jobs)(
        delayed(_mean_accuracy)(table, epsilon, value, norm_bound, seeds, random_state) for value in values
    )
    return values[int(np.argmax(scores))]


def _mean_accuracy(
    table: PatternTable, epsilon: float, regularisation: float, norm_bound: float, seeds: int, random_state: int
) -> float:
    fits = (
        objective_perturbation(table, epsilon, regularisation, norm_bound, random_state=_tuning_seed(random_state, run))
        for run in range(seeds)
    )
    return float(np.mean([fit.accuracy(table) for fit in fits]))


def _tuning_seed(random_state: int, run: int) -> np.random.SeedSequence:
    """A seed that no plain number gives: fits that are reported must not reuse the noise that they were tuned on."""
    return np.random.SeedSequence((random_state, run, _TUNING))


def _scores(
    rows: Rows,
    candidates: Sequence[DPSGDSettings],
    multipliers: dict[tuple[float, int], float],
    seed: np.random.SeedSequence,
) -> Floats:
    """Training accuracy of every candidate with one seed; candidates with the same rate and steps share a pass."""
    scores = np.zeros(len(candidates))
    for rate, steps in {(c.rate, c.steps) for c in candidates}:
        group = [i for i, c in enumerate(candidates) if (c.rate, c.steps) == (rate, steps)]
        columns = sorted({(candidates[i].clip, candidates[i].learning_rate) for i in group})
        clips, learning_rates = np.array(columns).T
        totals = {c.averaged: np.zeros((rows.dim, len(columns))) for c in (candidates[i] for i in group)}
        iterates = descend(rows, rate, steps, multipliers[rate, steps], clips, learning_rates, as_randomness(seed))
        for k, weights in enumerate(iterates):
            for share, total in totals.items():
                if k >= steps - averaged_steps(steps, share):
                    total += weights
        accuracies = {share: rows.accuracies(total) for share, total in totals.items()}
        for i in group:
            column = columns.index((candidates[i].clip, candidates[i].learning_rate))
            scores[i] = accuracies[candidates[i].averaged][column]
    return scores
