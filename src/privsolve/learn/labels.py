"""What `y` says: which classes there are, and which is every record's. Each record is read on its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, column_or_1d

from privsolve.data import Label, Schema
from privsolve.data.codes import as_given, collected, is_ibis_table, values_of_column
from privsolve.data.columns import tidy
from privsolve.data.columns.base import LARGEST_INTEGER
from privsolve.models.linear import answers

MORE_CLASSES = "for more than two classes there is PrivateTreeClassifier(classes=[...])"


def one_per_record(y: Any, rows: int) -> NDArray[Any]:
    """The labels or targets, one for each record, each as it is: a list of mixed types gets no common type."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give one label per record")
    if hasattr(y, "__len__") and len(y) != rows:
        raise ValueError(f"y has {len(y)} labels, inconsistent with {rows} records: give one label per record")
    labels = np.array(column_or_1d(as_given(y), warn=True))
    if labels.dtype == object:
        labels[pd.isna(labels)] = None
    return labels


def finite_targets(y: NDArray[Any]) -> NDArray[np.float64]:
    """Targets that are numbers, each finite."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers") from None
    assert_all_finite(numbers, input_name="y")
    return numbers


def labels_in(frame: Any, column: str) -> tuple[Any, Any]:
    """The table in memory, and its column of labels."""
    table = collected(frame.to_pyarrow() if is_ibis_table(frame) else frame)
    return table, np.array(values_of_column(table, column), dtype=object)


def with_label(schema: Schema, y: Any, classes: NDArray[Any]) -> Schema:
    """The schema with a label for the two classes, so that cards call them by their names."""
    if schema.label is not None or len(classes) != 2:
        return schema
    name = getattr(y, "name", None)
    plain = (value.item() if isinstance(value, np.generic) else value for value in classes)
    no, yes = (tidy(value) if isinstance(value, float) else value for value in plain)
    try:
        label = Label(name if isinstance(name, str) and name else "label", [yes], [no])
        return replace(schema, label=label)
    except ValueError:  # no name for a label, or no values: then they stay without names
        return schema


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
    12.7). True and false are 1 and 0, and 2.0 is 2, as the type of `y` is not one record's to decide.
    """
    if labels.dtype == object:
        if any(label is None for label in labels):
            raise ValueError("y has missing labels: leave these records out, or give them a class of their own")
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
    if found.dtype.kind == "f" and np.abs(found).max() >= LARGEST_INTEGER:
        raise ValueError("y has numbers of 2^53 or more: write the classes as texts, or as smaller numbers")
    return found.astype(np.int64) if found.dtype.kind in "bf" else np.asarray(found)


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
