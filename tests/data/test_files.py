"""Data files that are odd, foreign or hostile: each read once and as itself, or refused without showing a value."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli import app
from privsolve.data import Bins, Label, Schema
from privsolve.data.duckdb import PREFIX, private_folder
from privsolve.data.tables import open_table

SCHEMA = Schema([Bins("a", [2], "intervals")], Label("y", 1, 0))
SECRET = "PATIENT17"
TABLE = pa.table({"a": [1.0, 3.0] * 20, "y": [1, 0] * 20})


def write(path: Path, records: int) -> None:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        path.write_text("a,y\n" + "1,1\n" * records, encoding="utf-8")
    else:
        pq.write_table(pa.table({"a": [1.0] * records, "y": [1] * records}), path)


def records(source: Any) -> int:
    return SCHEMA.table(open_table(source)).table.n


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "name", ["data[1]", "part*", "wh?t", "[a-z]x", "**", "{a,b}", "it's", "back\\slash", "year=2020/a", "[!a]"]
)
def test_a_name_stands_for_the_file_of_that_name(name: str, ending: str, tmp_path: Path) -> None:
    write(tmp_path / f"{name}.{ending}", 3)
    for decoy in ("data1", "part1", "what", "bx", "a", "b"):
        write(tmp_path / f"{decoy}.{ending}", 100)
    assert records(tmp_path / f"{name}.{ending}") == 3


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_glob_reads_every_file_once(ending: str, tmp_path: Path) -> None:
    for size, name in ((1, "part*"), (2, "part1"), (4, "part[1]"), (8, "other")):
        write(tmp_path / f"{name}.{ending}", size)
    assert records(tmp_path / f"p*.{ending}") == 1 + 2 + 4


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_that_would_count_twice_is_refused(link: Any, tmp_path: Path) -> None:
    write(tmp_path / "part1.csv", 3)
    link(tmp_path / "part1.csv", tmp_path / "part2.csv")
    with pytest.raises(ValueError, match=r"part2\.csv: is the same file as .*part1\.csv.*leave one out"):
        open_table(tmp_path / "part*.csv")
    assert records(tmp_path / "part2.csv") == 3


def test_folder_names_add_no_columns(tmp_path: Path) -> None:
    write(tmp_path / "a=9" / "x.parquet", 3)
    (tmp_path / "a=9" / "x.csv").write_text("a,y\n1,1\n", encoding="utf-8")
    for ending in ("parquet", "csv"):
        found = SCHEMA.table(open_table(tmp_path / "a=9" / f"x.{ending}"))
        assert found.table.features.tolist() == [[1, 0, 1]]


TYPES = {
    "fractions as integers": (pa.array([1, 2]), pa.array([2.7, 0.2])),
    "numbers as flags": (pa.array([True, False]), pa.array([300, 7])),
    "texts as numbers": (pa.array([1, 2]), pa.array([SECRET, "1"])),
    "narrower decimals": (pa.array([1, 2], pa.decimal128(9, 2)), pa.array([1, 2], pa.decimal128(9, 0))),
}


@pytest.mark.parametrize("case", TYPES)
@pytest.mark.parametrize("turned", [False, True])
def test_parquet_files_of_different_types_are_refused(case: str, turned: bool, tmp_path: Path) -> None:
    for i, column in enumerate(TYPES[case][:: -1 if turned else 1]):
        pq.write_table(pa.table({"a": column, "y": [1, 0]}), tmp_path / f"part{i}.parquet")
    with pytest.raises(ValueError, match=r"part1\.parquet: its columns or their types differ from those of .*part0"):
        open_table(tmp_path / "part*.parquet")


def test_parquet_files_of_different_columns_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0], "y": [1]}), tmp_path / "part0.parquet")
    for other in ({"y": [1], "a": [1.0]}, {"a": [1.0]}, {"a": [1.0], "y": [1], "z": [1]}):
        pq.write_table(pa.table(other), tmp_path / "part1.parquet")
        with pytest.raises(ValueError, match=r"part1\.parquet: its columns"):
            open_table(tmp_path / "part*.parquet")


DAMAGED = {
    "a value too many": f"a,y\n1,1,{SECRET}\n",
    "a value too few": f"a,y\n{SECRET}\n",
    "an open quote": f'a,y\n1,"{SECRET}\n',
    "a quote in the middle": f'a,y\n"{SECRET}"x,1\n',
    "not UTF-8": f"a,y\n{SECRET}\udce4,1\n",
    "a long line": f"a,y\n{SECRET * 300_000},1\n",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_errors_show_no_value(case: str, tmp_path: Path) -> None:
    """The line is named, by the library and by every command that reads."""
    path = tmp_path / "a.csv"
    path.write_text(DAMAGED[case], encoding="utf-8", errors="surrogateescape")
    SCHEMA.save(tmp_path / "s.toml")
    with pytest.raises(ValueError, match=r"^the data cannot be read: line 2 ") as raised:
        records(path)
    assert SECRET not in str(raised.value)
    for command in (
        ["schema", "check", str(tmp_path / "s.toml"), str(path)],
        ["schema", "draft", str(path), *f"--label y --positive 1 --epsilon 1 --out {tmp_path}/draft.toml".split()],
        ["fit", str(path), *f"--model short --schema {tmp_path}/s.toml --epsilon 1 --out {tmp_path}/out".split()],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        assert SECRET not in result.output
        assert len(result.stderr.splitlines()) == 1
        assert "line 2 " in result.stderr


def test_failed_casts_show_no_value(tmp_path: Path) -> None:
    """Also where a user's own table fails in the engine."""
    pq.write_table(pa.table({"a": [SECRET], "y": [1]}), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="a value does not fit the type of its column") as raised:
        SCHEMA.table(table.mutate(a=table.a.cast("int64")))
    assert SECRET not in str(raised.value)


