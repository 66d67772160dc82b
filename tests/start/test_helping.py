"""A second process compiles ahead in a fresh installation: real processes on a copy of the package."""

from pathlib import Path

import pytest

from copied_package import copy_package, run_python

CALLER = '''
"""A compiled function that calls another."""
from privsolve.compiled import compiled

@compiled
def part(x):
    return x + 1

@compiled
def whole(x):
    return 2 * part(x)
'''

CALL = """
import sys, time
from pathlib import Path
import privsolve.engines.helping as helping
from privsolve.compiled import store
from privsolve.engines.caller import part, whole
CHANGE
helping.helped_with([(part, 1)])
for helper in helping._STARTED:
    assert helper.wait(60) == 0
print(len(helping._STARTED), len(list(store().glob("*caller.part*"))), whole(3), sum(part.part.stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copied = copy_package(tmp_path)
    (copied / "engines" / "caller.py").write_text(CALLER)
    return copied


def call(package: Path, change: str = "") -> list[int]:
    """How many helpers were started, how many files they left, the value, and what had to be compiled here of the part."""
    result = run_python(package, CALL.replace("CHANGE", change))
    assert result.returncode == 0, result.stderr
    return list(map(int, result.stdout.split()))


def test_another_process_makes_what_is_linked_here_and_only_the_first_time(package: Path) -> None:
    assert call(package) == [1, 1, 8, 0]
    assert call(package) == [0, 1, 8, 0]


@pytest.mark.parametrize(
    "change",
    [
        "helping._cores = lambda: 1",
        "sys.executable = '/usr/sbin/httpd'",
        "sys.executable = None",
        "sys.frozen = True",
        "sys.executable = '/nowhere/python3'",
    ],
)
def test_without_a_core_or_an_interpreter_everything_is_compiled_here(package: Path, change: str) -> None:
    assert call(package, change) == [0, 0, 8, 1]


def test_a_helper_that_fails_costs_nothing(package: Path) -> None:
    """It is given a function that it does not find."""
    change = (
        "part.py_func.__name__ = 'lost'\nhelping._STARTED = type('Any', (list,), {'__iter__': lambda self: iter(())})()"
    )
    assert call(package, change)[1:] == [0, 8, 1]
