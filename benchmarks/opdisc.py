"""The certified tree on OPDisc's problems: time and nodes with the published noise law, fifteen seeds each.

    python benchmarks/opdisc.py [--seeds 15] [--stretch SECONDS] [--radius R ...]

`--stretch` also runs the 59-column problem at epsilon 1 for so many seconds, in balls of the squared radii that are given (59
if none is), and prints the gap it reaches. `--seeds 0` leaves out the rest.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np

import privsolve as ps
from privsolve.engines.coordinates.minimise import Progress
from privsolve.oracles import TreeOracle

EPSILONS = (0.1, 1.0, 10.0)
PROTOTYPE_MEDIANS = {0.1: 0.3, 1.0: 4.0, 10.0: 22.0}  # seconds of the first prototype, one core


def published_noise(problem: ps.Problem, epsilon: float, seed: int) -> ps.Perturbation:
    """OPDisc's Gaussian noise at the published scale, which is not proved (theory, section 2.3)."""
    domain, n = problem.domain, problem.table.n
    sigma = 7 * domain.radius_sq_bound * math.sqrt(math.log(n**2)) / epsilon
    return ps.Perturbation.lifted(domain, np.random.default_rng(seed).normal(size=domain.lift_dim) * sigma)


def run(problem: ps.Problem, epsilon: float, seed: int) -> tuple[float, int, bool]:
    perturbation = published_noise(problem, epsilon, seed)
    start = time.perf_counter()
    solution = TreeOracle().minimise(problem, perturbation)
    return time.perf_counter() - start, solution.work["nodes"], solution.certified


def stretch(seconds: float, radius_sq: int) -> None:
    table = ps.datasets.adult_categorical(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(59, radius_sq))
    size = f"{len(table.features):,} distinct rows, {problem.domain.size:.3g} members"
    print(f"\n59 columns, squared radius {radius_sq}, {size}, epsilon 1, seed 0", flush=True)
    last: list[Progress] = []
    start = time.process_time()
    try:
        solution = TreeOracle(time_limit=seconds).minimise(
            problem, published_noise(problem, 1.0, 0), progress=lambda state: last.append(state)
        )
        print(f"certified in {time.process_time() - start:.1f} CPU s, {solution.work['nodes']:,} nodes")
    except ps.WorkLimitReached:
        state = last[-1]
        gap = state.objective - state.bound
        print(
            f"not certified after {seconds:.0f} s: best {state.objective:.1f}, bound {state.bound:.1f}, "
            f"gap {gap:.1f} ({gap / table.n:.2%} of the records), {state.nodes:,} nodes"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--stretch", type=float, default=0.0)
    parser.add_argument("--radius", type=int, nargs="*", default=[59])
    arguments = parser.parse_args()
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(23, 23))
    run(problem, 1.0, 0)  # compile
    print("| epsilon | certified | median s | max s | median nodes | max nodes | prototype median / ours |")
    print("|---|---|---|---|---|---|---|")
    for epsilon in EPSILONS if arguments.seeds else ():
        times, nodes, certified = zip(*(run(problem, epsilon, s) for s in range(arguments.seeds)), strict=True)
        median = statistics.median(times)
        print(
            f"| {epsilon:g} | {sum(certified)} of {arguments.seeds} | {median:.3f} | {max(times):.3f} | "
            f"{statistics.median(nodes):,.0f} | {max(nodes):,} | {PROTOTYPE_MEDIANS[epsilon] / median:.0f} |",
            flush=True,
        )
    for radius_sq in arguments.radius if arguments.stretch else ():
        stretch(arguments.stretch, radius_sq)


if __name__ == "__main__":
    main()
