"""Two versions side by side: CPU time of OPDisc's solves, the exponential sampler and scorecards, old against new.

    python benchmarks/compare.py OLD_SRC NEW_SRC [--rounds 5] [--only NAME]

`OLD_SRC` and `NEW_SRC` are folders that hold the package `privsolve` (the `src` of two checkouts). Each round starts one
process per version, in turns, so that both meet the same machine; a process compiles (or loads its cache), runs every task
once to warm up, then a few times for its median. What is printed, after every round, is the median over rounds of either
version and their ratio: above 1 means that the new version is slower. Everything runs on one thread and is measured in CPU
time. Two versions go different random ways from the same seed, so draws are made with several seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

Task = Callable[[], object]
REPEATS = 3
SEEDS = range(8)


def tasks() -> dict[str, Task]:
    """What is measured: only names that every version has."""
    import numpy as np

    import privsolve as ps
    from privsolve.oracles import TreeOracle

    ball = ps.Problem(ps.datasets.adult_paper(seed=0), ps.IntegerBall(23, 23))
    cards = ps.Problem(ps.datasets.adult_scorecard(), ps.SparsePoints(22, 6, 3, intercept=(-8, 8)))
    wide = ps.Problem(ps.datasets.adult_categorical(seed=0), ps.SparsePoints(59, 6, 3))

    def solve(problem: ps.Problem, scale: float, seed: int) -> object:
        eta = np.random.default_rng(seed).normal(size=problem.domain.lift_dim) * scale
        return TreeOracle(threads=1).minimise(problem, ps.Perturbation.lifted(problem.domain, eta))

    def draw(problem: ps.Problem, epsilon: float, draws: int, method: str) -> object:
        return [ps.ExponentialSampler(problem, epsilon, random_state=seed, method=method).draw(draws) for seed in SEEDS]

    zero = ps.Perturbation.zero(cards.domain)
    return {
        "OPDisc, noise of epsilon 1": lambda: [solve(ball, 7 * 23 * 4.4, seed) for seed in SEEDS],
        "OPDisc, noise of epsilon 0.1": lambda: [solve(ball, 70 * 23 * 4.4, seed) for seed in SEEDS],
        "sampler, epsilon 0.03, 10 draws": lambda: draw(ball, 0.03, 10, "tree"),
        "sampler, epsilon 0.1, 10 draws": lambda: draw(ball, 0.1, 10, "tree"),
        "scorecards, best of 22 columns": lambda: TreeOracle().minimise(cards, zero),
        "scorecards, epsilon 0.1, 50 draws": lambda: draw(cards, 0.1, 50, "supports"),
        "scorecards, epsilon 1, 50 draws": lambda: draw(cards, 1.0, 50, "supports"),
        "scorecards, 59 columns, in blocks": lambda: draw(wide, 1.0, 1, "supports"),
    }


def measure(only: str | None) -> dict[str, float]:
    """Median CPU seconds of every task in this process."""
    found = {}
    for name, task in tasks().items():
        if only is None or only in name:
            task()
            times = []
            for _ in range(REPEATS):
                start = time.process_time()
                task()
                times.append(time.process_time() - start)
            found[name] = statistics.median(times)
    return found


def run(source: str, only: str | None) -> dict[str, float]:
    """`measure` in a process of its own that imports privsolve from `source`."""
    environment = os.environ | {"PYTHONPATH": os.path.abspath(source), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, os.path.abspath(__file__), "--measure", *(["--only", only] if only else [])]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="SRC")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.only)))
        return
    if len(arguments.sources) != 2:
        parser.error("give two folders: OLD_SRC and NEW_SRC")
    seen: list[list[dict[str, float]]] = [[], []]
    for turn in range(arguments.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            seen[which].append(run(arguments.sources[which], arguments.only))
        print(f"\n{f'median CPU ms after round {turn + 1}':38s} {'old':>9s} {'new':>9s} {'new/old':>8s}")
        for name in seen[0][0]:
            old, new = (1000 * statistics.median(result[name] for result in results) for results in seen)
            print(f"{name:38s} {old:9.1f} {new:9.1f} {new / old:8.3f}", flush=True)


if __name__ == "__main__":
    main()
