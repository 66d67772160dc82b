"""An oracle that gives up, and a guarantee that covers it: release or failure on parts of the records, of Adult.

    python examples/oracle_that_may_fail.py

An oracle with a limit on its work may fail on one data set and not on its neighbour, and that it failed is then a fact about a
record. `ps.release_or_failure` deals the records to parts, solves each, and publishes the answer of one part, or that there is
none: both are covered (theory, section 15.4). The price is that the model is chosen from one part of the records.
"""

import numpy as np

import privsolve as ps

EPSILON, NODES, RUNS = 1.0, 20_000, 8
PLANS = [ps.Parts(100, EPSILON, 1e-3), ps.Parts(250, EPSILON, 1e-4), ps.Parts(2500, EPSILON, 1e-6)]


def problem_of(table: ps.PatternTable) -> ps.Problem:
    """Linear rules with small whole weights."""
    return ps.Problem(table, ps.IntegerBall(table.dim, 23))


def accuracies(table: ps.PatternTable, parts: int, epsilon: float) -> list[float | None]:
    """Of the answers that some parts give, on all records; None for those that fail."""
    found: list[float | None] = []
    rng = np.random.default_rng(0)
    for _ in range(RUNS):
        counts = [rng.binomial(side, 1 / parts) for side in (table.positives, table.negatives)]
        part = ps.PatternTable(table.features, *counts, table.names, table.scales, table.ranges)
        try:
            run = ps.opdisc(
                problem_of(part), epsilon, adjacency="add-remove", oracle=ps.oracles.TreeOracle(node_limit=NODES)
            )
            found.append(table.accuracy(run.release.weights))
        except ps.WorkLimitReached:
            found.append(None)
    return found


def main() -> None:
    table = ps.datasets.adult_paper(seed=0)
    plan, oracle = PLANS[0], ps.oracles.TreeOracle(node_limit=NODES)
    run = ps.release_or_failure(table, problem_of, plan, adjacency="add-remove", oracle=oracle)
    print(f"{table.n:,} records in {plan.count} parts, an oracle that gives up after {NODES:,} nodes.")
    print(f"Published: {run.release.model.describe()}")
    print(f"Guarantee: {run.release.guarantee}\n")
    print(
        f"For the curator only: {run.diagnostics.failed} of {plan.count} parts failed. What parts cost, by {RUNS} of each:"
    )
    print("parts   records in one   epsilon in one   delta      failures   accuracy")
    for count, epsilon, delta in [(1, EPSILON, 0.0), *((p.count, p.part_epsilon, p.delta) for p in PLANS)]:
        found = accuracies(table, count, epsilon)
        rates = [rate for rate in found if rate is not None]
        covered = f"{delta:<8g}" if delta else "no cover"
        says = f"{np.mean(rates):.3f}" if rates else "-"
        print(
            f"{count:5} {table.n / count:16,.0f} {epsilon:16.2f}   {covered} {RUNS - len(rates):6} of {RUNS} {says:>10}"
        )
    print(
        f"\nWhat all of these records give, in one of {PLANS[-1].count:,} parts: {PLANS[-1].count * table.n:,} records."
    )


if __name__ == "__main__":
    main()
