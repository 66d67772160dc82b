"""The schema: what each kind of column makes of a value, its file, and every wrong one refused by column and key."""

from __future__ import annotations

import math
import tomllib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.data import Bins, Categories, Category, Column, Label, Number, Schema, toml
from privsolve.data.questions import Choice, Option, Quantity, Span
from schema_data import SCHEMA

MARRIED = Category("married", ("Married-civ-spouse", "Married-AF-spouse"))
PEOPLE = Schema(
    [
        Bins("age", [25, 35, 36], "intervals", whole=True),
        Bins("pay", [0.5, 2], "thresholds", missing="unknown"),
        Categories("status", [MARRIED, "Never-married"], other="other", missing="missing"),
        Categories("smoker", [True]),
        Number("hours", 0, 99, 0.5, 99, missing=40),
    ],
    Label("income", ">50K", "<=50K"),
)


def encode(column: Column, values: Any) -> list[list[int]]:
    return Schema([column], intercept=False).encode(pd.DataFrame({column.column: values})).tolist()


def test_features_are_named_scaled_and_in_order() -> None:
    assert PEOPLE.features == (
        "age<25",
        "age=25-34",
        "age=35",
        "age>=36",
        "pay>=0.5",
        "pay>=2",
        "pay=unknown",
        "status=married",
        "status=Never-married",
        "status=other",
        "status=missing",
        "smoker=true",
        "hours",
        "intercept",
    )
    assert PEOPLE.names == PEOPLE.features
    assert PEOPLE.scales == (*[1] * 12, 99, 1)
    assert PEOPLE.column("hours") == Number("hours", 0, 99, 0.5, 99, missing=40)
    assert Bins("pay", [0.5, 2]).names == Bins("pay", [0.5, 2], "thresholds").names == ("pay>=0.5", "pay>=2")
    assert Bins("pay", [0.5, 2], "intervals").names == ("pay<0.5", "0.5<=pay<2", "pay>=2")
    with pytest.raises(ValueError, match=r"no column 'weight': it has age, pay"):
        PEOPLE.column("weight")


def test_a_value_at_a_cut_opens_the_next_bin() -> None:
    bins = Bins("x", [0, 1.5], "intervals")
    assert encode(bins, [-math.inf, -0.0, 1.4999, 1.5, math.inf, math.nan]) == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 0],
    ]
    assert encode(Bins("x", [0, 1.5], "thresholds", missing="none"), [-1, 0, 2, None]) == [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]


def test_numbers_are_clipped_and_rounded_half_up() -> None:
    number = Number("x", -1, 2, 0.5)
    values = [-5, -1, -0.75, -0.25, 0.24, 0.25, 0.75, 2, 9, math.inf]
    assert [row[0] for row in encode(number, values)] == [-2, -2, -1, 0, 0, 1, 2, 4, 4, 4]
    assert encode(number, [None]) == [[-2]]
    assert encode(Number("x", -1, 2, 0.5, missing=1), [math.nan]) == [[2]]


def test_what_falls_outside() -> None:
    """Other and missing values: declared, not declared, and missing that counts as other."""
    values = ["a", "b", None]
    assert encode(Categories("x", ["a"]), values) == [[1], [0], [0]]
    assert encode(Categories("x", ["a"], other="rest"), values) == [[1, 0], [0, 1], [0, 1]]
    assert encode(Categories("x", ["a"], missing="none"), values) == [[1, 0], [0, 0], [0, 1]]
    assert encode(Categories("x", ["a"], "rest", "none"), values) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    frame = pd.DataFrame({"x": [*values, "c"], "n": [5.0, -1, 99, None], "y": [1, 0, 0, 1]})
    found = Schema([Categories("x", ["a"]), Number("n", 0, 10)], Label("y", 1, 0)).table(frame)
    assert found.outside == {"x": {"other": 2, "missing": 1}, "n": {"below": 1, "above": 1, "missing": 1}}
    assert found.table.n == 4


def test_values_match_by_kind() -> None:
    assert encode(Categories("x", [1, 0]), ["1", " 1.0 ", "0", "one", True, 1]) == [
        [1, 0],
        [1, 0],
        [0, 1],
        [0, 0],
        [1, 0],
        [1, 0],
    ]
    assert encode(Categories("x", [True]), ["TRUE", "false", "1", "2"]) == [[1], [0], [1], [0]]
    assert encode(Categories("x", [True]), [1, 0, 2]) == [[1], [0], [0]]
    assert encode(Categories("x", ["1"]), ["1", "1.0"]) == [[1], [0]]


