"""Tables in frames, engines and files: all ways to encode them agree, and rows stay where they are."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import privsolve as ps
from privsolve.cards.scoring import with_predictions
from privsolve.data import Bins, Categories, Dates, Label, Number, Schema, codes
from privsolve.data.codes import coded
from privsolve.data.duckdb import ask_in_memory
from privsolve.data.private import counts
from privsolve.data.tables import open_table
from privsolve.models.full_card import FullCard
from schema_data import tables


def same(schema: Schema, data: pa.Table, other: Any) -> None:
    expected, found = schema.table(data), schema.table(other)
    assert found.table == expected.table
    assert found.outside == expected.outside


@settings(max_examples=12, deadline=None)
@given(tables())
def test_every_way_to_encode_gives_the_same_table(drawn: tuple[Schema, pa.Table]) -> None:
    schema, data = drawn
    same(schema, data, ibis.memtable(data))
    same(schema, data, pl.from_arrow(data))
    same(schema, data, data.to_pandas())
    same(schema, data, data.to_pandas(types_mapper=pd.ArrowDtype))


def test_codes_that_need_several_keys_agree() -> None:
    """Six numbers of 2^16 steps leave one 64-bit key."""
    schema = Schema([Number(f"x{i}", 0, 2**16) for i in range(6)], Label("y", True))
    rng = np.random.default_rng(0)
    data = pa.table({f"x{i}": rng.integers(-9, 2**16 + 9, 200) for i in range(6)} | {"y": rng.random(200) < 0.5})
    same(schema, data, ibis.memtable(data))
    assert schema.table(data).table.features.shape == (200, 7)


def test_other_engines_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    """How a value is read is known of DuckDB only."""
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE t (age FLOAT, sex TEXT, label TEXT)")
    table = ibis.sqlite.connect(tmp_path / "a.sqlite").table("t")
    for use in (PEOPLE.table, lambda t: ps.private_draft(t, PEOPLE.label, 1.0), ps.PrivateShortCard(schema=PEOPLE).fit):
        with pytest.raises(ValueError, match="held by sqlite, and only DuckDB is read: export it to Parquet"):
            use(table)


CSV = """ age ,sex, label,note
39, Male,yes,"a, b"
,Female,no,
17.5,,no,"say ""hi"" twice"
old,Other,yes,x
"""
PEOPLE = Schema(
    [Bins("age", [18, 40], "intervals", missing="missing"), Categories("sex", ["Male", "Female"])],
    Label("label", "yes"),
)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_is_read_as_the_schema_says(tmp_path: Path, separator: str) -> None:
    text = CSV if separator == "," else CSV.replace('"a, b"', "ab").replace(",", separator)
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    table = open_table(tmp_path / "people.csv")
    assert list(table.columns) == ["age", "sex", "label", "note"]
    assert all(kind.is_string() for kind in table.schema().types)
    found = PEOPLE.table(table)
    frame = pd.DataFrame(
        {"age": [39, None, 17.5, None], "sex": ["Male", "Female", None, "Other"], "label": ["yes", "no", "no", "yes"]}
    )
    assert found.table == PEOPLE.table(frame).table
    assert found.outside == {"age": {"missing": 2}, "sex": {"other": 1, "missing": 1}, "label": {"other": 2}}


def test_types_are_not_guessed_from_the_records(tmp_path: Path) -> None:
    """A text late in the file, or digits in a column of texts, change nothing else."""
    schema = Schema([Categories("code", ["007", "8"])], Label("y", 1))
    (tmp_path / "a.csv").write_text("code,y\n007,1\n" + "8,0\n" * 30_000 + "late,x\n", encoding="utf-8")
    found = schema.table(open_table(tmp_path / "a.csv").filter(lambda t: t.y != "x"))
    assert found.table.features.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert found.table.negatives.tolist() == [30_000, 0]


def test_globs_gzip_and_duckdb_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [20, 50, 30], "sex": ["Male", "Female", "x"], "label": ["yes", "no", "no"]})
    expected = PEOPLE.table(frame).table
    for i in range(3):
        frame.iloc[i : i + 1].to_parquet(tmp_path / f"part{i}.parquet")
        frame.iloc[i : i + 1].to_csv(tmp_path / f"part{i}.csv.gz", index=False)
    assert PEOPLE.table(open_table(tmp_path / "part*.parquet")).table == expected
    assert PEOPLE.table(open_table(str(tmp_path / "part*.csv.gz"))).table == expected
    import duckdb

    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM '{tmp_path}/part*.parquet'")
    assert PEOPLE.table(open_table(tmp_path / "a.duckdb")).table == expected
    assert PEOPLE.table(open_table(f"{tmp_path}/a.duckdb::people")).table == expected
    with pytest.raises(ValueError, match=r"has no table 'them'; it has people"):
        open_table(f"{tmp_path}/a.duckdb::them")


def test_the_engine_has_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")
    engine = open_table(tmp_path / "a.csv").get_backend()
    limit = engine.raw_sql("SELECT current_setting('memory_limit')").fetchone()[0]
    assert limit in {"953.6 MiB", "1.0 GB"}


def test_only_distinct_rows_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 rows of three kinds are three rows of the only query that is run."""
    data = pa.table(
        {"age": [20, 30, 50, 50] * 2500, "sex": ["Male"] * 10_000, "label": ["yes", "no", "no", "no"] * 2500}
    )
    expr, sizes = ibis.memtable(data), []
    run = ibis.Table.to_pyarrow
    monkeypatch.setattr(ibis.Table, "to_pyarrow", lambda self: sizes.append(len(out := run(self))) or out)
    monkeypatch.setattr(ibis.Table, "execute", lambda self: pytest.fail("rows were fetched"))
    assert PEOPLE.table(expr).table.n == 10_000
    assert sizes == [3]


