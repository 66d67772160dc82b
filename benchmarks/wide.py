"""Cards over many dense columns: time, memory and attempts to an exact private draw, on a grid of tables.

    python benchmarks/wide.py [--full] [--most SUPPORTS] [--fasterrisk-python PATH] [--only COLUMNS RECORDS FEATURES]

The recipe is fixed and public: correlated normals, five thresholds of each as columns, and labels from a noisy rule over six
of them. So no column is strong, every row has many ones, and nearly all rows differ. Every cell of the grid (columns × records
× most features × ε) runs in a process of its own, which first draws from a smaller table, to load what is compiled or to
compile it. `seconds` are from the problem to its first draw, `list` those until everything is listed; `CPU` is the time of all
threads. The quick selection takes a minute or two, `--full` an hour on two cores. FasterRisk (in an environment of its own, see
adult_scorecards.py) is timed on the same table with the same features and points; it finds other cards, by another loss and
without privacy.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.problems.priors import default_prior

COLUMNS, RECORDS, FEATURES, EPSILONS = (50, 100, 200, 500), (500, 5_000, 50_000), (4, 5, 6), (0.1, 1.0, 3.0)
QUICK = [
    (50, 500, 6),
    (50, 5_000, 6),
    (100, 500, 4),
    (100, 5_000, 4),
    (100, 50_000, 4),
    (200, 5_000, 4),
    (100, 5_000, 5),
]
LISTED = 10**6
WARM_UP = {4: 75, 5: 45, 6: 36}  # columns that are too many to list one by one
MOST_SUPPORTS = 3 * 10**9
CUTS = (-0.967, -0.431, 0.0, 0.431, 0.967)  # a sixth of the records between any two
RULE, NOISE, SHARED = (1.0, -1.0, 1.0, 0.5, -0.5, 0.5), 1.5, 0.3

FASTERRISK = """
import sys, time
import numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
data = np.load(sys.argv[1])
start = time.perf_counter()
search = RiskScoreOptimizer(data["X"], data["y"], k=int(sys.argv[2]), lb=-3, ub=3)
search.optimize()
print(time.perf_counter() - start)
"""


def table(columns: int, records: int, seed: int = 0) -> tuple[Int64Array, NDArray[np.bool_]]:
    """Rows and labels."""
    rng = np.random.default_rng([columns, records, seed])
    variables = max(-(-columns // len(CUTS)), len(RULE))
    normals = np.sqrt(1 - SHARED) * rng.normal(size=(records, variables))
    normals += np.sqrt(SHARED) * rng.normal(size=(records, 1))
    rows = (normals[:, :, None] > np.array(CUTS)).reshape(records, -1)[:, :columns].astype(np.int64)
    return rows, normals[:, : len(RULE)] @ np.array(RULE) + NOISE * rng.normal(size=records) > 0


def problem(columns: int, records: int, features: int) -> ps.Problem:
    """Cards with points in -3..3 and an intercept in -8..8."""
    rows, labels = table(columns, records)
    ranges = [(0, 1)] * columns + [(1, 1)]
    patterns = ps.PatternTable.from_records(np.c_[rows, np.ones(records, dtype=np.int64)], labels, ranges=ranges)
    return ps.Problem(patterns, ps.SparsePoints(columns + 1, features, 3, (-8, 8)))


def measure(columns: int, records: int, features: int, epsilon: float, seed: int) -> dict[str, float]:
    """One draw, in this process."""
    cards = problem(columns, records, features)
    listed = supports(columns, features) <= LISTED
    draw(cards if listed else problem(WARM_UP[features], 100, features), epsilon, seed)
    return draw(cards, epsilon, seed)


def draw(cards: ps.Problem, epsilon: float, seed: int) -> dict[str, float]:
    """Time and work from a problem to its first draw."""
    start, used = time.perf_counter(), time.process_time()
    sampler = ExponentialSampler(cards, epsilon, prior=default_prior(cards.domain), random_state=seed)
    listed = time.perf_counter()
    card = sampler.draw()[0]
    end = time.perf_counter()
    return {
        "seconds": end - start,
        "list": listed - start,
        "CPU": time.process_time() - used,
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "attempts": sampler.statistics["attempts"],
        "mistakes": cards.total_loss(card) / cards.n,
    }


def in_process(*cell: float, limit: float) -> dict[str, float] | None:
    """`measure` in a process of its own; None if it takes longer than `limit` seconds or gives up."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", *map(str, cell)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return dict(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else None


def fasterrisk(python: str, columns: int, records: int, features: int, limit: float) -> float | None:
    """Seconds of FasterRisk on the same table."""
    rows, labels = table(columns, records)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data.npz"
        np.savez(source, X=np.c_[np.ones(records), rows], y=np.where(labels, 1, -1))
        command = [python, "-I", "-c", FASTERRISK, str(source), str(features)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    return float(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def supports(columns: int, features: int) -> int:
    """Number of supports."""
    return sum(math.comb(columns, k) for k in range(features + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--only", nargs=3, type=int, metavar=("COLUMNS", "RECORDS", "FEATURES"))
    parser.add_argument("--most", type=float, default=MOST_SUPPORTS, help="leave out tables with more supports")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fasterrisk-python", help="Python of an environment with FasterRisk")
    parser.add_argument("--measure", nargs=5, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        columns, records, features, epsilon, seed = options.measure
        print(json.dumps(measure(int(columns), int(records), int(features), epsilon, int(seed))))
        return
    cells = list(product(COLUMNS, RECORDS, FEATURES)) if options.full else QUICK
    if options.only:
        cells = [tuple(options.only)]
    titles = ("columns", "records", "most", "supports", "ε", "seconds", "list", "CPU", "MB", "attempts", "mistakes")
    print("| " + " | ".join(titles) + " | FasterRisk s |\n" + "|---" * (len(titles) + 1) + "|")
    for columns, records, features in cells:
        n = supports(columns, features)
        if n > options.most:
            continue
        peer = None
        if options.fasterrisk_python:
            peer = fasterrisk(options.fasterrisk_python, columns, records, features, options.limit)
        for epsilon in EPSILONS:
            found = in_process(columns, records, features, epsilon, options.seed, limit=options.limit)
            figures = ["-"] * 6
            if found is not None:
                figures = [f"{found[key]:.2f}" for key in ("seconds", "list", "CPU")]
                figures += [f"{found['MB']:.0f}", f"{found['attempts']:,.0f}", f"{found['mistakes']:.3f}"]
            beside = "-" if peer is None else f"{peer:.1f}"
            start = [f"{columns}", f"{records:,}", f"{features}", f"{n:,}", f"{epsilon:g}"]
            print("| " + " | ".join([*start, *figures, beside]) + " |", flush=True)


if __name__ == "__main__":
    main()
