"""What the public rules of risk scores rest on: spans and numbers of stages on tables that no comparison is made on.

    PYTHONPATH=benchmarks python benchmarks/shapes.py            # some minutes

Mean AUC on other records (and Brier loss, of risks that go on to 3.5 log-odds), add-remove, five splits and two seeds.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

import privsolve as ps
from peers.exchange import Exchange
from peers.harness import exchange_path

SHAPES = ((3.5, 1), (1.5, 1), (3.5, 2), (1.5, 2), (1.5, 3))
LOG_ODDS, SEEDS = 0.5, 2

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def above_quartiles(values: np.ndarray) -> np.ndarray:
    """Each number at its quartiles. Nothing here is private: these tables are for finding rules."""
    columns = [value >= cut for value in values.T for cut in np.unique(np.quantile(value, (0.25, 0.5, 0.75)))]
    return np.array([column for column in columns if 0 < column.mean() < 1], dtype=np.int64).T


@cache
def whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a data set that has no split of its own."""
    if name == "digits, 5 to 9":
        digits = load_digits()
        return (digits.data >= 8).astype(np.int64), (digits.target >= 5).astype(np.int64)
    if name == "wine, first kind":
        wine = load_wine()
        return above_quartiles(wine.data), (wine.target == 0).astype(np.int64)
    if name == "diabetes":
        diabetes = load_diabetes()
        return above_quartiles(diabetes.data), (diabetes.target >= 140).astype(np.int64)
    records, schema = ps.datasets.adult(), ps.datasets.adult_schema()
    telling = ("sex", "married", "marital")
    kept = [i for i, feature in enumerate(schema.features[:-1]) if not any(word in feature for word in telling)]
    return schema.encode(records)[:, kept].astype(np.int64), (records["sex"] == "Female").to_numpy().astype(np.int64)


def split_of(name: str, number: int) -> Split:
    """Training and test records."""
    if name in ("additive", "interactions"):
        data = Exchange.load(exchange_path(name, number))
        parts = [(part.binary.astype(np.int64), part.labels.astype(np.int64)) for part in (data.train, data.test)]
        return *parts[0], *parts[1]
    features, labels = whole(name.partition(" of ")[0])
    records = int(name.partition(" of ")[2] or 0) or 4 * len(labels) // 5
    splitter = StratifiedShuffleSplit(
        1, train_size=records, test_size=min(len(labels) - records, 12_000), random_state=number
    )
    train, test = next(splitter.split(features, labels))
    return features[train], labels[train], features[test], labels[test]


def measured(split: Split, epsilon: float, span: float, stages: int, seed: int) -> tuple[float, float]:
    """AUC and Brier loss of one draw."""
    rows, labels, others, outcomes = split
    table = ps.PatternTable(np.column_stack([rows, np.ones(len(rows), np.int64)]), labels, 1 - labels)
    plan = ps.Stages.of(table.dim, stages, max_features=None, max_points=3, intercept=(-8, 8))
    problem = ps.Problem(table, plan.domain, ps.BrierLoss(LOG_ODDS, span))
    weights = ps.staged(problem, epsilon, plan, adjacency="add-remove", random_state=seed).release.weights
    scores = others @ weights[:-1] + weights[-1]
    risks = 1 / (1 + np.exp(-np.clip(LOG_ODDS * scores, -3.5, 3.5)))
    return roc_auc_score(outcomes, scores), float(np.mean((risks - outcomes) ** 2))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="0.1,0.3,1")
    epsilons = [float(epsilon) for epsilon in parser.parse_args().epsilons.split(",")]
    warnings.simplefilter("ignore", ps.PrivacyLeakWarning)
    print("| data | n·ε |", " | ".join(f"span {span}, {stages} stages" for span, stages in SHAPES), "|")
    print("|---|---|" + "---|" * len(SHAPES))
    names = (
        "wine, first kind",
        "diabetes",
        "sex of 800",
        "digits, 5 to 9",
        "additive",
        "interactions",
        "sex of 5000",
    )
    for epsilon in epsilons:
        for name in names:
            splits = [split_of(name, number) for number in range(5)]
            cells = []
            for span, stages in SHAPES:
                found = [measured(split, epsilon, span, stages, seed) for split in splits for seed in range(SEEDS)]
                cells.append("{:.3f} ({:.3f})".format(*np.mean(found, axis=0)))
            print(f"| {name} | {len(splits[0][1]) * epsilon:,.0f} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
