"""Every command of the errata runs, and prints what the page says it prints."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = sorted((ROOT / "examples" / "errata").glob("*.py"))
PAGE = ROOT / "docs" / "theory" / "errata.md"
SHOWN = dict(re.findall(r"```\n\$ python examples/errata/(\w+)\.py\n(.*?)```", PAGE.read_text(), re.S))
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def test_every_command_is_on_the_page() -> None:
    assert {path.stem for path in COMMANDS} == set(SHOWN)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_the_page_shows_what_is_printed(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.syspath_prepend(path.parent)  # as for a script
    runpy.run_path(str(path), run_name="__main__")
    printed, shown = capsys.readouterr().out, SHOWN[path.stem]
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for seen, stated in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        # another version of a library may draw the last digit differently
        assert float(seen.replace(",", "")) == pytest.approx(float(stated.replace(",", "")), rel=0.02)


def test_the_parity_command_draws_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "parity.svg"
    monkeypatch.setattr(sys, "argv", ["parity.py", "--figure", str(target)])
    runpy.run_path(str(ROOT / "examples" / "errata" / "parity.py"), run_name="__main__")
    assert target.read_text().startswith("<?xml")
    assert (ROOT / "docs" / "figures" / "errata-parity.svg").exists()
