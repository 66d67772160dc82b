"""The command line: the demo tells what may be published from what may not, and errors are one line."""

import json
from pathlib import Path

import numpy as np
import pytest

import privsolve as ps
from commands import done, refused, run
from privsolve import cli
from privsolve.cli.options import EXPERT, PANELS
from privsolve.engines.supports import listed
from small_tables import patients


def test_the_demo_tells_what_may_be_published_from_what_may_not(here: Path) -> None:
    text = done("demo --epsilon 0.5 --seed 1 --runs 1 --jobs 1 --out demo").output
    places = [text.find(part) for part in ("As printed:", "Extended:", "A scorecard to publish", "Written")]
    assert min(places) >= 0
    assert places == sorted(places)
    words = " ".join(text.split())
    assert "Changing one record of the data changes the probability" in words
    assert "Seeded: for testing only" in words
    for name in ("adult/report.md", "adult/figure-1.svg", "adult/figure-2.png", "scorecard/scorecard.html"):
        assert Path("demo", name).exists()
        assert f"demo/{name}" in text.replace("\n", "")
    for name in ("release.json", "scorecard.html"):
        assert "accuracy" not in Path("demo/scorecard", name).read_text()
    private = json.loads(Path("demo/scorecard-curator/diagnostics.json").read_text())
    assert next(iter(private)) == "warning"
    assert "NOT covered by the guarantee" in private["warning"]
    assert private["training_accuracy"] > 0.83
    release = ps.Release.from_json(Path("demo/scorecard/release.json").read_text())
    assert release.guarantee.epsilon == 0.5
    records = ps.datasets.adult()
    train = records[records["split"] == "train"].drop(columns="split")
    again = ps.PrivateScorecard(0.5, schema=ps.datasets.adult_schema(), random_state=1)
    again.fit(train.drop(columns="income"), train["income"])
    assert (again.release_.weights == release.weights).all()
    assert again.score(train, train["income"]) > 0.84


def test_help_version_and_wrong_arguments() -> None:
    shown = done("--help").output
    for command in ("fit", "predict", "show", "plan", "schema", "budget", "audit", "solvers", "reproduce", "demo"):
        assert command in shown
        assert done(command, "--help").output == done(command, "-h").output
    assert done("--version").output == f"privsolve {ps.__version__}\n"
    for wrong in ("demo --epsilon much", "fly"):
        assert run(wrong).exit_code == 2


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_a_wrong_epsilon_is_refused_in_one_line_before_anything_is_run(here: Path, epsilon: float) -> None:
    words = f"error: epsilon must be finite and positive, got {epsilon}; choose for example epsilon=1.0"
    assert refused(words, "demo --out demo --epsilon", epsilon).output.strip().splitlines()[-1] == words
    assert not Path("demo").exists()


def test_solvers_are_listed_with_what_is_missing() -> None:
    assert "built in" in done("solvers").stdout
    rows = {row["name"]: row for row in json.loads(done("solvers --json").stdout)}
    assert set(rows) == {"tree", "enumeration", "assignment", "subset", "spanning-tree", "highs", "gurobi"}
    assert all(set(row) == {"name", "status", "licence", "arithmetic", "note"} for row in rows.values())


def test_too_little_memory_is_said_before_anything_is_paid(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As numpy says it: the error comes while the supports are listed, so no epsilon is spent."""
    patients(100).to_csv("data.csv", index=False)
    Path("s.toml").write_text('[label]\ncolumn = "ill"\npositive = "yes"\n[columns.age]\nbins = [30, 50]\n')
    ps.Ledger.create("ledger", 5.0)
    monkeypatch.setattr(listed, "list_supports", lambda *_: np.zeros(2**55))
    fit = "fit --model short data.csv --schema s.toml --epsilon 1 --out out --ledger ledger"
    assert "Traceback" not in refused("not enough memory: use fewer", fit).output
    assert ps.Ledger.open("ledger").history() == ()


def test_few_options_of_fit_are_for_newcomers() -> None:
    """At most 20 options stand outside the panel for experts, and every option has a panel."""
    command = cli.COMMANDS["fit"].load("fit")
    panels = [option.rich_help_panel for option in command.params if option.param_type_name == "option"]
    panels = [panel for panel in panels if panel is not None]
    assert set(panels) == set(PANELS)
    assert sum(panel != EXPERT for panel in panels) <= 20
    assert len(panels) + 2 >= len(command.params)  # all but the table and --help
