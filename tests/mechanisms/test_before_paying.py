"""What is done before a release is paid for: all compiling, and the checks of every argument."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.compiled import Compiled
from privsolve.domains.trees import TreeQuestions
from privsolve.models.leaves import LabelLeaves

CASES = [
    "exponential, supports",
    "exponential, supports in blocks",
    "exponential, tree",
    "exponential, enumeration",
    "opdisc, tree",
    "opdisc, scorecard",
    "opdisc, highs",
    "decision trees",
]


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


@pytest.mark.parametrize("case", CASES)
def test_everything_is_compiled_before_paying(case: str) -> None:
    """In a new process, where no function is ready: none is compiled, or loaded from the cache, after the payment."""
    source = str(Path(ps.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, __file__, case],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": source},
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


TABLE = ps.PatternTable(np.eye(3, dtype=int), [3, 1, 0], [0, 1, 2])
BALL = ps.Problem(TABLE, ps.IntegerBall(3, 2))


def _no_argument() -> None: ...


WRONG_CALLBACKS = ["print", 3, _no_argument, lambda a, b: None]


@pytest.mark.parametrize("mechanism", [ps.exponential, ps.opdisc, ps.rspm])
@pytest.mark.parametrize("value", WRONG_CALLBACKS, ids=["text", "number", "no argument", "two arguments"])
def test_wrong_callbacks_spend_nothing(mechanism: Any, value: Any) -> None:
    accountant = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=r"^progress must be None or a function of one argument"):
        mechanism(BALL, 0.5, progress=value, budget=accountant)
    assert accountant.history == ()


def test_limits_may_be_numpy_integers_and_callbacks_built_in() -> None:
    seen: list[object] = []
    run = ps.exponential(
        BALL, 0.5, max_nodes=np.int64(1 << 20), max_attempts=np.int32(1000), progress=seen.append, random_state=0
    )
    assert run.release.weights.shape == (3,)
    assert seen


if __name__ == "__main__":
    print(sorted(run(sys.argv[1])))
