"""Several units of a risk score: the law of unit and card together, what is promised, and what is refused before paying."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privsolve as ps
from chi_square import deviation
from privsolve.cli import app
from privsolve.learn.risks import StagedRecipe
from privsolve.losses import NARROW_SPAN
from privsolve.mechanisms.exponential import temperature_of_range
from privsolve.mechanisms.units import Units, joint_range
from privsolve.releases import Release
from small_tables import patients

UNITS = Units((1.0, 0.3), (6, 1))
Outcome = tuple[float, tuple[int, ...]]


def table_of(seed: int, rows: int = 10, most: int = 9) -> ps.PatternTable:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, 2, size=(rows, 2)), np.ones(rows, dtype=np.int64)])
    return ps.PatternTable(features, *rng.integers(0, most, size=(2, rows)))


def plan_of(count: int = 1, units: Units | None = UNITS) -> ps.Stages:
    return ps.Stages.of(3, count, max_features=2 // count, max_points=1, intercept=(-1, 1), units=units)


def exact_law(
    table: ps.PatternTable, plan: ps.Stages, epsilon: float, heat: float = 1.0, adjacency: str = "replace"
) -> dict[Outcome, float]:
    """The probability of every unit and card, by listing both and, for later stages, the cards of each."""
    assert plan.units is not None
    losses = plan.units.losses(ps.BrierLoss())
    first = temperature_of_range(plan.epsilons(epsilon)[0], adjacency, joint_range(losses))
    law: dict[Outcome, float] = {}
    for k, (domain, share) in enumerate(zip(plan.domains, plan.epsilons(epsilon), strict=True)):
        members = domain.members()
        prior = np.array([plan.prior.log_probability(domain, member) for member in members])
        problems = {loss.log_odds: ps.Problem(table, plan.domain, loss) for loss in losses}
        if k == 0:
            logs = {
                (unit, tuple(w.tolist())): log_weight + log_prior - heat * first * problems[unit].total_loss(w)
                for unit, log_weight in zip(plan.units.log_odds, plan.units.log_weights, strict=True)
                for w, log_prior in zip(members, prior, strict=True)
            }
            total = np.logaddexp.reduce(list(logs.values()))
            law = {outcome: float(np.exp(value - total)) for outcome, value in logs.items()}
            continue
        following: Counter[Outcome] = Counter()
        for (unit, start), probability in law.items():
            kappa = heat * temperature_of_range(share, adjacency, problems[unit].loss.largest)
            sums = np.array(start) + members
            values = prior - kappa * np.array([problems[unit].total_loss(w) for w in sums])
            for w, part in zip(sums.tolist(), np.exp(values - np.logaddexp.reduce(values)), strict=True):
                following[unit, tuple(w)] += probability * float(part)
        law = dict(following)
    return law


def drawn(table: ps.PatternTable, plan: ps.Stages, epsilon: float, runs: int) -> Counter[Outcome]:
    problem = ps.Problem(table, plan.domain, ps.BrierLoss())
    found: Counter[Outcome] = Counter()
    for seed in range(runs):
        release = ps.staged(problem, epsilon, plan, random_state=seed).release
        found[release.model.log_odds, tuple(release.weights.tolist())] += 1
    return found


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_unit_and_card_have_the_exact_law_together(count: int, seed: int) -> None:
    """Other weights of the units, or another temperature, are noticed."""
    plan, table, epsilon, runs = plan_of(count), table_of(seed), 3.0, 400
    law = exact_law(table, plan, epsilon)
    assert sum(law.values()) == pytest.approx(1)
    assert 0.02 < sum(p for (unit, _), p in law.items() if unit == 1.0) < 0.98
    found = drawn(table, plan, epsilon, runs)
    assert abs(deviation(found, law, runs)) < 5
    equal = exact_law(table, replace(plan, units=Units((0.3, 1.0))), epsilon)
    assert deviation(found, equal, runs) > 5
    assert deviation(found, exact_law(table, plan, epsilon, heat=0.3), runs) > 5


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_no_record_is_told_by_more_than_epsilon(adjacency: str) -> None:
    """All neighbours of small tables, by the exact law; a broken copy that spends three times as much is caught."""
    epsilon, plan = 1.0, plan_of()
    for heat, least, most in ((1.0, 0.3, 1.0), (3.0, 1.0, 3.0)):
        worst = 0.0
        for seed in range(4):
            table = table_of(seed, 4, 3)
            here = exact_law(table, plan, epsilon, heat, adjacency)
            for other in neighbours(table, adjacency):
                there = exact_law(other, plan, epsilon, heat, adjacency)
                worst = max(worst, max(abs(log(here[outcome] / there[outcome])) for outcome in here))
        assert least * epsilon < worst <= most * epsilon


def neighbours(table: ps.PatternTable, adjacency: str) -> list[ps.PatternTable]:
    """One record less, or one with another label and row."""
    found = []
    for i in range(len(table.features)):
        for label in (table.positives, table.negatives):
            if label[i] == 0:
                continue
            counts = [table.positives.copy(), table.negatives.copy()]
            counts[0 if label is table.positives else 1][i] -= 1
            if adjacency == "add-remove":
                found.append(ps.PatternTable(table.features, *counts))
                continue
            counts[1 if label is table.positives else 0][(i + 1) % len(table.features)] += 1
            found.append(ps.PatternTable(table.features, *counts))
    return found


def test_the_joint_range_is_that_of_any_two_members() -> None:
    """Also where one unit's tables alone vary less: a record moves from the best risk of one to the worst of the other."""
    losses = Units((0.2, 2.5)).losses(ps.BrierLoss())
    tables = [loss.table for loss in losses]
    widest = max(int(abs(a - b)) for y in (0, 1) for t in tables for u in tables for a in t[y] for b in u[y])
    assert joint_range(losses) == widest >= max(loss.largest for loss in losses)
    assert joint_range(losses[:1]) == losses[0].largest


