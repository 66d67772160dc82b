"""From Parquet files to a private scorecard: how long the engine takes, how long the rest, and how much memory.

    python benchmarks/tables.py --millions 100

DuckDB makes the rows from Adult, sampled with replacement and jittered, in a folder that is deleted at the end; that
happens in a process of its own, so that peak memory is that of the path itself. `bare GROUP BY` groups codes that were
computed and stored before; `encode and GROUP BY` is the engine's query alone; `pattern table` is the whole path from the
files; the release is one exact draw of the exponential mechanism at epsilon 1, evaluated on a fifth of the records; the draft
is a private one of all columns. The first release compiles, so one is made
on the embedded data before.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis

import privsolve as ps
from privsolve.data import Bins, Categories, Category, Label, Schema
from privsolve.data.connection import MEMORY_LIMIT
from privsolve.data.engines import coded, count_keys
from privsolve.data.tables import open_table
from privsolve.evaluation import MeasuredOn
from privsolve.evaluation.split import split
from privsolve.learn.evaluating import evaluate_tables
from privsolve.noise.entropy import Randomness

SCHEMA = Schema(
    [
        Bins("age", [25, 35, 50], "intervals", whole=True),
        Bins("education-num", [9, 10, 13, 14], "intervals", whole=True),
        Bins("hours-per-week", [35, 45], "intervals", whole=True),
        Bins("capital-gain", [1, 5001], "thresholds", whole=True),
        Bins("capital-loss", [1501], "thresholds", whole=True),
        Categories(
            "marital-status", [Category("married", ("Married-civ-spouse", "Married-AF-spouse")), "Never-married"]
        ),
        Categories(
            "occupation",
            [
                Category("exec-or-professional", ("Exec-managerial", "Prof-specialty")),
                Category("sales-technical-protective", ("Protective-serv", "Sales", "Tech-support")),
                Category(
                    "service-or-manual",
                    ("Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv"),
                ),
            ],
        ),
        Categories("sex", ["Male"]),
    ],
    Label("income", ">50K", "<=50K"),
)
CARDS = ps.SparsePoints(dim=SCHEMA.dim, max_features=6, max_points=3, intercept=(-8, 8))
EPSILON = 1.0
ROWS_PER_FILE = 10_000_000

MAKE = """
COPY (
    SELECT a.* REPLACE (
        a.age + (hash(r.i, 1) % 5)::INT - 2 AS age,
        a."hours-per-week" + (hash(r.i, 2) % 5)::INT - 2 AS "hours-per-week",
        CASE WHEN hash(r.i, 3) % 100 = 0 THEN NULL ELSE a.occupation END AS occupation,
        a."capital-gain" + CASE WHEN a."capital-gain" > 0 THEN (hash(r.i, 4) % 100)::INT ELSE 0 END AS "capital-gain"
    )
    FROM range({first}, {last}) r(i) JOIN adult a ON a.id = hash(r.i, 0) % {people}
) TO '{path}' (FORMAT parquet)
"""


def make(folder: Path, rows: int) -> None:
    """Write the Parquet files."""
    frame = ps.datasets.adult().drop(columns="split").reset_index(names="id")
    with duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{MEMORY_LIMIT}'; SET preserve_insertion_order = false")
        engine.register("frame", frame)
        engine.execute("CREATE TABLE adult AS SELECT * FROM frame")
        for first in range(0, rows, ROWS_PER_FILE):
            path = folder / f"rows-{first // ROWS_PER_FILE:04d}.parquet"
            last = min(first + ROWS_PER_FILE, rows)
            engine.execute(MAKE.format(first=first, last=last, people=len(frame), path=path))


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(table: ps.PatternTable) -> ps.Run:
    return ps.exponential(ps.Problem(table, CARDS, schema=SCHEMA), EPSILON, prior=ps.SparsePrior())


def evaluate(run: ps.Run, table: ps.PatternTable) -> ps.Evaluation:
    _, held = split([table], 0.2, Randomness.system())
    return evaluate_tables(run.release.model, held, EPSILON, None, MeasuredOn.HELD_OUT, "replace", None, None)


def measure(folder: Path, rows: int) -> None:
    release(SCHEMA.table(ps.datasets.adult().drop(columns="split")).table)
    files = str(folder / "rows-*.parquet")
    encoded, whole = timed(lambda: SCHEMA.table(open_table(files)))
    run, drawing = timed(lambda: release(encoded.table))
    quality, evaluating = timed(lambda: evaluate(run, encoded.table))
    drafted, drafting = timed(
        lambda: ps.private_draft(open_table(files), SCHEMA.label, 0.25, 1e-9, leave_out=["id", "fnlwgt"])
    )
    peak = peak_gigabytes()

    source = open_table(files)
    assert SCHEMA.label is not None
    keys = coded(source, (*SCHEMA.columns, SCHEMA.label.coded))
    engine: Any = source.get_backend()
    query = ibis.to_sql(count_keys(keys), dialect="duckdb")
    _, engine_time = timed(lambda: engine.raw_sql(query).fetchall())
    stored = folder / "codes.parquet"
    engine.raw_sql(f"COPY ({ibis.to_sql(keys, dialect='duckdb')}) TO '{stored}' (FORMAT parquet)")
    _, bare = timed(lambda: count_keys(open_table(stored)).to_pyarrow())

    assert encoded.table.n == rows
    print(f"{rows:,} rows, {len(encoded.table.features):,} distinct rows of {SCHEMA.dim} features")
    for name, seconds in (
        ("engine: bare GROUP BY of stored codes", bare),
        ("engine: encode and GROUP BY", engine_time),
        ("pattern table from the files", whole),
        ("release (exponential mechanism)", drawing),
        ("a coin for every record, and evaluation", evaluating),
        (f"private draft of {len(drafted.schema.columns)} columns", drafting),
    ):
        print(f"{name:40} {seconds:8.2f} s")
    print(f"{'pattern table / encode and GROUP BY':40} {whole / engine_time:8.2f}")
    print(f"{'(table + release) / encode and GROUP BY':40} {(whole + drawing) / engine_time:8.2f}")
    print(f"{'private draft / encode and GROUP BY':40} {drafting / engine_time:8.2f}")
    print(f"{'peak memory of the process':40} {peak:8.2f} GB")
    print(f"noisy accuracy {quality.cells.accuracy().percent()}")
    print(f"curator only: training accuracy {run.diagnostics.training_accuracy:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, default=100)
    parser.add_argument("--dir", type=Path, help="where to make the temporary folder")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = int(options.millions * 1e6)
    if options.make:
        make(options.make, rows)
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        command = [sys.executable, __file__, "--millions", str(options.millions), "--make", name]
        subprocess.run(command, check=True)
        measure(Path(name), rows)


if __name__ == "__main__":
    main()
