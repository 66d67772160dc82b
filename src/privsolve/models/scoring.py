"""Scores of a release, exact in the integers; also inside an engine, where the rows of a large table stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.data import Schema
from privsolve.data.columns import Column, Label, Number, Value
from privsolve.data.engines import code_of
from privsolve.data.patterns import SCORE_LIMIT
from privsolve.data.reading import check_columns
from privsolve.errors import IntegerRangeError
from privsolve.models.release import Release, label_words


def unit_weights(release: Release) -> list[int]:
    """The weights in the common unit of all features, in which scores are integers."""
    unit = math.lcm(*release.scales)
    return [int(weight) * (unit // scale) for weight, scale in zip(release.weights, release.scales, strict=True)]


def check_scores(schema: Schema, weights: Sequence[int]) -> None:
    """Raise unless every record that the schema allows scores below the exact range; `weights` in the common unit."""
    sizes = [size for column in schema.columns for size in [_largest(column)] * len(column.names)]
    if schema.intercept:
        sizes.append(1)
    if sum(size * abs(weight) for size, weight in zip(sizes, weights, strict=True)) >= SCORE_LIMIT:
        raise IntegerRangeError(
            "scores could leave the 64-bit integers: use narrower bounds, coarser steps or smaller scales in the schema"
        )


def with_predictions(table: Any, release: Release, score: str = "score", prediction: str = "prediction") -> Any:
    """The Ibis table with two more columns: the score in points, and the predicted label."""
    import ibis

    schema = release.schema
    if schema is None:
        raise ValueError("the release has no schema, so it cannot be applied to a table: fit with one")
    check_columns([column.column for column in schema.columns], table.columns)
    for name in (score, prediction):
        if name in table.columns:
            raise ValueError(f"the table has a column {name!r} already: rename it")
    weights = unit_weights(release)
    check_scores(schema, weights)
    total, first = ibis.literal(weights[-1] if schema.intercept else 0, type="int64"), 0
    for column in schema.columns:
        mine = weights[first : first + len(column.names)]
        first += len(mine)
        if any(mine):
            total = total + _points(table[column.column], column, mine)
    yes, no = _answers(schema.label)
    unit = math.lcm(*release.scales)
    return table.mutate(
        **{score: total / unit if unit > 1 else total, prediction: ibis.cases((total > 0, yes), else_=no)}
    )


def _answers(label: Label | None) -> tuple[Value, Value]:
    """What is predicted: the label's values where there are two, otherwise words."""
    if label is None:
        return "positive", "negative"
    if len(label.positive) == 1 and label.negative is not None and len(label.negative) == 1:
        return label.positive[0], label.negative[0]
    return label_words(label)


def _largest(column: Column) -> int:
    """The largest size of a feature of the column."""
    return max(abs(column.steps(column.low)), abs(column.steps(column.high))) if isinstance(column, Number) else 1


def _points(value: Any, column: Column, weights: list[int]) -> Any:
    """The column's part of the score, in integer units, as an expression."""
    import ibis

    code = code_of(value, column).cast("int64")
    if isinstance(column, Number):
        outside = [(code == number, _of_code(column, number, weights)) for number in column.outside.values()]
        return ibis.cases(*outside, else_=(code - 1 + column.first) * weights[0])
    by_code = [_of_code(column, number, weights) for number in range(column.radix)]
    return ibis.cases(*((code == number, points) for number, points in enumerate(by_code) if points), else_=0)


def _of_code(column: Column, code: int, weights: list[int]) -> int:
    row = column.expand(np.array([code], dtype=np.int64))[0]
    return sum(int(x) * w for x, w in zip(row, weights, strict=True))
