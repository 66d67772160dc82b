"""The estimators: what they warn of, what they spend, and the law of a private score."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import privsolve as ps
from privsolve import (
    Accountant,
    Bins,
    Categories,
    Label,
    Ledger,
    Number,
    PrivateScorecard,
    PrivateShortCard,
    PrivateTreeClassifier,
    Schema,
)
from privsolve.learn.labels import occurring_classes
from privsolve.noise.entropy import Randomness
from small_tables import INDICATORS, SCHEMA, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]


def scorecard(**options: Any) -> PrivateShortCard:
    settings = {"epsilon": 5.0, "max_features": 2, "intercept": 3, "schema": INDICATORS, "random_state": 0}
    return PrivateShortCard(**{**settings, **options})


UNTOUCHED = Randomness(lambda size: pytest.fail("noise was drawn"), seeded=True)


@pytest.mark.parametrize("estimator", [scorecard(), scorecard(schema=SCHEMA, adjacency="add-remove")])
def test_a_card_fits_and_predicts(estimator: PrivateShortCard) -> None:
    fitted = estimator.fit(X, Y)
    assert list(fitted.classes_) == ["no", "yes"]
    assert (fitted.privacy_.epsilon, fitted.privacy_.adjacency) == (5.0, estimator.adjacency)
    assert fitted.privacy_.seeded
    assert fitted.privacy_.proved
    assert fitted.release_.domain.contains(fitted.release_.weights)
    assert list(fitted.get_feature_names_out()) == list(fitted.schema_.features)
    scores = fitted.decision_function(X)
    assert np.array_equal(fitted.predict(X) == "yes", scores > 0)
    assert np.allclose(scores, fitted.schema_.encode(X) @ fitted.coef_[0])
    assert fitted.diagnostics_.training_accuracy == fitted.score(X, Y)


def test_arrays_are_read_by_a_schema_of_x0_x1() -> None:
    schema = Schema([Categories("x0", ["red", "blue"]), Bins("x1", [30, 50], "intervals")])
    fitted = scorecard(schema=schema).fit(X[["colour", "age"]].to_numpy(), Y == "yes")
    assert list(fitted.classes_) == [False, True]
    assert fitted.score(X[["colour", "age"]].to_numpy(), Y == "yes") > 0.7


@pytest.mark.parametrize("wrap", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_draft_is_made_of_frames_of_all_kinds_without_a_warning(wrap: Callable[[pd.DataFrame], Any]) -> None:
    fitted = scorecard(epsilon=50.0, schema=None).fit(wrap(X), Y)  # warnings are errors
    scorecard().fit(wrap(X), Y)
    assert [column.column for column in fitted.schema_.columns] == ["colour", "age", "dose"]
    assert list(fitted.classes_) == ["no", "yes"]


def test_classes_are_those_of_the_schema_whatever_occurs() -> None:
    only = scorecard().fit(X[:3], ["yes"] * 3)
    assert list(only.classes_) == ["no", "yes"]
    for y in ([0, 0, 0], [0.0, 1.0, 1.0], [True] * 3):
        assert scorecard(schema=Schema(INDICATORS.columns)).fit(X[:3], y).classes_.tolist() == [0, 1]
    for y in ([0, 1, True, False], [0.0, 1.0, 1, 0]):
        fitted = scorecard(epsilon=50.0, schema=None).fit(X, np.resize(np.array(y), len(X)))
        assert fitted.release_.schema.label == Label("label", 1, 0)
    for y in (np.array([1, 2]), np.array([1.0, 2.0]), np.array([1, 2.0], dtype=object)):  # of one record's making
        assert repr(occurring_classes(np.resize(y, 9)).tolist()) == "[1, 2]"
    with pytest.raises(ValueError, match=r"y has numbers of 2\^53 or more"):
        occurring_classes(np.resize([0, 2.0**53], 9))
    with pytest.raises(ValueError, match="y mixes texts with other values"):
        scorecard(schema=None).fit(X, ["1", *np.resize([0, 1], len(X) - 1).tolist()])
    missing = Schema(INDICATORS.columns, Label("ill", "yes", "no", missing="negative"))
    assert scorecard(schema=missing).fit(X[:3], ["yes", None, "no"]).diagnostics_.mistakes <= 3


def test_wrong_labels_spend_nothing() -> None:
    accountant = Accountant(10.0)
    for y, schema, words in (
        (["yes", "no", None], INDICATORS, "one record has none"),
        (["yes", "no", "no"], Schema(INDICATORS.columns), "must hold 0 and 1"),
        (["a"] * 3, None, "1 class"),
        (["a", "a", "b"], None, "a class that a single record has"),
        (["yes", "no"], INDICATORS, "one label per record"),
    ):
        table = X[: 3 if schema else len(y)]
        with pytest.raises(ValueError, match=words):
            scorecard(schema=schema, budget=accountant).fit(table, np.array(y, dtype=object))
    assert accountant.history == ()


def test_wrong_settings_spend_nothing() -> None:
    accountant = Accountant(10.0)
    for estimator, words in (
        (scorecard(epsilon=0.0), "epsilon"),
        (scorecard(schema={"columns": {}}), "schema must say what is public"),
        (scorecard(schema=Schema([Number("age", 0, 10**15), Number("dose", 0, 2, 1, 2**40)], SCHEMA.label)), "64-bit"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.set_params(budget=accountant, random_state=UNTOUCHED).fit(X, Y)
        with pytest.raises(NotFittedError):
            estimator.predict(X)
    assert accountant.history == ()


def test_costs_move_the_decision() -> None:
    """Three in ten of one colour are ill: too few to say so, unless missing them costs five times as much."""
    frame = pd.DataFrame({"colour": ["red"] * 500 + ["blue"] * 500})
    ill = np.array([1] * 150 + [0] * 350 + [1] * 20 + [0] * 480)
    schema = Schema([Categories("colour", ["red", "blue"])])
    plain = scorecard(schema=schema).fit(frame, ill)
    careful = scorecard(schema=schema, false_negative=5).fit(frame, ill)
    asked = pd.DataFrame({"colour": ["red", "blue"]})
    assert list(plain.predict(asked)) == [0, 0]
    assert list(careful.predict(asked)) == [1, 0]


def test_a_budget_pays_or_refuses_before_the_draw() -> None:
    accountant = Accountant(1.0)
    fitted = scorecard(epsilon=0.7, budget=accountant).fit(X, Y)
    weights = fitted.release_.weights
    with pytest.raises(ps.BudgetExceeded):
        fitted.set_params(random_state=UNTOUCHED).fit(X, Y)
    assert len(accountant.history) == 1
    assert fitted.release_.weights is weights


def test_pickling(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", 10.0)
    fitted = scorecard(schema=SCHEMA, budget=ledger).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.release_.to_json() == fitted.release_.to_json()
    again.fit(X, Y)
    assert len(ledger.history()) == 2
    with pytest.raises(TypeError, match="spent a second time"):
        pickle.dumps(scorecard(budget=Accountant(1.0)))


def test_pipelines() -> None:
    numbers = X[["age", "dose"]].fillna(40.0)
    schema = Schema([Bins("age", [-0.5, 0.5], "intervals"), Bins("dose", [0], "intervals")])
    pipeline = make_pipeline(StandardScaler(), scorecard(schema=schema)).set_output(transform="pandas")
    assert pipeline.fit(numbers, Y == "yes").predict(numbers).shape == (len(X),)
    assert list(pipeline.get_feature_names_out()) == list(schema.features)
    kept = make_column_transformer(("passthrough", ["colour", "age"]), verbose_feature_names_out=False)
    assert make_pipeline(kept.set_output(transform="pandas"), scorecard()).fit(X, Y).score(X, Y) > 0.7


def test_clones_share_the_budget_and_searches_warn_that_every_fit_spends() -> None:
    small, large = Accountant(1.0), Accountant(100.0)
    estimator = scorecard(epsilon=0.5, budget=small)
    assert clone(estimator).budget is small
    assert clone(estimator).get_params() == estimator.get_params()
    words = "every one of them spends"
    with pytest.warns(ps.PrivacyWarning, match=words), pytest.raises(ps.BudgetExceeded):
        cross_val_score(estimator, X, Y, cv=3, error_score="raise")
    with pytest.warns(ps.PrivacyWarning, match=words):
        GridSearchCV(scorecard(budget=large), {"max_features": [1, 2]}, cv=2).fit(X, Y)
    assert (len(small.history), len(large.history)) == (2, 5)
    with pytest.warns(ps.PrivacyWarning, match=words):
        CalibratedClassifierCV(scorecard(), cv=2).fit(X, Y)


def test_labels_that_the_model_does_not_know_are_refused() -> None:
    fitted, plain = scorecard().fit(X, Y), scorecard(schema=Schema(INDICATORS.columns)).fit(X, Y == "yes")
    for model, records, y, words in (
        (fitted, 300, Y[:3], "one label per record"),
        (fitted, 2, ["yes", "perhaps"], "neither in positive nor in negative"),
        (plain, 2, ["yes", "no"], "they are 0, 1"),
    ):
        with pytest.raises(ValueError, match=words):
            model.evaluate(X[:records], y, 1.0)
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        plain.fit(X[:2], ["1", "0"])
    with pytest.raises(NotFittedError):
        scorecard().evaluate(X, Y, 1.0)


def test_without_a_schema_one_is_drafted_and_epsilon_is_the_total() -> None:
    table = patients(3000)
    frame, ill = table.drop(columns="ill"), table["ill"]
    frame["colour"] = ["Huntington disease (patient 17)", *frame["colour"][1:]]
    accountant = Accountant(4.0, 1e-5)
    fitted = scorecard(epsilon=4.0, schema=None, budget=accountant).fit(frame, ill)
    assert [g.epsilon for g in accountant.history] == [1.0, 3.0]
    assert (fitted.privacy_.epsilon, fitted.privacy_.delta) == (4.0, 1e-6)
    assert fitted.privacy_ == fitted.release_.total
    assert "private draft of the schema" in fitted.privacy_.sentence()
    assert fitted.release_.guarantee.epsilon == 3.0
    assert "Huntington" not in fitted.release_.to_json()
    assert fitted.score(frame, ill) > 0.7
    other = scorecard(epsilon=4.0, schema=None, adjacency="add-remove").fit(frame, ill)
    assert (other.privacy_.epsilon, other.privacy_.delta) == (4.0, 1e-9)


WRONG_FITS: dict[str, Any] = {
    "depth": PrivateTreeClassifier(depth=0),
    "max_points": PrivateShortCard(max_points=0),
    "max_features": PrivateShortCard(max_features=-1),
    "max_questions": PrivateShortCard(max_questions=0),
    "prior": PrivateShortCard(prior="x"),
    "progress": PrivateShortCard(progress=5),
    "no column 'zzz'": PrivateScorecard(constraints=ps.Constraints({"zzz": "up"})),
    "constraints": PrivateScorecard(constraints="x"),
}


@pytest.mark.parametrize("words", WRONG_FITS)
def test_wrong_options_are_refused_before_a_draft_is_paid_for(words: str) -> None:
    account = Accountant(4.0, 1e-5)
    with pytest.raises((ValueError, TypeError), match=words):
        WRONG_FITS[words].set_params(budget=account).fit(X, Y)
    assert account.history == ()


def test_a_draft_is_kept_where_the_fit_fails_and_constraints_follow_it() -> None:
    few = ps.Constraints({"age": "up", "none": "up"}, excluded=["colour"])
    frame, account = X.assign(none=""), Accountant(4.0, 1e-5)
    model = PrivateScorecard(4.0, constraints=few, budget=account, random_state=0).fit(frame, Y)
    assert {column.column for column in model.schema_.columns} == {"age", "dose"}  # none can be told from noise
    assert "colour" not in model.draft_.schema.features
    needed = PrivateScorecard(4.0, constraints=ps.Constraints(required=["none"]), budget=Accountant(4.0, 1e-5))
    with pytest.raises(ValueError, match="required: the schema has no column 'none'"):
        needed.fit(frame, Y)
    assert needed.draft_.schema.paid is not None


def test_a_budget_that_cannot_pay_for_draft_and_fit_pays_for_neither(tmp_path: Path) -> None:
    accounts = Accountant(3.0, 1e-5), Ledger.create(tmp_path / "a.ledger", 3.0, 1e-5)
    for account in accounts:
        with pytest.raises(ps.BudgetExceeded):
            scorecard(epsilon=4.0, schema=None, budget=account, random_state=None).fit(X, Y)
    assert accounts[0].history == accounts[1].history() == ()
    pure = scorecard(epsilon=4.0, schema=None, budget=Accountant(8.0)).fit(X, Y)
    assert (pure.privacy_.epsilon, pure.privacy_.delta) == (4.0, 0.0)


def test_one_record_of_a_list_changes_how_no_other_is_read() -> None:
    """A text in one cell would make NumPy turn all values into texts."""
    schema = Schema([Number("x0", 0, 1), Bins("x1", [40], "intervals"), Categories("x2", [False, True])])
    rows: list[list[Any]] = [[True, 30, 1], [False, 50, 0]] * 20
    changed = [*rows[:7], [True, "n/a", "true"], *rows[8:]]
    outside = [
        PrivateShortCard(1.0, schema=schema, random_state=0).fit(X, [0, 1] * 20).diagnostics_.outside_the_schema
        for X in (rows, changed)
    ]
    assert outside == [{}, {"x1": {"missing": 1}}]
