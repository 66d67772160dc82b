"""Every section that a guarantee cites is a heading of the docs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import privsolve

PACKAGE = Path(privsolve.__file__).parent
DOCS = PACKAGE.parents[1] / "docs"
PAGES = sorted((DOCS / "theory").glob("*.md"))
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)?)\.? ", re.MULTILINE)


def headings() -> set[str]:
    return {number for page in PAGES for number in HEADING.findall(page.read_text(encoding="utf-8"))}


def stated(node: ast.AST) -> ast.expr | None:
    """What is passed or assigned as `theory`, if the node does that."""
    if isinstance(node, ast.keyword) and node.arg == "theory":
        return node.value
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    named = any(isinstance(target, ast.Name) and target.id == "theory" for target in targets)
    return getattr(node, "value", None) if named else None


def cited() -> set[tuple[str, str]]:
    """Every section that the package cites in a guarantee, with the file."""
    return {
        (part.value, str(path.relative_to(PACKAGE)))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (value := stated(node)) is not None
        for part in ast.walk(value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def test_what_guarantees_cite_are_headings() -> None:
    found, sections = cited(), headings()
    assert {"0", "1", "2", "2.1", "3", "4", "5", "7", "10"} <= sections
    assert len(found) >= 5
    assert not [(section, file) for section, file in found if section not in sections]
