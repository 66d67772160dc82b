"""The paper's experiment on Adult: every method at every epsilon, several times, resumable."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

import privsolve as ps
from privsolve.experiments.dpsgd import logistic_regression
from privsolve.experiments.methods import LR, METHODS, PAPER_UNIT, UNITS, Weights, accuracy, ball, tables

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
QUICK_EPSILONS = (0.01, 0.1, 1.0)
SEED = 0
CALIBRATED = (LR, "dp-sgd", "dp-sgd-5000")
"""Methods whose noise is searched for once for each epsilon."""

Task = tuple[str, float, int]
Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    epsilons: tuple[float, ...]
    runs: int

    @property
    def tasks(self) -> list[Task]:
        """Method, epsilon and number of every run, in rounds over all methods."""
        return [
            (m.key, epsilon, run)
            for run in range(self.runs)
            for epsilon in self.epsilons
            for m in METHODS.values()
            if m.epsilons is None or epsilon in m.epsilons
        ]


@dataclass(frozen=True)
class Reference:
    """What is possible without privacy."""

    label: str
    unit: int
    train_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class Results:
    """Everything a report is made from. `rows` has a line for each run."""

    plan: Plan
    rows: pd.DataFrame
    references: tuple[Reference, ...]


def run_experiment(out: Path, plan: Plan, jobs: int, advance: Advance) -> Results:
    """Do what is missing in the folder and return all results; `advance(done, total)` follows the work."""
    kept = joblib.Memory(out / "runs", verbose=0).cache(run_one)
    for key in METHODS:  # compile once, before the workers start
        _warm(key, EPSILONS[0])
    rows, work = [], (joblib.delayed(kept)(*task) for task in plan.tasks)
    for row in joblib.Parallel(n_jobs=jobs, return_as="generator")(work):
        rows.append(row)
        advance(len(rows), len(plan.tasks))
    frame = pd.DataFrame(rows)
    frame.to_csv(out / "results.csv", index=False)
    return Results(plan, frame, references())


def run_one(key: str, epsilon: float, run: int) -> dict[str, object]:
    """One run, with noise that depends on nothing but its method, epsilon and number."""
    _warm(key, epsilon if key in CALIBRATED else EPSILONS[0])
    entropy = [SEED, zlib.crc32(key.encode()), round(epsilon * 1e6), run]
    start = time.perf_counter()
    weights = METHODS[key].fit(epsilon, np.random.SeedSequence(entropy))
    seconds = time.perf_counter() - start
    train, test = (accuracy(table, weights) for table in tables(METHODS[key].unit))
    found = {"train_accuracy": train, "test_accuracy": test, "seconds": seconds}
    return {"method": key, "epsilon": epsilon, "run": run, **found}


@cache
def _warm(key: str, epsilon: float) -> None:
    """The first use in a process loads compiled code and calibrates noise: not part of the run time."""
    METHODS[key].fit(epsilon, np.random.SeedSequence(SEED))


def references() -> tuple[Reference, ...]:
    """Logistic regression and the best of the ball for each unit of capital gain, all without privacy."""
    found = [_reference("logistic regression", PAPER_UNIT, logistic_regression(tables()[0]))]
    for unit in UNITS:
        problem = ball(unit)
        best = ps.oracles.get("tree").minimise(problem, ps.Perturbation.zero(problem.domain)).weights
        found.append(_reference("best of the ball" + ("" if unit == PAPER_UNIT else f", {unit:,}s"), unit, best))
    return tuple(found)


def _reference(label: str, unit: int, weights: Weights) -> Reference:
    train, test = (accuracy(table, weights) for table in tables(unit))
    return Reference(f"{label}, no privacy", unit, train, test)
