"""The command line: the demo tells what may be published from what may not, and errors are one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve import cli
from privsolve.cli.options import EXPERT, PANELS
from small_tables import patients

runner = CliRunner()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    out = tmp_path_factory.mktemp("demo")
    options = ["--epsilon", "0.5", "--seed", "1", "--runs", "1", "--jobs", "1", "--out", str(out)]
    result = runner.invoke(cli.app, ["demo", *options])
    assert result.exit_code == 0, result.output
    return result.output, out


def test_the_demo_ends_with_table_scorecard_and_paths(demo: tuple[str, Path]) -> None:
    text, out = demo
    parts = ["As printed:", "Extended:", "A scorecard to publish", "Written"]
    places = [text.find(part) for part in parts]
    assert min(places) >= 0
    assert places == sorted(places)
    words = " ".join(text.split())
    assert "Changing one record of the data changes the probability" in words
    assert "Seeded: for testing only" in words
    for name in ("adult/report.md", "adult/figure-1.svg", "adult/figure-2.png", "scorecard/scorecard.html"):
        assert (out / name).exists()
        assert str(out / name) in text.replace("\n", "")


def test_the_scorecard_of_the_demo_is_the_mechanisms(demo: tuple[str, Path]) -> None:
    _, out = demo
    release = ps.Release.from_json((out / "scorecard" / "release.json").read_text())
    assert release.guarantee.epsilon == 0.5
    records = ps.datasets.adult()
    train = records[records["split"] == "train"].drop(columns="split")
    again = ps.PrivateScorecard(0.5, schema=ps.datasets.adult_schema(), random_state=1)
    again.fit(train.drop(columns="income"), train["income"])
    assert (again.release_.weights == release.weights).all()
    assert again.score(train, train["income"]) > 0.84


def test_what_depends_on_the_data_is_apart(demo: tuple[str, Path]) -> None:
    _, out = demo
    for name in ("release.json", "scorecard.html"):
        assert "accuracy" not in (out / "scorecard" / name).read_text()
    private = json.loads((out / "scorecard-curator" / "diagnostics.json").read_text())
    assert next(iter(private)) == "warning"
    assert "NOT covered by the guarantee" in private["warning"]
    assert private["training_accuracy"] > 0.83


def test_help_and_wrong_arguments() -> None:
    shown = runner.invoke(cli.app, ["--help"]).output
    for command in ("fit", "predict", "show", "plan", "schema", "budget", "audit", "solvers", "reproduce", "demo"):
        assert command in shown
        assert runner.invoke(cli.app, [command, "--help"]).exit_code == 0
    assert runner.invoke(cli.app, ["demo", "--epsilon", "much"]).exit_code == 2
    assert runner.invoke(cli.app, ["fly"]).exit_code == 2


def test_version_and_short_help() -> None:
    assert runner.invoke(cli.app, ["--version"]).output == f"privsolve {ps.__version__}\n"
    for command in ([], ["fit"], ["budget"], ["budget", "show"], ["schema", "draft"]):
        shown = runner.invoke(cli.app, [*command, "-h"])
        assert shown.exit_code == 0
        assert shown.output == runner.invoke(cli.app, [*command, "--help"]).output


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan"])
def test_a_wrong_epsilon_is_refused_before_anything_is_run(tmp_path: Path, epsilon: str) -> None:
    refused = runner.invoke(cli.app, ["demo", "--epsilon", epsilon, "--out", str(tmp_path / "demo")])
    assert refused.exit_code == 2
    assert not (tmp_path / "demo").exists()


def test_solvers_are_listed_with_what_is_missing() -> None:
    shown = runner.invoke(cli.app, ["solvers"])
    assert shown.exit_code == 0
    assert "built in" in shown.output
    rows = {row["name"]: row for row in json.loads(runner.invoke(cli.app, ["solvers", "--json"]).output)}
    assert set(rows) == {
        "tree",
        "enumeration",
        "assignment",
        "subset",
        "spanning-tree",
        "highs",
        "gurobi",
    }
    assert all(set(row) == {"name", "status", "licence", "arithmetic", "note"} for row in rows.values())


def test_errors_are_one_line_that_says_what_to_do() -> None:
    refused = runner.invoke(cli.app, ["demo", "--epsilon", "-1"])
    assert refused.exit_code == 2
    last = refused.output.strip().splitlines()[-1]
    assert last == "error: epsilon must be finite and positive, got -1.0; choose for example epsilon=1.0"


def test_too_little_memory_is_said_in_words_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As numpy says it: the error comes while the supports are listed, so no epsilon is spent."""
    from privsolve.engines.supports import listed
    from privsolve.privacy.ledger import Ledger

    monkeypatch.chdir(tmp_path)
    patients(100).to_csv("data.csv", index=False)
    Path("s.toml").write_text('[label]\ncolumn = "ill"\npositive = "yes"\n[columns.age]\nbins = [30, 50]\n')
    Ledger.create("ledger", 5.0)
    monkeypatch.setattr(listed, "list_supports", lambda *_: np.zeros(2**55))
    refused = runner.invoke(
        cli.app,
        [
            "fit",
            "--model",
            "short",
            "data.csv",
            "--schema",
            "s.toml",
            "--epsilon",
            "1",
            "--out",
            "out",
            "--ledger",
            "ledger",
        ],
    )
    assert refused.exit_code == 2, refused.output
    assert "not enough memory: use fewer" in refused.output
    assert "Traceback" not in refused.output
    assert Ledger.open("ledger").history() == ()


def test_few_options_of_fit_are_for_newcomers() -> None:
    """At most 20 options stand outside the panel for experts, and every option has a panel."""
    command = cli.COMMANDS["fit"].load("fit")
    panels = [option.rich_help_panel for option in command.params if option.param_type_name == "option"]
    panels = [panel for panel in panels if panel is not None]
    assert set(panels) == set(PANELS)
    assert sum(panel != EXPERT for panel in panels) <= 20
    assert len(panels) + 2 >= len(command.params)  # all but the table and --help
