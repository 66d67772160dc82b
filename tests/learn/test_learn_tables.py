"""Estimators on every kind of table, with schemas in files, labels in groups, and made of releases."""

from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils.validation import has_fit_parameter

import privsolve as ps
from privsolve import Accountant, Categories, Label, Schema
from privsolve.models.tree import DecisionTree
from small_tables import INDICATORS, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]
CARD = {"max_features": 1, "max_points": 1, "intercept": 2}


def estimators(schema: Any) -> list[Any]:
    common: dict[str, Any] = {"schema": schema, "random_state": 0}
    return [
        ps.PrivateShortCard(20.0, **CARD, **common),
        ps.PrivateTreeClassifier(20.0, depth=1, **common),
        ps.PrivateTreeClassifier(20.0, depth=1, leaves="probabilities", **common),
        ps.PrivateScorecard(20.0, **common),
    ]


KINDS = ["card", "tree", "probabilities", "full"]


@pytest.mark.parametrize("which", range(4), ids=KINDS)
def test_an_estimator_is_made_of_a_release(which: int, tmp_path: Path) -> None:
    fitted = estimators(INDICATORS)[which].fit(X, Y)
    path = tmp_path / "release.json"
    path.write_text(fitted.release_.to_json(), encoding="utf-8")
    made = type(fitted).from_release(path)
    assert list(made.classes_) == list(fitted.classes_)
    model = fitted.release_.model
    used = model.used[0] if isinstance(model, DecisionTree) else model.used.schema
    few = X[[column.column for column in used.columns]]
    assert np.array_equal(made.predict(few), fitted.predict(X))
    assert made.score(few, Y) == fitted.score(X, Y)
    assert made.privacy_ == fitted.privacy_
    if hasattr(fitted, "predict_proba"):
        assert np.array_equal(made.predict_proba(few), fitted.predict_proba(X))


def test_the_kind_must_be_right() -> None:
    card, tree = (estimators(INDICATORS)[k].fit(X, Y).release_ for k in (0, 1))
    for estimator in (ps.PrivateShortCard, ps.PrivateScorecard):
        with pytest.raises(ValueError, match="use the estimator of that kind"):
            estimator.from_release(tree)
    with pytest.raises(ValueError, match="does not hold a decision tree"):
        ps.PrivateTreeClassifier.from_release(card)


@pytest.mark.parametrize("which", [0, 1, 3], ids=[KINDS[k] for k in (0, 1, 3)])
def test_tables_of_every_kind_and_schemas_in_files(which: int, tmp_path: Path) -> None:
    INDICATORS.save(tmp_path / "s.toml")
    expected = estimators(INDICATORS)[which].fit(X, Y)
    for schema in (str(tmp_path / "s.toml"), tmp_path / "s.toml"):
        assert estimators(schema)[which].fit(X, Y).release_.to_json() == expected.release_.to_json()
    lazy = pl.from_pandas(X).lazy()
    fitted = estimators(INDICATORS)[which].fit(lazy, Y)
    assert fitted.release_.to_json() == expected.release_.to_json()
    assert np.array_equal(fitted.predict(lazy), expected.predict(X))
    arrow = pa.Table.from_pandas(FRAME)
    for table in (FRAME, arrow, pl.from_pandas(FRAME).lazy(), duckdb.from_arrow(arrow), ibis.memtable(arrow)):
        inside = estimators(INDICATORS)[which].fit(table)  # the label is a column of the table
        assert inside.release_.to_json() == expected.release_.to_json()
        assert list(inside.feature_names_in_) == list(X.columns)


@pytest.mark.parametrize("make", [ibis.memtable, duckdb.from_arrow], ids=["Ibis", "DuckDB"])
def test_rows_without_an_order_are_refused_where_they_need_one(make: Any) -> None:
    account = Accountant(100.0)
    for estimator in estimators(INDICATORS):
        with pytest.raises(TypeError, match="have no order, so nothing can be matched to them"):
            estimator.set_params(budget=account).fit(make(pa.Table.from_pandas(X)), Y)
    assert account.history == ()
    fitted = estimators(INDICATORS)[0].fit(X, Y)
    with pytest.raises(TypeError, match="have no order"):
        fitted.predict(make(pa.Table.from_pandas(X)))
    with pytest.raises(TypeError, match="have no order"):
        fitted.release_.predict(make(pa.Table.from_pandas(X)))


