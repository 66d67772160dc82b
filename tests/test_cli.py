"""The command line: the demo tells what may be published from what may not."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve import cli

EPSILON = 0.05  # solved in a second by either mechanism
runner = CliRunner()


@pytest.fixture(scope="module", params=["opdisc", "exponential"])
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def demo(mechanism: str) -> str:
    result = runner.invoke(cli.app, ["demo", "--mechanism", mechanism, "--epsilon", str(EPSILON), "--seed", "1"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_demo_shows_release_guarantee_and_diagnostics_in_this_order(demo: str) -> None:
    parts = ["15,682 records, 23 features", "Published weights", "Guarantee", "Curator's diagnostics"]
    places = [demo.find(part) for part in parts]
    assert min(places) >= 0
    assert places == sorted(places)
    words = " ".join(demo.replace("│", " ").split())
    assert "Choosing among 22,097,867,887,045 integer weight vectors" in words
    assert "Changing one record of the data changes the probability" in words
    assert "e^0.05" in words
    assert "Seeded: for testing only" in words


def test_what_depends_on_the_data_stands_below_the_warning(demo: str) -> None:
    public, private = demo.split("Curator's diagnostics")
    assert "are NOT covered by the" in private
    for word in ("accuracy", "mistakes", "nodes"):
        assert word in private
        assert word not in public.split("Published weights")[1]


def test_opdisc_shows_its_certificate(demo: str, mechanism: str) -> None:
    assert ("certified True" in demo) == (mechanism == "opdisc")


def test_the_demo_prints_the_weights_of_the_mechanism(demo: str, mechanism: str) -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(23, 23))
    if mechanism == "opdisc":
        run = ps.opdisc(problem, EPSILON, random_state=1)
    else:
        run = ps.exponential(problem, EPSILON, prior=ps.SparsePrior(), random_state=1)
    shown = {
        cells[0].split(" / ")[0]: int(cells[1])
        for line in demo.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("│ ").split("│")]) == 2 and cells[1][:1] in "+-"
    }
    assert shown == {name: int(w) for name, w in zip(table.names, run.release.weights, strict=True) if w}


def test_help_and_wrong_arguments() -> None:
    assert "demo" in runner.invoke(cli.app, ["--help"]).output
    assert "epsilon" in runner.invoke(cli.app, ["demo", "--help"]).output
    assert runner.invoke(cli.app, ["demo", "--epsilon", "much"]).exit_code == 2
    assert runner.invoke(cli.app, ["fly"]).exit_code == 2


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan"])
def test_a_wrong_epsilon_publishes_nothing(mechanism: str, epsilon: str) -> None:
    refused = runner.invoke(cli.app, ["demo", "--mechanism", mechanism, "--epsilon", epsilon])
    assert refused.exit_code != 0
    assert "Published weights" not in refused.output


def test_solvers_are_listed_with_what_is_missing() -> None:
    shown = runner.invoke(cli.app, ["solvers"])
    assert shown.exit_code == 0
    assert "built in" in shown.output
    rows = {row["name"]: row for row in json.loads(runner.invoke(cli.app, ["solvers", "--json"]).output)}
    assert set(rows) == {"tree", "enumeration", "highs", "cpsat", "scip", "gurobi"}
    assert all(set(row) == {"name", "status", "licence", "arithmetic", "note"} for row in rows.values())


def test_errors_are_one_line_that_says_what_to_do() -> None:
    refused = runner.invoke(cli.app, ["demo", "--epsilon", "-1"])
    assert refused.exit_code == 2
    last = refused.output.strip().splitlines()[-1]
    assert last == "error: epsilon must be finite and positive, got -1.0; choose for example epsilon=1.0"
