"""The paper's experiment on Adult: every method at every epsilon, several times, resumable."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path

import joblib
import numpy as np

import privsolve as ps
from privsolve.experiments import dpsgd
from privsolve.experiments.methods import (
    LR,
    METHODS,
    OTHER_UNIT,
    PAPER_UNIT,
    UNITS,
    Setup,
    Tuned,
    Weights,
    accuracy,
    method,
    moments,
    printed_grid,
)

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
QUICK_EPSILONS = (0.01, 0.1, 1.0)
FORMAT = "privsolve-adult-2"
SEED = 0
CALIBRATED = (LR, "dp-sgd", "dp-sgd-5000")
"""Methods whose noise is searched for once for each epsilon."""

Task = tuple[str, float, int]
Settings = tuple[tuple[float, Tuned], ...]
Advance = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Row:
    """One run of one method."""

    method: str
    epsilon: float
    run: int
    train_accuracy: float
    test_accuracy: float
    seconds: float

    @property
    def task(self) -> Task:
        """Which run it was."""
        return self.method, self.epsilon, self.run

    def line(self) -> str:
        """As in a file."""
        return ",".join(map(str, astuple(self))) + "\n"


HEADER = ",".join(one.name for one in fields(Row)) + "\n"


@dataclass(frozen=True)
class Plan:
    """How much is run. A plan that does not search uses stored settings of the baselines."""

    epsilons: tuple[float, ...]
    runs: int
    search: bool

    @property
    def tasks(self) -> list[Task]:
        """Every run, in rounds over all methods, so that an early stop has something of each."""
        return [
            (m.key, epsilon, run)
            for run in range(self.runs)
            for epsilon in self.epsilons
            for m in METHODS
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
    """Everything a report is made from."""

    plan: Plan
    rows: tuple[Row, ...]
    references: tuple[Reference, ...]


def read_rows(path: Path) -> list[Row]:
    """The runs in the file; a last line cut short by a crash is left out."""
    text = path.read_bytes().decode("utf-8", errors="replace") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole and not whole.startswith(HEADER):
        raise ValueError(f"{path} is not a results file of this experiment: choose another folder")
    rows = []
    for line in whole.removeprefix(HEADER).splitlines():
        try:
            key, epsilon, run, train, test, seconds = line.split(",")
            rows.append(Row(key, float(epsilon), int(run), float(train), float(test), float(seconds)))
        except ValueError as error:
            raise ValueError(f"{path} has a line that is not a result ({error}): choose another folder") from None
    return rows


class ResultsFile:
    """Results on disk, one line a run, each there before the next run is counted as done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read_rows(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = HEADER + "".join(row.line() for row in self.rows)
        if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
            replace_text(path, text)  # drops a line cut short, in one step

    def append(self, row: Row) -> None:
        """Write one row and wait until it is on disk."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(row.line())
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)


def replace_text(path: Path, text: str) -> None:
    """Write the file as a whole, or leave it as it is."""
    replacement = path.with_suffix(".tmp")
    replacement.write_text(text, encoding="utf-8")
    os.replace(replacement, path)


def run_experiment(out: Path, plan: Plan, jobs: int, advance: Advance) -> Results:
    """Do what is missing in the folder and return all results; `advance(stage, done, total)` follows the work."""
    results = ResultsFile(out / "results.csv")
    tuned: Settings = tuple(sorted(tune(out / "tuning.json", plan, jobs, advance).items()))
    setup = _setup(tuned)
    done = {row.task for row in results.rows}
    missing = [task for task in plan.tasks if task not in done]
    total = len(plan.tasks)
    advance("runs", total - len(missing), total)
    for one in METHODS if missing else ():  # compile once, before the workers start
        _warm(setup, one.key, min(setup.tuned))
    work = (joblib.delayed(run_one)(tuned, task) for task in missing)
    done_rows = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(work)
    for count, row in enumerate(done_rows, start=total - len(missing) + 1):
        results.append(row)
        advance("runs", count, total)
    wanted = set(plan.tasks)
    rows = tuple(row for row in results.rows if row.task in wanted)
    return Results(plan, rows, references(setup))


def tune(path: Path, plan: Plan, jobs: int, advance: Advance) -> dict[float, Tuned]:
    """Settings of the baselines for each epsilon, searched on the data without privacy, kept in the file."""
    stored = _read_tuning(path, plan)
    if plan.search:
        setup = Setup({})
        for done, epsilon in enumerate(plan.epsilons):
            advance("tuning", done, len(plan.epsilons))
            if epsilon not in stored:
                stored[epsilon] = _search(setup, epsilon, jobs)
                _write_tuning(path, plan, stored)
        advance("tuning", len(plan.epsilons), len(plan.epsilons))
    else:
        found = stored_settings()
        stored = {epsilon: found[epsilon] for epsilon in plan.epsilons}
        _write_tuning(path, plan, stored)
    return stored


def _search(setup: Setup, epsilon: float, jobs: int) -> Tuned:
    """Not private, as in the paper; the report says so."""
    n, delta = setup.train().n, setup.delta
    printed = dpsgd.tune_dp_sgd(setup.train(), moments(epsilon, delta), printed_grid(n), n_jobs=jobs)
    tuned, other = (
        dpsgd.tune_dp_sgd(setup.train(unit), dpsgd.Accounting(epsilon, delta), dpsgd.settings_grid(n), n_jobs=jobs)
        for unit in (PAPER_UNIT, OTHER_UNIT)
    )
    return Tuned(printed, tuned, other)


def _read_tuning(path: Path, plan: Plan) -> dict[float, Tuned]:
    if not path.exists():
        return {}
    try:
        searched, tuned = _parse_tuning(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a tuning file of this experiment ({error}): choose another folder") from None
    if searched != plan.search:
        raise ValueError(f"{path.parent} holds a {'full' if searched else 'quick'} run: choose another folder")
    return tuned


def _parse_tuning(text: str) -> tuple[bool, dict[float, Tuned]]:
    content = json.loads(text)
    if content["format"] != FORMAT:
        raise ValueError("another format")
    tuned = {
        float(epsilon): Tuned(**{name: dpsgd.DPSGDSettings(**settings) for name, settings in value.items()})
        for epsilon, value in content["tuned"].items()
    }
    return bool(content["searched"]), tuned


def stored_settings() -> dict[float, Tuned]:
    """What a full run has found (`tuning.json` of docs/experiments/adult.md), for a quick one."""
    text = resources.files("privsolve.experiments").joinpath("adult_tuning.json").read_text(encoding="utf-8")
    return _parse_tuning(text)[1]


def _write_tuning(path: Path, plan: Plan, tuned: dict[float, Tuned]) -> None:
    content = {
        "format": FORMAT,
        "searched": plan.search,
        "note": "Tuned on the training data without privacy, as in the paper.",
        "tuned": {repr(epsilon): asdict(value) for epsilon, value in sorted(tuned.items())},
    }
    replace_text(path, json.dumps(content, indent=2) + "\n")


_warmed: set[tuple[str, float]] = set()


def _warm(setup: Setup, key: str, epsilon: float) -> None:
    """The first use in a process loads compiled code or calibrates noise: not part of the run time."""
    if (key, epsilon) not in _warmed:
        method(key).fit(setup, epsilon, np.random.SeedSequence(SEED))
        _warmed.add((key, epsilon))


def run_one(tuned: Settings, task: Task) -> Row:
    """One run, with noise that depends on nothing but the task."""
    key, epsilon, run = task
    setup = _setup(tuned)
    _warm(setup, key, epsilon if key in CALIBRATED else min(setup.tuned))
    entropy = [SEED, zlib.crc32(key.encode()), round(epsilon * 1e6), run]
    start = time.perf_counter()
    weights = method(key).fit(setup, epsilon, np.random.SeedSequence(entropy))
    seconds = time.perf_counter() - start
    train, test = setup.tables(method(key).unit)
    return Row(key, epsilon, run, accuracy(train, weights), accuracy(test, weights), seconds)


@cache
def _setup(tuned: Settings) -> Setup:
    """One setup a process: its tables are built once, not once a run."""
    return Setup(dict(tuned))


def references(setup: Setup) -> tuple[Reference, ...]:
    """Logistic regression and the best of the ball for each unit of capital gain, all without privacy."""
    found = [_reference("logistic regression", setup, PAPER_UNIT, dpsgd.logistic_regression(setup.train()))]
    for unit in UNITS:
        problem = setup.ball(unit)
        best = ps.oracles.get("tree").minimise(problem, ps.Perturbation.zero(problem.domain)).weights
        label = "best of the ball" + ("" if unit == PAPER_UNIT else f", {unit:,}s")
        found.append(_reference(label, setup, unit, best))
    return tuple(found)


def _reference(label: str, setup: Setup, unit: int, weights: Weights) -> Reference:
    train, test = setup.tables(unit)
    return Reference(f"{label}, no privacy", unit, accuracy(train, weights), accuracy(test, weights))
