"""What drafting a schema privately costs: test accuracy beside a schema written by hand.

    PYTHONPATH=src:benchmarks python benchmarks/drafts.py --model tree --shares 0.1 0.25 0.5 > drafts.csv

One line per run: data set, model, total epsilon, schema, split, test accuracy, features. The data sets are those of `peers`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import privsolve as ps
from peers import datasets

DELTA = 1e-6


def frame_of(table: datasets.Table, rows: np.ndarray) -> object:
    """The columns that the schema by hand uses, and the label."""
    names = [column.column for column in table.schema.columns]
    return table.frame[names].iloc[rows].reset_index(drop=True).assign(label=table.labels[rows])


def schema_of(kind: str, table: datasets.Table, train: object, epsilon: float, seed: int) -> tuple[ps.Schema, float]:
    """A schema, and what is left of epsilon."""
    label = table.schema.label
    if kind == "by hand":
        return table.schema, epsilon
    share = float(kind)
    made = ps.private_draft(train, label, share * epsilon, DELTA, random_state=1000 + seed)
    return made.schema, (1 - share) * epsilon


def accuracy(model: str, schema: ps.Schema, epsilon: float, train: object, test: object, seed: int) -> float:
    """On the test records."""
    if model == "tree":
        estimator = ps.PrivateTreeClassifier(epsilon, depth=3, schema=schema, random_state=seed)
    else:
        estimator = ps.PrivateShortCard(epsilon, max_features=3, schema=schema, random_state=seed)
    estimator.fit(train.drop(columns="label"), train["label"])
    return float((estimator.predict(test.drop(columns="label")) == test["label"]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["compas", "german", "breast_cancer", "adult"])
    parser.add_argument("--model", default="tree", choices=["tree", "card"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--shares", nargs="+", default=["0.1", "0.25", "0.5"])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    print("data,model,epsilon,schema,split,accuracy,features,cpu seconds", flush=True)
    for name in options.data:
        table = datasets.load(name)
        for seed in range(options.splits):
            train, test = (frame_of(table, rows) for rows in datasets.split(table, seed))
            for epsilon in options.epsilons:
                for kind in ("by hand", *options.shares):
                    start = time.process_time()
                    schema, left = schema_of(kind, table, train, epsilon, seed)
                    found = accuracy(options.model, schema, left, train, test, seed)
                    spent = time.process_time() - start
                    line = (
                        name,
                        options.model,
                        f"{epsilon:g}",
                        kind,
                        seed,
                        f"{found:.4f}",
                        schema.dim - 1,
                        f"{spent:.1f}",
                    )
                    print(*line, sep=",", flush=True)


if __name__ == "__main__":
    main()
