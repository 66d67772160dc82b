"""How well could one card rank at ε = 1, if many features could be drawn at once? A Markov chain says about how well.

    PYTHONPATH=benchmarks python benchmarks/limit.py            # some minutes

Stages draw four features at a time, exactly. Here a Metropolis chain walks over all cards with at most so many features, with
the law that an exact draw of them all would have (Brier's loss with a span of 1.5, add-remove). It is run until it seems to
have forgotten its start, which nobody has proved, so nothing that it gives could be released: it shows what is left to gain.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from sklearn.metrics import roc_auc_score

import privsolve as ps
from peers.exchange import Exchange
from peers.harness import exchange_path

DATASETS = {"adult": 1, "breast_cancer": 5, "compas": 5, "german": 5}
EPSILON, POINTS, INTERCEPT = 1.0, 4, 16
RECORD_STEPS = 2e9
"""Records looked at per chain: fewer steps where there are more records."""


@njit(cache=True)
def walk(rows, counts, table, kappa, most, log_feature, steps, kept, seed):
    """Cards along a Metropolis chain, from its second half: points change, columns swap, the intercept moves."""
    np.random.seed(seed)
    n, columns = rows.shape
    weights, scores, moved = np.zeros(columns + 1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    found, loss, used = np.zeros((kept, columns + 1), np.int64), math.inf, 0
    for step in range(steps):
        if step >= steps // 2 and (step - steps // 2) % (steps // 2 // kept) == 0:
            found[min((step - steps // 2) // (steps // 2 // kept), kept - 1)] = weights
        a, b = np.random.randint(columns), np.random.randint(columns)
        to_a, to_b, shift = weights[a], weights[b], 0
        move = np.random.randint(10)
        if move < 2:
            shift = 2 * np.random.randint(2) - 1
        elif move < 7:
            b, to_a = a, np.random.randint(-POINTS, POINTS + 1)
            to_b = to_a
        else:
            to_a, to_b = weights[b], weights[a]
        features = used + (to_a != 0) - (weights[a] != 0)
        if a != b:
            features += (to_b != 0) - (weights[b] != 0)
        if features > most or abs(weights[columns] + shift) > INTERCEPT:
            continue
        total = 0.0
        for i in range(n):
            moved[i] = scores[i] + shift + (to_a - weights[a]) * rows[i, a]
            if a != b:
                moved[i] += (to_b - weights[b]) * rows[i, b]
            entry = min(max(moved[i] + table.shape[1] // 2, 0), table.shape[1] - 1)
            total += counts[0, i] * table[0, entry] + counts[1, i] * table[1, entry]
        if math.log(1 - np.random.random()) < kappa * (loss - total) + (features - used) * log_feature:
            weights[a], weights[b], loss, used = to_a, to_b, total, features
            weights[columns] += shift
            scores[:] = moved
    return found


def ranked(name: str, split: int, most: int, log_odds: float, kept: int = 20) -> list[float]:
    """The AUC on the test records of cards along one chain."""
    data = Exchange.load(exchange_path(name, split))
    rows, place = np.unique(data.train.binary.astype(np.int64), axis=0, return_inverse=True)
    counts = np.array([np.bincount(place.ravel(), data.train.labels == label, len(rows)) for label in (1, 0)])
    loss = ps.BrierLoss(log_odds, 1.5)
    table, steps = loss.table.astype(float), int(RECORD_STEPS / (len(rows) + 100))
    cards = walk(rows, counts, table, EPSILON / loss.largest, most, -1.8, steps, kept, split + 1)
    return [roc_auc_score(data.test.labels, data.test.binary @ card[:-1]) for card in cards]


def main() -> None:
    """Print the table."""
    print("| at most | log-odds of a point |", " | ".join(DATASETS), "| mean |")
    print("|---|---|" + "---|" * (len(DATASETS) + 1))
    for log_odds in (0.5, 0.25):
        for most in (4, 8, 12, 100):
            means = [
                np.mean([auc for split in range(splits) for auc in ranked(name, split, most, log_odds)])
                for name, splits in DATASETS.items()
            ]
            print(f"| {most} | {log_odds} |", " | ".join(f"{m:.3f}" for m in [*means, np.mean(means)]), "|", flush=True)


if __name__ == "__main__":
    main()