def test_wrong_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv: no such file"):
        open_table("nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"no such file"):
        open_table(tmp_path / "*.parquet")
    with pytest.raises(ValueError, match=r"must end in \.csv, \.parquet or \.duckdb"):
        open_table("data.xls")
    with pytest.raises(ValueError, match=r"leave out ::t"):
        open_table("data.csv::t")
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="must be a header"):
        open_table(tmp_path / "empty.csv")
    (tmp_path / "latin.csv").write_bytes(b"\xe4ge\n1\n")
    with pytest.raises(ValueError, match=r"latin\.csv: must be text in UTF-8"):
        open_table(tmp_path / "latin.csv")
    (tmp_path / "broken.csv").write_text("age,sex,label\n1,Male,yes,and more\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^the data cannot be read: "):
        PEOPLE.table(open_table(tmp_path / "broken.csv"))
    (tmp_path / "x1.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "x2.csv").write_text("b,a\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="its header differs"):
        open_table(tmp_path / "x*.csv")


def test_wrong_data_is_refused_with_the_name_of_the_column() -> None:
    with pytest.raises(ValueError, match=r"^the data has no column 'sex': its columns are age$"):
        PEOPLE.encode(pd.DataFrame({"age": [1]}))
    with pytest.raises(TypeError, match="got list"):
        PEOPLE.encode([[1, 2]])
    numbers = pa.table({"age": [1], "sex": [2], "label": ["yes"]})
    dates = pa.table({"age": pa.array([0], pa.date32()), "sex": ["Male"], "label": ["yes"]})
    for wrap in (lambda t: t, ibis.memtable, pl.from_arrow, lambda t: t.to_pandas()):
        with pytest.raises(ValueError, match="column 'sex' does not hold texts"):
            PEOPLE.table(wrap(numbers))
        with pytest.raises(ValueError, match="column 'age' holds date"):
            PEOPLE.table(wrap(dates))


def test_labels_that_are_missing_or_unknown_are_refused() -> None:
    data = pa.table({"age": [20, 30, 40], "sex": ["Male"] * 3, "label": ["yes", "maybe", None]})
    strict = Schema(PEOPLE.columns, Label("label", "yes", "no", missing="negative"))
    lenient = Schema(PEOPLE.columns, Label("label", "yes", missing="negative"))
    for wrap in (lambda t: t, ibis.memtable):
        with pytest.raises(ValueError, match=r"label 'label': at least one record has none"):
            PEOPLE.table(wrap(data))
        with pytest.raises(ValueError, match=r"label 'label': at least one record has a value that is neither"):
            strict.table(wrap(data))
        assert lenient.table(wrap(data)).outside["label"] == {"other": 1, "missing": 1}
        assert lenient.table(wrap(data)).table.positives.sum() == 1
        with pytest.raises(ValueError, match="the schema has none"):
            Schema(PEOPLE.columns).table(wrap(data))
        with pytest.raises(ValueError, match="no records"):
            PEOPLE.table(wrap(data.slice(0, 0)))


