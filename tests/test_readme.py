"""The README's code does what it says, with the output it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import privsolve as ps

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", README, flags=re.DOTALL)


def test_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    exec(BLOCKS[0][0], {})
    assert ps.Release.from_json((tmp_path / "release.json").read_text()).guarantee.proved
    assert "Changing one record" in capsys.readouterr().out


def test_scorecard_and_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = BLOCKS[1]
    exec(code, {})
    assert capsys.readouterr().out == shown