def test_encoding_agrees_with_the_embedded_scorecard_data() -> None:
    """The published table of Adult, described as a schema."""
    from privsolve.datasets import adult, adult_scorecard

    table = adult_scorecard()
    schema = Schema(
        [
            Bins("age", [25, 35, 50], "intervals", whole=True),
            Bins("hours-per-week", [35, 45], "intervals", whole=True),
            Categories("sex", ["Male"]),
        ],
        Label("income", ">50K", "<=50K"),
    )
    frame = adult()
    found = schema.table(frame[frame["split"] == "train"]).table
    shared = [name for name in found.names if name in table.names]
    assert len(shared) == 8
    kept = [table.names.index(name) for name in shared] + [table.names.index("male")]
    expected = ps.PatternTable(table.features[:, kept], table.positives, table.negatives, [*shared, "sex=Male"])
    mine = [found.names.index(name) for name in (*shared, "sex=Male")]
    assert ps.PatternTable(found.features[:, mine], found.positives, found.negatives, expected.names) == expected


def test_questions_are_what_a_person_can_answer() -> None:
    age, pay, status, smoker, hours = PEOPLE.questions()
    assert age == Choice(
        "age",
        (
            Option("under 25", ("age<25",), Span(None, 25, True)),
            Option("25 to 34", ("age=25-34",), Span(25, 35, True)),
            Option("35", ("age=35",), Span(35, 36, True)),
            Option("36 or more", ("age>=36",), Span(36, None, True)),
        ),
    )
    assert pay == Choice(
        "pay",
        (
            Option("under 0.5", (), Span(None, 0.5)),
            Option("0.5 to under 2", ("pay>=0.5",), Span(0.5, 2)),
            Option("2 or more", ("pay>=0.5", "pay>=2"), Span(2, None)),
            Option("unknown", ("pay=unknown",)),
        ),
    )
    assert isinstance(status, Choice)
    assert [option.text for option in status.options] == ["married", "Never-married", "other", "missing"]
    assert smoker == Choice("smoker", (Option("true", ("smoker=true",)), Option("other", ())))
    assert hours == Quantity("hours", "hours", 0.0, 99.0, 0.5, 99)


