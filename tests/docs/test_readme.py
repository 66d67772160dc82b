"""The README's code and commands do what it says, with the output it shows."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve import cli
from privsolve.cli import common
from privsolve.safety import sealed

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    tuple(part.split("\n", 1))
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for part in re.split(r"^\$ privsolve ", block, flags=re.MULTILINE)[1:]
]
MAKE_CSV = re.search(r'```\npython -c "\n(.*?)"\n```', README, flags=re.DOTALL)


def tidy(text: str) -> str:
    """Without trailing spaces, without the seconds a run took, and without the note that code is compiled."""
    without_time = re.sub(r"[\d.]+ s +│", "s │", text)
    lines = [line.rstrip() for line in without_time.strip().splitlines()]
    return "\n".join(line for line in lines if not line.startswith("privsolve: compiling"))


@pytest.mark.parametrize("block", BLOCKS)
def test_code_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block, {})


def test_from_a_table_to_a_published_scorecard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for console in (common.console, common.errors):
        monkeypatch.setattr(console, "_width", 88)
    assert MAKE_CSV is not None
    exec(MAKE_CSV[1], {})
    # as if the operating system's entropy were known: what is shown is a release and not a test
    monkeypatch.setattr(sealed.secrets, "token_hex", lambda size=32: "5a" * size)
    assert [command.split()[0] for command, _ in COMMANDS] == ["fit", "predict"]
    for command, shown in COMMANDS:
        result = CliRunner().invoke(cli.app, shlex.split(command))
        assert result.exit_code == 0, result.output
        assert tidy(result.output) == tidy(shown), command
        assert "warning" not in result.output.lower()
    release = ps.Release.from_json((tmp_path / "out" / "release.json").read_text())
    assert release.evaluation is not None
    assert release.total.epsilon == 1.0
    assert (tmp_path / "out" / "scorecard.html").exists()
    assert len((tmp_path / "scored.csv").read_text().splitlines()) == 32_562


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 150
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (Path(__file__).parents[2] / target).exists(), target
