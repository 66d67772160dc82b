"""How long a card in stages takes on made-up tables, by columns, records and ε, after compilation.

    python benchmarks/stages.py            # CPU and wall seconds of a whole run, by the public rules for stages and features

Threshold columns of correlated normals and a noisy rule, as in `wide.py`: flat and dense, so that no column stands out.
"""

from __future__ import annotations

import time

import numpy as np

import privsolve as ps


def table_of(columns: int, records: int, seed: int = 0) -> ps.PatternTable:
    """Five thresholds of each of `columns / 5` correlated normals, and a label that a few of them explain in part."""
    rng = np.random.default_rng(seed)
    variables = max(1, columns // 5)
    values = rng.normal(size=(records, variables)) + rng.normal(size=(records, 1))
    features = (values[:, :, None] >= np.array([-1.5, -0.7, 0.0, 0.7, 1.5])).reshape(records, -1)[:, :columns]
    score = values[:, : min(6, variables)].sum(axis=1) / 3 + rng.logistic(size=records)
    rows = np.column_stack([features, np.ones(records, dtype=bool)]).astype(np.int64)
    positive = score > 0
    return ps.PatternTable(rows, positive.astype(np.int64), (~positive).astype(np.int64))


def measure(columns: int, records: int, epsilon: float) -> str:
    """One run, as text."""
    table = table_of(columns, records)
    count = ps.number_of_stages(epsilon, records)
    plan = ps.Stages.of(table.dim, count, max_features=None, max_points=3, intercept=(-8, 8))
    problem = ps.Problem(table, plan.domain, ps.BrierLoss())
    wall, cpu = time.perf_counter(), time.process_time()
    run = ps.staged(problem, epsilon, plan, random_state=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    opened = sum(stage["opened"]["summed"] for stage in run.diagnostics.values["stages"])
    shape = f"{count} × {plan.domains[0].max_features}"
    return f"{columns:>7} {records:>8,} {epsilon:>5g} {shape:>10} {cpu:>8.2f} {wall:>8.2f} {opened:>8,}"


def main() -> None:
    """Print the table."""
    measure(5, 50, 1.0)  # compiles
    print(f"{'columns':>7} {'records':>8} {'ε':>5} {'stages':>10} {'CPU s':>8} {'wall s':>8} {'summed':>8}")
    for columns in (20, 33, 50, 100, 200, 500):
        for records in (500, 5_000, 50_000):
            for epsilon in (0.1, 1.0, 3.0):
                print(measure(columns, records, epsilon), flush=True)


if __name__ == "__main__":
    main()
