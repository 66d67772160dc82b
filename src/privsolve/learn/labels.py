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
            f"y has {len(found)} classes. Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}: give two classes, or a schema with a label that names them; {MORE_CLASSES}"
        )
    return found, labels == found[1]


def occurring_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """The classes that occur, where no schema names them: at least two, each with at least two records.

    So no single record decides them: of two neighbours that are both accepted, each has all classes of the other (theory,
    12.7). True and false are 1 and 0, as the type of `y` is not one record's to decide.
    """
    if labels.dtype == object:
        if len({isinstance(label, str) for label in labels}) == 2:
            raise ValueError("y mixes texts with other values: write all labels alike")
        labels = np.array(labels.tolist())
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < 2:
        raise ValueError("y has 1 class: give two or more classes, or a schema with a label that names them")
    if counts.min() < 2:
        raise ValueError(
            "y has a class that a single record has: correct it, or name the classes by the label of a schema"
        )
    return found.astype(np.int64) if found.dtype == np.bool_ else np.asarray(found)


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
