"""From lines of results to means, standard errors, ranks and duels; pandas in, pandas out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import studentized_range

from peers.registry import ADD_REMOVE, COMPETITORS, EPSILONS, REPLACE

SINGLE = "scorecard"
"""The model of ours that is compared with each peer: the default, the same for every data set, ε and metric."""

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
class Duel:
    """One data set and ε: how far ours is behind a peer (negative: ahead), and the standard error of that over the splits."""

    gap: float
    error: float

    @property
    def outcome(self) -> str:
        """`"ahead"` or `"behind"` by more than one standard error, or `"level"`."""
        return "level" if abs(self.gap) <= self.error else "ahead" if self.gap < 0 else "behind"


def duels(runs: pd.DataFrame, metric: str) -> dict[str, Counter[str]]:
    """How often `SINGLE` is ahead of, level with and behind each private peer, under the peer's adjacency."""
    done = finished(runs)
    found: dict[str, Counter[str]] = {}
    for _, cell in done[done["epsilon"].notna()].groupby(["dataset", "epsilon"], sort=False):
        own = _by_split(cell[cell["name"] == SINGLE], metric)
        for (rival, adjacency), theirs in _by_split(cell[cell["group"] == PRIVATE], metric).items():
            duel = _compare(own.get((SINGLE, adjacency)), theirs)
            if duel is not None:
                found.setdefault(f"{rival} ({adjacency})", Counter())[duel.outcome] += 1
    return found


def _by_split(cell: pd.DataFrame, metric: str) -> dict[tuple[str, str], pd.Series]:
    return {key: own.set_index("split")[metric] for key, own in cell.groupby(["name", "adjacency"], sort=False)}


def _compare(own: pd.Series | None, theirs: pd.Series) -> Duel | None:
    """Paired by split; None without a standard error."""
    behind = pd.Series(dtype=float) if own is None else (theirs - own).dropna()
    if len(behind) < 2:
        return None
    return Duel(float(behind.mean()), float(behind.std(ddof=1) / sqrt(len(behind))))


def over_tables(runs: pd.DataFrame, metric: str, adjacency: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Means over data sets, one line per private competitor that has a model in each of them, one column per ε."""
    kept = runs[(runs["adjacency"] == adjacency) & runs["dataset"].isin(datasets)]
    table = (
        means(kept, metric).pivot(index=["name", "epsilon"], columns="dataset", values="mean").reindex(columns=datasets)
    )
    return table.dropna().mean(axis=1).unstack("epsilon").reindex(columns=list(EPSILONS)).dropna()


def ranked(runs: pd.DataFrame, metric: str, epsilon: float) -> pd.DataFrame:
    """Ranks (1 is best) on every data set of the private competitors that were run on all; who gave no model is last there."""
    private = runs[(runs["epsilon"] == epsilon) & runs["group"].isin([OURS, PRIVATE])]
    everywhere = private.groupby("name")["dataset"].transform("nunique") == runs["dataset"].nunique()
    private = private[everywhere]
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
