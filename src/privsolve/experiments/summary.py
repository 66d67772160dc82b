"""Means, standard errors and who wins where, from the runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privsolve.experiments.adult import Results
from privsolve.experiments.methods import BASELINES, BEST, METHODS, Method, method


@dataclass(frozen=True)
class Cell:
    """One method at one epsilon, over the runs."""

    mean: float
    deviation: float
    error: float
    test_mean: float
    seconds: float
    runs: int


def summarise(results: Results) -> dict[tuple[str, float], Cell]:
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
    best = "; ".join(
        f"{_best(cells, e).label} at ε = {e:g} ({cells[_best(cells, e).key, e].mean:.4f})" for e in epsilons
    )
    sentences = [f"Highest mean training accuracy: {best}."]
    for m in METHODS:
        if m.key not in BASELINES.values():
            sentences.append(_against_baseline(cells, epsilons, m))
    sentences.append(_budget_ratio(cells, epsilons))
    return [s for s in sentences if s]


def _best(cells: dict[tuple[str, float], Cell], epsilon: float) -> Method:
    return max(METHODS, key=lambda m: cells[m.key, epsilon].mean)


def _against_baseline(cells: dict[tuple[str, float], Cell], epsilons: tuple[float, ...], m: Method) -> str:
    """Where the method beats, or loses to, DP-SGD on the same features by more than two standard errors."""
    sides: dict[str, list[str]] = {"better": [], "worse": [], "level": []}
    for epsilon in epsilons:
        ours, theirs = cells[m.key, epsilon], cells[BASELINES[m.unit], epsilon]
        distance = ours.mean - theirs.mean
        side = "level" if abs(distance) <= 2 * math.hypot(ours.error, theirs.error) else "worse"
        sides["better" if side == "worse" and distance > 0 else side].append(f"{epsilon:g}")
    words = {
        "better": "better than DP-SGD logistic regression at ε = {}",
        "worse": "worse at ε = {}",
        "level": "within two standard errors of it at ε = {}",
    }
    if not sides["better"]:
        words["worse"] = "worse than DP-SGD logistic regression at ε = {}"
        if not sides["worse"]:
            words["level"] = "within two standard errors of DP-SGD logistic regression at ε = {}"
    parts = [words[side].format(", ".join(values)) for side, values in sides.items() if values]
    label = m.label[0].upper() + m.label[1:]
    return f"{label}: {', '.join(parts)}."


def _budget_ratio(cells: dict[tuple[str, float], Cell], epsilons: tuple[float, ...]) -> str:
    """How much smaller a budget reaches what DP-SGD reaches."""
    parts = []
    for epsilon in epsilons:
        enough = [e for e in epsilons if cells[BEST, e].mean >= cells[BASELINES[method(BEST).unit], epsilon].mean]
        if enough and min(enough) < epsilon:
            parts.append(
                f"at ε = {min(enough):g} it is at least as accurate as DP-SGD on the same features at ε = {epsilon:g}"
            )
    label = method(BEST).label
    return f"With the {label}, {'; '.join(parts)}." if parts else ""


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
