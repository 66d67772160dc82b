"""Full scorecards through the estimator and the command line."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import privsolve as ps
from commands import refused
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.mechanisms import objective
from privsolve.mechanisms.card_points import Card
from raw_tables import RAW_TABLES
from small_tables import INDICATORS


def records(rng: np.random.Generator, n: int, rare: float = 0.0) -> pd.DataFrame:
    age, sex, smokes = rng.integers(18, 90, n), rng.choice(["f", "m"], n), rng.choice(["no", "yes"], n, p=[0.7, 0.3])
    odds = 0.05 * (age - 55) + 0.8 * (smokes == "yes") - 0.4 * (sex == "f") - rare
    died = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame({"age": age, "sex": sex, "smokes": smokes, "died": died})


AGES, SMOKES = [30, 40, 50, 60, 70], ps.Categories("smokes", ["no", "yes"])
COLUMNS = [ps.Bins("age", AGES, "thresholds", whole=True), ps.Categories("sex", ["f", "m"]), SMOKES]
SCHEMA = ps.Schema(COLUMNS, ps.Label("died", ["yes"], ["no"]))


def fitted(table: pd.DataFrame, epsilon: float = 1.0, **options) -> ps.PrivateScorecard:
    options = {"schema": SCHEMA, "random_state": 0} | options
    return ps.PrivateScorecard(epsilon, **options).fit(table.drop(columns="died"), table["died"])


def test_a_full_card_ranks_as_logistic_regression_does() -> None:
    rng = np.random.default_rng(0)
    train, test = records(rng, 8000), records(rng, 8000)
    model = fitted(train)
    risk = model.predict_proba(test)[:, 1]
    assert roc_auc_score(test["died"] == "yes", risk) > 0.99 * _plain_auc(train, test)
    assert risk.mean() == pytest.approx((test["died"] == "yes").mean(), rel=0.1)
    assert (model.predict(test) == np.where(risk > 0.5, "yes", "no")).all()
    assert (model.decision_function(test) > 0).tolist() == (model.predict(test) == "yes").tolist()
    assert model.privacy_.proved
    assert model.release_.total.delta == pytest.approx(1e-6)


def _plain_auc(train: pd.DataFrame, test: pd.DataFrame) -> float:
    x, y = (SCHEMA.encode(table.drop(columns="died"))[:, :-1] for table in (train, test))
    model = LogisticRegression().fit(x, train["died"])
    return float(roc_auc_score(test["died"] == "yes", model.decision_function(y)))


def test_rare_outcomes_are_ranked_and_calibrated() -> None:
    rng = np.random.default_rng(1)
    train, test = records(rng, 60_000, 4.2), records(rng, 60_000, 4.2)
    assert 0.01 < (train["died"] == "yes").mean() < 0.03
    model = fitted(train)
    risk = model.predict_proba(test)[:, 1]
    assert roc_auc_score(test["died"] == "yes", risk) > _plain_auc(train, test) - 0.03
    assert risk.mean() == pytest.approx((test["died"] == "yes").mean(), rel=0.15)


@pytest.mark.parametrize("seed", [23, 31, 34])
def test_newton_steps_do_not_go_back_and_forth(seed: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((1500, 3))
    labels = np.where(rng.random(len(x)) < 1 / (1 + np.exp(1.5 - 4 * x[:, 0] - 2 * x[:, 1])), "yes", "no")
    cuts = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    schema = ps.Schema([ps.Bins(name, cuts, "thresholds") for name in "abc"], ps.Label("y", "yes", "no"))
    card = ps.PrivateScorecard(0.3, delta=1e-5, schema=schema, adjacency="add-remove", random_state=seed)
    card.fit(pd.DataFrame(x, columns=list("abc")), labels)  # not certified, so nothing was released
    assert card.diagnostics_.values["gradient_bound"] < 1e-5


def test_directions_limits_and_excluded_columns_are_kept_exactly() -> None:
    table = records(np.random.default_rng(3), 300)
    stated = ps.Constraints({"age": "down"}, excluded=["sex"])
    for seed in range(5):
        model = fitted(table, 0.5, constraints=stated, random_state=seed)
        assert (model.release_.model.weights[:5] <= 0).all()
        assert "sex" not in {column.column for column in model.release_.schema.columns}
    model = fitted(records(np.random.default_rng(4), 4000), 4.0, max_questions=1)
    assert len(model.scorecard_.rows) <= 1
    assert model.release_.setting["objective"]["choosing"] is True


def test_costs_move_the_threshold_only() -> None:
    table = records(np.random.default_rng(5), 2000)
    plain, costly = fitted(table), fitted(table, false_negative=9)
    assert (plain.predict_proba(table) == costly.predict_proba(table)).all()
    assert ((costly.predict(table) == "yes") == (costly.predict_proba(table)[:, 1] > 0.1)).all()
    assert ((costly.predict(table) == "yes") == (costly.decision_function(table) > 0)).all()


def test_the_intercept_is_kept_to_a_fraction_of_a_point() -> None:
    recipe = FullCardRecipe(1.0)
    asked = recipe.encoding(INDICATORS)
    model = recipe.model(replace(asked, intercept=True), Card(np.ones(asked.dim, dtype=np.int64), 0.3, -1.0))
    assert model.log_odds * model.weights[-1] + model.base == pytest.approx(-1.0)


def test_a_sample_is_fitted_and_the_release_states_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    table = records(np.random.default_rng(5), 4000)
    monkeypatch.setattr(objective, "MOST_RECORDS", 3000)
    with pytest.raises(ps.errors.IntegerRangeError, match="sample_rate"):
        fitted(table)
    model = fitted(table, sample_rate=0.5)
    assert model.release_.setting["objective"]["sample_rate"] == 0.5
    assert model.diagnostics_.training_records == pytest.approx(2000, abs=100)
    assert model.release_.guarantee == fitted(table, sample_rate=0.5, random_state=1).release_.guarantee


def test_wrong_options_are_refused_before_payment() -> None:
    account = ps.Accountant(1.0, 1e-5)
    table = records(np.random.default_rng(6), 100)
    for options, words in (
        ({"delta": 0.0}, "short card or a tree"),
        ({"delta": 2.0}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"max_points": 0}, "max_points"),
        ({"max_questions": 0}, "max_questions"),
        ({"sparsity": -1.0}, "sparsity"),
        ({"sample_rate": 0.0}, "sample_rate"),
        ({"constraints": ps.Constraints(excluded=["age", "sex", "smokes"])}, "every column is excluded"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(table, **{"budget": account} | options)
    assert account.history == ()


def test_a_process_that_only_predicts_reads_the_release(tmp_path: Path) -> None:
    table = records(np.random.default_rng(8), 400)
    table.to_csv(tmp_path / "data.csv", index=False)
    model = fitted(table)
    (tmp_path / "release.json").write_text(model.release_.to_json())
    command = [sys.executable, "-m", "privsolve", "predict", "data.csv", "--release", "release.json", "--out", "s.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.allclose(pd.read_csv(tmp_path / "s.csv")["risk"], model.predict_proba(table)[:, 1])


def test_what_one_command_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records(np.random.default_rng(9), 400).to_csv("patients.csv", index=False)
    for missing in ("--label died", "--positive yes", "--epsilon 1"):
        fit = "fit patients.csv --label died --positive yes --epsilon 1 --out other"
        refused(missing.split()[0], fit.replace(missing, ""))
        assert not Path("other").exists()


def test_a_budget_that_cannot_pay_for_the_fit_does_not_pay_for_the_draft() -> None:
    table = records(np.random.default_rng(10), 2000)
    account = ps.Accountant(1.0, 1.5e-6, composition_delta=0.0)  # enough for the draft's delta and not for both
    with pytest.raises(ps.BudgetExceeded, match="delta"):
        fitted(table.rename(columns={"age": "a", "sex": "b", "smokes": "c"}), schema=None, budget=account)
    assert account.history == ()


NO_COMPILER = """
import sys
import pandas as pd
import privsolve as ps
from privsolve.cli import app
from typer.testing import CliRunner

