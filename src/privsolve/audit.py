"""Attacks on guarantees: how much privacy a mechanism loses at least, measured on neighbouring data.

An audit can refute a claim, never prove one. It draws many outputs on two neighbouring data sets, picks the event that
tells them apart best on one half of the draws, and bounds its probabilities on the other half (Clopper-Pearson).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_law

from privsolve import noise
from privsolve.calibration import check_beta
from privsolve.mechanisms.opdisc import SphereNoise
from privsolve.noise import Randomness
from privsolve.patterns import Int64Array
from privsolve.perturbation import UNIT
from privsolve.problem import Problem

Data = TypeVar("Data")


@dataclass(frozen=True)
class Finding:
    """With the stated confidence the mechanism is not `(epsilon', delta)`-DP for any `epsilon' < epsilon`."""

    epsilon: float
    delta: float
    confidence: float
    runs: int

    def refutes(self, claimed_epsilon: float) -> bool:
        """Whether a claim of `claimed_epsilon` at this delta is caught."""
        return self.epsilon > claimed_epsilon


def lower_bound(
    mechanism: Callable[[Data, int], Int64Array],
    data: Data,
    neighbour: Data,
    runs: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> Finding:
    """The largest `epsilon` that the draws prove to be lost between `data` and `neighbour`.

    `mechanism(data, runs)` returns one integer label per run, equal labels for equal outputs.
    """
    check_beta(1.0 - confidence)
    if runs < 100:
        raise ValueError(f"runs must be at least 100 to bound a probability, got {runs}")
    outputs = [np.asarray(mechanism(d, runs)) for d in (data, neighbour)]
    half = runs // 2
    size = int(max(o.max() for o in outputs)) + 1
    first = [np.bincount(o[:half], minlength=size) for o in outputs]
    best = 0.0
    for one, other in ((0, 1), (1, 0)):
        event = _best_event(first[one], first[other], half, delta)
        hits = [int(event[o[half:]].sum()) for o in (outputs[one], outputs[other])]
        best = max(best, _proved_epsilon(hits[0], hits[1], runs - half, delta, (1.0 - confidence) / 2))
    return Finding(best, delta, confidence, runs)


def _best_event(counts: Int64Array, other: Int64Array, runs: int, delta: float) -> NDArray[np.bool_]:
    """The set of outputs, by decreasing likelihood ratio, that promises the largest bound."""
    order = np.argsort(-(counts + 0.5) / (other + 0.5), kind="stable")
    a, b = np.cumsum(counts[order]), np.cumsum(other[order])
    promise = [_proved_epsilon(int(x), int(y), runs, delta, 0.05) for x, y in zip(a, b, strict=True)]
    event = np.zeros(len(counts), dtype=bool)
    event[order[: int(np.argmax(promise)) + 1]] = True
    return event


def _proved_epsilon(hits: int, other_hits: int, runs: int, delta: float, failure: float) -> float:
    """`ln((p - δ) / q)` with p bounded from below and q from above, each but for probability `failure / 2`."""
    low = float(beta_law.ppf(failure / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta_law.ppf(1 - failure / 2, other_hits + 1, runs - other_hits)) if other_hits < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def opdisc_draws(problem: Problem, law: SphereNoise, runs: int, rng: Randomness) -> Int64Array:
    """Indices among `problem.domain.members()` that OPDisc releases in `runs` independent runs, by enumeration.

    The same noise law and objective as the mechanism, vectorised for audits; the perturbation is rounded to the unit of
    the exact oracles after it is summed rather than per table entry.
    """
    members = problem.domain.members()
    loss = problem.losses_of(members).astype(np.float64)
    lifted = problem.domain.lift(members)
    chosen = np.empty(runs, dtype=np.int64)
    block = max(1, 4_000_000 // len(members))
    for start in range(0, runs, block):
        size = min(block, runs - start)
        objective = loss - _noise_block(law, size, rng) @ lifted.T
        chosen[start : start + size] = np.argmin(np.rint(objective * UNIT), axis=1)
    return chosen


def _noise_block(law: SphereNoise, size: int, rng: Randomness) -> NDArray[np.float64]:
    """`size` independent draws of the law, as rows."""
    normal = noise.standard_normal(rng, size * law.dim).reshape(size, law.dim)
    if law.law != "l2-gamma":
        return law.scale * normal
    length = noise.gamma(rng, law.dim, law.scale, size)
    return np.asarray(length[:, None] * normal / np.linalg.norm(normal, axis=1, keepdims=True))
