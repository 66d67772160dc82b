"""Labels: one record's never changes how another's is read."""

from __future__ import annotations

import numpy as np
import pytest

import privsolve as ps
from privsolve.learn.labels import class_numbers, classes_of
from small_tables import INDICATORS, patients

GROUPED = ps.Schema(INDICATORS.columns, label=ps.Label("outcome", ["died", "moved"], ["home", "ward"]))


def test_names_of_classes_and_values_of_the_label_may_be_mixed() -> None:
    classes = classes_of(GROUPED)
    labels = np.array(["died", *classes, "ward", "moved", classes[1]], dtype=object)
    numbers = class_numbers(labels, classes, GROUPED)
    assert numbers.tolist() == [1, 0, 1, 0, 1, 1]
    assert [class_numbers(labels[[i]], classes, GROUPED).item() for i in range(len(labels))] == numbers.tolist()


@pytest.mark.parametrize("odd", ["dead", None, 1])
def test_a_label_that_is_neither_is_refused(odd: object) -> None:
    with pytest.raises(ValueError):
        class_numbers(np.array(["died", odd], dtype=object), classes_of(GROUPED), GROUPED)
    with pytest.raises(ValueError, match="none of the classes: they are no, yes"):
        class_numbers(np.array(["no", odd], dtype=object), np.array(["no", "yes"]), None)


@pytest.mark.parametrize("last", [False, 0, 0.0, True, 1])
def test_without_a_label_no_record_chooses_the_names_of_the_classes(last: object) -> None:
    """They are published with the model; a list of booleans is another array as soon as one of them is 0."""
    without, table = ps.Schema(INDICATORS.columns), patients(20).drop(columns="ill")
    y = [True] * 19 + [last]
    for estimator in (ps.PrivateShortCard(1.0, schema=without), ps.PrivateTreeClassifier(1.0, schema=without)):
        fitted = estimator.fit(table, y)
        assert fitted.classes_.tolist() == [0, 1]
        label = fitted.release_.schema.label
        assert (label.positive, label.negative) == ((1,), (0,))
    with pytest.raises(ValueError, match="name other values by a label"):
        ps.PrivateShortCard(1.0, schema=without).fit(table, [1] * 19 + [-1])


@pytest.mark.parametrize(
    "label",
    [ps.Label("ill", "YES"), ps.Label("ill", 1, 0, missing="negative"), ps.Label("ill", "YES", missing="negative")],
)
def test_a_label_that_no_record_has_spends_nothing(label: ps.Label) -> None:
    """Every card would be right about such records, and say nothing."""
    schema, account = ps.Schema(INDICATORS.columns, label), ps.Accountant(1.0)
    for estimator in (ps.PrivateScorecard, ps.PrivateShortCard, ps.PrivateTreeClassifier):
        with pytest.raises(ValueError, match="no record has a value that the schema lists"):
            estimator(0.5, schema=schema, budget=account).fit(patients())
    assert account.history == ()


def test_columns_that_the_fit_did_not_have_are_not_looked_at() -> None:
    """Such as the labels, in the table that the card was fitted on."""
    fitted = ps.PrivateShortCard(1.0, schema=INDICATORS, max_features=1, random_state=1).fit(patients())
    said = fitted.predict(patients())
    assert (said == fitted.predict(patients().drop(columns="ill"))).all()
    assert (said == fitted.predict(patients().assign(more=1))).all()
    assert 0 <= fitted.score(patients(), patients()["ill"]) <= 1
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(patients().drop(columns=["ill", "age"]))


@pytest.mark.parametrize("estimator", [ps.PrivateScorecard, ps.PrivateShortCard, ps.PrivateLinearClassifier])
@pytest.mark.parametrize("schema", [ps.Schema(INDICATORS.columns), None], ids=["stated", "drafted"])
def test_more_than_two_classes_are_refused_with_what_takes_them(estimator: type, schema: object) -> None:
    table = patients(30).drop(columns="ill")
    y = ["mild", "moderate", "severe"] * 10
    budget = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=r"more than two classes there is PrivateTreeClassifier\(classes="):
        estimator(1.0, schema=schema, budget=budget).fit(table, y)
    assert budget.totals.releases == 0
    tree = ps.PrivateTreeClassifier(
        1.0, depth=1, classes=["mild", "moderate", "severe"], schema=ps.Schema(INDICATORS.columns)
    )
    assert tree.fit(table, y).classes_.tolist() == ["mild", "moderate", "severe"]
