"""PatternTable: merging, exact scores against fractions, and every wrong input refused by the argument's name."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.errors import IntegerRangeError

BIG = 2**62


@st.composite
def records(draw: st.DrawFn) -> tuple[list[list[int]], list[bool], list[int]]:
    """Rows with many repeats, labels, and scales."""
    dim = draw(st.integers(1, 4))
    row = st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)
    rows = draw(st.lists(row, min_size=1, max_size=12))
    labels = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    scales = draw(st.lists(st.sampled_from([1, 2, 7, 99, 100]), min_size=dim, max_size=dim))
    return rows, labels, scales


@settings(deadline=None)
@given(records(), st.randoms())
def test_merging_counts_records_whatever_their_order(data: tuple[Any, Any, Any], random: Any) -> None:
    rows, labels, scales = data
    table = ps.PatternTable.from_records(rows, labels, scales=scales)
    expected = Counter((tuple(r), label) for r, label in zip(rows, labels, strict=True))
    got = {
        (tuple(row), label): int(count)
        for row, p, n in zip(table.features.tolist(), table.positives, table.negatives, strict=True)
        for label, count in ((True, p), (False, n))
        if count
    }
    assert got == expected
    assert len(np.unique(table.features, axis=0)) == len(table.features)
    assert table.n == len(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = ps.PatternTable.from_records([rows[i] for i in order], [labels[i] for i in order], scales=scales)
    assert shuffled == table
    assert np.array_equal(shuffled.features, table.features)


@settings(deadline=None)
@given(records(), st.data())
def test_scores_are_exact(data: tuple[Any, Any, Any], more: st.DataObject) -> None:
    rows, labels, scales = data
    weights = more.draw(st.lists(st.integers(-50, 50), min_size=len(scales), max_size=len(scales)))
    table = ps.PatternTable.from_records(rows, labels, scales=scales)
    exact = [sum(Fraction(x * w, s) for x, w, s in zip(row, weights, scales, strict=True)) for row in rows]
    by_row = dict(zip(map(tuple, table.features.tolist()), table.scores(weights).tolist(), strict=True))
    assert all(by_row[tuple(row)] == score * table.unit for row, score in zip(rows, exact, strict=True))
    wrong = sum((score > 0) != label for score, label in zip(exact, labels, strict=True))
    assert table.mistakes(weights) == wrong
    assert table.accuracy(weights) == 1 - wrong / len(rows)


def test_a_tie_is_predicted_negative() -> None:
    assert ps.PatternTable([[1, -1]], [1], [0]).mistakes([1, 1]) == 1
    assert ps.PatternTable([[1, -1]], [0], [1]).mistakes([1, 1]) == 0
    # 1/3 - 33/99 is a tie that floats miss
    assert ps.PatternTable([[1, 33]], [1], [0], scales=[3, 99]).scores([1, -1]).tolist() == [0]


def test_scores_near_the_limit_are_exact() -> None:
    table = ps.PatternTable([[2**40 - 1, 1]], [1], [0])
    assert table.scores([2**20, 1]).tolist() == [(2**40 - 1) * 2**20 + 1]
    with pytest.raises(IntegerRangeError, match="scores"):
        table.scores([2**22 + 1, 1])


def test_counts_are_added_and_empty_rows_dropped() -> None:
    table = ps.PatternTable([[1], [0], [1], [2]], [1, 0, 2, 0], [0, 3, 4, 0])
    assert table.features.tolist() == [[0], [1]]
    assert table.positives.tolist() == [0, 3]
    assert table.negatives.tolist() == [3, 4]
    assert table != ps.PatternTable([[1], [0]], [3, 0], [4, 3], names=["other"])
    assert table == ps.PatternTable([[1], [0]], [3, 0], [4, 3])
    assert table != "a table"


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float64])
def test_every_numeric_dtype_gives_the_same_table(dtype: type) -> None:
    features = np.array([[0, 1], [1, 1]], dtype=dtype)
    assert ps.PatternTable(features, [1, 2], [3, 4]) == ps.PatternTable([[0, 1], [1, 1]], [1, 2], [3, 4])


@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1, -1], [1.0, -1.0], np.array([1, 0], dtype=np.uint8)])
def test_every_form_of_labels(labels: Any) -> None:
    assert ps.PatternTable.from_records([[0], [1]], labels) == ps.PatternTable([[0], [1]], [1, 0], [0, 1])


@pytest.mark.parametrize("label", [True, False])
def test_one_class_is_enough(label: bool) -> None:
    table = ps.PatternTable.from_records([[1], [0]], [label, label])
    assert table.mistakes([1]) == 1
    assert ps.PatternTable.from_records([[1], [0]], [-1, -1]) == ps.PatternTable([[1], [0]], [0, 0], [1, 1])


def test_a_table_cannot_be_changed() -> None:
    features = np.array([[1]])
    table = ps.PatternTable(features, [1], [0])
    features[0, 0] = 5
    assert table.features.tolist() == [[1]]
    for array in (table.features, table.positives, table.negatives, table.score_features):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


WRONG_VALUES: list[tuple[Any, str]] = [
    (np.nan, "NaN or infinite"),
    (np.inf, "NaN or infinite"),
    (0.5, "fractional"),
    ("a", "dtype"),
    (b"a", "dtype"),
    (None, "dtype object"),
    (1j, "dtype complex"),
    (2**70, "dtype object"),
    (np.datetime64("2020-01-01"), "dtype"),
    (BIG, "rescale"),
    (-BIG, "rescale"),
    (-(2**63), "rescale"),
    (2**63, "rescale"),
    (2**64 - 1, "rescale"),
    (float(BIG), "rescale"),
]


@pytest.mark.parametrize(("value", "message"), WRONG_VALUES, ids=str)
@pytest.mark.parametrize("argument", ["features", "positives", "negatives"])
def test_wrong_values_name_the_argument(argument: str, value: Any, message: str) -> None:
    good: dict[str, Any] = {"features": [[1]], "positives": [1], "negatives": [1]}
    with pytest.raises(ValueError, match=rf"^{argument} .*{message}"):
        ps.PatternTable(**(good | {argument: [[value]] if argument == "features" else [value]}))


@pytest.mark.parametrize(("value", "message"), WRONG_VALUES, ids=str)
def test_wrong_weights_are_named(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^weights .*{message}"):
        ps.PatternTable([[1]], [1], [1]).scores([value])


@pytest.mark.parametrize("extreme", [np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1, BIG])
def test_one_extreme_entry_among_many_is_found(extreme: int) -> None:
    with pytest.raises(IntegerRangeError, match=r"^features"):
        ps.PatternTable(np.array([[3], [extreme], [-5]]), [1, 1, 1], [0, 0, 0])
    assert ps.PatternTable([[BIG - 1]], [1], [0]).features.tolist() == [[BIG - 1]]


WRONG_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"features": [1]}, "^features must have 2 dimension"),
    ({"features": None}, "^features must have 2 dimension"),
    ({"features": [[[1]]]}, "^features must have 2 dimension"),
    ({"features": [[1, 2], [3]]}, "^features must be a 2-dimensional"),
    ({"features": [[]]}, "^features has no columns"),
    ({"features": np.zeros((0, 2)), "positives": [], "negatives": []}, "table is empty"),
    ({"positives": [0], "negatives": [0]}, "table is empty"),
    ({"positives": [-1]}, "^positives has negative"),
    ({"negatives": [-1]}, "^negatives has negative"),
    ({"positives": [1, 1]}, "^positives has 2 entries for 1 feature row"),
    ({"negatives": []}, "^negatives has 0 entries for 1 feature row"),
    ({"negatives": 1}, "^negatives must have 1 dimension"),
    ({"positives": [[1], [1, 2]]}, "^positives must be a 1-dimensional"),
    ({"positives": [2**40]}, "^positives sums to 2"),
    ({"names": []}, "^names must be 1 different"),
    ({"names": ["a", "b"]}, "^names must be 1 different"),
    ({"features": [[1, 2]], "names": ["a", "a"]}, "^names must be 2 different"),
    ({"names": "a"}, "^names must be a list"),
    ({"names": 5}, "^names must be a list"),
    ({"scales": [0]}, "^scales must be 1 positive"),
    ({"scales": [-1]}, "^scales must be 1 positive"),
    ({"scales": [1, 1]}, "^scales must be 1 positive"),
    ({"scales": []}, "^scales must be 1 positive"),
    ({"scales": 5}, "^scales must be 1 positive"),
    ({"scales": [1.5]}, "^scales must be 1 positive"),
    ({"scales": [np.nan]}, "^scales must be 1 positive"),
    ({"scales": [np.inf]}, "^scales must be 1 positive"),
    ({"scales": [None]}, "^scales must be 1 positive"),
    ({"scales": ["1"]}, "^scales must be 1 positive"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_ARGUMENTS, ids=str)
def test_wrong_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"features": [[1]], "positives": [1], "negatives": [1]}
    with pytest.raises(ValueError, match=message):
        ps.PatternTable(**(arguments | change))


@pytest.mark.parametrize("column", [0, 1])
def test_scales_without_a_small_common_unit_are_refused_up_front(column: int) -> None:
    """Also where the column is zero, whose scaled values would fit."""
    for scales in ([1, 2**70], [2**70, 1], [2**63 - 1, 2**31 - 1]):
        with pytest.raises(IntegerRangeError, match=r"^features\['x\d'\].*coarser scales"):
            ps.PatternTable(np.eye(2, dtype=int)[[column]], [1], [0], scales=scales)


@pytest.mark.parametrize(
    "labels", [[0, 2], [-1, 0], [np.nan, 1], ["a", "b"], [None, 1], [1], [[1], [0]], [[1], [0, 1]]]
)
def test_wrong_labels(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"^labels"):
        ps.PatternTable.from_records([[1], [2]], labels)


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [[1, 2]], 3])
def test_weights_must_match(weights: Any) -> None:
    with pytest.raises(ValueError, match=r"^weights"):
        ps.PatternTable([[1, 2]], [1], [0]).mistakes(weights)


@pytest.mark.parametrize("width", [1, 2**7 - 1, 2**7, 2**15, 2**31, 2**40])
def test_rows_are_in_ascending_order_whatever_their_width(width: int) -> None:
    """As `np.unique` orders them, which seeded releases rely on; merged in as few bytes as hold them."""
    rng = np.random.default_rng(width)
    rows = rng.integers(-width, width + 1, (200, 3)) // max(1, width // 3) * max(1, width // 3)
    table = ps.PatternTable.from_records(rows, rng.random(200) < 0.5)
    assert table.features.dtype == np.int64
    assert np.array_equal(table.features, np.unique(rows, axis=0))
    assert table.n == 200


def test_merging_takes_little_memory() -> None:
    """Two copies in 64 bits at most; merging them as structured rows took six."""
    rows = np.random.default_rng(0).integers(0, 2, (40_000, 60)).astype(np.int8)
    tracemalloc.start()
    try:
        table = ps.PatternTable.from_records(rows, np.ones(len(rows), dtype=bool))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(table.features) == 40_000
    assert peak < 2 * table.features.nbytes


def test_real_features_are_scaled_by_public_bounds() -> None:
    """A value's code depends on that value and its bounds alone: cut, moved to 0..1, rounded half up."""
    bounds = [(0.0, 10.0), (-1.0, 1.0)]
    values = [[2.5, 0.0], [-3, 1.5], [99.0, -1], [0.05, 0.01]]
    table = ps.PatternTable.from_numbers(values, [1, 0, 1, 0], bounds, steps=10, names=["a", "b"])
    assert table.scales == (10, 10)
    assert table.ranges == ((0, 10), (0, 10))
    for row, label in zip(values, [1, 0, 1, 0], strict=True):
        alone = ps.PatternTable.from_numbers([row], [label], bounds, steps=10)
        code = [
            math.floor((min(max(x, lo), hi) - lo) / (hi - lo) * 10 + 0.5)
            for x, (lo, hi) in zip(row, bounds, strict=True)
        ]
        assert alone.features.tolist() == [code]
        assert code in table.features.tolist()


@pytest.mark.parametrize(
    ("features", "bounds", "message"),
    [
        ([[0.5]], [(0, 1), (0, 1)], "a pair .* for each feature"),
        ([[0.5]], [(1, 1)], "the lower one first"),
        ([[0.5]], [(0, float("inf"))], "finite"),
        ([[float("nan")]], [(0, 1)], "NaN"),
        ([["x"]], [(0, 1)], "rows of numbers"),
        ([[0.5]], None, "a pair"),
    ],
)
def test_real_features_without_public_bounds_are_refused(features: object, bounds: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ps.PatternTable.from_numbers(features, [1], bounds)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="from_numbers"):
        ps.PatternTable.from_records([[0.5]], [1])
