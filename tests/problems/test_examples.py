"""Every example with a problem of its own runs, shows something and states its guarantee."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("command", "says", "shows"),
    [
        ("model_selection.py", "The one to use here", "█"),
        ("facility_location.py", "7,381 pairs of places", "@"),
        ("three_classes.py", "39,366 rules", "classes off"),
        ("stopping_rule.py", "Stop once the score", "*"),
        ("synthetic_data.py", "161,051 distributions", "noisy histogram of 8 cells"),
        ("histogram_threshold.py", "Nine of ten", "█"),
        ("bus_stops.py", "20 to keep", "█"),
        ("large_assignment.py", "200 schools", "█"),
        ("oracle_that_may_fail.py", "theory section 15.4", "no cover"),
        ("assignment.py", "points of dissatisfaction", "without privacy"),
        ("spanning_tree.py", "Roads kept open", "without privacy"),
        ("robust_location.py --records 100000", "Released centre of demand", "true centre"),
        ("posted_price.py --records 100000", "Released price", "best fixed price"),
        ("quantile.py --records 100000", "Nine patients in ten", "best threshold"),
    ],
)
def test_the_example_runs(command: str, says: str, shows: str) -> None:
    script, *options = command.split()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *options], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert "one record of the data changes the probability of any" in done.stdout
    assert shows in done.stdout[done.stdout.index("For the curator only") :]
