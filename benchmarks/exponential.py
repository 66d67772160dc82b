"""Exact draws from the exponential mechanism on the paper's Adult problem: seconds, frontier, acceptance, accuracy.

    python benchmarks/exponential.py [--draws 20] [--hard]

`--hard` adds epsilon 10 and the 59-column problem, which may hit their limits.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import privsolve as ps
from privsolve.problems.priors import Prior

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
PROTOTYPE = {  # seconds of the first prototype for the frontier and 20 draws, one core
    "uniform": {0.01: 7.0, 0.03: 15.0, 0.1: 52.0, 1.0: 116.0},
    "sparse": {0.01: 4.0, 0.03: 9.0, 0.1: 24.0},
}


def line(problem: ps.Problem, epsilon: float, prior: Prior, draws: int, label: str, **limits: int) -> None:
    start = time.perf_counter()
    try:
        sampler = ps.ExponentialSampler(problem, epsilon, prior=prior, random_state=0, **limits)
        weights = [sampler.draw()[0]]
        first = time.perf_counter() - start
        weights += list(sampler.draw(draws - 1))
    except ps.WorkLimitReached as error:
        print(f"| {label} | {epsilon:g} | - | - | {time.perf_counter() - start:.1f}: {error} | - | - | - | - |")
        return
    total = time.perf_counter() - start
    accuracy = [problem.table.accuracy(w) for w in weights]
    work = sampler.statistics
    before = PROTOTYPE.get(label, {}).get(epsilon)
    print(
        f"| {label} | {epsilon:g} | {first:.2f} | {(total - first) / max(1, draws - 1):.3f} | {total:.2f} | "
        f"{work['frontier']:,} | {work['accepted'] / work['attempts']:.1e} | {np.mean(accuracy):.4f} ± "
        f"{np.std(accuracy):.4f} | {f'{before / total:.0f}' if before and draws == 20 else '-'} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--hard", action="store_true")
    arguments = parser.parse_args()
    problem = ps.Problem(ps.datasets.adult_paper(seed=0), ps.IntegerBall(23, 23))
    priors = {"uniform": ps.UniformPrior(), "sparse": ps.SparsePrior(0.9, 0.4)}
    ps.ExponentialSampler(problem, 0.01, random_state=1).draw()  # compile
    print(
        "| prior | epsilon | first draw s | further draw s | all s | frontier | acceptance | accuracy | prototype / ours |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for label, prior in priors.items():
        for epsilon in EPSILONS:
            line(problem, epsilon, prior, arguments.draws, label)
    if arguments.hard:
        for label, prior in priors.items():
            line(problem, 10.0, prior, arguments.draws, label, max_attempts=3_000_000)
        wide = ps.Problem(ps.datasets.adult_categorical(seed=0), ps.IntegerBall(59, 59))
        for epsilon in (0.01, 0.1):
            for label, prior in priors.items():
                line(wide, epsilon, prior, 1, f"{label}, 59 columns", max_attempts=300_000)


if __name__ == "__main__":
    main()
