"""Light to start: what is imported, and above all what is not, in real processes."""

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
    result = run_python(
        SOURCES, f"import sys\n{code}\nprint('loaded:', *(name for name in sys.modules if '.' not in name))"
    )
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


@pytest.mark.parametrize("name", ["Schema", "Ledger", "Release", "Scorecard", "Problem", "SparsePoints"])
def test_what_is_not_asked_for_is_not_loaded(name: str) -> None:
    loaded = imported(f"import privsolve; privsolve.{name}")
    assert "numpy" in loaded
    assert loaded & SELDOM == set()


@pytest.mark.parametrize("name", ["exponential", "opdisc"])
def test_mechanisms_load_no_tables_plots_or_estimators(name: str) -> None:
    assert imported(f"import privsolve; privsolve.{name}") & (SELDOM - {"numba"}) == set()


def test_every_public_name_is_there() -> None:
    for name in privsolve.__all__:
        assert getattr(privsolve, name) is not None
    assert set(privsolve.__all__) <= set(dir(privsolve))
    assert sorted(privsolve.__all__) == sorted(set(privsolve.__all__))
    with pytest.raises(AttributeError, match="no_such_name"):
        privsolve.no_such_name  # noqa: B018
    result = run_python(SOURCES, "from privsolve import *; print(Schema.__name__, oracles.__name__, __version__)")
    assert result.stdout.split() == ["Schema", "privsolve.oracles", privsolve.__version__]


def test_the_surface_holds_nothing_but_its_names() -> None:
    result = run_python(SOURCES, "import privsolve; print(*dir(privsolve))")
    assert result.stdout.split() == sorted(privsolve.__all__)
    assert not {"Any", "import_module", "lazy_loader"} & set(result.stdout.split())


def test_type_checkers_see_the_names_where_they_are_defined() -> None:
    stub = ast.parse((SOURCES / "__init__.pyi").read_text())
    listed = [
        (f"privsolve.{s.module}", a) for s in stub.body if isinstance(s, ast.ImportFrom) and s.module for a in s.names
    ]
    assert all(alias.name == alias.asname for _, alias in listed)  # otherwise a stub does not export it
    for module, alias in listed:
        assert getattr(import_module(module), alias.name) is getattr(privsolve, alias.name)


def test_the_help_of_the_whole_says_what_each_command_says() -> None:
    for name, listed in COMMANDS.items():
        command = listed.load(name)
        assert command.name == name
        assert command.help.startswith(listed.summary.rstrip("."))
