"""The architecture page names files that exist and short roads; sections that a guarantee cites are headings of the docs."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "privsolve"
NAMED = sorted(set(re.findall(r"`([\w./-]+(?:\.py|\.pyi|/))`", PAGE)))
THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
ROADS = re.findall(r"^### (.*?)\n(.*?)(?=^##)", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_what_the_page_names_exists() -> None:
    assert len(NAMED) > 100
    assert not [name for name in NAMED if not (PACKAGE / name).exists() and not (ROOT / name).exists()]


def test_every_folder_of_the_package_is_on_the_page() -> None:
    folders = {f"`{path.parent.name}/`" for path in PACKAGE.glob("*/__init__.py")}
    assert {folder for folder in folders if folder not in PAGE} == set()


def test_roads_have_at_most_ten_steps() -> None:
    assert len(ROADS) == 8
    for road, text in ROADS:
        steps = [int(number) for number in re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE)]
        assert steps == list(range(1, len(steps) + 1)), road
        assert 4 <= len(steps) <= 10, road


def headings() -> set[str]:
    return {number for page in THEORY for number in HEADING.findall(page.read_text(encoding="utf-8"))}


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
