"""Attacks by the last bits of published floating point numbers (Mironov 2012): what a proof in real numbers does not see.

A sum of data and noise that is rounded to a float64 cannot be every float64: which ones it can be depends on the data. Two
records tell: on `{+, -}` their gradients cancel and small noise keeps all of its bits; on `{-, -}` a number of size 2 is added
first, and the bits beyond its last place are gone.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from privsolve.audit.bound import Finding, lower_bound
from privsolve.baselines.dpsgd import DPSGDSettings, dp_sgd
from privsolve.baselines.linear import Rows
from privsolve.baselines.logistic import minimise, objective_perturbation, perturbation
from privsolve.data.patterns import PatternTable
from privsolve.noise.entropy import Randomness

BALANCED = PatternTable.from_records([[2], [2]], [True, False])
ONE_SIDED = PatternTable.from_records([[2], [2]], [False, False])
"""Neighbours: one of two records changes its label."""

ONE_STEP = DPSGDSettings(clip=1.0, rate=1.0, steps=1, learning_rate=1.0)
"""The whole batch, once: the weight is minus the noisy sum. Gradients have norm 1 at weight 0."""

LAST_PLACE = 2.0**52
"""A float64 from 1 to 2 is a multiple of the inverse of this."""

STRENGTH = 4.0
NEARBY = (0, -1, 1, -2, 2, -3, 3)
LARGEST_WEIGHT = 1.0
"""Beyond it the weight is as coarse as the noise, and all weights are reachable."""


def attack_dp_sgd(epsilon: float, delta: float, runs: int, rng: Randomness, confidence: float) -> Finding:
    """One step of DP-SGD: is the weight finer than any number that was rounded near 2?"""

    def too_fine(table: PatternTable) -> bool:
        weight = dp_sgd(table, epsilon, delta, ONE_STEP, random_state=rng).weights[0] * LAST_PLACE
        return bool(weight != np.rint(weight))

    return lower_bound(too_fine, BALANCED, ONE_SIDED, runs, delta, confidence)


def attack_objective_perturbation(epsilon: float, runs: int, rng: Randomness, confidence: float) -> Finding:
    """Objective perturbation: does no float64 near the noise that the other data need lead to this weight?

    A few are tried. What matters is that the event depends on the weight alone, not that no other float64 would do.
    """

    def unreachable(table: PatternTable) -> bool:
        weight = float(objective_perturbation(table, epsilon, STRENGTH, 2.0, random_state=rng).weights[0])
        return abs(weight) < LARGEST_WEIGHT and not _reachable(weight, epsilon)

    return lower_bound(unreachable, BALANCED, ONE_SIDED, runs, 0.0, confidence)


def _reachable(weight: float, epsilon: float) -> bool:
    """Whether the solver finds the weight on the one-sided data, for noise within three floats of what it takes."""
    rows = Rows.of(ONE_SIDED)
    penalty, _ = perturbation(epsilon, STRENGTH, 2.0)
    needed = -(4 * expit(2 * weight) + penalty * weight)
    candidates = (np.array([needed + step * np.spacing(needed)]) for step in NEARBY)
    return any(float(minimise(rows, penalty, noise)[0]) == weight for noise in candidates)
