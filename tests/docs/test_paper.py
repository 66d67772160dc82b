"""Every row of the page for readers of the paper leads somewhere: file, command and anchor exist, names resolve."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper.md"


LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("- **")]
ROWS = [[cell.removesuffix("**") for cell in line.removeprefix("- **").split(" · ")] for line in LINES]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_leads_somewhere(row: list[str]) -> None:
    assert len(row) == 5, row
    _, here, file, status, see = row
    assert (ROOT / file.strip("`")).is_file(), file
    assert status.split()[0].strip(",:;") in ("proved", "corrected", "as", "measured", "other")
    links = re.findall(r"\]\(([^)]+)\)", see)
    assert links
    for link in links:
        name, _, anchor = link.partition("#")
        page = (PAGE.parent / name).resolve()
        assert page.is_file(), link
        assert not anchor or anchor in anchors(page), link
    for code in re.findall(r"`([^`]+)`", f"{here} {see}"):
        check_code(code)


def check_code(code: str) -> None:
    """A command runs or its script exists; a public name is one."""
    if code.startswith("python "):
        assert (ROOT / code.split()[1]).is_file(), code
    elif code.startswith("privsolve "):
        assert CliRunner().invoke(app, [*code.split()[1:], "--help"]).exit_code == 0, code
    elif found := re.match(r"ps((?:\.\w+)+)", code):
        value: object = ps
        for name in found.group(1).strip(".").split("."):
            value = getattr(value, name)


def test_every_numbered_item_of_the_paper_has_a_row() -> None:
    numbered = {f"Definition {n}" for n in ("2.1", "2.2", "2.3", "2.4", "2.5", "A.1", "A.2")}
    numbered |= {f"Algorithm {n}" for n in (1, 2, 3)} | {f"Figure {n}" for n in ("1a", "1b", "2", "3")}
    numbered |= {"Theorem 1", "Lemma 2", "Lemma 3", "Lemma 4", "Theorem 5", "Theorem 6", "Theorem 7"}
    numbered |= {"Lemma 8", "Lemma 9", "Lemma 10", "Theorem 11", "Section 3.1"}
    first = [row[0] for row in ROWS]
    missing = {item for item in numbered if not any(re.match(rf"{re.escape(item)}\b", cell) for cell in first)}
    assert missing == set()


def test_equations_are_all_named() -> None:
    text = " ".join(row[0] for row in ROWS)
    named = {int(n) for n in re.findall(r"\((\d+)\)", text)}
    for low, high in re.findall(r"\((\d+)\) to \((\d+)\)", text):
        named |= set(range(int(low), int(high) + 1))
    assert named >= set(range(1, 18)) - {14}  # 14 is a step inside the proof of Lemma 3
