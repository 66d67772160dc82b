"""Strict inequalities in both programs: a score of 0 is a mistake for either label.

Run: python examples/errata/strict_inequality.py
"""

import numpy as np

import privsolve as ps


def main() -> None:
    table = ps.datasets.adult_paper(seed=0)
    counts = table.positives + table.negatives
    rng = np.random.default_rng(0)
    weights = rng.integers(-1, 2, size=(table.dim, 2000))
    zero = counts @ (table.score_features @ weights == 0) / table.n
    print(f"Adult, {table.n:,} records, y·<w, x> + c·e > 0")
    print(f"w = 0: all {table.n:,} are mistakes as printed; {int(table.positives.sum()):,} if 0 means negative")
    print(f"random w in {{-1, 0, 1}}^23: {zero.mean():.1%} of the records have score 0 on average")


if __name__ == "__main__":
    main()
