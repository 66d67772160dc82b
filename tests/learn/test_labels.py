"""Labels: one record's never changes how another's is read."""

from __future__ import annotations

import numpy as np
import pytest

import privsolve as ps
from privsolve.learn.labels import binary_labels, class_numbers, classes_of
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


def test_only_ones_do_not_say_what_the_other_class_is() -> None:
    """With one record more it could be 0 or -1, and the name of the class is published."""
    without = ps.Schema(INDICATORS.columns)
    for other in (0, -1):
        assert binary_labels([1, 1, other], 3, without)[0].tolist() == [other, 1]
    for estimator in (ps.PrivateScorecard(1.0, schema=without), ps.PrivateTreeClassifier(1.0, schema=without)):
        with pytest.raises(ValueError, match="y holds only 1, the other class may be 0 or -1"):
            estimator.fit(patients(20).drop(columns="ill"), np.ones(20, dtype=np.int64))