def database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_only_tables_of_a_foreign_database_are_read(tmp_path: Path) -> None:
    """Views and computed columns run what a stranger wrote: without end, or into any amount of memory."""
    write(tmp_path / "private.csv", 3)
    hostile = database(
        tmp_path / "a.duckdb",
        f"CREATE VIEW comma AS SELECT * FROM read_csv('{tmp_path}/private.csv')",
        "CREATE VIEW endless AS WITH RECURSIVE t AS (SELECT 1 a, 1 y UNION ALL SELECT a, y FROM t) SELECT * FROM t",
        "CREATE VIEW large AS SELECT repeat('u', 1000000000) a, 1 y FROM range(100)",
        "CREATE TABLE honest AS SELECT 1.0 a, 1 y",
        "CREATE VIEW of_honest AS SELECT * FROM honest",
        "CREATE TABLE computed (y INT, a VARCHAR GENERATED ALWAYS AS (repeat('u', 1000000000)))",
    )
    for view in ("comma", "endless", "large", "of_honest"):
        with pytest.raises(ValueError, match=r"has no table .*copy the rows into a table first"):
            records(f"{hostile}::{view}")
    with pytest.raises(ValueError, match="columns that are computed"):
        records(f"{hostile}::computed")
    assert records(f"{hostile}::honest") == 1
    engine = open_table(f"{hostile}::honest").get_backend()
    for statement in (
        "LOAD httpfs",
        "INSTALL httpfs",
        f"ATTACH '{tmp_path}/b.duckdb'",
        "SET enable_external_access=true",
    ):
        with pytest.raises(duckdb.Error):
            engine.raw_sql(statement)


