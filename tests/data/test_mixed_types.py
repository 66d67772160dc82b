"""One record of another type changes how no other one is read: types of columns are inferred from all records together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privsolve as ps
from privsolve.data import Bins, Categories, Column, Dates, Number
from privsolve.errors import IntegerRangeError
from privsolve.learn.full_card_recipe import NumberCardRecipe
from privsolve.learn.labels import finite_targets, one_per_record
from small_tables import INDICATORS, patients

ODD: list[Any] = [
    None,
    np.datetime64("2020-01-01"),
    np.datetime64("NaT"),
    float("nan"),
    pd.NA,
    pd.NaT,
    True,
    0,
    2.5,
    np.float32(0.1),
    2**53 + 1,
    2**70,
    -(2**63),
    Decimal("0.1"),
    Decimal("1e-30"),
    "",
    "1",
    " 2.5 ",
    "red",
    "nan",
    [1],
    {"a": 1},
    date(2000, 1, 1),
    datetime(2000, 1, 1),
    datetime(2000, 1, 1, tzinfo=UTC),
    np.datetime64("2000-01-01"),
    pd.Timestamp("2000-01-01"),
    pd.Timedelta("1D"),
    np.bool_(True),
    np.int8(1),
    (1, 2),
    object(),
    1j,
    2 + 0j,
    np.complex64(1j),
    b"red",
    b"\xff",
    bytearray(b"2.5"),
    np.timedelta64(1, "D"),
    float("inf"),
    10**400,
]
"""What one record may hold in a column of anything."""

COLUMNS: list[tuple[Column, list[Any]]] = [
    (Bins("x", [0.1, 0.5, 2, 2**53]), [0, 1, 2, 2**53, 0.1, 0.3]),
    (Bins("x", [0.1, 0.7], "intervals", missing="none"), [np.float32(0.1), np.float32(0.7), 0.7, "0.1"]),
    (Number("x", 0, 1, 0.1), [Decimal("0.05"), Decimal("0.15"), Decimal("0.25"), Decimal("0.35")]),
    (Categories("x", ["red", "1", "True"], other="other", missing="none"), ["red", "1", "True", "blue"]),
    (Categories("x", [True], no=False, missing="none"), [True, False, "yes"]),
    (Categories("x", [1, 2, 2.5], other="other", missing="none"), [1, 2, 2.5, 3, "1"]),
    (Dates("x", ["2000-01-01"], missing="none"), ["1999-12-31", "2000-01-02", date(2000, 1, 1)]),
    (
        Dates("x", ["2000-01-01"], missing="none"),
        [np.datetime64("1969-12-31"), pd.Timestamp("2000-01-02"), pd.Timestamp.max],
    ),
]
NAMES = [f"{type(column).__name__} {i}" for i, (column, _) in enumerate(COLUMNS)]

FRAMES: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda cells: pd.DataFrame({"x": cells}),
    "pandas objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "Polars": lambda cells: pl.DataFrame({"x": cells}),
    "Polars without strictness": lambda cells: lenient(cells),
    "Polars objects": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
    "Arrow": lambda cells: pa.table({"x": pa.array(cells)}),
}


def lenient(cells: list[Any]) -> pl.DataFrame:
    """Where Polars has made missing values of others, or lists of fields, nothing of them is left to read."""
    frame = pl.DataFrame({"x": cells}, strict=False)
    if any(value is None or isinstance(value, dict) for value in frame["x"].to_list()[:-1]):
        raise ValueError("Polars has changed other records")
    return frame


def rows(column: Column, frame: Any) -> list[tuple[int, ...]]:
    """The features of the records, in order."""
    return [tuple(row) for row in ps.Schema([column], intercept=False).encode(frame).tolist()]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(("column", "cells"), COLUMNS, ids=NAMES)
def test_one_odd_value_in_a_column_moves_no_other_record(column: Column, cells: list[Any], kind: str) -> None:
    made = []
    for added in ([], *([odd] for odd in ODD)):
        with suppress(TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
            made.append((added, FRAMES[kind]([*cells, *added])))  # some libraries do not put all into one column
    if made[:1] == [] or made[0][0]:
        pytest.skip("this kind of table does not hold such a column")
    expected = rows(column, made[0][1])
    for added, frame in made[1:]:
        left = rows(column, frame)
        for row in expected:
            assert row in left, f"{added} changed how another record is read"
            left.remove(row)
        assert len(left) == 1
    assert len(made) > 1


@pytest.mark.parametrize("odd", [1.0, np.float64(3), np.uint64(5)], ids=repr)
def test_large_whole_numbers_are_not_rounded_because_of_another_record(odd: Any) -> None:
    """As floats 2^53 and 2^53 + 1 are the same."""
    large = [[2**53 + 1], [-(2**53) - 1]]
    exact = ps.PatternTable.from_records(large, [1, 0]).features.tolist()
    assert exact == sorted(large)
    with pytest.raises(IntegerRangeError, match=r"floats of 2\^53 or more.*pass integers"):
        ps.PatternTable.from_records([*large, [odd]], [1, 0, 1])


ROWS = ps.Schema([Categories("x0", ["1", "red"], other="other"), Bins("x1", [0.7])], ps.Label("y", "1", "no"))


def matrix(odd: Any) -> list[list[Any]]:
    """Ten records as a list, and one more: as an array of one type they all would be texts, or floats."""
    return [["1", np.float32(0.7)], ["red", 0.7]] * 5 + [odd]


@pytest.mark.parametrize("odd", [["1", 1], [1, "1"], [None, None], [1.5, True], [[1], {}]], ids=repr)
def test_lists_of_lists_keep_every_value(odd: list[Any]) -> None:
    labels = np.array(["1", "no"] * 5 + ["no"], dtype=object)
    fitted = ps.PrivateShortCard(50.0, schema=ROWS, max_features=2, random_state=1).fit(matrix(["1", 1]), labels)
    for made in (fitted, ps.PrivateShortCard.from_release(fitted.release_)):
        assert made.predict(matrix(odd))[:10].tolist() == made.predict(matrix(["1", 1]))[:10].tolist()
        assert made.totals(matrix(odd))[:2].tolist() == made.totals(matrix(["red", 0])[:2]).tolist()
    trained = ps.PrivateTreeClassifier(50.0, schema=ROWS, random_state=1).fit(matrix(odd), labels)
    assert trained.diagnostics_.mistakes <= 1


@pytest.mark.parametrize("estimator", [ps.PrivateScorecard, ps.PrivateShortCard, ps.PrivateTreeClassifier])
def test_a_text_among_labels_does_not_make_texts_of_the_others(estimator: type) -> None:
    """The number 1 is not the text "1": as an array of one type it would be, as soon as another record has a text."""
    texts = ps.Schema(INDICATORS.columns, ps.Label("ill", "1", "0"))
    table = patients(20).drop(columns="ill")
    fitted = estimator(1.0, schema=texts).fit(table, ["1", "0"] * 10)
    with pytest.raises(ValueError, match="'ill'"):
        estimator(1.0, schema=texts).fit(table, [1] * 10 + ["1"] * 10)
    with pytest.raises(ValueError, match="'ill'"):
        fitted.evaluate(table, [1] * 10 + ["1"] * 10, 1.0)
    lenient = ps.Schema(INDICATORS.columns, ps.Label("ill", "1"))
    assert lenient.positive([1, 1.0, True, "1", "0", None][:5]).tolist() == [False, False, False, True, False]


def test_classes_are_compared_record_by_record() -> None:
    without, table = ps.Schema(INDICATORS.columns), patients(20).drop(columns="ill")
    tree = ps.PrivateTreeClassifier(1.0, depth=1, classes=["1", "2"], schema=without)
    for y in ([1] * 19 + ["2"], pd.Series([1] * 19 + ["2"]), (*[1] * 19, "2")):
        with pytest.raises(ValueError, match="none of the classes"):
            tree.fit(table, y)
    numbers = ps.PrivateTreeClassifier(1.0, depth=1, classes=[1, 2], schema=without)
    for y in ([1] * 19 + [2.0], [True] * 19 + [2], pl.Series([1] * 19 + [2]), pa.array([1] * 19 + [2])):
        assert numbers.fit(table, y).classes_.tolist() == [1, 2]
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(ValueError, match="none of the classes"):
            numbers.fit(table, [1] * 19 + [missing])


@pytest.mark.parametrize("odd", ["0.5", 1, Decimal("0.5"), np.float64(1), True], ids=repr)
def test_targets_are_cut_one_by_one(odd: Any) -> None:
    """0.021 in single precision lies below one and a half steps of 0.014, the text of it does not."""
    recipe, rows = NumberCardRecipe(1.0, low=0.0, high=1.4), np.zeros((21, 1))

    def steps(y: Any) -> list[int]:
        return recipe.in_steps(rows, finite_targets(one_per_record(y, 21))).targets.tolist()

    assert steps([np.float32(0.021)] * 20 + [odd])[:20] == steps([np.float32(0.021)] * 21)[:20]
