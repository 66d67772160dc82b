"""The same records give the same draft, whatever holds them, and in one query, however many columns there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privsolve.data import Bins, Categories, Dates, Label, draft, profile
from privsolve.data.private import draft as private
from privsolve.data.private import private_draft
from privsolve.data.tables import open_table

pytestmark = pytest.mark.filterwarnings("ignore::privsolve.PrivacyLeakWarning")


def people(n: int = 1000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D")
    return pd.DataFrame(
        {
            "amount": rng.permutation(np.r_[np.arange(921), np.arange(n - 921)]) + 250,  # 921 of 1,000 are different
            "weight": rng.normal(70, 15, n).round(3),
            "flag": rng.random(n) < 0.4,
            "zero": rng.integers(0, 2, n),
            "sex": rng.choice(["f", "m"], n),
            "answer": rng.choice(["yes", "no", "NA", "?"], n),
            "few": rng.choice(["1", "2", "NULL"], n),
            "code": rng.choice([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, -999.0], n),
            "born": born,
            "id": np.arange(n) + 10**6,
            "ill": rng.choice(["a", "b"], n),
        }
    )


def roads(frame: pd.DataFrame, path: Path) -> dict[str, Any]:
    frame.to_csv(path / "a.csv", index=False)
    frame.to_parquet(path / "a.parquet", index=False)
    with duckdb.connect(str(path / "a.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{path}/a.parquet'")
    arrow = pa.Table.from_pandas(frame)
    return {
        "CSV": open_table(path / "a.csv"), "Parquet": open_table(path / "a.parquet"), "file": open_table(path / "a.duckdb"),
        "Polars": pl.from_pandas(frame), "lazy": pl.from_pandas(frame).lazy(), "Arrow": arrow,
        "relation": duckdb.from_arrow(arrow), "Ibis": ibis.memtable(arrow),
    }  # fmt: skip


def test_every_road_gives_the_same_draft(tmp_path: Path) -> None:
    frame = people()
    expected = draft(frame, "ill", missing=[-999])
    by = {column.column: column for column in expected.schema.columns}
    assert isinstance(by["amount"], Bins)  # not an identifier
    assert set(expected.left_out) == {"id"}
    assert by["flag"] == Categories("flag", [True], no=False)
    assert by["zero"] == Categories("zero", [1], no=0, missing_values=[-999])
    assert by["sex"] == Categories("sex", ["m"], no="f")
    assert by["answer"] == Categories("answer", ["yes"], no="no", missing="missing", missing_values=["?", "NA"])
    assert by["few"] == Categories("few", [2], no=1, missing="missing", missing_values=[-999])
    assert isinstance(by["code"], Bins)
    assert min(by["code"].cuts) > 1
    assert isinstance(by["born"], Dates)
    for road, data in roads(frame, tmp_path).items():
        found = draft(data, "ill", missing=[-999])
        assert found.schema == expected.schema, road
        assert found.left_out == expected.left_out, road
        assert found.schema.table(data).table == expected.schema.table(frame).table, road


def test_the_number_of_queries_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries = []
    run = profile.run
    monkeypatch.setattr(profile, "run", lambda query: queries.append(query) or run(query))
    for columns in (3, 120):
        frame = pd.DataFrame({f"c{i}": rng.integers(0, 50, 200) for i in range(columns)}).assign(y=[0, 1] * 100)
        frame.to_csv(tmp_path / f"{columns}.csv", index=False)
        assert len(draft(open_table(tmp_path / f"{columns}.csv"), "y").schema.columns) == columns
    assert len(queries) == 4  # how many records there are, and the records; twice


def test_a_very_large_table_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MOST_CELLS", 4000)
    found = profile.profiles(ibis.memtable(pa.Table.from_pandas(people())))
    assert 200 < found["amount"].records < 600
    assert found["sex"].values == ("f", "m")


def test_a_private_draft_makes_one_indicator_of_two_values(tmp_path: Path) -> None:
    frame = people(4000 + 1000).drop(columns=["id", "born", "amount", "few"])
    label = Label("ill", "a", "b")
    held = roads(frame, tmp_path)
    for data in (frame, held["Parquet"], held["Ibis"]):
        found = private_draft(data, label, 50.0, 1e-3, missing=[-999], random_state=1).schema
        by = {column.column: column for column in found.columns}
        assert by["flag"] == Categories("flag", [True], no=False)
        assert by["zero"] == Categories("zero", [1], no=0, missing_values=[-999])
        assert by["sex"] == Categories("sex", ["m"], no="f")
        answer = by["answer"]
        assert isinstance(answer, Categories)
        assert (answer.options[0].name, answer.missing) == ("yes", "missing")
        assert {"NA", "?"} < set(answer.missing_values)
        code = by["code"]
        assert isinstance(code, Bins)
        assert (code.missing, code.missing_values) == ("missing", (-999,))
        assert min(code.cuts) > 0
        assert found.table(data).outside.keys() == {"answer", "code"}


def test_counts_that_are_hardly_there() -> None:
    """Counts of juvenile offences are 0 or 1, and now and then more: those are not called 0."""
    counts = np.r_[np.zeros(3000), np.ones(1800), np.full(200, 3)]
    frame = pd.DataFrame({"count": counts, "ill": ["a", "b"] * 2500})
    found = private_draft(frame, Label("ill", "a", "b"), 1.0, random_state=2).schema.columns[0]
    assert isinstance(found, Bins)
    assert found.cuts[0] == 1
    assert private.SOME_OTHER < 200 / 5000