def test_a_path_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"schema='gues': .*pass a Schema, the path of a schema file, or None"):
        ps.PrivateShortCard(schema="gues").fit(X, Y)


@pytest.mark.parametrize("which", [0, 1, 3], ids=[KINDS[k] for k in (0, 1, 3)])
def test_labels_in_groups(which: int) -> None:
    label = Label("colour", ["red", "blue"], "green")
    schema = Schema([INDICATORS.columns[1], Categories("ill", ["yes"], no="no")], label)
    features = FRAME[["age", "ill"]]
    fitted = estimators(schema)[which].fit(features, FRAME["colour"])
    assert list(fitted.classes_) == ["green", "red or blue"]
    said = fitted.predict(features)
    assert set(said) <= {"green", "red or blue"}
    expected = np.where(FRAME["colour"] == "green", "green", "red or blue")
    assert fitted.score(features, FRAME["colour"]) == np.mean(said == expected)
    everything_else = Schema(INDICATORS.columns, Label("ill", "yes"))
    assert list(estimators(everything_else)[which].fit(X, Y).classes_) == ["not yes", "yes"]


def test_the_names_of_the_label_survive() -> None:
    drafted = ps.PrivateShortCard(20.0, **CARD, random_state=0).fit(X, Y)
    assert drafted.release_.schema.label == Label("ill", "yes", "no")
    assert "ill yes" in drafted.scorecard_.to_text()
    bare = Schema(INDICATORS.columns)
    stated = ps.PrivateShortCard(20.0, schema=bare, **CARD, random_state=0).fit(X, (Y == "yes").astype(int))
    assert stated.release_.schema.label == Label("ill", 1, 0)
    nameless = ps.PrivateShortCard(20.0, schema=bare, **CARD, random_state=0).fit(X, (Y == "yes").to_numpy())
    assert nameless.release_.schema.label == Label("label", True, False)
    assert list(ps.PrivateShortCard.from_release(nameless.release_).classes_) == [False, True]


def test_weights_of_records_are_refused_with_what_to_do() -> None:
    account = Accountant(100.0)
    for estimator in estimators(INDICATORS):
        taken = isinstance(estimator, ps.PrivateScorecard)
        words = "max_weight must be stated" if taken else "sample_weight is not taken: .* weigh"
        with pytest.raises(ValueError if taken else TypeError, match=words):
            estimator.set_params(budget=account).fit(X, Y, sample_weight=np.ones(len(X)))
        assert has_fit_parameter(estimator, "sample_weight") == taken
    with pytest.raises(TypeError, match="fit takes X and y, got groups as well"):
        estimators(INDICATORS)[0].fit(X, Y, groups=1)
    assert account.history == ()


@pytest.mark.parametrize("which", range(4), ids=KINDS)
def test_a_column_without_a_readable_value_spends_nothing(which: int) -> None:
    account = Accountant(100.0)
    with pytest.raises(ValueError, match="column 'age': no value can be read as the schema says") as found:
        estimators(INDICATORS)[which].set_params(budget=account).fit(X.assign(age="eighty"), Y)
    assert "eighty" not in str(found.value)
    assert account.history == ()
    rare = X.assign(colour="green")  # which is an answer of its own, beside two that do not occur
    with pytest.raises(ValueError, match="column 'colour'"):
        estimators(INDICATORS)[which].set_params(budget=account).fit(rare, Y)
    one = Schema([*INDICATORS.columns, Categories("rare", ["x"])], INDICATORS.label)
    estimators(one)[which].fit(X.assign(rare=pd.Series(["y"] * len(X))), Y)  # a list of one that does not occur is fine
