"""The estimators of private trees: scikit-learn's own checks, classes, probabilities and what is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import privsolve as ps
from privsolve.data import Bins, Categories, Label, Number, Schema
from small_tables import INDICATORS, SCHEMA, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]

CHECKS = parametrize_with_checks(
    [
        ps.PrivateTreeClassifier(2000.0, depth=2, random_state=0),
        ps.PrivateTreeClassifier(2000.0, depth=2, leaves="probabilities", random_state=0),
    ]
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def table(n: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, n), "colour": rng.choice(["red", "green", "blue"], n), "size": rng.random(n) * 10}
    )
    frame["kind"] = np.where(frame["age"] >= 50, np.where(frame["colour"] == "red", "a", "b"), "c")
    return frame


COLUMNS = Schema(
    [Bins("age", [30, 50, 70], "thresholds"), Categories("colour", ["red", "green", "blue"]), Number("size", 0, 10)]
)
DATA = table()


def test_three_classes() -> None:
    fitted = ps.PrivateTreeClassifier(20.0, depth=2, classes=["a", "b", "c"], schema=COLUMNS, random_state=0).fit(
        DATA, DATA["kind"]
    )
    assert fitted.score(DATA, DATA["kind"]) == 1.0
    assert set(fitted.tree_.asked) == {"age>=50", "colour=red"}
    assert fitted.tree_.depth == 2
    assert not hasattr(fitted, "predict_proba")
    needed = DATA[["age", "colour"]]  # only the columns that are asked
    assert (fitted.release_.predict(needed) == DATA["kind"]).all()
    assert (fitted.release_.predict(pl.from_pandas(needed)) == DATA["kind"]).all()


@pytest.mark.parametrize("target", ["kind", "ill"])
def test_probabilities(target: str) -> None:
    if target == "kind":
        frame, y, options = DATA, DATA["kind"], {"classes": ["a", "b", "c"], "schema": COLUMNS}
    else:
        frame, y, options = X, Y, {"schema": SCHEMA}
    fitted = ps.PrivateTreeClassifier(30.0, leaves="probabilities", random_state=0, **options).fit(frame, y)
    shares = fitted.predict_proba(frame)
    assert shares.shape == (len(frame), len(fitted.classes_))
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert (fitted.classes_[shares.argmax(axis=1)] == fitted.predict(frame)).all()
    assert fitted.score(frame, y) > 0.7


def test_costs_move_the_decision() -> None:
    plain = ps.PrivateTreeClassifier(50.0, schema=SCHEMA, random_state=0).fit(X, Y)
    careful = ps.PrivateTreeClassifier(50.0, schema=SCHEMA, costs=[[0, 1], [50, 0]], random_state=0).fit(X, Y)
    positive = plain.classes_[1]
    assert (careful.predict(X) == positive).sum() > (plain.predict(X) == positive).sum()
    with pytest.raises(ValueError, match="costs of mistakes are for leaves of labels"):
        ps.PrivateTreeClassifier(leaves="probabilities", costs=[[0, 1], [2, 0]], schema=SCHEMA).fit(X, Y)


def test_the_budget_pays_and_clones_share_it() -> None:
    accountant = ps.Accountant(1.0)
    estimator = ps.PrivateTreeClassifier(0.6, schema=INDICATORS, budget=accountant, random_state=0)
    estimator.fit(X, Y)
    with pytest.raises(ps.BudgetExceeded):
        clone(estimator).fit(X, Y)
    assert len(accountant.history) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaves": "needles", "classes": ["a", "b", "c"]}, "leaves must be one of"),
        ({"depth": 0, "classes": ["a", "b", "c"]}, "depth"),
        ({"classes": ["a", "b"]}, "none of the classes"),
        ({"classes": ["a"]}, "labels must list two"),
        ({"costs": [[0, 1]], "classes": ["a", "b", "c"]}, "costs must have"),
        ({}, "y must hold 0 and 1"),
    ],
)
def test_wrong_arguments_spend_nothing(options: dict[str, Any], message: str) -> None:
    accountant = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=message):
        ps.PrivateTreeClassifier(0.5, schema=COLUMNS, budget=accountant, **options).fit(DATA, DATA["kind"])
    assert accountant.history == ()


def test_label_of_the_schema() -> None:
    schema = Schema([Bins("age", [50], "thresholds")], Label("kind", "b", "c"))
    part = DATA[DATA["kind"] != "a"]
    fitted = ps.PrivateTreeClassifier(20.0, depth=1, schema=schema, random_state=0).fit(part, part["kind"])
    assert list(fitted.classes_) == ["c", "b"]
    assert fitted.score(part, part["kind"]) == 1.0
