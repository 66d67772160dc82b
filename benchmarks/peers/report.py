"""The page `docs/experiments/peers.md`, its tables and figures, from the results alone.

python -m peers.report      # docs/experiments: peers.md, peers-tables.md, figures/peers-*.svg
python -m peers.report --results FOLDER --out FOLDER     # from other results, to another place
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from peers.harness import RESULTS, read
from peers.registry import ADD_REMOVE, COMPETITORS, EPSILONS, REPLACE
from peers.summary import (
    GOALS,
    OURS,
    PLAIN,
    PRIVATE,
    SINGLE,
    UNFAIR,
    critical_difference,
    duels,
    finished,
    frame_of,
    means,
    over_tables,
    ranked,
)

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "experiments"
WORDS = {"accuracy": "accuracy", "auc": "AUC"}
GROUPS = {
    OURS: "ours",
    PRIVATE: "private peer",
    UNFAIR: "private peer, settings chosen on the records",
    PLAIN: "no privacy",
}
STYLE = {"font.size": 9, "svg.hashsalt": "privsolve", "axes.spines.top": False, "axes.spines.right": False}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=DOCS)
    said = parser.parse_args()
    write(frame_of(read(said.results)), said.out)


def write(runs: pd.DataFrame, out: Path) -> None:
    """Both pages and the figures."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    parts = {
        "state": state(runs),
        "means": mean_tables(runs),
        "ranks": ranks(runs),
        "against": against(runs),
        "datasets": datasets(runs),
        "failures": failures(runs),
        "competitors": competitors(runs),
    }
    page = (HERE / "page.md").read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"<!-- {name} -->", text)
    (out / "peers.md").write_text(page, encoding="utf-8")
    (out / "peers-tables.md").write_text(tables(runs), encoding="utf-8")
    with mpl.rc_context(STYLE):
        for metric in GOALS:
            curves(runs, metric, out / "figures" / f"peers-{metric}.svg")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """In Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


# ---- the page


def state(runs: pd.DataFrame) -> str:
    """What has been run, and what it took."""
    asked = sum(len(c.epsilons) * len(c.relations) for c in COMPETITORS) * 5 * runs["dataset"].nunique()
    limits = {c.name: c.limit for c in COMPETITORS}
    late = runs[runs["status"] == "timeout"]["name"].map(limits).astype(float).sum()
    hours = (finished(runs)["cpu_seconds"].sum() + late) / 3600
    return (
        f"{len(runs):,} of {asked:,} runs have a line in the results, {len(finished(runs)):,} of them with a model. Their fits "
        f"took {hours:.1f} CPU hours. Versions: [last table](#who-is-measured) and `benchmarks/peers/requirements/`."
    )


def mean_tables(runs: pd.DataFrame) -> str:
    """Means over the first data sets, and over those with rare outcomes or many columns, under both adjacencies."""
    from peers.datasets import FIRST, LATER

    parts = []
    for title, names in (("The first eight data sets", FIRST), ("Rare outcomes, and a hundred columns", LATER)):
        present = [name for name in names if name in set(runs["dataset"])]
        if not present:
            continue
        parts.append(f"### {title}\n\n{', '.join(present)}.\n")
        for adjacency in (ADD_REMOVE, REPLACE):
            found = [over_tables(runs, metric, adjacency, present) for metric in GOALS]
            order = [c.name for c in COMPETITORS if all(c.name in one.index for one in found)]
            rows = [
                [_named(name), *(f"{found[0].loc[name, e]:.3f} / {found[1].loc[name, e]:.3f}" for e in EPSILONS)]
                for name in order
            ]
            header = [f"{adjacency}: accuracy / AUC", *(f"ε = {e:g}" for e in EPSILONS)]
            parts.append(table(header, rows) + "\n")
    return "\n".join(parts)


def _named(name: str) -> str:
    """Ours in italics; what was tuned on the records says so."""
    group = next(c.group for c in COMPETITORS if c.name == name)
    return f"*{name}*" if group == OURS else f"{name} (not counted)" if group == UNFAIR else name


def ranks(runs: pd.DataFrame) -> str:
    """Mean ranks over data sets, for each ε and over all."""
    parts = []
    for metric in GOALS:
        by_epsilon = {e: ranked(runs, metric, e).mean(axis=1) for e in EPSILONS}
        all_ranks = pd.DataFrame(by_epsilon).assign(mean=lambda t: t.mean(axis=1)).sort_values("mean")
        groups = dict(zip(runs["name"], runs["group"], strict=True))
        rows = [
            [f"*{n}*" if groups[n] == OURS else n, *("–" if np.isnan(x) else f"{x:.1f}" for x in row)]
            for n, row in all_ranks.iterrows()
        ]
        gap = critical_difference(len(all_ranks), runs["dataset"].nunique())
        parts.append(
            f"### By {WORDS[metric]}\n\nMean ranks that differ by less than {gap:.1f} are not told apart (Nemenyi, 5%).\n"
        )
        parts.append(table(["", *(f"ε = {e:g}" for e in EPSILONS), "mean"], rows) + "\n")
    return "\n".join(parts)


def against(runs: pd.DataFrame) -> str:
    """The scorecard against every private peer."""
    parts = []
    for metric in GOALS:
        found = duels(runs, metric)
        rows = [[rival, *(counts[word] for word in ("ahead", "level", "behind"))] for rival, counts in found.items()]
        parts.append(f"The scorecard, by {WORDS[metric]}:\n")
        parts.append((table(["against", "ahead", "level", "behind"], rows) if rows else "not run yet") + "\n")
    return "\n".join(parts)


def datasets(runs: pd.DataFrame) -> str:
    """What each data set is, and how many records and columns it has."""
    from peers.datasets import DATASETS, exchange

    rows = []
    for name in dict.fromkeys(runs["dataset"]):
        data, words = exchange(name, 0), (DATASETS[name].__doc__ or "").split("\n")[0]
        train, test = data.train, data.test
        share = f"{np.mean(train.labels):.0%}"
        rows.append(
            [name, words, len(train.labels), len(test.labels), train.binary.shape[1], train.numeric.shape[1], share]
        )
    return table(["", "", "training records", "test records", "0/1 columns", "numbers", "positive"], rows)


def failures(runs: pd.DataFrame) -> str:
    """Runs without a model, by competitor and data set."""
    bad = runs[runs["status"] != "ok"]
    if bad.empty:
        return "Every run gave a model."
    rows = [
        [name, dataset, ", ".join(f"{count} {status}" for status, count in own["status"].value_counts().items())]
        for (name, dataset), own in bad.groupby(["name", "dataset"], sort=False)
    ]
    return table(["", "data", "runs without a model"], rows)


def competitors(runs: pd.DataFrame) -> str:
    """Who, which version, which guarantee, how much to read, how long (median of Adult's fits)."""
    rows = []
    for c in COMPETITORS:
        own = finished(runs[runs["name"] == c.name])
        if own.empty:
            rows.append([c.name, GROUPS[c.group], "–", "–", "–", "–", "–"])
            continue
        relation = ", ".join(c.relations) if c.group != PLAIN else "none"
        promise = "none" if c.group == PLAIN else f"ε, {relation}" if not c.delta else f"(ε, {c.delta:g}), {relation}"
        adult = own[own["dataset"] == "adult"]
        spent = f"{adult['cpu_seconds'].median():.2f}" if len(adult) else "–"
        memory = f"{adult['memory_mb'].median():.0f}" if len(adult) else "–"
        numbers = f"{own['numbers'].min():.0f} to {own['numbers'].max():.0f}"
        rows.append([c.name, GROUPS[c.group], str(own["version"].iloc[-1])[:12], promise, numbers, spent, memory])
    header = ["", "", "version", "guarantee", "numbers to read", "CPU seconds (Adult)", "MB (Adult)"]
    return table(header, rows)


# ---- all tables

HEAD = """# Comparison with other tools: all tables

Made by `python -m peers.report` from `benchmarks/peers/results/`; [the page](peers.md) explains them. Means over five
splits with standard errors (Adult has one split: five seeds). AUC of models that only say yes or no is their balanced
accuracy. *–*: no result, or the model gives no probability.
"""


def tables(runs: pd.DataFrame) -> str:
    """Per data set: accuracy and AUC by ε, and everything at ε = 1."""
    parts = [HEAD]
    for dataset in dict.fromkeys(runs["dataset"]):
        own = runs[runs["dataset"] == dataset]
        parts.append(f"## {dataset}\n")
        for metric in GOALS:
            parts.append(f"### {dataset}: {WORDS[metric]}\n\n{by_epsilon(own, metric)}\n")
        parts.append(
            f"### {dataset}: everything at ε = 1\n\n{everything(own[own['epsilon'].isna() | (own['epsilon'] == 1)])}\n"
        )
    return "\n".join(parts)


def by_epsilon(runs: pd.DataFrame, metric: str) -> str:
    """One line per competitor and adjacency; without privacy the same in every column."""
    found = {
        (m.name, m.adjacency, m.epsilon): _mean(m)
        for m in means(runs, metric).fillna({"epsilon": 0}).itertuples(index=False)
    }
    rows = []
    for (name, adjacency), own in runs.groupby(["name", "adjacency"], sort=False):
        plain = own["group"].iloc[0] == PLAIN
        rows.append([name, adjacency, *(found.get((name, adjacency, 0 if plain else e), "–") for e in EPSILONS)])
    return table(["", "adjacency", *(f"ε = {e:g}" for e in EPSILONS)], rows)


def _mean(found: Any) -> str:
    if found.count == 0:
        return "–"
    return f"{found.mean:.3f} ± {found.se:.3f}" if found.count > 1 else f"{found.mean:.3f}"


def everything(runs: pd.DataFrame) -> str:
    """All figures, means."""
    shares = ("accuracy", "balanced_accuracy", "auc", "brier", "log_loss", "calibration_error")
    costs = {"numbers": ".0f", "seconds": ".2f", "cpu_seconds": ".2f", "memory_mb": ".0f"}
    columns = dict.fromkeys(shares, ".3f") | costs
    rows = []
    for (name, adjacency), own in finished(runs).groupby(["name", "adjacency"], sort=False):
        values = {column: pd.to_numeric(own[column]).mean() for column in columns}
        rows.append([name, adjacency, *("–" if np.isnan(v) else format(v, columns[c]) for c, v in values.items())])
    header = [
        "accuracy",
        "balanced",
        "AUC",
        "Brier",
        "log loss",
        "calibration error",
        "numbers",
        "seconds",
        "CPU s",
        "MB",
    ]
    return table(["", "adjacency", *header], rows)


# ---- figures


def curves(runs: pd.DataFrame, metric: str, path: Path) -> None:
    """A metric against ε under add-remove: the scorecard thick, our other models thin, peers grey; dashed, without privacy."""
    names = list(dict.fromkeys(runs["dataset"]))
    figure, axes = plt.subplots(3, (len(names) + 2) // 3, figsize=(12, 8), layout="constrained", squeeze=False)
    for axis, dataset in zip(axes.flat, names, strict=False):
        own = finished(runs[(runs["dataset"] == dataset) & (runs["adjacency"] != REPLACE)])
        _lines(axis, own[own["group"] == PRIVATE], metric, "#9e9e9e")
        _lines(axis, own[(own["group"] == OURS) & (own["name"] != SINGLE)], metric, "#80cbc4")
        _lines(axis, own[own["name"] == SINGLE], metric, "#00796b", 2.5)
        plain = means(own[own["group"] == PLAIN], metric)["mean"]
        if len(plain):
            axis.axhline(plain.max(), color="#333333", linestyle="--", linewidth=0.8)
        axis.set_title(dataset)
        axis.set_xscale("log")
        axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axis.minorticks_off()
    figure.supxlabel("ε")
    figure.supylabel(f"test {WORDS[metric]}")
    _save(figure, path)


def _lines(axis: plt.Axes, runs: pd.DataFrame, metric: str, colour: str, width: float = 1.0) -> None:
    for _, own in means(runs, metric).groupby("name", sort=False):
        axis.plot(own["epsilon"], own["mean"], color=colour, linewidth=width, marker=".", alpha=0.8)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
