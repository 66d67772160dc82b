"""No import goes upwards, also none hidden inside a function, and no name is used that another library calls private."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import privsolve

PACKAGE = Path(privsolve.__file__).parent

# from the ground up; a room may import from its own floor's left neighbours and from all floors below
FLOORS = (
    ("_version", "errors", "registry", "checks", "arrays", "compiled", "notebooks"),
    ("privacy",),
    ("noise",),
    ("data",),
    ("models",),
    ("evaluation",),
    ("cards",),
    ("losses", "domains"),
    ("releases",),
    ("problems",),
    ("engines",),
    ("oracles",),
    ("mechanisms", "continuous"),
    ("datasets",),
    ("safety",),
    ("learn",),
    ("audit",),
    ("__init__",),  # the public face: what stands above it uses the package as anybody else does
    ("experiments",),
    ("cli",),
    ("__main__",),
)
ROOMS = [room for floor in FLOORS for room in floor]


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module of the package that a file imports, at the top or inside a function; not for type checkers only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names if name.name.split(".")[0] == "privsolve")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "privsolve":
            whole = (
                [f"privsolve.{name.name}" for name in node.names] if node.module == "privsolve" else [node.module or ""]
            )
            yield from ((node.lineno, name) for name in whole)


def upwards(path: Path) -> list[str]:
    room = room_of(".".join(("privsolve", *path.relative_to(PACKAGE).with_suffix("").parts)))
    return [
        f"{path.relative_to(PACKAGE)}:{line} ({room}) imports {module}"
        for line, module in imports(path)
        if ROOMS.index(room_of(module)) > ROOMS.index(room)
    ]


def test_every_room_is_on_a_floor() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found == set(ROOMS)


def test_no_import_goes_upwards() -> None:
    assert [
        wrong
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent != PACKAGE or path.stem != "__init__"
        for wrong in upwards(path)
    ] == []


def test_the_test_sees_hidden_imports(tmp_path: Path) -> None:
    file = tmp_path / "hidden.py"
    file.write_text("def f():\n    from privsolve.cli import app\n    from privsolve import learn as x\n")
    assert [module for _, module in imports(file)] == ["privsolve.cli", "privsolve.learn"]


def test_nothing_imports_the_experiments_but_their_commands() -> None:
    """Research code lives apart: the package works without it."""
    inside = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "experiments"]
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in inside
        for _, module in imports(path)
        if module.startswith("privsolve.experiments")
    }
    assert users == {"cli/reproduce.py"}


LIBRARIES = ("numba", "llvmlite", "duckdb", "sklearn")


def private(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def private_names(text: str) -> list[str]:
    """Private modules, names and attributes of these libraries that a source uses."""
    tree, found = ast.parse(text), []
    known = set(LIBRARIES)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            known |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.split(".")[0] in LIBRARIES]
            names = [alias.name for alias in ours]
            known |= {alias.asname or alias.name.split(".")[0] for alias in ours}
        else:
            continue
        found += [name for name in names if private(name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            start = node.value
            while isinstance(start, ast.Attribute):
                start = start.value
            if isinstance(start, ast.Name) and start.id in known:
                found.append(f"{start.id}...{node.attr}")
    return found


@pytest.mark.parametrize(
    "text", ["from numba.core._x import y", "import numba\nnumba.core.x._y()", "from sklearn.utils import _param as z"]
)
def test_private_names_are_noticed(text: str) -> None:
    assert private_names(text)


def test_no_private_name_of_another_library_is_used() -> None:
    assert {
        str(path): names for path in PACKAGE.rglob("*.py") if (names := private_names(path.read_text(encoding="utf-8")))
    } == {}
