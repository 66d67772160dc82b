"""A lower bound on the privacy loss of any mechanism, from its outputs on two neighbouring data sets.

One half of the outputs picks the event that tells the data sets apart best, and its direction; the other half bounds the two
probabilities of that one event by Clopper-Pearson intervals. The halves are independent, so the choice costs no confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from privsolve.arrays import Floats, Int64Array
from privsolve.audit.outputs import drawn_labels
from privsolve.checks import check_below_one, check_count, check_share


@dataclass(frozen=True)
class Finding:
    """With the stated confidence the mechanism is not `(epsilon', delta)`-DP for any `epsilon' < epsilon`.

    The event that was found occurred in `hits[0]` of `held_out` runs on one data set and in `hits[1]` on the other.
    """

    epsilon: float
    delta: float
    confidence: float
    runs: int
    held_out: int
    hits: tuple[int, int]

    def refutes(self, claimed_epsilon: float) -> bool:
        """Whether a claim of `claimed_epsilon` at this delta is caught."""
        return self.epsilon > claimed_epsilon


def lower_bound(
    mechanism: Callable[..., Any],
    data: Any,
    neighbour: Any,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> Finding:
    """The largest `epsilon` that `runs` outputs on each of two neighbouring data sets prove to be lost.

    Args:
        mechanism: `mechanism(data)` for one output per call, or `mechanism(data, runs)` for all at once: the number of
            arguments without a default decides. An output is a run or release of this package, an array of integers, or
            anything hashable; continuous outputs must be binned first. Runs must be independent of each other.
        data: what the mechanism takes; only its neighbourhood to `neighbour` matters.
        neighbour: the same data with one record changed (or more or less, if that is what the claim is about).
        runs: outputs drawn on each data set, at least 100; half of them choose the event.
        delta: the delta of the claim under attack.
        confidence: probability with which the bound holds, whatever the mechanism.
    """
    _check(runs, delta, confidence)
    outputs = drawn_labels(mechanism, data, neighbour, runs)
    half = runs // 2
    failure = 1.0 - confidence
    size = max(int(o.max()) for o in outputs) + 1
    first = [np.bincount(o[:half], minlength=size) for o in outputs]
    tried = [(*_best_event(first[a], first[b], half, delta, failure), a, b) for a, b in ((0, 1), (1, 0))]
    _, event, one, other = max(tried, key=lambda t: t[0])
    held_out = runs - half
    hits = [int(event[outputs[i][half:]].sum()) for i in (one, other)]
    proved = _proved_epsilon(np.array(hits[:1]), np.array(hits[1:]), held_out, delta, failure)
    return Finding(float(proved[0]), delta, confidence, runs, held_out, (hits[0], hits[1]))


def _check(runs: int, delta: float, confidence: float) -> None:
    if check_count("runs", runs) < 100:
        raise ValueError(f"runs must be a whole number of at least 100 to bound a probability, got {runs!r}")
    check_below_one("delta", delta, ": use the delta of the claim")
    check_share("confidence", confidence, "; for instance 0.999")


def _best_event(
    counts: Int64Array, other: Int64Array, runs: int, delta: float, failure: float
) -> tuple[float, NDArray[np.bool_]]:
    """The set of outputs, by decreasing likelihood ratio, that promises the largest bound, and what it promises."""
    order = np.argsort(-(counts + 0.5) / (other + 0.5), kind="stable")
    promise = _proved_epsilon(np.cumsum(counts[order]), np.cumsum(other[order]), runs, delta, failure)
    best = int(np.argmax(promise))
    event = np.zeros(len(counts), dtype=bool)
    event[order[: best + 1]] = True
    return float(promise[best]), event


def _proved_epsilon(hits: Int64Array, other_hits: Int64Array, runs: int, delta: float, failure: float) -> Floats:
    """`ln((p - δ) / q)` with p bounded from below and q from above, each but for probability `failure / 2`."""
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), runs - hits + 1, failure / 2), 0.0)
    rest = np.maximum(runs - other_hits, 1)
    high = np.where(other_hits < runs, 1.0 - betaincinv(rest, other_hits + 1, failure / 2), 1.0)
    ratio = np.maximum(low - delta, 0.0) / high
    return np.log(np.maximum(ratio, 1.0))
