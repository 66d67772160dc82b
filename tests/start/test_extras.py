"""Packages of extras that are missing: what does not need them works, the rest says in one line what to install."""

import pytest

from copied_package import SOURCES, run_python

MISSING = "import sys\nfor name in ('dp_accounting', 'matplotlib'):\n    sys.modules[name] = None\n"


@pytest.mark.parametrize("module", ["privsolve.experiments.dpsgd", "privsolve.experiments.report"])
def test_what_needs_an_extra_says_how_to_install_it(module: str) -> None:
    result = run_python(SOURCES, f"{MISSING}import {module}")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith("is not installed: pip install 'privsolve[experiments]'")


def test_the_command_line_says_it_in_one_line() -> None:
    result = run_python(SOURCES, f"{MISSING}from privsolve.cli import app; app(['reproduce', 'adult', '--quick'])")
    assert result.returncode == 2
    assert result.stderr == "error: dp_accounting is not installed: pip install 'privsolve[experiments]'\n"


def test_fitting_and_planning_need_no_extra() -> None:
    use = "import privsolve.learn.estimators, privsolve.cli.fit, privsolve.cli.budget, privsolve.continuous.opsamp"
    assert run_python(SOURCES, MISSING + use).returncode == 0


EXTRAS = "'gurobipy', 'opendp', 'openpyxl', 'polars', 'selenium'"


def test_the_audit_attacks_every_mechanism_of_a_plain_installation() -> None:
    code = f"""{MISSING}
for name in ({EXTRAS}):
    sys.modules[name] = None
import privsolve as ps
found = ps.audit.checks(random_state=1)
print(*sorted({{check.mechanism.replace(' ', '-') for check in found}}))
print(all(row.as_expected for row in ps.audit.run_checks([check for check in found if check.mechanism == 'choose'])))
"""
    result = run_python(SOURCES, code)
    assert result.returncode == 0, result.stderr
    mechanisms = "OPDisc OPSamp RSPM choose exponential full-card tree"
    assert result.stdout.splitlines() == [mechanisms, "True"]