def test_the_release_says_which_units_were_offered() -> None:
    frame = patients(400)
    model = ps.PrivateScorecard(2.0, objective="risk", schema=schema(), log_odds=(0.25, 1.0), random_state=0)
    model.fit(frame.drop(columns="ill"), frame["ill"])
    release = Release.from_json(model.release_.to_json())
    assert release.to_json() == model.release_.to_json()
    assert release.model.log_odds in (0.25, 1.0)
    assert release.setting["stages"]["units"] == {"log_odds": [0.25, 1.0], "weights": [0.5, 0.5]}
    assert release.loss.log_odds == release.model.log_odds  # type: ignore[attr-defined]
    counted = ps.PrivateScorecard(
        2.0, objective="risk", schema=schema(), log_odds=(0.25, 1.0), adjacency="add-remove", random_state=0
    ).fit(frame.drop(columns="ill"), frame["ill"])
    assert {"units", "count"} <= set(counted.release_.setting["stages"])


def test_any_order_and_any_collection_of_units() -> None:
    assert Units([0.5, 0.2], [3, 1]) == Units((0.2, 0.5), (1, 3)) == Units(np.array([0.2, 0.5]), (1, 3))
    assert Units({0.2, 0.5}).weights == (0.5, 0.5)
    assert Units(x for x in (0.5, 0.2)) == Units((0.2, 0.5))  # type: ignore[arg-type]


def test_one_unit_in_a_tuple_is_one_unit() -> None:
    assert StagedRecipe(1.0, schema(), log_odds=(0.4,)).units is None
    assert StagedRecipe(1.0, schema(), log_odds=(0.4,)).loss == ps.BrierLoss(0.4, NARROW_SPAN)


@pytest.mark.parametrize(
    "log_odds",
    [
        (),
        (0.5, 0.5),
        (0.1, 0.2, 0.3, 0.4, 0.5),
        "0.5",
        ("a", 1),
        (0.5, -1),
        (0.5, float("nan")),
        None,
        {0.25: 1, 0.5: 2},
    ],
)
def test_wrong_units_are_refused_before_anything_is_paid(log_odds: object) -> None:
    frame, budget = patients(100), ps.Accountant(5.0)
    model = ps.PrivateScorecard(1.0, objective="risk", schema=schema(), log_odds=log_odds, budget=budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="log_odds"):
        model.fit(frame.drop(columns="ill"), frame["ill"])
    assert budget.totals.releases == 0


def test_wrong_weights_and_losses_are_refused() -> None:
    for weights in ((1,), (1, 0), (1, -1), (1, float("inf")), 5, {0.2: 1, 0.5: 2}):
        with pytest.raises(ValueError, match="weights"):
            Units((0.2, 0.5), weights)  # type: ignore[arg-type]
    for units in (0.5, "0.5", {0.2: 1, 0.5: 2}):
        with pytest.raises(ValueError, match="log_odds"):
            Units(units)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="units must be Units"):
        plan_of(units=(0.2, 0.5))  # type: ignore[arg-type]
    plan = plan_of()
    with pytest.raises(ValueError, match="risk"):
        ps.staged(ps.Problem(table_of(0), plan.domain, ps.ZeroOneLoss()), 1.0, plan)


def test_the_utility_bound_pays_for_the_choice() -> None:
    more, one = (ps.stages_utility_bound(plan_of(units=units), 1.0, loss=ps.BrierLoss(0.3)) for units in (UNITS, None))
    assert 0 < more - one < 2.5 * (log(7) + 1) * 4096


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    patients(300).to_csv("data.csv", index=False)
    Path("s.toml").write_text(schema().to_toml())
    units = ["--objective", "risk", "--log-odds", "0.3", "--log-odds", "0.6"]
    fitted = CliRunner().invoke(
        app, ["fit", "data.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "out", *units]
    )
    assert fitted.exit_code == 0, fitted.output
    content = json.loads(Path("out/release.json").read_text())
    assert content["setting"]["stages"]["units"]["log_odds"] == [0.3, 0.6]
    ignored = CliRunner().invoke(
        app, ["fit", "data.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "o", *units[2:]]
    )
    assert ignored.exit_code == 2
    assert "several units are for --objective risk" in ignored.output
    planned = CliRunner().invoke(app, ["plan", "--schema", "s.toml", "--records", "300", "--epsilon", "1", *units])
    assert planned.exit_code == 0, planned.output


def schema() -> ps.Schema:
    from privsolve.data import Bins, Label

    return ps.Schema([Bins("age", [30, 50, 70]), Bins("dose", [1, 2])], Label("ill", "yes", "no"))
