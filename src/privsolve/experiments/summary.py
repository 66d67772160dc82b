"""Means, standard errors and who wins where, from the runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privsolve.experiments.adult import Results
from privsolve.experiments.methods import BASELINES, BEST, METHODS, TUNED_WORDS, Method, method


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


def reading(results: Results) -> list[str]:
    """Who wins where, in sentences made from the numbers."""
    cells, epsilons = summarise(results), results.plan.epsilons
    sentences = [_highest(cells, epsilons)]
    for m in METHODS:
        if m.key not in BASELINES.values():
            sentences += [
                _against(cells, epsilons, m, method(key)) for key in dict.fromkeys(("dp-sgd", BASELINES[m.unit]))
            ]
    sentences.append(_budget_ratio(cells, epsilons))
    return [s for s in sentences if s]


def _highest(cells: Cells, epsilons: Sequence[float]) -> str:
    winners: dict[str, list[str]] = {}
    for epsilon in epsilons:
        best = max(METHODS, key=lambda m: cells[m.key, epsilon].mean)
        winners.setdefault(best.label, []).append(f"{epsilon:g}")
    parts = (f"{label} at ε = {', '.join(values)}" for label, values in winners.items())
    return f"Highest mean training accuracy: {'; '.join(parts)}."


def _against(cells: Cells, epsilons: Sequence[float], m: Method, baseline: Method) -> str:
    """Where the method beats, or loses to, the baseline by more than two standard errors of the difference."""
    sides: dict[str, list[str]] = {
        "better at ε = {}": [],
        "worse at ε = {}": [],
        "within two standard errors at ε = {}": [],
    }
    better, worse, level = sides.values()
    for epsilon in epsilons:
        ours, theirs = cells[m.key, epsilon], cells[baseline.key, epsilon]
        distance = ours.mean - theirs.mean
        close = abs(distance) <= 2 * math.hypot(ours.error, theirs.error)
        (level if close else better if distance > 0 else worse).append(f"{epsilon:g}")
    parts = [words.format(", ".join(values)) for words, values in sides.items() if values]
    label = m.label[0].upper() + m.label[1:]
    return f"{label}, against {baseline.label.removesuffix(TUNED_WORDS)}: {', '.join(parts)}."


def _budget_ratio(cells: Cells, epsilons: Sequence[float]) -> str:
    """How much smaller a budget reaches what DP-SGD reaches in the paper's units."""
    parts = []
    for epsilon in epsilons:
        enough = [e for e in epsilons if cells[BEST, e].mean >= cells["dp-sgd", epsilon].mean]
        if enough and min(enough) < epsilon:
            parts.append(f"{min(enough):g} instead of {epsilon:g}")
    if not parts:
        return ""
    return f"Epsilon that is enough for the accuracy of DP-SGD in the paper's units, {method(BEST).label}: {', '.join(parts)}."


def table_rows(results: Results) -> list[tuple[str, ...]]:
    """Method, privacy, then `mean ± deviation` of the training accuracy per epsilon."""
    cells = summarise(results)
    return [
        (m.label, m.privacy, *(f"{(c := cells[m.key, e]).mean:.4f} ± {c.deviation:.3f}" for e in results.plan.epsilons))
        for m in METHODS
    ]


def test_rows(results: Results) -> list[tuple[str, ...]]:
    """Method, then the mean test accuracy per epsilon."""
    cells = summarise(results)
    return [(m.label, *(f"{cells[m.key, e].test_mean:.4f}" for e in results.plan.epsilons)) for m in METHODS]


def time_rows(results: Results) -> list[tuple[str, ...]]:
    """Method, then the median seconds of a run per epsilon."""
    cells = summarise(results)
    return [(m.label, *(f"{cells[m.key, e].seconds:.2f}" for e in results.plan.epsilons)) for m in METHODS]
