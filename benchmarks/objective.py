"""Time and memory of full scorecards beside scikit-learn's logistic regression and DP-SGD, from 0/1 features to the model.

    python benchmarks/objective.py --cells 10000x10 100000x100 1000000x100

Every fit runs in a process of its own, on one thread. Seconds are CPU seconds after imports; memory is the peak of the process,
the caller's features (one byte each) and the interpreter included. Rows are random, so that nearly all are distinct.
A fit whose arrays alone would be larger than `--most-gb` is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

MODELS = ("scorecard", "logistic regression", "DP-SGD")
CELLS = (
    "10000x10",
    "10000x100",
    "10000x500",
    "100000x10",
    "100000x100",
    "100000x500",
    "1000000x10",
    "1000000x100",
    "1000000x500",
    "10000000x10",
    "10000000x100",
)
BYTES = {"scorecard": 1.5, "logistic regression": 5, "DP-SGD": 18}
"""What a model's arrays take for each feature of a record: one byte is the caller's; DP-SGD has 64-bit numbers beside."""


def records(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Features that are 1 in three records of ten, of which half say something."""
    rng = np.random.default_rng(0)
    features = np.empty((n, columns), dtype=np.int8)
    scores = np.full(n, -1.0)
    for j in range(columns):
        features[:, j] = rng.random(n) < 0.3
        scores += features[:, j] * (rng.normal(0, 3 / columns**0.5) if j % 2 else 0.0)
    return features, rng.random(n) < 1 / (1 + np.exp(-scores))


def fit(model: str, features: np.ndarray, labels: np.ndarray) -> None:
    """One model, ε = 1 and δ = 1e-6 under add-remove where it is private."""
    if model == "logistic regression":
        from sklearn.linear_model import LogisticRegression

        LogisticRegression(max_iter=1000).fit(features.astype(np.float32), labels)
        return
    from privsolve import PatternTable

    dim = features.shape[1]
    table = PatternTable.from_records(features, labels, ranges=[(0, 1)] * dim)
    if model == "scorecard":
        from privsolve.mechanisms.card_points import Options
        from privsolve.mechanisms.objective import Plan, perturbed_card
        from privsolve.privacy.adjacency import Adjacency

        options = Options(np.full(dim, 0.5), np.arange(dim), (False,) * dim)
        perturbed_card(table, Plan(1.0, 1e-6, Adjacency.ADD_REMOVE, dim, dim), options, random_state=0)
    else:
        from privsolve.experiments.dpsgd import Accounting, DPSGDSettings, dp_sgd
        from privsolve.privacy.adjacency import Adjacency

        settings = DPSGDSettings(clip=1.0, rate=1.0, steps=64, learning_rate=3 / table.n)
        dp_sgd(table, Accounting(1.0, 1e-6, Adjacency.ADD_REMOVE), settings, 0)


def measured(model: str, n: int, columns: int) -> tuple[float, float]:
    """CPU seconds and MB of one fit in a process of its own."""
    said = [sys.executable, __file__, "--one", model, str(n), str(columns)]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    found = subprocess.run(said, env=os.environ | one_thread, capture_output=True, text=True, check=True).stdout.split()
    return float(found[0]), float(found[1])


def one(model: str, n: int, columns: int) -> None:
    """A small fit first, so that imports are not measured; then the one that is."""
    from peers.worker import peak_mb

    fit(model, *records(1_000, 5))
    features, labels = records(n, columns)
    start = time.process_time()
    fit(model, features, labels)
    print(time.process_time() - start, peak_mb())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=CELLS, help="RECORDSxCOLUMNS")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--most-gb", type=float, default=2.0)
    said = parser.parse_args()
    if said.one:
        return one(said.one[0], int(said.one[1]), int(said.one[2]))
    print("| records | columns | " + " | ".join(f"{m}, s | MB" for m in said.models) + " |")
    print("|---" * (2 + 2 * len(said.models)) + "|")
    for cell in said.cells:
        n, columns = map(int, cell.split("x"))
        shown = [f"{n:,}", str(columns)]
        for model in said.models:
            if BYTES[model] * n * columns > said.most_gb * 1e9:
                shown += ["-", "-"]
                continue
            seconds, mb = measured(model, n, columns)
            shown += [f"{seconds:.2f}", f"{mb:,.0f}"]
        print(f"| {' | '.join(shown)} |", flush=True)
    return None


if __name__ == "__main__":
    main()
