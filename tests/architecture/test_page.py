"""The architecture page: files that it names exist, roads are short, and the questions of a newcomer are answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "privsolve"
NAMED = sorted(set(re.findall(r"`([\w./-]+(?:\.py|\.pyi|/))`", PAGE)))
ROADS = re.findall(r"^### (.*?)\n(.*?)(?=^##)", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_files_are_named() -> None:
    assert len(NAMED) > 100


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_exists(name: str) -> None:
    assert (PACKAGE / name).exists() or (ROOT / name).exists(), name


def test_every_folder_of_the_package_is_on_the_page() -> None:
    folders = {f"`{path.parent.name}/`" for path in PACKAGE.glob("*/__init__.py")}
    assert {folder for folder in folders if folder not in PAGE} == set()


@pytest.mark.parametrize(("road", "text"), ROADS, ids=[road for road, _ in ROADS])
def test_a_road_has_at_most_ten_steps(road: str, text: str) -> None:
    steps = [int(number) for number in re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    assert 4 <= len(steps) <= 10


def test_roads_are_found() -> None:
    assert len(ROADS) == 8
