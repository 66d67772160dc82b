"""The estimators of private trees: classes, probabilities and what is spent."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privsolve as ps
from privsolve import Bins, Categories, Number, Schema
from small_tables import SCHEMA, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]


def table(n: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, colour = rng.integers(18, 90, n), rng.choice(["red", "green", "blue"], n)
    frame = pd.DataFrame({"age": age, "colour": colour, "size": rng.random(n) * 10})
    frame["kind"] = np.where(frame["age"] >= 50, np.where(frame["colour"] == "red", "a", "b"), "c")
    return frame


COLOURS = Categories("colour", ["red", "green", "blue"])
COLUMNS = Schema([Bins("age", [30, 50, 70], "thresholds"), COLOURS, Number("size", 0, 10)])
DATA = table()


def test_three_classes() -> None:
    tree = ps.PrivateTreeClassifier(20.0, depth=2, classes=["a", "b", "c"], schema=COLUMNS, random_state=0)
    fitted = tree.fit(DATA, DATA["kind"])
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


def test_wrong_arguments_spend_nothing() -> None:
    accountant = ps.Accountant(1.0)
    for options, message in (
        ({"leaves": "needles", "classes": ["a", "b", "c"]}, "leaves must be one of"),
        ({"depth": 0, "classes": ["a", "b", "c"]}, "depth"),
        ({"classes": ["a", "b"]}, "none of the classes"),
        ({"classes": ["a"]}, "labels must list two"),
        ({"costs": [[0, 1]], "classes": ["a", "b", "c"]}, "costs must have"),
        ({}, "y must hold 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ps.PrivateTreeClassifier(0.5, schema=COLUMNS, budget=accountant, **options).fit(DATA, DATA["kind"])
    assert accountant.history == ()