{run}
assert "numba" not in sys.modules, "something on this road is compiled"
"""


@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("road", ["estimator", "command"])
def test_nothing_is_compiled(road: str, drafted: bool, tmp_path: Path) -> None:
    """From a CSV file to a card, with or without a private draft of the schema, numba is not even imported."""
    data, schema = tmp_path / "data.csv", tmp_path / "schema.toml"
    records(np.random.default_rng(0), 3000).to_csv(data, index=False)
    SCHEMA.save(schema)
    if road == "estimator":
        stated = "" if drafted else f"schema=ps.Schema.load({str(schema)!r})"
        run = f"table = pd.read_csv({str(data)!r})\ny = table.pop('died')\nps.PrivateScorecard({stated}).fit(table, y)"
    else:
        stated = ["--label", "died", "--positive", "yes"] if drafted else ["--schema", str(schema)]
        command = ["fit", str(data), *stated, "--epsilon", "1", "--out", str(tmp_path / "out")]
        run = f"done = CliRunner().invoke(app, {command!r})\nassert done.exit_code == 0, done.output"
    done = subprocess.run([sys.executable, "-c", NO_COMPILER.format(run=run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_the_columns_of_the_schema_are_needed_to_predict() -> None:
    frame = RAW_TABLES["titanic"].frame()
    fitted = ps.PrivateScorecard(20.0, random_state=0).fit(frame.drop(columns="Survived"), frame["Survived"])
    used = [column.column for column in fitted.schema_.columns]
    assert set(used) < set(frame.columns) - {"Survived"}
    assert (fitted.predict(frame[used]) == fitted.predict(frame)).all()
    with pytest.raises(ValueError, match="yet now missing"):
        fitted.predict(frame[used[1:]])
