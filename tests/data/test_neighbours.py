"""Reading has sensitivity one record: files that differ in one record give pattern tables at ℓ1 distance at most 2."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import privsolve as ps
from neighbours import READERS, TARGET, Reader, columns_of, distance, drawn
from privsolve.cli import app
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.data.tables import open_table

LAB = Schema([Bins("lab", [2.0], "thresholds")], Label("y", "yes", "no"))


def laboratory(changed: float) -> pa.Table:
    """Half of the records NaN and ill, the others 1.0 and well, but for the last one."""
    return pa.table({"lab": [math.nan] * 200 + [1.0] * 199 + [changed], "y": ["yes"] * 200 + ["no"] * 200})


def tables(read: Reader, schema: Schema, one: pa.Table, other: pa.Table, path: Path) -> list[ps.PatternTable]:
    found = []
    for i, data in enumerate((one, other)):
        (folder := path / str(i)).mkdir()
        found.append(schema.table(read(data, folder)).table)
    return found


@pytest.mark.parametrize("reader", READERS)
def test_nan_is_read_alike_whatever_the_other_records_are(reader: str, tmp_path: Path) -> None:
    one, other = tables(READERS[reader], LAB, laboratory(1.0), laboratory(1.5), tmp_path)
    assert distance(one, other) == 0  # 1.0 and 1.5 are in one bin
    assert one.features.tolist() == [[0, 1]]


@pytest.mark.parametrize("reader", READERS)
def test_neighbouring_files_give_neighbouring_tables(reader: str, tmp_path: Path) -> None:
    """Every kind of column on every type, side by side: if one of them moves another record, the whole row moves."""
    drawing = sum(map(ord, reader))
    schema, one, other = drawn(drawing, columns_of(("",), 1))
    assert distance(*tables(READERS[reader], schema, one, other, tmp_path)) <= 2


def test_a_sample_keeps_one_record_more_or_not_and_the_share_of_every_group() -> None:
    """Sampling is a rule of the record alone (theory, 19.12), the same in memory and in an engine."""
    rng = np.random.default_rng(0)
    schema = Schema([Categories(f"c{i}", list("abc")) for i in range(40)], Label("y", "yes", "no"))
    columns = {f"c{i}": rng.choice(list("abc"), 900) for i in range(40)} | {"y": rng.choice(["yes", "no"], 900)}
    data = pa.table({name: np.where(np.arange(900) < 300, values[0], values) for name, values in columns.items()})
    for rate in (0.1, 0.7):
        sample = schema.table(data, sample_rate=rate).table
        assert sample == schema.table(ibis.memtable(data), sample_rate=rate).table
        assert (sample.positives + sample.negatives).max() == pytest.approx(300 * rate, abs=1)
        assert sample.n == pytest.approx(900 * rate, abs=4 * math.sqrt(600) / 2)
        without = (pa.concat_tables([data[:k], data[k + 1 :]]) for k in range(290, 315))
        assert {distance(schema.table(one, sample_rate=rate).table, sample) for one in without} == {0, 1}
    assert schema.table(data, sample_rate=1.0).table == schema.table(data).table


@pytest.mark.parametrize("reader", [name for name in READERS if "Parquet" in name or "DuckDB" in name])
def test_neighbouring_files_of_floats(reader: str, tmp_path: Path) -> None:
    """NaN, infinities and zeros of both signs more often: statistics in files leave some of them out."""
    schema, one, other = drawn(len(reader), columns_of(("double", "single"), 4))
    assert distance(*tables(READERS[reader], schema, one, other, tmp_path)) <= 2


def by_the_largest(data: pa.Table, path: Path) -> Any:
    """A reader that must be caught: missing values become the largest one of their column."""
    frame = data.to_pandas()
    return frame.fillna({name: frame[name].max() for name in frame.columns if frame[name].dtype.kind == "f"})


def test_a_reader_that_looks_at_the_other_records_is_caught(tmp_path: Path) -> None:
    found = []
    for seed in range(10):
        (folder := tmp_path / str(seed)).mkdir()
        found.append(distance(*tables(by_the_largest, *drawn(seed, columns_of(("double",), 8)), folder)))
    assert max(found) > 2


@pytest.mark.parametrize("reader", [name for name in READERS if name != "CSV"])
def test_dates_are_refused_whatever_the_records_are(reader: str, tmp_path: Path) -> None:
    schema = Schema([Bins("born", [0], "intervals")], Label("y", "yes"))
    for i, days in enumerate(([0, None, 9], [0, 1, 9], [None, None, 9])):
        (folder := tmp_path / str(i)).mkdir()
        data = pa.table({"born": pa.array(days, pa.date32()), "y": ["yes"] * 3})
        with pytest.raises(ValueError, match="column 'born' holds date"):
            schema.table(READERS[reader](data.take([i % 3] * 12), folder))


CELLS = ("", "1", '"1"', '" 2 "', '""', '"a, b"', '"a ""b"""', "#1", "\\N", "NULL", "nan", "'1'", "é", '"x\ny"', "1\\")
"""As they stand in a file."""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_neighbouring_texts_of_csv(newline: str, tmp_path: Path) -> None:
    """Cells with quotes, separators, line ends and marks of other dialects change nothing but their own record."""
    texts = ["1", "a, b", 'a "b"', "NULL", "x\ny"]
    kinds = [Categories(f"c{i}", texts, other="other", missing="missing") for i in range(len(CELLS))]
    schema = Schema([*kinds, *(Number(f"n{i}", 0, 3) for i in range(len(CELLS)))], Label("y", 1, 0))
    header = ",".join([*(column.column for column in schema.columns), "y"])
    found = []
    for i, cell in enumerate(CELLS):
        rows = [(*CELLS, *["2"] * len(CELLS), "1"), (*["1"] * len(CELLS), *CELLS, "0"), (*[cell] * 2 * len(CELLS), "0")]
        lines = [header, *(",".join(row) for row in (*rows[:2] * 4, rows[2])), ""]
        path = tmp_path / f"{i}.csv"
        path.write_text(newline.join(lines), encoding="utf-8", newline="")
        found.append(schema.table(open_table(path)).table)
        with path.open(encoding="utf-8", newline="") as file:
            assert found[-1].n == len(list(csv.reader(file))) - 1
    assert all(distance(found[0], other) <= 2 for other in found[1:])