def test_variables_of_the_program_are_no_tables(tmp_path: Path) -> None:
    leaked = pa.table({"a": [1.0], "y": [1]})
    assert leaked.num_rows == 1
    path = database(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT 1 y")
    engine = open_table(f"{path}::t").get_backend()
    with pytest.raises(duckdb.Error):
        engine.raw_sql("SELECT * FROM leaked")


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(ValueError, match="is not a regular file"):
            open_table(tmp_path / f"{name}.csv")
        with pytest.raises(ValueError, match=rf"{name}\.toml: is not a regular file"):
            Schema.load(tmp_path / f"{name}.toml")
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(ValueError, match=r"large\.toml: has more than 64 MB"):
        Schema.load(tmp_path / "large.toml")


def test_a_header_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a" * 3_000_000)
    with pytest.raises(ValueError, match="must be a header"):
        open_table(tmp_path / "a.csv")


SPILL = """
import sys, time, tempfile
from pathlib import Path
tempfile.tempdir = sys.argv[1]
from privsolve.data.tables import open_table
engine = open_table(sys.argv[2]).get_backend()
engine.raw_sql("SET memory_limit = '40MB'")
print("ready", flush=True)
if sys.argv[3] == "spill":
    rows = "SELECT i, 'PATIENT17' || i t FROM range(3000000) r(i)"
    engine.raw_sql(f"CREATE TEMP TABLE big AS {rows}")
    print("spilled", flush=True)
    time.sleep(60)
"""


def test_the_engine_prints_nothing(tmp_path: Path) -> None:
    """Where Python is used as a prompt, DuckDB draws a progress bar on standard output for what takes some seconds."""
    write(tmp_path / "a.csv", 1)
    show = (
        "print(open_table('a.csv').get_backend().raw_sql(\"SELECT current_setting('enable_progress_bar')\").fetchone())"
    )
    code = f"from privsolve.data.tables import open_table; {show}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "(False,)\n"


def started(folder: Path, table: Path, what: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", SPILL, str(folder), str(table), what]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_spilled_rows_are_private_and_do_not_outlive_the_next_start(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1)
    (scratch := tmp_path / "scratch").mkdir()
    (scratch / "of somebody else").mkdir()
    killed = started(scratch, tmp_path / "a.csv", "spill")
    assert killed.stdout is not None
    assert [killed.stdout.readline().strip() for _ in range(2)] == ["ready", "spilled"]
    (folder,) = scratch.glob(f"{PREFIX}*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir())  # it did spill, and nowhere else
    neighbour = started(scratch, tmp_path / "a.csv", "no")
    neighbour.communicate(timeout=60)
    assert folder.exists()  # in use
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert folder.exists()  # left behind
    started(scratch, tmp_path / "a.csv", "no").communicate(timeout=60)
    assert [path.name for path in scratch.iterdir()] == ["of somebody else"]


def test_folders_of_others_and_links_are_left_alone(tmp_path: Path) -> None:
    (target := tmp_path / "precious").mkdir()
    (target / "file").write_text("x", encoding="utf-8")
    (tmp_path / f"{PREFIX}link").symlink_to(target)
    (tmp_path / f"{PREFIX}abandoned").mkdir()
    with private_folder(tmp_path) as one, private_folder(tmp_path) as other:
        assert one != other
        assert one.exists()
    assert (target / "file").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}link", "precious"]


INTERRUPTED = """
import os, signal, sys, threading, time
import ibis
import privsolve as ps
from privsolve.cli import app
from privsolve.data import codes
run, begin = codes.run, ibis.Table.to_pyarrow
def run_and_interrupt(query):
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    table = query.get_backend().table("t")
    return run(table.cross_join(table.view()).count().as_table())
def begin_later(query, **options):
    time.sleep(float(sys.argv[1]))
    return begin(query, **options)
codes.run, ibis.Table.to_pyarrow = run_and_interrupt, begin_later
app(sys.argv[2:])
"""


@pytest.mark.parametrize(
    "command", [["schema", "check"], ["fit", "--model", "short", "--epsilon", "1", "--out", "out", "--schema"]]
)
@pytest.mark.parametrize("delay", [0, 2])
def test_an_interrupt_while_the_engine_reads_ends_in_one_line(command: list[str], delay: int, tmp_path: Path) -> None:
    """A real signal, a second after a query was asked for that would take hours; also if the query begins only then."""
    database(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT i::DOUBLE a, 1 y FROM range(10000000) t(i)")
    SCHEMA.save(tmp_path / "s.toml")
    arguments = [sys.executable, "-c", INTERRUPTED, str(delay), *command, "s.toml", "a.duckdb"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr == "interrupted: nothing was released\n"
    assert done.returncode == 130
    assert not (tmp_path / "out").exists()


def test_predict_leaves_no_copy_behind(tmp_path: Path) -> None:
    """Not even one that a killed process left, and other people cannot read it meanwhile; from every kind of file."""
    made = ps.exponential(ps.Problem(SCHEMA.table(TABLE).table, ps.SparsePoints(3, 1, 1, 1)), 5.0, random_state=1)
    content = json.loads(made.release.to_json())
    content["model"] |= {"schema": SCHEMA.to_dict(), "intercept": True, "features": list(SCHEMA.features)}
    (tmp_path / "release.json").write_text(json.dumps(content), encoding="utf-8")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    database(tmp_path / "a.duckdb", f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/a.parquet'")
    (tmp_path / "out" / f"{PREFIX}left").mkdir(parents=True)
    (tmp_path / "out" / f"{PREFIX}left" / "table.csv").write_text(SECRET, encoding="utf-8")
    for source in ("a.parquet", "a.duckdb"):
        for name in ("scored.csv", "scored.parquet"):
            options = ["--release", f"{tmp_path}/release.json", "--out", f"{tmp_path}/out/{name}", "--overwrite"]
            result = CliRunner().invoke(app, ["predict", str(tmp_path / source), *options])
            assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["scored.csv", "scored.parquet"]


def test_releases_that_are_pipes_or_huge_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for name in ("pipe.json", "zero.json"):
        result = CliRunner().invoke(app, ["show", str(tmp_path / name)])
        assert result.exit_code == 2
        assert "is not a regular file" in result.stderr


@pytest.mark.parametrize("wrong", [5, b"a,b", ["a", "b"], True, object()])
def test_what_is_no_path_and_no_header_is_named(wrong: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="header must be a line with the names of the columns"):
        open_table(tmp_path / "a.csv", header=wrong)
    with pytest.raises(ValueError, match="source must be the path of a file"):
        open_table(wrong)


def test_a_series_is_no_table() -> None:
    for use in (SCHEMA.table, SCHEMA.encode, SCHEMA.unread):
        with pytest.raises(TypeError, match=r"data must be a pandas, Polars or Arrow table.*got Series"):
            use(pd.Series([1.0], name="a"))


ENDLESS = range(10**12)


@pytest.mark.parametrize(
    "use",
    [
        lambda: ps.PatternTable.from_records(ENDLESS, [1]),
        lambda: ps.PatternTable([[1]], ENDLESS, [1]),
        lambda: ps.PatternTable([[1]], [1], [1], ENDLESS),
        lambda: ps.DiscreteProblem(ps.FiniteSet([[0], [1]]), ENDLESS, bound=1),
        lambda: ps.LinearProblem(ENDLESS, ps.Permutations(2), 1),
        lambda: ps.FiniteSet(ENDLESS),
        lambda: ps.Categories("a", ENDLESS),
        lambda: Schema(ENDLESS),
        lambda: SCHEMA.positive(ENDLESS),
    ],
)
def test_more_entries_than_memory_holds_are_refused_before_they_are_gone_through(use: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="too many to hold in memory"):
        use()


@pytest.mark.parametrize("key", ["a", '"a b"', "'a'", '"\\""', '""'])
@pytest.mark.parametrize(
    "form", ["{key} = 1", "[{key}]", "[[ {key} ]]", "x = {{ y = 1, {key} = 1 }}", "a = 1\n{key} = 1"]
)
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(key: str, form: str) -> None:
    """A parser takes memory by the square of their number: 40 kB of them took 2.5 GB."""
    with pytest.raises(ValueError, match="has a key of more than 8 parts"):
        Schema.from_toml(form.format(key=" . ".join([key] * 20_000)))
    SCHEMA.from_toml(SCHEMA.to_toml())
