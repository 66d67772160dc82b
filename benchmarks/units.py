"""A risk score with one unit, and one whose first stage chooses among several: test records of five tables.

    PYTHONPATH=benchmarks python benchmarks/units.py

Add-remove adjacency, five splits of the data sets of `peers`, one seed each.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss, roc_auc_score

import privsolve as ps
from peers.datasets import exchange

TABLES, EPSILONS = ("additive", "interactions", "compas", "german", "breast_cancer"), (0.3, 1.0)
OFFERED: tuple[float | tuple[float, ...], ...] = (0.5, (0.25, 0.5, 1.0))


def measure(name: str, epsilon: float, units: float | tuple[float, ...]) -> str:
    """Means over the splits, and how often each unit was chosen."""
    figures, chosen = [], Counter[float]()
    for number in range(5):
        data = exchange(name, number)
        model = ps.PrivateScorecard(
            epsilon, objective="risk", schema=ps.Schema.from_toml(data.public.schema), adjacency="add-remove", log_odds=units,
            random_state=0,
        )  # fmt: skip
        model.fit(pd.DataFrame(data.train.raw), data.train.labels.astype(int))
        risks, labels = model.predict_proba(pd.DataFrame(data.test.raw))[:, 1], data.test.labels.astype(int)
        figures.append(
            (roc_auc_score(labels, risks), brier_score_loss(labels, risks), np.mean((risks > 0.5) == labels))
        )
        chosen[model.release_.model.log_odds] += 1
    auc, brier, accuracy = np.mean(figures, axis=0)
    counts = ", ".join(f"{unit:g} × {count}" for unit, count in sorted(chosen.items()))
    offered = f"{units:g}" if isinstance(units, float) else ", ".join(f"{unit:g}" for unit in units)
    return f"| {name} | {epsilon:g} | {offered} | {auc:.3f} | {brier:.3f} | {accuracy:.3f} | {counts} |"


def main() -> None:
    warnings.simplefilter("ignore", ps.PrivacyLeakWarning)
    print("| data | ε | units offered | AUC | Brier | accuracy | chosen |\n|---|---|---|---|---|---|---|")
    for name in TABLES:
        for epsilon in EPSILONS:
            for units in OFFERED:
                print(measure(name, epsilon, units), flush=True)


if __name__ == "__main__":
    main()
