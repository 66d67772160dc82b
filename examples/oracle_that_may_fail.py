"""What it costs to have the guarantee cover an oracle that gives up: a random part of the records, of Adult.

    python examples/oracle_that_may_fail.py

An oracle with a limit on its work may fail on one data set and not on its neighbour, and that it failed is then a fact about a
record. Here each record is kept with probability 1/K, by exact coins, before anything else is done. A record has no say
unless it is kept, so whatever follows, a release, a failure or the time it took, is (0, 1/K)-DP (theory, section 15.4). The
price is that the model is chosen from n/K records.
"""

import secrets

import numpy as np

import privsolve as ps

EPSILON, NODES, PARTS, RUNS = 1.0, 300, (1, 10, 100, 1000), 10


def one_part(table: ps.PatternTable, parts: int) -> ps.PatternTable:
    """Each record with probability `1 / parts`."""

    def kept(counts: np.ndarray) -> list[int]:
        return [sum(secrets.randbelow(parts) == 0 for _ in range(count)) for count in counts.tolist()]

    return ps.PatternTable(table.features, kept(table.positives), kept(table.negatives), names=table.names)


def main() -> None:
    table = ps.datasets.adult_paper(seed=0)
    oracle = ps.oracles.TreeOracle(node_limit=NODES)
    print(
        f"{table.n:,} records, OPDisc with epsilon {EPSILON:g}, an oracle of at most {NODES} nodes, {RUNS} runs each\n"
    )
    print("    K   records   delta of release or failure   failures   accuracy on all records (curator only)")
    for parts in PARTS:
        accuracies, failures, sizes = [], 0, []
        for _ in range(RUNS):
            part = one_part(table, parts)
            sizes.append(part.n)
            try:
                run = ps.opdisc(
                    ps.Problem(part, ps.IntegerBall(table.dim, 23)), EPSILON, adjacency="add-remove", oracle=oracle
                )
                accuracies.append(table.accuracy(run.release.model.weights))
            except ps.WorkLimitReached:
                failures += 1
        says = f"{np.mean(accuracies):.3f}" if accuracies else "-"
        delta = "not covered" if parts == 1 else f"{1 / parts:g}"
        print(f"{parts:5} {np.mean(sizes):9,.0f} {delta:>29} {failures:6} of {RUNS}   {says}")
    print("\nA delta that means something, such as 1e-6, needs a million parts: more than there are records.")


if __name__ == "__main__":
    main()
