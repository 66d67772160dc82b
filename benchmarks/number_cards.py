"""A full scorecard for a number beside ridge regression without privacy and the mean.

    python benchmarks/number_cards.py

Test R² and mean absolute error, the mean of the seeds; δ = 1e-6 for the card, replace. Both get the same schema; ridge
regression gets its yes/no features. 30% of the diabetes records are the test part; made-up tables have 5,000 fresh records.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score

import privsolve as ps

TESTED = 5_000
CLINICAL = {"age": [35, 45, 55, 65], "sex": [1.5], "bmi": [22, 25, 28, 32], "bp": [85, 95, 105], "s1": [160, 190, 220]}
BLOOD = {"s2": [90, 115, 140], "s3": [40, 50, 60], "s4": [3, 4, 5], "s5": [4.2, 4.6, 5.0], "s6": [80, 90, 100]}
Table = tuple[str, ps.Schema, tuple[float, float], pd.DataFrame, np.ndarray, int]


def tables(seed: int) -> Iterator[Table]:
    """Name, schema, bounds of the outcome, features, outcomes, and how many of the records train."""
    draw = np.random.default_rng(seed)
    frame, outcome = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    order = draw.permutation(len(frame))
    schema = ps.Schema([ps.Bins(name, cuts) for name, cuts in (CLINICAL | BLOOD).items()])
    yield "diabetes, 309", schema, (0, 400), frame.iloc[order].reset_index(drop=True), outcome.to_numpy()[order], 309
    schema = ps.Schema([ps.Bins(f"x{j}", [0.2, 0.4, 0.6, 0.8]) for j in range(8)])
    for n in (2_000, 20_000):
        x, noise = draw.random((n + TESTED, 8)), draw.standard_normal(n + TESTED)
        signal = x @ [4, 3, 2, 2, 1, 1, 0, 0]
        part = 6 * (x[:, 0] > 0.35) * (x[:, 1] > 0.55) + 5 * (x[:, 0] <= 0.35) * x[:, 2] + 2 * x[:, 3]
        frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(8)])
        yield f"additive, {n:,}", schema, (-5, 20), frame, signal + noise, n
        yield f"skewed cost, {n:,}", schema, (0, 20_000), frame, 1000 * np.exp(signal / 4 - 1 + 0.7 * noise), n
        yield f"interaction, {n:,}", schema, (-5, 15), frame, part + noise, n


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(parser.parse_args().seeds):
        for name, schema, (low, high), x, y, n in tables(seed):
            models = {"mean": np.full(len(y) - n, y[:n].mean())}
            features = schema.encode(x)
            models["ridge, no privacy"] = Ridge(1.0).fit(features[:n], y[:n]).predict(features[n:])
            for epsilon in (0.3, 1.0, 3.0):
                stated = {"low": low, "high": high, "schema": schema, "random_state": seed}
                card = ps.PrivateScorecardRegressor(epsilon, **stated).fit(x[:n], y[:n])
                models[f"card, ε = {epsilon:g}"] = card.predict(x[n:])
            for model, guess in models.items():
                found.setdefault((name, model), []).append((r2_score(y[n:], guess), mean_absolute_error(y[n:], guess)))
    names, models = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    print("| model | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for model in models:
        means = [np.mean(found[name, model], axis=0) for name in names]
        print(f"| {model} | " + " | ".join(f"{r2:.2f} ({float(f'{e:.3g}'):,g})" for r2, e in means) + " |")


if __name__ == "__main__":
    main()
