"""A lower bound on the privacy loss of any mechanism, from its outputs on two neighbouring data sets.

One half of the outputs picks the event that tells the data sets apart best, and its direction; the other half bounds the two
probabilities of that one event by Clopper-Pearson intervals. The halves are independent, so the choice costs no confidence.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_count, check_number, check_share
from privsolve.releases import Release, Run


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
    if check_count("runs", runs) < 100:
        raise ValueError(f"runs must be a whole number of at least 100 to bound a probability, got {runs!r}")
    check_number("delta", delta, lambda d: 0 <= d < 1, "be at least 0 and below 1", ": use the delta of the claim")
    check_share("confidence", confidence, "; for instance 0.999")
    outputs = _drawn_labels(mechanism, data, neighbour, runs)
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


def _drawn_labels(mechanism: Callable[..., Any], data: Any, neighbour: Any, runs: int) -> tuple[Int64Array, Int64Array]:
    """Labels `0, 1, ...` of `runs` outputs on each of the two data sets."""
    one_by_one = _required_arguments(mechanism) == 1
    drawn = [[mechanism(x) for _ in range(runs)] if one_by_one else mechanism(x, runs) for x in (data, neighbour)]
    for outputs in drawn:
        if not isinstance(outputs, (np.ndarray, list, tuple)) or len(outputs) != runs:
            raise ValueError(f"mechanism(data, runs) must return an array or list of {runs} outputs, one per run")
    codes = _codes(*drawn)
    return codes[:runs], codes[runs:]


def _required_arguments(mechanism: Callable[..., Any]) -> int:
    wanted = "mechanism must take (data), or (data, runs) for all runs at once: wrap it in a lambda"
    try:
        parameters = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(wanted) from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in positional and p.default is p.empty for p in parameters)
    if count not in (1, 2):
        raise TypeError(wanted)
    return count


def _codes(first: Sequence[Any], second: Sequence[Any]) -> Int64Array:
    """One label per output of both samples: equal outputs share theirs."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.ndim == second.ndim:
        both = np.concatenate([first, second])
        _check_discrete(both)
        _, codes = np.unique(both, axis=0, return_inverse=True)
        return np.asarray(codes, dtype=np.int64).reshape(-1)
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(_key(output), len(known)) for output in (*first, *second)], dtype=np.int64)


def _key(output: Any) -> Hashable:
    """What makes an output equal to another: of a release the published model."""
    if isinstance(output, Run):
        output = output.release
    if isinstance(output, Release):
        return json.dumps(output.model.to_dict(), sort_keys=True)
    if isinstance(output, np.ndarray):
        _check_discrete(output)
        return output.shape, tuple(output.ravel().tolist())
    if not isinstance(output, Hashable):
        raise TypeError(f"an output must be a release, an array of integers or hashable, got {type(output).__name__}")
    return output


def _check_discrete(outputs: np.ndarray[Any, Any]) -> None:
    if outputs.dtype.kind not in "iub":
        raise ValueError(
            f"outputs must be integers, got dtype {outputs.dtype}: bin continuous outputs by a public rule"
        )
