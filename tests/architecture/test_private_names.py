"""Nothing that another library calls private is used: such names may change without notice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import privsolve

LIBRARIES = ("numba", "llvmlite", "duckdb", "sklearn")
SOURCES = sorted(Path(privsolve.__file__).parent.rglob("*.py"))


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
    assert {str(path): names for path in SOURCES if (names := private_names(path.read_text(encoding="utf-8")))} == {}
