"""A full scorecard where the outcome is rare and records are many, beside logistic regression without privacy.

    PYTHONPATH=benchmarks python benchmarks/rare_outcomes.py

350,000 made-up hospital stays train, as many test; δ = 1e-6, add-remove, a draw for each seed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import privsolve as ps
from peers.datasets import hospital


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=350_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--seeds", type=int, default=3)
    said = parser.parse_args()
    table = hospital(2 * said.records, level=-5.7)
    train, test = table.frame[: said.records], table.frame[said.records :]
    labels, truth = table.labels[: said.records], table.labels[said.records :]
    print(f"{said.records:,} training records, {labels.mean():.2%} positive; {truth.mean():.2%} of the test records\n")
    print("| model | test AUC | mean risk / share of positives | CPU s |\n|---|---|---|---|")

    def line(name: str, risks: np.ndarray, seconds: float) -> None:
        auc = roc_auc_score(truth, risks)
        print(f"| {name} | {auc:.3f} | {risks.mean() / truth.mean():.3f} | {seconds:.1f} |", flush=True)

    for epsilon in said.epsilons:
        for seed in range(said.seeds):
            start = time.process_time()
            card = ps.PrivateScorecard(epsilon, schema=table.schema, adjacency="add-remove", random_state=seed)
            card.fit(train, labels)
            spent = time.process_time() - start
            line(f"scorecard, ε = {epsilon:g}, seed {seed}", card.predict_proba(test)[:, 1], spent)
    start = time.process_time()
    plain = LogisticRegression(max_iter=1000).fit(table.schema.encode(train), labels)
    spent = time.process_time() - start
    line("logistic regression, no privacy", plain.predict_proba(table.schema.encode(test))[:, 1], spent)


if __name__ == "__main__":
    main()