def test_files_keep_everything(tmp_path: Path) -> None:
    for schema in (PEOPLE, SCHEMA, Schema(PEOPLE.columns, intercept=False)):
        assert Schema.from_dict(schema.to_dict()) == schema
        assert Schema.from_toml(schema.to_toml()) == schema
        schema.save(tmp_path / "s.toml")
        assert Schema.load(tmp_path / "s.toml") == schema
    (tmp_path / "bad.toml").write_text("intercept = maybe", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.toml: not a valid TOML file"):
        Schema.load(tmp_path / "bad.toml")


@settings(deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4, unique=True),
    st.text(max_size=20),
)
def test_any_names_and_numbers_survive_the_file(names: list[str], numbers: list[float], comment: str) -> None:
    """The writer against the standard library's reader; a comment can never add a line of TOML."""
    description = {
        "intercept": True,
        "label": {"column": names[0], "positive": names},
        "columns": {name: {"bins": numbers, "categories": [{"name": name, "values": names}]} for name in names},
    }
    text = toml.write(description, {"": [comment], "label": [f"{comment}\nintercept = false"], names[0]: [comment]})
    assert tomllib.loads(text) == description


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"columns": {}}, "^columns: the schema has none"),
    ({"column": {"a": {}}}, "^the schema: unknown key 'column'"),
    ({"columns": {"a": 3}}, r"^columns\.a: must be a table"),
    (
        {"columns": {"a": {}}},
        r"^columns\.a: needs exactly one of categories, bins, dates, or low and high; it has none",
    ),
    ({"columns": {"a": {"bins": [1], "low": 0}}}, r"^columns\.a: needs exactly one .* it has bins and low"),
    ({"columns": {"a": {"bins": [1], "bin": 2}}}, r"^columns\.a: unknown key 'bin'; known are bins, encoding"),
    ({"columns": {"a": {"bins": [2, 1]}}}, r"^columns\.a: bins must be in ascending order"),
    ({"columns": {"a": {"bins": []}}}, r"^columns\.a: bins must be a non-empty list"),
    ({"columns": {"a": {"bins": ["x"]}}}, r"^columns\.a: bins must hold numbers, got 'x'"),
    ({"columns": {"a": {"bins": [math.inf]}}}, r"^columns\.a: bins must hold finite numbers"),
    (
        {"columns": {"a": {"bins": [1], "encoding": "x"}}},
        r"^columns\.a: encoding must be one of 'intervals', 'thresholds'",
    ),
    ({"columns": {"a": {"bins": [1.5], "whole": True}}}, r"^columns\.a: bins must be whole numbers"),
    ({"columns": {"a": {"bins": [1], "whole": 1}}}, r"^columns\.a: whole must be true or false"),
    ({"columns": {"a": {"bins": [1], "missing": 5}}}, r"^columns\.a: missing must be the name of an option"),
    ({"columns": {"a": {"categories": "x"}}}, r"^columns\.a: categories must be a non-empty list"),
    ({"columns": {"a": {"categories": ["x", 1]}}}, r"^columns\.a: categories mixes number and text"),
    ({"columns": {"a": {"categories": ["x", "x"]}}}, r"^columns\.a: categories lists 'x' twice"),
    ({"columns": {"a": {"categories": [1, 1.0]}}}, r"^columns\.a: categories lists 1\.0 twice"),
    ({"columns": {"a": {"categories": [" x"]}}}, r"^columns\.a.* has ' x': texts are compared without"),
    ({"columns": {"a": {"categories": [[1]]}}}, r"^columns\.a must hold numbers, got \[1\]"),
    ({"columns": {"a": {"categories": [{"name": "x"}]}}}, r"^columns\.a: categories must hold values or tables"),
    ({"columns": {"a": {"categories": [{"name": "x", "values": []}]}}}, r"^columns\.a: categories option 'x' has no"),
    (
        {"columns": {"a": {"categories": [{"name": "", "values": [1]}]}}},
        r"^columns\.a: categories has an option without",
    ),
    ({"columns": {"a": {"categories": ["x"], "other": "x"}}}, r"^columns\.a: the feature 'a=x' has the same name"),
    ({"columns": {"a": {"low": 0}}}, r"^columns\.a: high is missing"),
    ({"columns": {"a": {"low": 1, "high": 1}}}, r"^columns\.a: low must be less than high"),
    ({"columns": {"a": {"low": 0, "high": 1, "step": 0}}}, r"^columns\.a: step must be positive"),
    ({"columns": {"a": {"low": 0, "high": 1e9, "step": 1e-9}}}, r"^columns\.a: step is too small"),
    ({"columns": {"a": {"low": 0, "high": 1, "scale": 1.5}}}, r"^columns\.a: scale must be a positive whole"),
    ({"columns": {"a": {"low": 0, "high": 1, "missing": 2}}}, r"^columns\.a: missing must lie between"),
    ({"columns": {"intercept": {"low": 0, "high": 1}}}, r"^columns\.intercept: the feature 'intercept'"),
    ({"intercept": 1}, "^intercept must be true or false"),
    ({"label": 1}, "^label: must be a table"),
    ({"label": {"column": "y"}}, "^label: positive is missing"),
    ({"label": {"column": "y", "positive": []}}, "^label: positive must list at least one"),
    ({"label": {"column": "y", "positive": [1], "negative": [1]}}, "^label: positive and negative lists 1 twice"),
    ({"label": {"column": "y", "positive": "a", "negative": 0}}, "^label: positive and negative mixes"),
    ({"label": {"column": "y", "positive": 1, "missing": "positive"}}, '^label: missing can only be "negative"'),
    ({"label": {"column": "a", "positive": 1}}, r"^columns\.a: this is the label"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_schemas_name_the_column_and_the_key(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"columns": {"a": {"bins": [1]}}, "label": {"column": "y", "positive": 1}}
    Schema.from_dict(good)
    with pytest.raises(ValueError, match=message):
        Schema.from_dict(good | change)


def test_columns_and_labels_of_the_wrong_type() -> None:
    with pytest.raises(ValueError, match="columns must list"):
        Schema([])
    with pytest.raises(ValueError, match="label must be a Label"):
        Schema([Bins("a", [1], "intervals")], "y")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"columns\.a: listed twice"):
        Schema([Bins("a", [1], "intervals"), Bins("a", [2], "intervals")])


def test_numpy_numbers_are_numbers() -> None:
    assert Bins("a", list(np.array([1.0, 2.0]))) == Bins("a", [1, 2])


def test_options_that_read_alike_are_refused_or_told_apart() -> None:
    """A scorecard is made after its release is paid for, so it must not fail on the texts of a schema."""
    schema = Schema([Categories("c", ["a", "other"])])
    (question,) = schema.questions()
    assert isinstance(question, Choice)
    assert len({option.text for option in question.options}) == 3
    with pytest.raises(ValueError, match=r"columns\.c: .*(same|twice)"):
        Schema([Categories("c", ["a", "b"], other="a")])


def test_long_lists_are_read_at_once(tmp_path: Path) -> None:
    """Time and memory grow with a list, not with its square: 20,000 options took minutes and 3 GB."""
    options = [f"option {i}" for i in range(20_000)]
    schema = Schema([Categories("c", options, other="other"), Categories("n", range(20_000))], Label("y", 1))
    tracemalloc.start()
    try:
        assert Schema.from_toml(schema.to_toml()) == schema
        table = schema.table(pd.DataFrame({"c": ["option 7", "x"], "n": [19_999, None], "y": [1, 0]})).table
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
    assert [np.flatnonzero(row).tolist() for row in table.features] == [[20_000, 40_001], [7, 40_000, 40_001]]
    assert schema.columns[0].points_by_code([1] * 20_001) == [1] * 20_002
    with pytest.raises(ValueError, match=r"^columns: the schema has 100,001 features, more than 100,000"):
        Schema([Categories("c", range(100_001))])
    with pytest.raises(ValueError, match=r"columns\.b: bins must have at most 2,000 cut points, got 2,001"):
        Bins("b", range(2001))
