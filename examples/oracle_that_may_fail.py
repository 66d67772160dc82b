"""What it costs to have the guarantee cover an oracle that gives up: a random part of the records, of Adult.

    python examples/oracle_that_may_fail.py

An oracle with a limit on its work may fail on one data set and not on its neighbour, and that it failed is then a fact about a
record. Here each record is kept with probability 1/K, by exact coins, before anything else is done. A record has no say
unless it is kept, so whatever follows, a release, a failure or the time it took, is (0, 1/K)-DP (theory, section 15.4). The
price is that the model is chosen from n/K records.
"""

import secrets
from dataclasses import replace

import numpy as np

import privsolve as ps

EPSILON, NODES, PARTS, RUNS = 1.0, 20_000, (1, 10, 100, 1000), 8


def one_part(table: ps.PatternTable, parts: int) -> ps.PatternTable:
    """Each record with probability `1 / parts`."""

    def kept(counts: np.ndarray) -> list[int]:
        return [sum(secrets.randbelow(parts) == 0 for _ in range(count)) for count in counts.tolist()]

    return replace(table, positives=kept(table.positives), negatives=kept(table.negatives))


def main() -> None:
    table = ps.datasets.adult_paper(seed=0)
    oracle = ps.oracles.TreeOracle(node_limit=NODES)
    print(f"{table.n:,} records, OPDisc with epsilon {EPSILON:g}, an oracle that gives up after {NODES:,} nodes.")
    print("Guarantee: release or failure of a part are (0, 1/K)-DP together, whatever the oracle does.\n")
    print(f"For the curator only: {RUNS} runs each, accuracy on all records")
    print("    K   records      delta   failures   accuracy")
    for parts in PARTS:
        accuracies, sizes = [], []
        for _ in range(RUNS):
            part = one_part(table, parts)
            sizes.append(part.n)
            problem = ps.Problem(part, ps.IntegerBall(table.dim, 23))
            try:
                run = ps.opdisc(problem, EPSILON, adjacency="add-remove", oracle=oracle)
            except ps.WorkLimitReached:
                continue
            accuracies.append(table.accuracy(run.release.model.weights))
        delta = "no cover" if parts == 1 else f"{1 / parts:g}"
        says = f"{np.mean(accuracies):.3f}" if accuracies else "-"
        print(f"{parts:5} {np.mean(sizes):9,.0f} {delta:>10} {RUNS - len(accuracies):5} of {RUNS} {says:>10}")
    print("\nA delta that means something, such as 1e-6, takes a million parts: more than there are records.")


if __name__ == "__main__":
    main()