def test_line_ends_of_one_record_change_no_other_one(tmp_path: Path) -> None:
    schema = Schema([Categories("c", ["1", "2"], other="other")], Label("y", 1, 0))
    found = []
    for end in ("\n", "\r\n"):
        path = tmp_path / f"{len(end)}.csv"
        path.write_text("c,y\n" + "1,1\n" * 4 + f"2,0{end}" + "1,0\n" * 4, encoding="utf-8", newline="")
        try:
            found.append(schema.table(open_table(path)).table)
        except ValueError as refused:
            assert "cannot be read" in str(refused)  # noqa: PT017
    assert not found[1:] or distance(*found) <= 2


def test_predictions_do_not_depend_on_other_records(tmp_path: Path) -> None:
    run = ps.exponential(
        ps.Problem(LAB.table(laboratory(3.0)).table, ps.SparsePoints(2, 1, 1, 1)), epsilon=50.0, random_state=1
    )
    content = json.loads(run.release.to_json())
    content["model"] |= {"schema": LAB.to_dict(), "weights": [1, 0], "intercept": True}
    content["model"]["features"] = list(LAB.features)
    (tmp_path / "release.json").write_text(json.dumps(content), encoding="utf-8")
    scores = []
    for changed in (1.0, 1.5):
        pq.write_table(laboratory(changed), tmp_path / "a.parquet")
        arguments = [str(tmp_path / "a.parquet"), "--release", str(tmp_path / "release.json")]
        result = CliRunner().invoke(app, ["predict", *arguments, "--out", str(tmp_path / "scored.csv"), "--overwrite"])
        assert result.exit_code == 0, result.output
        scores.append(pd.read_csv(tmp_path / "scored.csv")["score"].to_numpy())
    assert np.array_equal(*scores)
    assert not scores[0].any()


def test_neighbours_differ_where_they_should() -> None:
    """What the property is tested on: one record differs, and tables in which it does are at distance 2."""
    schema, one, other = drawn(3, columns_of(("integer", "text"), 4))
    frames = [table.to_pandas().drop(index=TARGET) for table in (one, other)]
    pd.testing.assert_frame_equal(*frames, check_dtype=False)
    assert distance(schema.table(one).table, schema.table(other).table) == 2
