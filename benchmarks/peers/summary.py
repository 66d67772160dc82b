"""From lines of results to means, standard errors, ranks and the goal; pandas in, pandas out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import studentized_range

from peers.registry import ADD_REMOVE, COMPETITORS, EPSILONS, REPLACE

READABLE = 20
"""Numbers that a person can be asked to read."""

KEYS = ["name", "dataset", "split", "epsilon", "adjacency"]
GOALS = ("accuracy", "auc")
OURS, PRIVATE, UNFAIR, PLAIN = "ours", "private", "unfair", "plain"


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One line per run, of those that the registry still has; the last one where a run was repeated."""
    known = {c.name: (c.group, place) for place, c in enumerate(COMPETITORS)}
    runs = pd.DataFrame(rows)
    runs = runs[runs["name"].isin(known)].drop_duplicates(KEYS, keep="last")
    runs["place"] = [known[name][1] for name in runs["name"]]
    return runs.sort_values(["place", "dataset", "adjacency", "epsilon", "split"]).reset_index(drop=True)


def finished(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that gave a model."""
    return runs[runs["status"] == "ok"]


def means(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean, standard error and number of runs for every competitor, data set, ε and adjacency."""
    grouped = finished(runs).groupby(["name", "dataset", "adjacency", "epsilon"], dropna=False, sort=False)[metric]
    return grouped.agg(mean="mean", se="sem", count="count").reset_index()


@dataclass(frozen=True)
class Verdict:
    """One data set and ε: the readable model of ours that comes closest to being level with every private peer.

    `rival` is the peer it is furthest behind (or least ahead of), `gap` how far (positive is behind), `error` the standard
    error of that gap over the splits.
    """

    dataset: str
    epsilon: float
    metric: str
    model: str
    rival: str
    adjacency: str
    ours: float
    theirs: float
    gap: float
    error: float

    @property
    def level(self) -> bool:
        """Whether it is behind nobody by more than one standard error."""
        return self.gap <= self.error

    @property
    def outcome(self) -> str:
        """`"ahead"` or `"behind"` by more than one standard error, or `"level"`."""
        return "behind" if not self.level else "ahead" if -self.gap > self.error else "level"


def verdicts(runs: pd.DataFrame, metric: str) -> list[Verdict]:
    """For every data set and ε where both sides have results."""
    found = (_verdict(runs, metric, d, e) for d in dict.fromkeys(runs["dataset"]) for e in EPSILONS)
    return [verdict for verdict in found if verdict is not None]


def _verdict(runs: pd.DataFrame, metric: str, dataset: str, epsilon: float) -> Verdict | None:
    cell = finished(runs)
    cell = cell[(cell["dataset"] == dataset) & (cell["epsilon"] == epsilon)]
    rivals = _by_split(cell[cell["group"] == PRIVATE], metric)
    candidates = _by_split(cell[cell["group"] == OURS], metric)
    names = [name for name in dict.fromkeys(cell["name"]) if readable(cell, name)]
    worst = []
    for name in names:
        own = [_compare(dataset, epsilon, metric, candidates, name, rival, rivals[rival]) for rival in rivals]
        known = [verdict for verdict in own if verdict is not None]
        if known:
            worst.append(max(known, key=lambda v: v.gap - v.error))
    return min(worst, key=lambda v: v.gap - v.error) if worst else None


SINGLE = {"accuracy": "card or tree, depth 3", "auc": "risk score"}
"""One model of ours per metric, named before looking, for the duels: no choice afterwards helps it."""


def duels(runs: pd.DataFrame, metric: str) -> dict[str, Counter[str]]:
    """How often that one model is ahead of, level with and behind each private peer, over data sets and ε."""
    done = finished(runs)
    found: dict[str, Counter[str]] = {}
    for (dataset, epsilon), cell in done[done["epsilon"].notna()].groupby(["dataset", "epsilon"], sort=False):
        own = _by_split(cell[cell["name"] == SINGLE[metric]], metric)
        for rival, theirs in _by_split(cell[cell["group"] == PRIVATE], metric).items():
            verdict = _compare(dataset, epsilon, metric, own, SINGLE[metric], rival, theirs)
            if verdict is not None:
                found.setdefault(f"{rival[0]} ({rival[1]})", Counter())[verdict.outcome] += 1
    return found


def readable(cell: pd.DataFrame, name: str) -> bool:
    """Whether it is ours and every one of the fitted models has few enough numbers."""
    own = cell[(cell["name"] == name) & (cell["group"] == OURS)]
    return bool(len(own) and (own["numbers"] <= READABLE).all())


def _by_split(cell: pd.DataFrame, metric: str) -> dict[tuple[str, str], pd.Series]:
    return {key: own.set_index("split")[metric] for key, own in cell.groupby(["name", "adjacency"], sort=False)}


def _compare(
    dataset: str, epsilon: float, metric: str, candidates: dict[tuple[str, str], pd.Series], name: str,
    rival: tuple[str, str], theirs: pd.Series,
) -> Verdict | None:  # fmt: skip
    """Paired by split, under the peer's own adjacency."""
    own = candidates.get((name, rival[1]))
    if own is None:
        return None
    behind = (theirs - own).dropna()
    if len(behind) < 2:  # no standard error
        return None
    error = float(behind.std(ddof=1) / sqrt(len(behind)))
    pair = own[behind.index].mean(), theirs[behind.index].mean()
    return Verdict(dataset, epsilon, metric, name, rival[0], rival[1], *pair, float(behind.mean()), error)


def ranked(runs: pd.DataFrame, metric: str, epsilon: float) -> pd.DataFrame:
    """Ranks (1 is best) of all private competitors on every data set; who has no result there is last."""
    private = runs[(runs["epsilon"] == epsilon) & runs["group"].isin([OURS, PRIVATE])]
    kept = private[private["adjacency"] == private.groupby("name")["adjacency"].transform(_ranked_adjacency)]
    table = means(kept, metric).pivot(index="name", columns="dataset", values="mean")
    table = table.reindex(list(dict.fromkeys(kept["name"])))
    return table.fillna(-np.inf).rank(ascending=False, axis=0)


def _ranked_adjacency(adjacencies: pd.Series) -> str:
    return ADD_REMOVE if (adjacencies == ADD_REMOVE).any() else REPLACE


def critical_difference(competitors: int, datasets: int, level: float = 0.05) -> float:
    """Nemenyi's: mean ranks that differ by less are not told apart by so many data sets."""
    quantile = studentized_range.ppf(1 - level, competitors, np.inf) / sqrt(2)
    return float(quantile * sqrt(competitors * (competitors + 1) / (6 * datasets)))
