"""Light to start, in real processes: what is not imported, and what is said where the package of an extra is missing."""

import ast
from importlib import import_module

import pytest

import privsolve
from copied_package import SOURCES, run_python
from privsolve.cli import COMMANDS

TABLES = {"pandas", "ibis", "duckdb", "pyarrow", "polars"}
SELDOM = {"numba", "sklearn", "matplotlib", "dp_accounting", "joblib", "opendp", *TABLES}
HEAVY = {"numpy", "scipy", "narwhals", *SELDOM}


def imported(code: str) -> set[str]:
    """The packages that a process has loaded after running this code."""
    shown = "print('loaded:', *(name for name in sys.modules if '.' not in name))"
    result = run_python(SOURCES, f"import sys\n{code}\n{shown}")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split("loaded:")[1].split())


def test_import_loads_nothing_heavy() -> None:
    assert imported("import privsolve; privsolve.__version__; dir(privsolve)") & HEAVY == set()


@pytest.mark.parametrize("arguments", [[], ["--help"], ["no-such-command"]])
def test_the_command_line_starts_without_anything_heavy(arguments: list[str]) -> None:
    code = f"""
from privsolve.cli import app
try:
    app({arguments!r})
except SystemExit:
    pass
"""
    assert imported(code) & HEAVY == set()


@pytest.mark.parametrize("name", ["Schema", "Ledger", "Release", "Scorecard", "Problem", "exponential", "opdisc"])
def test_what_is_not_asked_for_is_not_loaded(name: str) -> None:
    loaded = imported(f"import privsolve; privsolve.{name}")
    assert "numpy" in loaded
    assert loaded & (SELDOM - {"numba"} if name in ("exponential", "opdisc") else SELDOM) == set()


def test_every_public_name_is_there() -> None:
    for name in privsolve.__all__:
        assert getattr(privsolve, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        privsolve.no_such_name  # noqa: B018
    code = "import privsolve; print(*dir(privsolve)); from privsolve import *; print(Schema.__name__, oracles.__name__)"
    listed, used = run_python(SOURCES, code).stdout.splitlines()
    assert listed.split() == sorted(privsolve.__all__)
    assert used.split() == ["Schema", "privsolve.oracles"]


def test_type_checkers_see_the_names_where_they_are_defined() -> None:
    stub = ast.parse((SOURCES / "__init__.pyi").read_text())
    froms = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module]
    listed = [(f"privsolve.{node.module}", alias) for node in froms for alias in node.names]
    assert all(alias.name == alias.asname for _, alias in listed)  # otherwise a stub does not export it
    for module, alias in listed:
        assert getattr(import_module(module), alias.name) is getattr(privsolve, alias.name)


def test_the_help_of_the_whole_says_what_each_command_says() -> None:
    for name, listed in COMMANDS.items():
        command = listed.load(name)
        assert command.name == name
        assert command.help.startswith(listed.summary.rstrip("."))


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
print(all(row.as_expected for row in ps.audit.run_checks([check for check in found if check.mechanism == 'exponential'])))
"""
    result = run_python(SOURCES, code)
    assert result.returncode == 0, result.stderr
    mechanisms = "OPDisc OPSamp RSPM exponential full-card tree"
    assert result.stdout.splitlines() == [mechanisms, "True"]
