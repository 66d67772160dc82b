"""The estimators: scikit-learn's own checks, what they warn of, what they spend, and the law of a private score."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

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
from sklearn.utils.estimator_checks import parametrize_with_checks

import privsolve as ps
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.learn.estimators import PrivateShortCard
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Accountant
from privsolve.privacy.ledger import Ledger
from small_tables import INDICATORS, SCHEMA, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]


def scorecard(**options: Any) -> PrivateShortCard:
    settings = {"epsilon": 5.0, "max_features": 2, "intercept": 3, "schema": INDICATORS, "random_state": 0}
    return PrivateShortCard(**{**settings, **options})


def no_draws(size: int) -> NoReturn:
    raise AssertionError("noise was drawn")


UNTOUCHED = Randomness(no_draws, seeded=True)


CHECKS = parametrize_with_checks(
    [
        PrivateShortCard(2000.0, max_features=2, max_points=1, intercept=2, random_state=0),
    ]
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)  # older versions give a generator
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        scorecard(),
        scorecard(schema=SCHEMA, adjacency="add-remove"),
    ],
)
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
    card = fitted.scorecard_
    row = X.dropna().iloc[0]
    age = next(o.text for o in INDICATORS.questions()[1].options if o.features and _in(o.text, row["age"]))  # type: ignore[union-attr]
    colour = row["colour"] if row["colour"] in ("red", "blue") else "another"
    answers = {"colour": colour, "age": age, "dose": row["dose"]}
    place = X.index.get_loc(row.name)
    assert float(card.score(answers)) == fitted.totals(X)[place]
    assert (card.score(answers) >= card.threshold) == (scores[place] > 0)
    assert fitted.diagnostics_.training_accuracy == fitted.score(X, Y)


def _in(text: str, age: float) -> bool:
    return text == ("under 30" if age < 30 else "30 to 49" if age < 50 else "50 or more")


def test_a_scorecard_learns_when_the_budget_is_large() -> None:
    assert scorecard(epsilon=50.0).fit(X, Y).score(X, Y) > 0.85


def test_frames_of_all_kinds_give_the_same_model() -> None:
    first = scorecard(schema=SCHEMA).fit(X, Y)
    for frame in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        other = scorecard(schema=SCHEMA).fit(frame, Y.to_numpy())
        assert other.release_.to_json() == first.release_.to_json()
        assert np.array_equal(other.predict(frame), first.predict(X))
        assert list(other.feature_names_in_) == list(X.columns)
        with pytest.raises(ValueError, match="feature names"):
            other.predict(X.rename(columns={"age": "years"}))


def test_arrays_are_read_by_a_schema_of_x0_x1() -> None:
    schema = Schema([Categories("x0", ["red", "blue"]), Bins("x1", [30, 50], "intervals")])
    fitted = scorecard(schema=schema).fit(X[["colour", "age"]].to_numpy(), Y == "yes")
    assert list(fitted.classes_) == [False, True]
    assert fitted.score(X[["colour", "age"]].to_numpy(), Y == "yes") > 0.7


@pytest.mark.parametrize("wrap", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_draft_is_made_of_frames_of_all_kinds_without_a_warning(wrap: Callable[[pd.DataFrame], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = scorecard(epsilon=50.0, schema=None).fit(wrap(X), Y)
        scorecard().fit(wrap(X), Y)
    assert [column.column for column in fitted.schema_.columns] == ["colour", "age", "dose"]
    assert list(fitted.classes_) == ["no", "yes"]


def test_classes_are_those_of_the_schema_whatever_occurs() -> None:
    only = scorecard().fit(X[:3], ["yes"] * 3)
    assert list(only.classes_) == ["no", "yes"]
    for classes, y in [((0, 1), [0, 0, 0]), ((0, 1), [0.0, 1.0, 1.0]), ((0, 1), [True] * 3)]:
        assert tuple(scorecard(schema=Schema(INDICATORS.columns)).fit(X[:3], y).classes_) == classes
    missing = Schema(INDICATORS.columns, Label("ill", "yes", "no", missing="negative"))
    assert scorecard(schema=missing).fit(X[:3], ["yes", None, "no"]).diagnostics_.mistakes <= 3


@pytest.mark.parametrize(
    ("y", "schema", "words"),
    [
        (["yes", "no", "maybe"], INDICATORS, "neither in positive nor in negative"),
        (["yes", "no", None], INDICATORS, "one record has none"),
        (["yes", "no", "no"], Schema(INDICATORS.columns), "must hold 0 and 1"),
        (["a", "b", "c"] * 2, None, "Only binary classification"),
        (["a"] * 3, None, "1 class"),
        (["a", "a", "b"], None, "a class that a single record has"),
        (["yes", "no"], INDICATORS, "one label per record"),
    ],
)
def test_wrong_labels_spend_nothing(y: list[Any], schema: Any, words: str) -> None:
    accountant = Accountant(10.0)
    with pytest.raises(ValueError, match=words):
        scorecard(schema=schema, budget=accountant).fit(
            X[: len(y)] if schema is None else X[:3], np.array(y, dtype=object)
        )
    assert accountant.history == ()


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (scorecard(epsilon=0.0), "epsilon"),
        (scorecard(max_features=0), "max_features"),
        (scorecard(adjacency="other"), "adjacency"),
        (scorecard(false_negative=2**30), "false_negative"),
        (scorecard(schema={"columns": {}}), "schema must say what is public"),
        (scorecard(schema=Schema([Number("age", 0, 10**15), Number("dose", 0, 2, 1, 2**40)], SCHEMA.label)), "64-bit"),
    ],
)
def test_wrong_settings_spend_nothing(estimator: PrivateShortCard, words: str) -> None:
    accountant = Accountant(10.0)
    with pytest.raises(ValueError, match=words):
        estimator.set_params(budget=accountant, random_state=UNTOUCHED).fit(X, Y)
    assert accountant.history == ()
    with pytest.raises(NotFittedError):
        estimator.predict(X)


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


def test_clones_share_the_budget() -> None:
    accountant = Accountant(1.0)
    estimator = scorecard(epsilon=0.5, budget=accountant)
    copy = clone(estimator)
    assert copy.budget is accountant
    assert copy.get_params() == estimator.get_params()
    with pytest.warns(ps.PrivacyWarning, match="every one of them spends"), pytest.raises(ps.BudgetExceeded):
        cross_val_score(estimator, X, Y, cv=3, error_score="raise")
    assert len(accountant.history) == 2


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


def test_searches_and_ensembles_warn_that_every_fit_spends() -> None:
    accountant = Accountant(100.0)
    search = GridSearchCV(scorecard(budget=accountant), {"max_features": [1, 2]}, cv=2)
    with pytest.warns(ps.PrivacyWarning, match="every one of them spends"):
        search.fit(X, Y)
    assert len(accountant.history) == 5
    with pytest.warns(ps.PrivacyWarning, match="every one of them spends"):
        CalibratedClassifierCV(scorecard(), cv=2).fit(X, Y)


def test_labels_that_the_model_does_not_know_are_refused() -> None:
    fitted = scorecard().fit(X, Y)
    with pytest.raises(ValueError, match="one label per record"):
        fitted.evaluate(X, Y[:3], 1.0)
    with pytest.raises(ValueError, match="neither in positive nor in negative"):
        fitted.evaluate(X[:2], ["yes", "perhaps"], 1.0)
    plain = scorecard(schema=Schema(INDICATORS.columns)).fit(X, Y == "yes")
    with pytest.raises(ValueError, match="they are 0, 1"):
        plain.evaluate(X[:2], ["yes", "no"], 1.0)
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


def test_a_budget_that_cannot_pay_for_draft_and_fit_pays_for_neither(tmp_path: Path) -> None:
    accounts = Accountant(3.0, 1e-5), Ledger.create(tmp_path / "a.ledger", 3.0, 1e-5)
    for account in accounts:
        with pytest.raises(ps.BudgetExceeded):
            scorecard(epsilon=4.0, schema=None, budget=account, random_state=None).fit(X, Y)
    assert accounts[0].history == accounts[1].history() == ()
    pure = scorecard(epsilon=4.0, schema=None, budget=Accountant(8.0)).fit(X, Y)
    assert (pure.privacy_.epsilon, pure.privacy_.delta) == (4.0, 0.0)


def test_classes_are_never_one_records_to_decide() -> None:
    for y in ([0, 1, True, False], [0.0, 1.0, 1, 0]):
        fitted = scorecard(epsilon=50.0, schema=None).fit(X, np.resize(np.array(y), len(X)))
        assert fitted.classes_.dtype.kind in "if"
        assert fitted.release_.schema.label == Label("label", 1, 0)
    with pytest.raises(ValueError, match="y mixes texts with other values"):
        scorecard(schema=None).fit(X, ["1", *np.resize([0, 1], len(X) - 1).tolist()])


def test_a_release_file_alone_predicts_with_the_columns_it_uses() -> None:
    fitted = scorecard(max_features=1).fit(X, Y)
    release = ps.Release.from_json(fitted.release_.to_json())
    used = [row.column for row in fitted.scorecard_.rows]
    assert 0 < len(used) < X.shape[1]
    assert release.predict(X[used]).tolist() == fitted.predict(X).tolist()
    assert release.predict(pl.from_pandas(X[used])).tolist() == fitted.predict(X).tolist()
    with pytest.raises(ValueError, match="no column"):
        release.predict(X.drop(columns=used))


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
