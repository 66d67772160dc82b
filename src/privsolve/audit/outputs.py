"""Outputs of any mechanism as integer labels: equal labels for equal outputs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.releases import Release, Run


def drawn_labels(mechanism: Callable[..., Any], data: Any, neighbour: Any, runs: int) -> tuple[Int64Array, Int64Array]:
    """Labels `0, 1, ...` of `runs` outputs on each of the two data sets."""
    draw = _one_by_one if _required_arguments(mechanism) == 1 else _all_at_once
    first, second = draw(mechanism, data, runs), draw(mechanism, neighbour, runs)
    codes = _codes(first, second)
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


def _one_by_one(mechanism: Callable[..., Any], data: Any, runs: int) -> list[Any]:
    return [mechanism(data) for _ in range(runs)]


def _all_at_once(mechanism: Callable[..., Any], data: Any, runs: int) -> Sequence[Any]:
    outputs: Any = mechanism(data, runs)
    if not isinstance(outputs, (np.ndarray, list, tuple)) or len(outputs) != runs:
        raise ValueError(f"mechanism(data, runs) must return an array or list of {runs} outputs, one per run")
    return cast(Sequence[Any], outputs)


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
