"""A new kind of column is one class: it is written here and goes all the way, from a schema file to a release and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli import app
from privsolve.data import Bins, Categories, Column, Dates, Label, Number, Schema
from privsolve.data.columns import KINDS, MISSING
from privsolve.data.questions import Choice, Option, Question
from privsolve.data.reading import number_of


def weekends() -> type[Column]:
    @dataclass(frozen=True)
    class Weekends(Column):
        """A day of the week from 1 to 7: is it one of those on which people rest?"""

        key: ClassVar[str] = "rest_days"
        keys: ClassVar[tuple[str, ...]] = ("rest_days",)

        column: str
        rest_days: tuple[int, ...]

        radix = 3
        outside: ClassVar[Mapping[str, int]] = {MISSING: 2}

        @property
        def names(self) -> tuple[str, ...]:
            return (f"{self.column} at rest",)

        def read(self, value: Any) -> Any:
            return number_of(value, self.column)

        def code(self, read: Any) -> Any:
            return ibis.cases((read.isnull(), 2), (read.isin([float(d) for d in self.rest_days]), 1), else_=0)

        def expand(self, codes: Any) -> Any:
            return (codes == 1).astype(np.int8)[:, None]

        def question(self) -> Question:
            return Choice(self.column, (Option("a working day", ()), Option("a day of rest", self.names)))

        def to_dict(self) -> dict[str, Any]:
            return {"rest_days": list(self.rest_days)}

        @classmethod
        def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Any:
            return cls(name, tuple(settings["rest_days"]))

    return Weekends


@pytest.fixture
def kind() -> Iterator[Any]:
    made = weekends()
    yield made
    del KINDS[made.key]


TOML = """intercept = true

[label]
column = "late"
positive = ["yes"]
negative = ["no"]

[columns.day]
rest_days = [6, 7]

[columns.hours]
bins = [4]
encoding = "intervals"
"""
FRAME = pd.DataFrame({"day": [1, 6, 7, None, 3, 6] * 30, "hours": [1, 9, 3, 5, 8, 2] * 30})
FRAME["late"] = np.where(FRAME["day"] >= 6, "yes", "no")


def test_a_kind_from_the_file_to_the_release_and_back(kind: Any, tmp_path: Path) -> None:
    schema = Schema.from_toml(TOML)
    assert schema == Schema([kind("day", (6, 7)), Bins("hours", [4], "intervals")], Label("late", "yes", "no"))
    assert schema.to_toml() == TOML
    assert schema.features == ("day at rest", "hours<4", "hours>=4", "intercept")

    expected = schema.table(FRAME)
    assert expected.outside == {"day": {"missing": 30}}
    arrow = pa.Table.from_pandas(FRAME)
    for data in (arrow, pl.DataFrame(arrow), ibis.memtable(arrow)):
        found = schema.table(data)
        assert found.table == expected.table
        assert found.outside == expected.outside

    FRAME.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "schema.toml").write_text(TOML, encoding="utf-8")
    data, out = str(tmp_path / "data.csv"), tmp_path / "out"
    fit = ["fit", "--model", "short", data, "--schema", str(tmp_path / "schema.toml"), "--out", str(out)]
    fitted = CliRunner().invoke(app, [*fit, "--epsilon", "20", "--max-features", "1", "--seed", "1"])
    assert fitted.exit_code == 0, fitted.output
    release = ps.Release.from_json((out / "release.json").read_text(encoding="utf-8"))
    assert release.schema == schema
    assert json.loads(release.to_json())["model"]["schema"]["columns"]["day"] == {"rest_days": [6, 7]}
    assert "a day of rest" in CliRunner().invoke(app, ["show", str(out / "release.json")]).stdout
    scored = str(tmp_path / "scored.csv")
    result = CliRunner().invoke(app, ["predict", data, "--release", str(out / "release.json"), "--out", scored])
    assert result.exit_code == 0, result.output
    assert list(pd.read_csv(scored)["prediction"]) == list(FRAME["late"])


def test_errors_list_the_new_kind(kind: Any) -> None:
    with pytest.raises(
        ValueError, match=r"columns\.a: needs exactly one of categories, bins, dates, low and high, or rest_days"
    ):
        Schema.from_dict({"columns": {"a": {}}})
    with pytest.raises(ValueError, match=r"columns\.a: unknown key 'days'; known are rest_days"):
        Schema.from_dict({"columns": {"a": {"rest_days": [1], "days": 2}}})


def test_a_key_belongs_to_one_kind() -> None:
    with pytest.raises(
        TypeError, match=r"column key 'bins' belongs to privsolve\.data\.columns\.numbers\.Bins: choose another"
    ):
        type("Other", (Column,), {"key": "bins"})
    assert {"categories": Categories, "bins": Bins, "dates": Dates, "low": Number} == KINDS


def test_dates_are_asked_for_as_dates() -> None:
    """Also where neighbouring answers are taken together."""
    column = Dates("born", ["1990-01-01", "2000-02-29"], missing="unknown")
    question = column.question()
    assert isinstance(question, Choice)
    assert [option.text for option in question.options] == [
        "before 1990-01-01",
        "1990-01-01 to before 2000-02-29",
        "from 2000-02-29 on",
        "unknown",
    ]
    first, second, third = (option.span for option in question.options[:3])
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.until(second).text, second.until(third).text) == ("before 2000-02-29", "from 1990-01-01 on")
    assert column.names == ("born>=1990-01-01", "born>=2000-02-29", "born=unknown")
    assert Dates.from_dict("born", column.to_dict()) == column
    with pytest.raises(ValueError, match=r"columns\.born: dates must hold days such as"):
        Dates("born", ["1990-02-30"])
