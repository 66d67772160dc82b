"""From files to a private scorecard: how much processor time that takes beside DuckDB's own GROUP BY of the same columns.

    python benchmarks/tables.py --millions 10

DuckDB makes the rows from Adult, sampled with replacement and jittered, as Parquet and as CSV, in a folder that is deleted
at the end; that happens in a process of its own. All times are processor
seconds of all threads, one after the other in one run: other work on the machine disturbs them less than times by the
clock. `GROUP BY` is DuckDB's own query of the raw columns that the schema uses, types as DuckDB finds them; the pattern
table is the whole path from the file; the predictions are those of a card, written to a Parquet file; the draft is a
private one of all columns. The release is one exact draw of the exponential mechanism at epsilon 1, evaluated on a fifth of
the records. Before all of that a table is read and a release is made of the embedded data: the first ones load libraries
and compile.
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

import privsolve as ps
from privsolve.cards.scoring import with_predictions
from privsolve.data import Bins, Categories, Category, Label, Schema
from privsolve.data.duckdb import MEMORY_LIMIT
from privsolve.data.tables import open_table
from privsolve.evaluation import MeasuredOn
from privsolve.evaluation.split import split
from privsolve.learn.evaluating import Counted, evaluate_tables
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
    """Write the Parquet files, and the same rows as CSV."""
    frame = ps.datasets.adult().drop(columns="split").reset_index(names="id")
    with duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{MEMORY_LIMIT}'; SET preserve_insertion_order = false")
        engine.register("frame", frame)
        engine.execute("CREATE TABLE adult AS SELECT * FROM frame")
        for first in range(0, rows, ROWS_PER_FILE):
            path = folder / f"rows-{first // ROWS_PER_FILE:04d}.parquet"
            last = min(first + ROWS_PER_FILE, rows)
            engine.execute(MAKE.format(first=first, last=last, people=len(frame), path=path))
        engine.execute(f"COPY (SELECT * FROM '{folder}/rows-*.parquet') TO '{folder}/rows.csv' (HEADER)")


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the processor seconds of all threads."""
    start = time.process_time()
    return run(), time.process_time() - start


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(table: ps.PatternTable) -> ps.Run:
    return ps.exponential(ps.Problem(table, CARDS, schema=SCHEMA), EPSILON, prior=ps.SparsePrior())


def evaluate(run: ps.Run, table: ps.PatternTable) -> ps.Evaluation:
    _, held = split([table], 0.2, Randomness.system())
    return evaluate_tables(run.release.model, Counted(held), EPSILON, MeasuredOn.HELD_OUT, "replace")


def own_group_by(source: str) -> int:
    """DuckDB's own query, with the memory that ours has."""
    assert SCHEMA.label is not None
    names = ", ".join(f'"{column.column}"' for column in (*SCHEMA.columns, SCHEMA.label))
    with duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{MEMORY_LIMIT}'; SET preserve_insertion_order = false")
        query = f"SELECT count(*) FROM (SELECT {names}, count(*) FROM '{source}' GROUP BY ALL)"
        return int(engine.execute(query).fetchall()[0][0])


def predict(source: str, run: ps.Run, folder: Path) -> None:
    model: Any = run.release.model
    with_predictions(open_table(source), model).to_parquet(str(folder / "predictions.out"))


def measure(folder: Path, rows: int) -> None:
    ps.datasets.adult().drop(columns="split").to_parquet(small := folder / "small.parquet")
    run = release(SCHEMA.table(open_table(small)).table)
    encoded = None
    print(f"{rows:,} rows, processor seconds")
    print(f"{'':10} {'GROUP BY':>9} {'table':>7} {'ratio':>6} {'predictions':>12} {'draft':>7}")
    for kind, source in (("Parquet", str(folder / "rows-*.parquet")), ("CSV", str(folder / "rows.csv"))):
        _, own = timed(lambda source=source: own_group_by(source))
        encoded, whole = timed(lambda source=source: SCHEMA.table(open_table(source)))
        assert encoded.table.n == rows
        _, predicting = timed(lambda source=source: predict(source, run, folder))
        _, drafting = timed(
            lambda source=source: ps.private_draft(
                open_table(source), SCHEMA.label, 0.25, 1e-9, leave_out=["id", "fnlwgt"]
            )
        )
        print(f"{kind:10} {own:9.2f} {whole:7.2f} {whole / own:6.2f} {predicting:12.2f} {drafting:7.2f}", flush=True)
    assert encoded is not None
    print(f"{len(encoded.table.rows):,} distinct rows of {SCHEMA.dim} features")
    run, drawing = timed(lambda: release(encoded.table))
    quality, evaluating = timed(lambda: evaluate(run, encoded.table))
    print(f"{'release (exponential mechanism)':40} {drawing:8.2f} s")
    print(f"{'a coin for every record, and evaluation':40} {evaluating:8.2f} s")
    print(f"peak memory, DuckDB's own query included {peak_gigabytes():8.2f} GB")
    print(f"noisy accuracy {quality.cells.accuracy().percent()}")
    print(f"curator only: training accuracy {run.diagnostics.training_accuracy:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, default=10)
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
