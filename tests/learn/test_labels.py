"""Labels: one record's never changes how another's is read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from privsolve import open_table
from privsolve.learn.labels import class_numbers, classes_of
from small_tables import INDICATORS, patients

GROUPED = ps.Schema(INDICATORS.columns, label=ps.Label("outcome", ["died", "moved"], ["home", "ward"]))


def test_names_of_classes_and_values_of_the_label_may_be_mixed() -> None:
    classes = classes_of(GROUPED)
    labels = np.array(["died", *classes, "ward", "moved", classes[1]], dtype=object)
    numbers = class_numbers(labels, classes, GROUPED)
    assert numbers.tolist() == [1, 0, 1, 0, 1, 1]
    assert [class_numbers(labels[[i]], classes, GROUPED).item() for i in range(len(labels))] == numbers.tolist()


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


def test_a_label_that_no_record_has_spends_nothing() -> None:
    """Every card would be right about such records, and say nothing."""
    account = ps.Accountant(1.0)
    for positive, more in (("YES", {}), ("YES", {"missing": "negative"}), (1, {"negative": 0, "missing": "negative"})):
        schema = ps.Schema(INDICATORS.columns, ps.Label("ill", positive, **more))
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


@pytest.mark.parametrize("estimator", [ps.PrivateScorecard, ps.PrivateShortCard])
@pytest.mark.parametrize("schema", [ps.Schema(INDICATORS.columns), None], ids=["stated", "drafted"])
def test_more_than_two_classes_are_refused_with_what_takes_them(estimator: type, schema: object) -> None:
    table = patients(30).drop(columns="ill")
    classes, budget = ["mild", "moderate", "severe"], ps.Accountant(1.0)
    with pytest.raises(ValueError, match=r"more than two classes there is PrivateTreeClassifier\(classes="):
        estimator(1.0, schema=schema, budget=budget).fit(table, classes * 10)
    assert budget.totals.releases == 0
    tree = ps.PrivateTreeClassifier(1.0, depth=1, classes=classes, schema=ps.Schema(INDICATORS.columns))
    assert tree.fit(table, classes * 10).classes_.tolist() == classes


@pytest.mark.parametrize(
    ("positive", "yes", "words"),
    [
        (">=150", [0, 1, 1, 1, 0], ("sugar at least 150", "sugar below 150")),
        (">150", [0, 0, 1, 1, 0], ("sugar above 150", "sugar at most 150")),
        ("<= 150", [1, 1, 0, 0, 1], ("sugar at most 150", "sugar above 150")),
        ("<150.0", [1, 0, 0, 0, 1], ("sugar below 150", "sugar at least 150")),
    ],
)
def test_a_comparison_makes_a_label_of_numbers(
    positive: str, yes: list[int], words: tuple[str, str], tmp_path: Path
) -> None:
    label = ps.Label("sugar", positive)
    frame = pd.DataFrame({"a": [0, 1, 0, 1, 0], "sugar": [149.99999999999997, 150, 150.00000000000003, 1e40, -3]})
    schema = ps.Schema([ps.Categories("a", [1])], label)
    assert schema.positive(frame["sugar"]).tolist() == [bool(one) for one in yes]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for table in (frame, frame.astype(str), open_table(tmp_path / "t.csv")):
        counted = schema.table(table).table
        assert [counted.positives.sum(), counted.negatives.sum()] == [sum(yes), 5 - sum(yes)]
    assert label.answers == words
    assert ps.Schema.from_toml(schema.to_toml()) == schema
    fitted = ps.PrivateScorecard(1.0, schema=schema, random_state=1).fit(frame)
    assert set(fitted.classes_) == set(words) >= set(fitted.predict(frame))
    assert words[0] in fitted.release_.card().to_text()
    assert 0 <= fitted.score(frame, frame["sugar"]) <= 1


def test_what_is_no_number_is_a_missing_label() -> None:
    columns = [ps.Categories("a", [1])]
    odd = pd.DataFrame({"a": [1, 1, 0], "sugar": ["-999", "high", "160,5"]})
    marks = {"missing_values": [-999], "decimal": ","}
    with pytest.raises(ValueError, match="at least one record has none that is a number"):
        ps.Schema(columns, ps.Label("sugar", "<=200", **marks)).table(odd)
    kept = ps.Schema(columns, ps.Label("sugar", "<=200", missing="negative", **marks)).table(odd).table
    assert (kept.positives.sum(), kept.negatives.sum()) == (1, 2)
    with pytest.raises(ValueError, match="no record has a number, so none can be at most 200"):
        ps.Schema(columns, ps.Label("sugar", "<=200")).table(odd.head(2).assign(sugar=["high", None]))


def test_values_that_only_look_like_comparisons_stay_values() -> None:
    for stated in ([">50K"], [[">50"]], [">50", "<=50"], ["> fifty"], [50]):
        label = ps.Label("income", *stated)
        assert isinstance(label.positive, tuple)
        assert ps.Label.from_dict(label.to_dict()) == label
    table, y = patients(20).drop(columns="ill"), pd.Series(["<=50", ">50"] * 10, name="income")
    fitted = ps.PrivateTreeClassifier(1.0, schema=ps.Schema(INDICATORS.columns), classes=["<=50", ">50"]).fit(table, y)
    assert fitted.release_.schema.label == ps.Label("income", [">50"], ["<=50"])
    with pytest.raises(ValueError, match="number of usual size"):
        ps.Label("income", "<1" + "0" * 30 + "e99")
