"""The examples of private selection and of a loss of one's own run, show something and state their guarantee."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "says", "shows"),
    [
        ("model_selection", "The one to use here", "█"),
        ("facility_location", "7,381 pairs of places", "@"),
        ("three_classes", "39,366 rules", "classes off"),
        ("stopping_rule", "Stop once the score", "*"),
        ("synthetic_data", "161,051 distributions", "noisy histogram of 8 cells"),
        ("histogram_threshold", "Nine of ten", "█"),
        ("bus_stops", "20 to keep", "█"),
        ("large_assignment", "200 schools", "█"),
        ("oracle_that_may_fail", "theory section 15.4", "no cover"),
    ],
)
def test_the_example_runs(name: str, says: str, shows: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert "Guarantee: " in done.stdout
    assert shows in done.stdout[done.stdout.index("For the curator only") :]
