"""What is done before a release is paid for: all compiling, and the checks of every argument."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps

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
SCRIPT = Path(__file__).parents[1] / "support" / "compiled_functions.py"


@pytest.mark.parametrize("case", CASES)
def test_everything_is_compiled_before_paying(case: str) -> None:
    """In a new process, where no function is ready: none is compiled, or loaded from the cache, after the payment."""
    source = str(Path(ps.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), case],
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
