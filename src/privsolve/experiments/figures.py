"""The paper's two figures: accuracy against epsilon, and how long the runs take."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from privsolve.experiments.adult import Results
from privsolve.experiments.methods import FAMILIES, METHODS
from privsolve.extras import from_extra

with from_extra("experiments"):
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

# colours that differ for colour-blind readers and in grey print, with a marker of their own each
STYLES: dict[str, tuple[str, str, str]] = {
    "exponential-sparse-other": ("#67001f", "*", "-"),
    "exponential-sparse": ("#d6324a", "o", "-"),
    "exponential-uniform": ("#ef8a62", "s", "-"),
    "opdisc-4": ("#053061", "^", "-"),
    "opdisc-23": ("#2f79b5", "v", "-"),
    "opdisc-published": ("#2f79b5", "v", ":"),
    "rspm": ("#1b7837", "D", "-"),
    "rspm-published": ("#1b7837", "D", ":"),
    "dp-sgd-other": ("#000000", "*", "--"),
    "dp-sgd": ("#4d4d4d", "P", "--"),
    "objective-perturbation": ("#999999", "X", "--"),
}
DETAIL_FROM = 0.74
"""Where the enlarged part begins."""

FAMILY_COLOURS = dict(zip(FAMILIES, ("#2f79b5", "#b2182b", "#555555"), strict=True))
RC: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "privsolve", "axes.spines.top": False, "axes.spines.right": False}


def accuracy_figure(results: Results, *, test: bool = False) -> Figure:
    """Mean accuracy with standard deviations over the runs: all of it, and the upper part enlarged."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(9.0, 6.0), layout="constrained")
        whole, detail = figure.subplots(1, 2)
        for axes in (whole, detail):
            _draw_methods(axes, results, test)
            _draw_references(axes, results, test)
            axes.set_xscale("log")
            axes.set_xticks(results.plan.epsilons, [f"{e:g}" for e in results.plan.epsilons])
            axes.minorticks_off()
            axes.set_xlabel("ε")
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        detail.set_ylim(
            DETAIL_FROM, max(r.test_accuracy if test else r.train_accuracy for r in results.references) + 0.003
        )
        whole.set_ylabel(f"{'test' if test else 'training'} accuracy (mean, standard deviation)")
        whole.set_title("all", fontsize=9, loc="left")
        detail.set_title("enlarged", fontsize=9, loc="left")
        handles, labels = whole.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _draw_methods(axes: Any, results: Results, test: bool) -> None:
    for place, m in enumerate(METHODS):
        values = [
            np.array([r.test_accuracy if test else r.train_accuracy for r in results.rows if r.task[:2] == (m.key, e)])
            for e in results.plan.epsilons
        ]
        colour, marker, line = STYLES[m.key]
        shift = 1.035 ** (place - len(METHODS) / 2)  # side by side, so that the bars do not hide each other
        axes.errorbar(
            [e * shift for e in results.plan.epsilons],
            [v.mean() for v in values],
            yerr=[v.std(ddof=1) if len(v) > 1 else 0.0 for v in values],
            color=colour, marker=marker, linestyle=line, markersize=4.5, linewidth=1.2, elinewidth=0.7, capsize=1.5,
            markerfacecolor="white" if line == ":" else colour, label=m.label,
        )  # fmt: skip


def _draw_references(axes: Any, results: Results, test: bool) -> None:
    for r, dashes in zip(results.references, ((8, 2), (4, 2), (1.5, 2)), strict=True):
        height = r.test_accuracy if test else r.train_accuracy
        axes.axhline(height, color="#444444", linewidth=0.9, linestyle=(0, dashes), label=r.label, zorder=0)


def time_figure(results: Results) -> Figure:
    """Histogram of the seconds a run takes, one panel for each family of methods."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        panels = figure.subplots(len(FAMILIES), 1, sharex=True)
        seconds = {family: _seconds(results, family) for family in FAMILIES}
        everything = np.concatenate(list(seconds.values()))
        bins = np.geomspace(everything.min() * 0.9, everything.max() * 1.1, 40)
        for axes, family in zip(panels, FAMILIES, strict=True):
            axes.hist(seconds[family], bins=bins, color=FAMILY_COLOURS[family], edgecolor="white", linewidth=0.4)
            axes.set_xscale("log")
            axes.set_title(f"{family} ({len(seconds[family])} runs)", fontsize=9, loc="left")
            axes.set_ylabel("runs")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        ticks = [t for t in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100) if bins[0] <= t <= bins[-1]]
        panels[-1].set_xticks(ticks, [f"{t:g}" for t in ticks])
        panels[-1].minorticks_off()
        panels[-1].set_xlabel("seconds a run (after compilation)")
    return figure


def _seconds(results: Results, family: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    keys = {m.key for m in METHODS if m.family == family}
    return np.array([row.seconds for row in results.rows if row.method in keys])


def save(figure: Figure, folder: Path, name: str) -> Iterable[Path]:
    """The figure as SVG and PNG."""
    with matplotlib.rc_context(RC):
        for suffix in (".svg", ".png"):
            path = folder / f"{name}{suffix}"
            figure.savefig(path, dpi=200, metadata={"Date": None} if suffix == ".svg" else None)
            yield path
