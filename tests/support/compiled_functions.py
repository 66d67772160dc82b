"""Which compiled functions a process has ready, and an account that watches whether more are made after it has paid."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import privsolve as ps
from privsolve.compiled import Compiled
from privsolve.domains.trees import TreeQuestions
from privsolve.models.leaves import LabelLeaves


def compiled() -> set[tuple[str, str]]:
    """Every compiled function of privsolve with the types it was compiled for."""
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("privsolve"):
            for value in list(vars(module).values()):
                if isinstance(value, Compiled):
                    found |= {
                        (f"{value.py_func.__module__}.{value.__name__}", str(types)) for types in value.signatures
                    }
    return found


class Watching:
    """Pays for everything, and keeps what was compiled between the payment and the release."""

    late: set[tuple[str, str]]

    @contextmanager
    def spending(self, guarantee: ps.Guarantee, note: str = "") -> Iterator[None]:
        before = compiled()
        yield
        self.late = compiled() - before


def binary_table(columns: int, rows: int = 40) -> ps.PatternTable:
    rng = np.random.default_rng(0)
    features = np.unique(rng.integers(0, 2, (rows, columns)), axis=0)
    return ps.PatternTable(features, rng.integers(0, 9, len(features)), rng.integers(0, 9, len(features)))


def run(case: str) -> set[tuple[str, str]]:
    """What one mechanism compiles after paying."""
    account, table = Watching(), binary_table(8)
    few = ps.Problem(table, ps.SparsePoints(8, 2, 2))
    many = ps.Problem(binary_table(75), ps.SparsePoints(75, 4, 2))  # more than a million supports: too many to list
    ball = ps.Problem(table, ps.IntegerBall(8, 4))
    if case == "decision trees":
        trees = ps.DecisionTrees(TreeQuestions.plain(8), 4, LabelLeaves([0, 1]))
        ps.private_tree(ps.TreeProblem.from_table(table, trees), 0.5, budget=account)
    elif case == "exponential, supports in blocks":
        ps.exponential(many, 0.5, adjacency="add-remove", budget=account)
    elif case.startswith("exponential"):
        problem, method = (few, "supports") if case.endswith("supports") else (ball, case.split(", ")[1])
        ps.exponential(problem, 0.5, method=method, budget=account)
    else:
        oracle = "highs" if case == "opdisc, highs" else "tree"
        ps.opdisc(few if case == "opdisc, scorecard" else ball, 0.5, oracle=oracle, budget=account)
    return account.late


if __name__ == "__main__":
    print(sorted(run(sys.argv[1])))
