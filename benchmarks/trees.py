"""How good private trees are on Adult, and how time grows with records, features and depth.

Run `python benchmarks/trees.py accuracy`, `... growth` or `... optimum`; prints Markdown tables. `... table FILE` writes the
training table as text (label first), for solvers that are run apart, such as STreeD.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import privsolve as ps
from privsolve.engines.trees.sampler import TreeSums
from privsolve.mechanisms.trees import tree_temperature

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DRAWS = 10


def adult(depth: int, leaves: str = "labels") -> tuple[ps.TreeProblem, ps.TreeProblem]:
    """Training and test records of Adult with the package's schema: 33 features."""
    frame, schema = ps.datasets.adult(), ps.tree_schema(ps.datasets.adult_schema())
    kinds = {"labels": ps.LabelLeaves, "probabilities": ps.ProbabilityLeaves}
    trees = ps.DecisionTrees(ps.TreeQuestions.of(schema), depth, kinds[leaves](["<=50K", ">50K"]))
    parts = (schema.table(frame[frame["split"] == split]).table for split in ("train", "test"))
    train, test = (ps.TreeProblem.from_table(part, trees, schema) for part in parts)
    return train, test


def timed(problem: ps.TreeProblem, epsilon: float = 1.0, adjacency: str = "replace") -> tuple[TreeSums, float]:
    """All sums, and the seconds they took, after compilation."""
    sums = TreeSums(problem, ps.TreePrior(), tree_temperature(problem.trees, epsilon, adjacency))
    sums.compile()
    start = time.perf_counter()
    sums.solve()
    return sums, time.perf_counter() - start


def accuracy() -> None:
    """Test accuracy, mean of ten draws, and seconds to the first draw."""
    print("| depth | adjacency | ε = 0.1 | 0.3 | 1 | 3 | best tree | seconds: draw | best |\n" + "|---" * 9 + "|")
    for depth in (2, 3, 4, 5):
        train, test = adult(depth)
        start = time.perf_counter()
        best, _ = ps.best_tree(train)
        best_seconds = time.perf_counter() - start
        for adjacency in ("replace", "add-remove"):
            cells, seconds = [], 0.0
            for epsilon in EPSILONS:
                sampler = ps.TreeSampler(train, epsilon, adjacency=adjacency, random_state=1)
                start = time.perf_counter()
                drawn = [sampler.draw()]
                seconds = time.perf_counter() - start
                drawn += [sampler.draw() for _ in range(DRAWS - 1)]
                cells.append(f"{np.mean([test.quality(tree)['training_accuracy'] for tree in drawn]):.4f}")
            top = test.quality(best.root)["training_accuracy"]
            print(
                f"| {depth} | {adjacency} | {' | '.join(cells)} | {top:.4f} | {seconds:.2f} | {best_seconds:.2f} |",
                flush=True,
            )


def growth() -> None:
    """Seconds for all sums, by records, features and depth; half of the answers are yes."""
    print("| features | records | depth | seconds | MiB |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for features, records, depth in (
        (33, 5_000, 3), (33, 50_000, 3), (33, 500_000, 3), (33, 5_000, 4), (33, 50_000, 4), (33, 5_000, 5),
        (100, 5_000, 3), (200, 5_000, 3), (500, 5_000, 3), (100, 5_000, 4), (2_000, 5_000, 2),
    ):  # fmt: skip
        questions = ps.TreeQuestions.plain(features)
        trees = ps.DecisionTrees(questions, depth, ps.LabelLeaves([0, 1]))
        answers = rng.integers(0, 2, (records, features), dtype=np.uint8)
        targets = (answers[:, :3].sum(axis=1) + rng.random(records) > 2).astype(int)
        problem = ps.TreeProblem.from_records(answers, targets, trees)
        work = ps.TreeSampler(problem, 1.0, random_state=0).work
        _, seconds = timed(problem)
        print(f"| {features} | {records:,} | {depth} | {seconds:.2f} | {work.memory / 2**20:.0f} |", flush=True)


def optimum() -> None:
    """The certified best trees, for comparison with other solvers."""
    for depth in (3, 4):
        train, _ = adult(depth)
        start = time.perf_counter()
        _, loss = ps.best_tree(train)
        print(f"depth {depth}: {loss} mistakes, {time.perf_counter() - start:.2f} s")


def table(path: str) -> None:
    """The training records as text: the label, then the answers."""
    frame, schema = ps.datasets.adult(), ps.tree_schema(ps.datasets.adult_schema())
    train = frame[frame["split"] == "train"]
    label = (train["income"] == ">50K").to_numpy().astype(int)
    np.savetxt(path, np.column_stack([label, schema.encode(train)]), fmt="%d")


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "accuracy"
    if what == "table":
        table(sys.argv[2])
    else:
        {"accuracy": accuracy, "growth": growth, "optimum": optimum}[what]()
