"""How good private trees are on Adult, and how time grows with records, features and depth.

Run `python benchmarks/trees.py accuracy`, or `... growth`; prints Markdown tables. `... streed PYTHON` runs
STreeD beside us, with the Python of another environment (`pip install pystreed` there). Seconds are of the processor, of
all threads together, so that other programs on the machine matter less.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import privsolve as ps
from privsolve.domains.trees import TreeQuestions, tree_schema
from privsolve.engines.trees.sampler import TreeSums
from privsolve.mechanisms.trees import TreeSampler, tree_temperature
from privsolve.models.leaves import LabelLeaves, ProbabilityLeaves

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DRAWS = 10


def adult(depth: int, leaves: str = "labels") -> tuple[ps.TreeProblem, ps.TreeProblem]:
    """Training and test records of Adult with the package's schema: 33 features."""
    frame, schema = ps.datasets.adult(), tree_schema(ps.datasets.adult_schema())
    kinds = {"labels": LabelLeaves, "probabilities": ProbabilityLeaves}
    trees = ps.DecisionTrees(TreeQuestions.of(schema), depth, kinds[leaves](["<=50K", ">50K"]))
    parts = (schema.table(frame[frame["split"] == split]).table for split in ("train", "test"))
    train, test = (ps.TreeProblem.from_table(part, trees, schema) for part in parts)
    return train, test


def timed(problem: ps.TreeProblem, epsilon: float = 1.0, adjacency: str = "replace") -> tuple[TreeSums, float, float]:
    """All sums, the seconds of the processor and those on the clock that they took, after compilation."""
    sums = TreeSums(problem, tree_temperature(problem.trees, epsilon, adjacency))
    sums.compile()
    start, clock = time.process_time(), time.perf_counter()
    sums.solve()
    return sums, time.process_time() - start, time.perf_counter() - clock


def accuracy() -> None:
    """Test accuracy, mean of ten draws, and seconds to the first draw."""
    print("| depth | adjacency | ε = 0.1 | 0.3 | 1 | 3 | best tree | seconds: draw | best |\n" + "|---" * 9 + "|")
    for depth in (2, 3, 4, 5):
        train, test = adult(depth)
        start = time.process_time()
        best, _ = ps.best_tree(train)
        best_seconds = time.process_time() - start
        for adjacency in ("replace", "add-remove"):
            cells, seconds = [], 0.0
            for epsilon in EPSILONS:
                sampler = TreeSampler(train, epsilon, adjacency=adjacency, random_state=1)
                start = time.process_time()
                drawn = [sampler.draw()]
                seconds = time.process_time() - start
                drawn += [sampler.draw() for _ in range(DRAWS - 1)]
                cells.append(f"{np.mean([test.quality(tree)['training_accuracy'] for tree in drawn]):.4f}")
            top = test.quality(best.root)["training_accuracy"]
            print(
                f"| {depth} | {adjacency} | {' | '.join(cells)} | {top:.4f} | {seconds:.2f} | {best_seconds:.2f} |",
                flush=True,
            )


def growth() -> None:
    """Seconds for all sums, by records, features and depth; half of the answers are yes."""
    print("| features | records | depth | seconds of the processor | on the clock | MiB |\n" + "|---" * 6 + "|")
    rng = np.random.default_rng(0)
    for features, records, depth in (
        (33, 5_000, 3),
        (33, 50_000, 3),
        (33, 500_000, 3),
        (33, 5_000, 4),
        (33, 50_000, 4),
        (33, 5_000, 5),
        (100, 5_000, 3),
        (200, 5_000, 3),
        (500, 5_000, 3),
        (100, 5_000, 4),
        (2_000, 5_000, 2),
    ):
        questions = TreeQuestions.plain(features)
        trees = ps.DecisionTrees(questions, depth, LabelLeaves([0, 1]))
        answers = rng.integers(0, 2, (records, features), dtype=np.uint8)
        targets = (answers[:, :3].sum(axis=1) + rng.random(records) > 2).astype(int)
        problem = ps.TreeProblem.from_records(answers, targets, trees)
        work = TreeSampler(problem, 1.0, random_state=0).work
        _, seconds, clock = timed(problem)
        mebibytes = work.memory / 2**20
        print(f"| {features} | {records:,} | {depth} | {seconds:.2f} | {clock:.2f} | {mebibytes:.0f} |", flush=True)


STREED = """
import json, sys, time
import numpy as np
from pystreed import STreeDClassifier

table = np.load(sys.argv[1])
for depth in map(int, sys.argv[2:]):
    model = STreeDClassifier(max_depth=depth, max_num_nodes=2**depth - 1, time_limit=3600)
    start, clock = time.process_time(), time.perf_counter()
    model.fit(table[:, 1:], table[:, 0])
    seconds, waited = time.process_time() - start, time.perf_counter() - clock
    wrong = int((model.predict(table[:, 1:]) != table[:, 0]).sum())
    print(json.dumps({"depth": depth, "mistakes": wrong, "seconds": seconds, "clock": waited}), flush=True)
"""


def streed(python: str) -> None:
    """STreeD's optimum beside the first private draw and the certified best tree, one after the other, in one run."""
    frame, schema = ps.datasets.adult(), tree_schema(ps.datasets.adult_schema())
    train = frame[frame["split"] == "train"]
    label = (train["income"] == ">50K").to_numpy().astype(int)
    ps.best_tree(adult(2)[0])  # compiles
    TreeSampler(adult(2)[0], 1.0, random_state=0).draw()
    print("| depth | what | mistakes | seconds of the processor | STreeD takes so many times as long | on the clock |")
    print("|---" * 6 + "|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, np.column_stack([label, schema.encode(train)]))
        for depth in (3, 4):
            problem, _ = adult(depth)
            rows = []
            sampler = TreeSampler(problem, 1.0, random_state=0)
            start, clock = time.process_time(), time.perf_counter()
            drawn = sampler.draw()
            taken = time.process_time() - start, time.perf_counter() - clock
            rows.append(("private draw, ε = 1", problem.total_loss(drawn), *taken))
            start, clock = time.process_time(), time.perf_counter()
            _, loss = ps.best_tree(problem)
            rows.append(("best tree", loss, time.process_time() - start, time.perf_counter() - clock))
            command = [python, "-c", STREED, str(path), str(depth)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            other = json.loads(done.stdout.splitlines()[-1])
            rows.append(("STreeD", other["mistakes"], other["seconds"], other["clock"]))
            for what, mistakes, seconds, waited in rows:
                cpu, wait = other["seconds"] / seconds, other["clock"] / waited
                print(
                    f"| {depth} | {what} | {mistakes:,} | {seconds:.2f} | {cpu:.1f} | {waited:.2f} ({wait:.1f}) |",
                    flush=True,
                )


Data = tuple[pd.DataFrame, pd.Series]


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "accuracy"
    if what == "streed":
        streed(sys.argv[2])
    else:
        {"accuracy": accuracy, "growth": growth}[what]()
