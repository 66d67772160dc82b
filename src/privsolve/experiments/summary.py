"""Means, deviations, and what became of the paper's four claims, from the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privsolve.experiments.adult import Results
from privsolve.experiments.methods import (
    EXTENDED,
    HALF,
    LR,
    METHODS,
    OPDISC,
    PRINTED,
    RSPM,
    UNIT_EPSILONS,
    UNITS,
    method,
    unit_method,
)


@dataclass(frozen=True)
class Cell:
    """One method at one epsilon, over the runs."""

    mean: float
    deviation: float
    error: float
    test_mean: float
    seconds: float
    runs: int


Cells = dict[tuple[str, float], Cell]


def summarise(results: Results) -> Cells:
    """A cell for each method and epsilon that has runs."""
    cells = {}
    for m in METHODS:
        for epsilon in results.plan.epsilons:
            rows = [row for row in results.rows if row.method == m.key and row.epsilon == epsilon]
            if rows:
                train = np.array([row.train_accuracy for row in rows])
                deviation = float(train.std(ddof=1)) if len(rows) > 1 else 0.0
                cells[m.key, epsilon] = Cell(
                    float(train.mean()),
                    deviation,
                    deviation / math.sqrt(len(rows)),
                    float(np.mean([row.test_accuracy for row in rows])),
                    float(np.median([row.seconds for row in rows])),
                    len(rows),
                )
    return cells


def opening(results: Results) -> str:
    """Two sentences: the accuracies as printed, and what became of the paper's first claim."""
    cells = summarise(results)
    epsilon = max((e for e in results.plan.epsilons if e <= 1), default=results.plan.epsilons[0])
    parts = (f"{method(key).label} {cells[key, epsilon].mean:.3f}" for key in (OPDISC, RSPM, LR))
    return (
        f"Mean accuracy at ε = {epsilon:g}, every method as the paper prints it: {', '.join(parts)}. "
        f"The paper reports OPDisc and RSPM far above private LR; here OPDisc is {_where(results, OPDISC, LR)}."
    )


def claims(results: Results) -> list[str]:
    """The paper's four claims, each with what these runs say about it."""
    return [
        "Claim 1, OPDisc and RSPM beat private LR: "
        + "; ".join(_compared(results, key, LR) for key in (OPDISC, HALF, RSPM))
        + ".",
        "Claim 2, OPDisc beats RSPM: " + "; ".join(_compared(results, key, RSPM) for key in (OPDISC, HALF)) + ".",
        "Claim 3, OPDisc varies less than the others: " + _deviations(results) + ".",
        "Claim 4, OPDisc is often fast and sometimes slow: " + _times(results) + ".",
    ]


def reading(results: Results) -> list[str]:
    """Sentences about the extended comparison."""
    pairs = (
        ("opdisc", "dp-sgd"),
        ("exponential", "dp-sgd"),
        ("exponential-5000", "dp-sgd-5000"),
        ("exponential-5000", "dp-sgd"),
    )
    return [_compared(results, one, other) + "." for one, other in pairs]


def _compared(results: Results, key: str, other: str) -> str:
    label = method(key).label
    return f"{label[0].upper()}{label[1:]} against {method(other).label}: {_where(results, key, other)}"


def _where(results: Results, key: str, other: str) -> str:
    """Where one method is above the other by more than two standard errors of the difference."""
    cells = summarise(results)
    sides: dict[str, list[float]] = {"above": [], "below": [], "level": []}
    for epsilon in results.plan.epsilons:
        ours, theirs = cells[key, epsilon], cells[other, epsilon]
        distance = ours.mean - theirs.mean
        close = abs(distance) <= 2 * math.hypot(ours.error, theirs.error)
        sides["level" if close else "above" if distance > 0 else "below"].append(epsilon)
    return ", ".join(f"{word} at ε = {_listed(values)}" for word, values in sides.items() if values)


def _deviations(results: Results) -> str:
    cells, parts = summarise(results), []
    for other in (RSPM, LR):
        smaller = [e for e in results.plan.epsilons if cells[OPDISC, e].deviation < cells[other, e].deviation]
        where = f"ε = {_listed(smaller)}" if smaller else "no ε"
        parts.append(f"below that of {method(other).label} at {where}")
    return f"its standard deviation is {' and '.join(parts)}"


def _times(results: Results) -> str:
    seconds = {key: run_seconds(results, key) for key in (OPDISC, RSPM, LR)}
    parts = (
        f"{method(key).label} took {np.median(s):.2f} s (median) and at most {s.max():.2f} s"
        for key, s in seconds.items()
    )
    faster = float(np.mean(seconds[OPDISC] < np.median(seconds[LR])))
    return f"{', '.join(parts)}; {faster:.0%} of the OPDisc runs were faster than the median LR run"


def run_seconds(results: Results, key: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The seconds of all runs of a method."""
    return np.array([row.seconds for row in results.rows if row.method == key])


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Head and rows."""


def accuracy_table(results: Results, keys: Sequence[str]) -> Table:
    """Method, privacy, then `mean ± deviation` of the training accuracy per epsilon."""
    cells = summarise(results)
    rows = [
        (m.label, m.privacy, *(f"{(c := cells[m.key, e]).mean:.4f} ± {c.deviation:.3f}" for e in results.plan.epsilons))
        for m in map(method, keys)
    ]
    return ("method", "privacy", *_heads(results)), rows


def unit_table(results: Results) -> Table:
    """The exponential mechanism for each unit of capital gain, and the best of the ball without privacy."""
    cells = summarise(results)
    epsilons = [e for e in UNIT_EPSILONS if e in results.plan.epsilons]
    best = {r.unit: r.train_accuracy for r in results.references if r.label.startswith("best")}
    rows = [
        (f"{unit:,}", *(f"{cells[unit_method(unit).key, e].mean:.4f}" for e in epsilons), f"{best[unit]:.4f}")
        for unit in UNITS
    ]
    return ("unit", *(f"ε = {e:g}" for e in epsilons), "no privacy"), rows


def test_table(results: Results) -> Table:
    """Method, then the mean test accuracy per epsilon."""
    return _by_epsilon(results, lambda cell: f"{cell.test_mean:.4f}")


def time_table(results: Results) -> Table:
    """Method, then the median seconds of a run per epsilon."""
    return _by_epsilon(results, lambda cell: f"{cell.seconds:.2f}")


def _by_epsilon(results: Results, shown: Callable[[Cell], str]) -> Table:
    cells = summarise(results)
    rows = [
        (method(key).label, *(shown(cells[key, e]) for e in results.plan.epsilons)) for key in (*PRINTED, *EXTENDED)
    ]
    return ("method", *_heads(results)), rows


def _heads(results: Results) -> list[str]:
    return [f"ε = {epsilon:g}" for epsilon in results.plan.epsilons]
