"""What `y` says: which classes there are, and which is every record's. Each record is read on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite

from privsolve.data import Schema
from privsolve.learn.base import one_per_record
from privsolve.models.linear import answers

MORE_CLASSES = "for more than two classes there is PrivateTreeClassifier(classes=[...])"


def binary_labels(y: ArrayLike | None, rows: int, schema: Schema | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The two classes, the positive one last, and which records are positive."""
    labels = one_per_record(y, rows)
    if schema is not None:
        classes = public_classes(labels, schema)
        if schema.label is None:
            return classes, labels == classes[1]
        return classes, schema.positive(labels, readable=True)
    found = occurring_classes(labels)
    if len(found) != 2:
        raise ValueError(
            f"y has {len(found)} class{'es' * (len(found) != 1)}. Only binary classification is supported. The type of the "
            f"target is {type_of_target(labels)}: give two classes, or a schema with a label that names them; {MORE_CLASSES}"
        )
    return found, labels == found[1]


def occurring_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """The classes that occur: for a schema that is guessed as well."""
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return np.asarray(np.unique(labels))


def public_classes(labels: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """Classes that are public, whatever occurs in `y`: those of the schema's label, or else 0 and 1, also for booleans.

    They are published with the model, so neither a record nor the type that records give to `y` may choose them.
    """
    if schema.label is not None:
        return classes_of(schema)
    classes = np.array([0, 1])
    if not np.isin(labels, classes).all():
        raise ValueError(
            f"y must hold 0 and 1, or booleans: name other values by a label of the schema; {MORE_CLASSES}"
        )
    return classes


def classes_of(schema: Schema | None) -> NDArray[Any]:
    """The two classes by the label of a schema: its values where there are two, otherwise words; the positive one last."""
    yes, no = answers(None if schema is None else schema.label)
    return np.array([no, yes])


def class_numbers(
    labels: NDArray[Any], classes: NDArray[Any], schema: Schema | None, *, readable: bool = False
) -> NDArray[np.int64]:
    """The number of every record's class: by the names of the classes, or else by the values of the schema's label.

    A label that is neither is refused; with `readable` so are labels none of which is named or listed. The text "1" is not the
    number 1.
    """
    numbers = np.full(len(labels), -1, dtype=np.int64)
    for k, one in enumerate(classes):
        numbers[np.asarray(labels == one, dtype=np.bool_)] = k
    others = numbers < 0
    if not others.any():
        return numbers
    if schema is None or schema.label is None:
        raise ValueError(f"y has labels that are none of the classes: they are {', '.join(map(str, classes))}")
    numbers[others] = schema.positive(labels[others], readable=readable and bool(others.all()))
    return numbers
