"""Sparse scorecards on Adult by the supports-first tree: time to list, to draw exactly, to certify the optimum.

    python benchmarks/scorecards.py

Times are taken after a warm-up on one core with `time.perf_counter`: means over seeds, since the work of a draw is random,
of the least of several runs of each seed. `target` are the figures of a prototype; a ratio above 1 means slower than that.
The 59 categorical columns have no intercept column of their own; they are given an intercept in -8..8 like the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.datasets import adult_categorical, adult_scorecard
from privsolve.engines.supports import Minimum, SupportSampler, minimise_supports
from privsolve.losses import ZeroOneLoss
from privsolve.noise.entropy import Randomness

POINTS = np.array([-3, -2, -1, 1, 2, 3])
INTERCEPTS = np.arange(-8, 9)
SENSITIVITY = 2  # replace-one adjacency: κ = ε/2


@dataclass(frozen=True)
class Task:
    rows: Int64Array
    positives: Int64Array
    negatives: Int64Array
    max_features: int

    @property
    def n(self) -> int:
        return int(self.positives.sum() + self.negatives.sum())

    @property
    def arrays(self) -> tuple[Int64Array, Int64Array, Int64Array, ZeroOneLoss, int, Int64Array, Int64Array]:
        return self.rows, self.positives, self.negatives, ZeroOneLoss(), self.max_features, POINTS, INTERCEPTS

    def sampler(self, epsilon: float, seed: int) -> SupportSampler:
        flat = np.zeros((self.rows.shape[1], len(POINTS))), np.zeros(len(INTERCEPTS))
        return SupportSampler(*self.arrays, *flat, epsilon / SENSITIVITY, Randomness.seeded(seed), records=self.n)

    def minimum(self) -> Minimum:
        m = self.rows.shape[1]
        zeros = np.zeros((m, len(POINTS)), dtype=np.int64), np.zeros(len(INTERCEPTS), dtype=np.int64)
        return minimise_supports(*self.arrays, *zeros, np.zeros(m, dtype=np.int64))

    def accuracy(self, scorecards: Int64Array) -> float:
        positive = self.rows @ scorecards[:, :-1].T + scorecards[:, -1] > 0
        losses = np.where(positive, self.negatives[:, None], self.positives[:, None]).sum(axis=0)
        return 1.0 - float(losses.mean()) / self.n


def tasks() -> tuple[Task, Task, Task]:
    """The full training file with 21 columns, and the balanced one with 59 one-hot columns, twice."""
    full, balanced = adult_scorecard(), adult_categorical(seed=0)
    small = Task(full.features[:, :-1], full.positives, full.negatives, 6)
    wide = [Task(balanced.features, balanced.positives, balanced.negatives, k) for k in (4, 6)]
    return small, wide[0], wide[1]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def line(what: str, milliseconds: float, target: float | None = None, note: str = "") -> None:
    wanted = f"{target:9.1f} {milliseconds / target:7.2f}" if target else " " * 17
    print(f"{what:46s} {milliseconds:9.2f} {wanted}   {note}")


def time_draws(task: Task, epsilon: float, seeds: int = 6, repeats: int = 3) -> tuple[float, float, float, float]:
    """Mean times over seeds to list, to the first draw and to 20 draws, and the mean accuracy of the draws.

    How much work a draw takes is random, so seeds are averaged; each is repeated and its least time taken, for noise of the
    machine only.
    """
    times, scores = [], []
    for seed in range(seeds):
        runs = []
        for _ in range(repeats):
            start = time.perf_counter()
            sampler = task.sampler(epsilon, seed)
            listed = time.perf_counter()
            first = sampler.draw(1)
            one = time.perf_counter()
            rest = sampler.draw(19)
            runs.append((listed - start, one - listed, time.perf_counter() - listed))
        times.append(np.min(runs, axis=0))
        scores.append(task.accuracy(np.concatenate([first, rest])))
    listing, one_draw, twenty_draws = 1000 * np.mean(times, axis=0)
    return float(listing), float(one_draw), float(twenty_draws), float(np.mean(scores))


def time_block_draw(task: Task, epsilon: float, seeds: int = 3, repeats: int = 2) -> tuple[float, float]:
    """Mean over seeds of the time from the table to the first draw, and of the blocks."""
    times, nodes = [], []
    for seed in range(seeds):
        runs = []
        for _ in range(repeats):
            start = time.perf_counter()
            sampler = task.sampler(epsilon, seed)
            sampler.draw(1)
            runs.append(time.perf_counter() - start)
        times.append(min(runs))
        nodes.append(sampler.statistics.nodes)
    return 1000 * float(np.mean(times)), float(np.mean(nodes))


def main() -> None:
    small, wide, wider = tasks()
    warm_up = timed(lambda: (small.sampler(1.0, 0).draw(2), small.minimum()))
    print(f"warm-up (compilation, or loading the cache): {warm_up / 1000:.1f} s\n")
    print(f"{'milliseconds':46s} {'here':>9s} {'target':>9s} {'ratio':>7s}")
    for task, name, listed, targets in (
        (small, "21 columns, K=6", 8.5, {0.01: (7.7, 77.0, 0.808), 0.1: (5.3, 20.0, 0.8425), 1.0: (0.9, 3.0, 0.8448)}),
        (wide, "59 columns, K=4", 35.0, {0.01: (3.0, None, None), 0.1: (3.0, None, None), 1.0: (3.0, None, None)}),
    ):
        for epsilon, (first, twenty, accuracy) in targets.items():
            a, b, c, score = time_draws(task, epsilon)
            line(f"{name}, ε={epsilon:g}: list all supports", a, listed)
            line(f"{name}, ε={epsilon:g}: first exact draw", b, first)
            note = f"mean training accuracy {score:.4f}" + (f" (target {accuracy})" if accuracy else "")
            line(f"{name}, ε={epsilon:g}: 20 draws", c, twenty, note)
        found = task.minimum()
        best = min(timed(task.minimum) for _ in range(12))
        work = f"{found.value / 2**20:.0f} mistakes, {found.work.solved} support(s) solved of {found.work.supports:,}"
        line(f"{name}: certified best", best, 12.0 if task is small else None, work)
    wider.sampler(1.0, 0).draw(1)
    for epsilon in (0.01, 0.1, 1.0):
        mean, nodes = time_block_draw(wider, epsilon)
        note = f"{nodes:,.0f} blocks (target 30 to 2000 ms)"
        line(f"59 columns, K=6, ε={epsilon:g}: from the table to the first draw", mean, None, note)


if __name__ == "__main__":
    main()
