"""Constraints on cards from schemas, estimators and the command line: kept on every draw, recorded, and refused in time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from commands import done, refused
from privsolve import Accountant, ExponentialSampler
from privsolve.cards.rows import rows_of
from privsolve.data import Bins, Categories, Category, Label, Number, Schema
from privsolve.data.constraints import Constraints
from privsolve.domains import ConstrainedPoints, domain_from_dict
from privsolve.learn.planning import card_expectation
from privsolve.learn.short_card_recipe import CardLimits
from privsolve.models.linear import LinearRule
from privsolve.problems.priors import SparsePrior, log_weights

COLUMNS = (
    Bins("age", [25, 35, 50], "thresholds", whole=True, missing="unknown"),
    Bins("priors", [1, 3, 6], "thresholds", whole=True),
    Bins("visits", [2, 5], "thresholds", whole=True),
    Categories("sex", ["f", "m"]),
    Categories("smokes", [True]),
)
LABEL = Label("ill", 1, 0)
STATED = Constraints({"age": "down", "priors": "up", "smokes": "up"}, required=["priors"], excluded=["sex"])
SCHEMA = Schema(COLUMNS, LABEL, constraints=STATED)


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, priors = rng.integers(18, 70, n), rng.integers(0, 9, n)
    visits, sex = rng.integers(0, 8, n), rng.choice(["f", "m"], n)
    frame = pd.DataFrame({"age": age, "priors": priors, "visits": visits, "sex": sex})
    frame["smokes"] = rng.random(n) < 0.3
    frame["ill"] = ((age < 35) & (priors > 2) | (priors > 5)) ^ (rng.random(n) < 0.1)
    return frame.astype({"ill": int})


def points_of(model: Any) -> dict[str, dict[str, int]]:
    """Points that are not 0, by column and feature."""
    rule = model.release_.model
    assert isinstance(rule, LinearRule)
    by_name = dict(zip(rule.features, rule.weights.tolist(), strict=True))
    found = {c.column: {f: by_name[f] for f in c.names if by_name[f]} for c in rule.stated_schema.columns}
    return {column: points for column, points in found.items() if points}


def check_kept(points: dict[str, dict[str, int]], most: int | None = None) -> None:
    assert "priors" in points
    assert "sex" not in points
    assert all(v < 0 for f, v in points.get("age", {}).items() if f != "age=unknown")
    assert all(v > 0 for column in ("priors", "smokes") for v in points.get(column, {}).values())
    assert most is None or len(points) <= most


def test_every_fit_keeps_to_the_schema() -> None:
    """At an epsilon so small that nearly every card is drawn."""
    frame = people()
    seen = set()
    for seed in range(12):
        model = ps.PrivateShortCard(0.01, max_features=3, max_questions=2, schema=SCHEMA, random_state=seed)
        points = points_of(model.fit(frame, frame["ill"]))
        check_kept(points, 2)
        seen.add(frozenset(points))
    assert len(seen) > 2


def test_the_release_records_the_constraints_and_reads_them_back() -> None:
    frame = people()
    model = ps.PrivateShortCard(1.0, max_questions=2, schema=SCHEMA, random_state=0).fit(frame, frame["ill"])
    release = ps.Release.from_json(model.release_.to_json())
    domain = domain_from_dict(release.setting["domain"])
    assert isinstance(domain, ConstrainedPoints)
    assert (domain.max_questions, domain.required, domain.excluded) == (2, ("priors",), ("sex",))
    rule = release.model
    assert isinstance(rule, LinearRule)
    assert domain.contains(rule.weights)
    assert rule.stated_schema.constraints == STATED


def test_schema_files_hold_constraints_beside_the_columns() -> None:
    text = SCHEMA.to_toml()
    assert 'direction = "down"' in text
    assert Schema.from_toml(text) == SCHEMA
    assert Schema.from_toml(Schema(COLUMNS, LABEL).to_toml()).constraints == Constraints()
    for gone in (text.replace("required = true", "max_cuts = 1"), 'alternatives = [["age", "visits"]]\n' + text):
        with pytest.raises(ValueError, match=r"(max_cuts is|alternatives are) gone: take"):
            Schema.from_toml(gone)


def test_contradictions_are_refused_before_anything_is_paid() -> None:
    frame, budget, plain = people(), Accountant(1.0), Schema(COLUMNS, LABEL)
    for constraints, message in (
        (Constraints({"height": "up"}), "direction: the schema has no column 'height'"),
        (Constraints(required=["age"], excluded=["age"]), "required and excluded"),
        (Constraints({"sex": "up"}), "its options have no order"),
        (Constraints(excluded=["age", "priors", "visits", "sex", "smokes"]), "leave no column"),
        (Constraints(required=["age", "priors", "sex"]), "3 questions are required, more than a card may have"),
    ):
        card = ps.PrivateShortCard(1.0, constraints=constraints, max_questions=2, schema=plain, budget=budget)
        with pytest.raises(ValueError, match=message):
            card.fit(frame, frame["ill"])
    assert not budget.history


def test_intervals_have_no_direction() -> None:
    bins = Bins("age", [25, 35], "intervals")
    with pytest.raises(ValueError, match='needs encoding = "thresholds"'):
        Schema([bins], LABEL, constraints=Constraints({"age": "up"}))
    with pytest.raises(ValueError, match='must be "up" or "down"'):
        Constraints({"age": "rising"})


def test_what_keeps_no_constraints_refuses_them() -> None:
    schema = Schema([Number("dose", 0, 10), Categories("sex", ["f"])], LABEL, constraints=Constraints({"dose": "up"}))
    frame, budget = people(50), Accountant(1.0)
    for estimator, words in (
        (ps.PrivateTreeClassifier(1.0, schema=SCHEMA, budget=budget), "constraints on cards"),
        (ps.PrivateShortCard(1.0, schema=schema, budget=budget), "over yes/no features"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.fit(frame.assign(dose=frame["priors"]), frame["ill"])
    assert not budget.history


def test_the_prior_is_divided_by_its_sum_and_the_bound_is_better() -> None:
    domain = CardLimits(2, 1, 1, max_questions=2).domain(SCHEMA)
    assert isinstance(domain, ConstrainedPoints)
    prior = SparsePrior(0.8)
    members = domain.members()
    logs = np.array([prior.log_probability(domain, member) for member in members])
    assert np.exp(logs).sum() == pytest.approx(1.0)
    differences = logs - log_weights(prior, domain, members)
    assert differences == pytest.approx(np.full(len(logs), differences[0]))
    with_constraints, without = card_expectation(domain, 1.0), card_expectation(domain.plain, 1.0)
    assert with_constraints.excess < without.excess
    short = [member for member in members if np.abs(member[:-1]).max() == 1 and np.count_nonzero(member[:-1]) == 2]
    worst = min(ps.SparsePrior(max(0.5, 1 - 2 / len(domain.usable))).log_probability(domain, m) for m in short)
    needed = 2 * (-worst - np.log(0.05))  # at kappa = 1/2, of the least likely short card
    assert needed <= with_constraints.excess < 1.5 * needed


def test_a_sampler_of_the_problem_keeps_to_the_domain_by_every_method() -> None:
    frame = people(80)
    encoded = SCHEMA.table(frame, frame["ill"].to_numpy() == 1)
    domain = CardLimits(2, 1, 1, max_questions=2).domain(SCHEMA)
    problem = ps.Problem(encoded.table, domain, schema=SCHEMA)
    found = {}
    for method in ("supports", "enumeration"):
        sampler = ExponentialSampler(problem, 0.5, prior=SparsePrior(0.8), method=method, random_state=0)
        found[method] = sampler.log_partition() + 0.25 * -sampler.reference * (1 - 1e-6 / 0.5)
        assert all(domain.contains(card) for card in sampler.draw(50))
    assert found["supports"] == pytest.approx(found["enumeration"], abs=1e-3)
    for refused_call in (
        lambda: ExponentialSampler(problem, 0.5, method="tree"),
        lambda: ps.oracles.TreeOracle().minimise(problem, ps.Perturbation.zero(domain)),
        lambda: ps.opdisc(problem, 1.0),
    ):
        with pytest.raises(ValueError, match="constraints on scorecards"):
            refused_call()
    with pytest.raises(ValueError, match="states constraints on cards"):
        ps.Problem(encoded.table, domain.plain, schema=SCHEMA)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    people().to_csv("data.csv", index=False)
    Schema(COLUMNS, LABEL).save("plain.toml")
    SCHEMA.save("stated.toml")
    return tmp_path


def test_fit_takes_constraints_from_the_file_and_from_options(here: Path) -> None:
    options = "--max-questions 1 --require age --direction age=down"
    done(f"fit --model short data.csv --schema plain.toml --epsilon 1 --out out --seed 1 {options}")
    setting = json.loads((here / "out" / "release.json").read_text())["setting"]["domain"]
    assert setting["kind"] == "constrained-points"
    assert (setting["max_questions"], setting["required"]) == (1, ["age"])
    assert setting["signs"][:4] == [-1, -1, -1, 0]
    done("fit --model short data.csv --schema stated.toml --epsilon 1 --out two --seed 1")
    assert json.loads((here / "two" / "release.json").read_text())["setting"]["domain"]["excluded"] == ["sex"]


def test_options_that_cannot_be_kept_are_refused(here: Path) -> None:
    ps.Ledger.create("ledger", 10.0)
    fit = "fit --model short data.csv --schema plain.toml"
    for options, words in (
        ("--require height", "no column 'height'"),
        ("--direction age", "write COLUMN=up or COLUMN=down"),
        ("--model tree --max-questions 2", "--max-questions is for --model scorecard or short"),
        ("--model tree --require age", "--require is for --model scorecard or short"),
        ("--model tree --schema stated.toml", "constraints on cards"),
        ("--max-questions 0", "max_questions"),
    ):
        refused(words, f"{fit} --epsilon 1 --out out --ledger ledger {options}")
    assert not ps.Ledger.open("ledger").history()


def test_plan_says_by_how_much_the_bound_is_better(here: Path) -> None:
    plan = "plan --model short --epsilon 1 --records 1000"
    stated = f"{plan} --schema plain.toml"
    free = json.loads(done(f"{stated} --json").stdout)
    found = json.loads(done(f"{stated} --max-questions 2 --direction priors=up --json").stdout)
    assert found["scorecards"] < found["without_constraints"]["scorecards"] <= free["scorecards"]
    assert found["bounds"][0]["excess"] < found["without_constraints"]["bounds"][0]["excess"]
    assert "The constraints leave" in done(f"{stated} --max-questions 2 --exclude sex").stdout
    refused("give --schema", f"{plan} --features 5 --max-questions 2")


def test_a_required_question_stays_on_the_printed_card() -> None:
    """Points that cannot change a decision would be left out, but somebody has to see them there."""
    weights = np.array([1, 1, 1, 4, -3])  # the last question decides alone
    columns = [Categories(f"c{i}", [Category("yes", ["y"])], no="no") for i in range(4)]
    for required, asked in (((), {"c3"}), (("c0",), {"c0", "c1", "c2", "c3"})):
        schema = Schema(columns, LABEL, constraints=Constraints(required=required))
        rule = LinearRule(weights, schema.features, (1,) * 5, True, schema)
        assert {entry.column.column for entry in rule.tally.entries} == asked
        assert {row.column for row in rows_of(rule)} == asked
    required = Constraints(required=["sex"])
    fitted = ps.PrivateShortCard(0.1, max_questions=2, constraints=required, schema=Schema(COLUMNS, LABEL))
    for _ in range(5):
        fitted.fit(people(), people()["ill"])
        assert "sex" in {row.column for row in fitted.scorecard_.rows}