CARD = Schema(
    [
        Bins("age", [18, 40, 60], missing="missing", missing_values=[-1]),
        Number("dose", 0, 9),
        Dates("since", ["2000-01-01", "2010-01-01"]),
        Categories("sex", ["Male", "Female"], missing_values=["?"]),
    ],
    Label("label", "yes", "no"),
)


def mentions(query: Any) -> dict[str, int]:
    """How often each column of the file stands in what the engine is asked."""
    sql = ibis.to_sql(query, dialect="duckdb")
    return {column.column: sql.count(f'"t0"."{column.column}"') for column in CARD.columns}


def card_file(path: Path) -> Any:
    lines = ["39, 2 ,2005-05-05,Male,yes", " 17,x,1999-01-01,\tFemale ,no", "-1,,,?,no"]
    path.write_text("\n".join(["age,dose,since,sex,label", *lines * 100]), encoding="utf-8")
    return open_table(path)


def test_a_value_is_read_once_however_many_codes_refer_to_it(tmp_path: Path) -> None:
    """Engines compute an expression as often as it stands in a query: codes that did were five times as slow."""
    table = card_file(tmp_path / "t.csv")
    once = mentions(table.select(**{c.column: c.read(table[c.column]) for c in CARD.columns}))
    assert min(once.values()) > 0
    assert mentions(coded(table, CARD.columns)) == {name: 1 + n for name, n in once.items()}  # and as it is
    rule = FullCard(np.arange(CARD.dim), CARD.features, CARD.scales, True, CARD, log_odds=0.5)
    scored = with_predictions(table, rule)
    asked = {entry.column.column for entry in rule.tally.entries if entry.spread}
    assert len(asked) > 2
    assert mentions(scored) == {name: 1 + n * (name in asked) for name, n in once.items()}
    assert scored.count().to_pyarrow().as_py() == 300


def test_a_table_is_one_query_and_a_draft_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them reads the file once: a draft asks for the labels and the number of records, then for all columns."""
    table, asked, run = card_file(tmp_path / "t.csv"), list[str](), codes.run
    (name,) = re.findall(r'"(ibis_read_csv_\w+)"', ibis.to_sql(table, dialect="duckdb"))
    for module in (codes, counts):
        monkeypatch.setattr(
            module, "run", lambda query: asked.append(ibis.to_sql(query, dialect="duckdb")) or run(query), raising=False
        )
    CARD.table(table)
    ps.private_draft(table.rename(x="age", y="sex", z="dose"), CARD.label, 50.0, 1e-6)
    assert [sql.count(name) for sql in asked] == [1, 1, 1]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("age;salary, in EUR, gross, per year;y", ["age", "salary, in EUR, gross, per year", "y"]),
        ('"salary, gross, EUR";age', ["salary, gross, EUR", "age"]),
        ("a, b, c", ["a", "b", "c"]),
        ("a\tb; c", ["a", "b; c"]),
    ],
)
def test_the_separator_is_not_what_stands_in_names(header: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n")
    assert list(open_table(str(tmp_path / "t.csv")).columns) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('age;"salary\n(EUR)";y\n1;2;3\n', "a line break in it: write the header in one line"),
        ("sep=;\na;b\n1;2\n", "delete it"),
        ("a,b\r1,2\r", "ordinary line ends"),
    ],
)
def test_what_is_no_header_is_refused_in_words(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.raises(ValueError, match=words):
        open_table(str(tmp_path / "t.csv"))


FORK = """
import os, sys
import pandas as pd
from privsolve import Bins, Schema
def use():
    Schema([Bins("age", [18])]).encode(pd.DataFrame({"age": [20]}))
use()
for again in (False, True):
    if (child := os.fork()) == 0:
        if again:
            use()
        sys.exit(0)
    print(os.waitpid(child, 0)[1])
use()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
def test_forked_processes_end_and_leave_the_engine_of_their_parent_alone() -> None:
    """An engine that a forked process inherits crashes it at its end, or waits for threads that it does not have."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "0"])


def test_a_failed_question_does_not_stand_in_the_way_of_the_next() -> None:
    with pytest.raises(ValueError, match="the data cannot be read"):
        ask_in_memory(pa.table({"a": [1]}), "SELECT nonsense")
    assert ask_in_memory(pa.table({"a": [1]}), "SELECT a FROM frame")["a"].tolist() == [1]
