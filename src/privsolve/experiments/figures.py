"""Two figures: the paper's Figure 1 with its two panels, and the extended comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privsolve.errors import from_extra
from privsolve.experiments.adult import Results
from privsolve.experiments.methods import EXTENDED, LR, METHODS, OPDISC, OTHER_UNIT, PAPER_UNIT, RSPM
from privsolve.experiments.report import run_seconds, summarise, write_page

with from_extra("experiments"):
    import matplotlib
    from matplotlib.figure import Figure

FIGURE_1 = (OPDISC, RSPM, LR)

# colours that differ for colour-blind readers and in grey print, with a marker of their own each
STYLES: dict[str, tuple[str, str, str]] = {
    OPDISC: ("#2f79b5", "o", "-"),
    RSPM: ("#1b7837", "s", "-"),
    LR: ("#4d4d4d", "^", "--"),
    "opdisc": ("#2f79b5", "o", "-"),
    "rspm": ("#1b7837", "s", "-"),
    "exponential": ("#ef8a62", "D", "-"),
    "exponential-5000": ("#a50f15", "*", "-"),
    "dp-sgd": ("#777777", "^", "--"),
    "dp-sgd-5000": ("#000000", "P", "--"),
}
ENLARGED_FROM = 0.74
CAPTIONS = {
    "Figure 1 of the paper: 15,682 records, 23 features.": "figure-1.svg",
    "Proved noise, the exponential mechanism, and a baseline that was tuned hard.": "figure-2.svg",
}
RC: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "privsolve", "axes.spines.top": False, "axes.spines.right": False}


def figure_1(results: Results) -> Figure:
    """The paper's Figure 1: accuracy against epsilon with error bars, and a histogram of run times."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        accuracy, times = figure.subplots(1, 2)
        _draw_curves(accuracy, results, FIGURE_1)
        accuracy.set_title("(a) Accuracy against ε", fontsize=10)
        accuracy.legend(loc="lower right", frameon=False)
        _draw_times(times, results)
        times.set_title("(b) Distribution of run time", fontsize=10)
        times.legend(loc="upper right", frameon=False)
    return figure


def figure_2(results: Results) -> Figure:
    """Six curves with proved noise and tuned baselines, and what is possible without privacy; the upper part enlarged."""
    shown = [r for r in results.references if r.unit in (PAPER_UNIT, OTHER_UNIT)]
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        whole, enlarged = figure.subplots(1, 2)
        for axes in (whole, enlarged):
            _draw_curves(axes, results, EXTENDED)
            for r, dashes in zip(shown, ((8, 2), (4, 2), (1.5, 2)), strict=True):
                line: Any = (0, dashes)
                axes.axhline(r.train_accuracy, color="#444", linewidth=0.9, linestyle=line, label=r.label, zorder=0)
        enlarged.set_ylim(ENLARGED_FROM, max(r.train_accuracy for r in shown) + 0.003)
        enlarged.set_ylabel("")
        enlarged.set_title("enlarged", fontsize=10)
        whole.set_title("all", fontsize=10)
        handles, labels = whole.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _draw_curves(axes: Any, results: Results, keys: Sequence[str]) -> None:
    cells, epsilons = summarise(results), results.plan.epsilons
    for place, key in enumerate(keys):
        colour, marker, line = STYLES[key]
        shift = 1.03 ** (place - (len(keys) - 1) / 2)  # side by side, so that the bars do not hide each other
        axes.errorbar(
            [e * shift for e in epsilons],
            [cells.train[key, e] for e in epsilons],
            yerr=[cells.deviation[key, e] for e in epsilons],
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=5,
            linewidth=1.4,
            elinewidth=0.8,
            capsize=2,
            label=METHODS[key].label,
        )
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("ε")
    axes.set_ylabel("training accuracy")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def _draw_times(axes: Any, results: Results) -> None:
    seconds = [run_seconds(results, key) for key in FIGURE_1]
    everything = np.concatenate(seconds)
    bins = np.geomspace(everything.min() * 0.9, everything.max() * 1.1, 16)
    axes.hist(
        seconds, bins=bins, color=[STYLES[key][0] for key in FIGURE_1], label=[METHODS[key].label for key in FIGURE_1]
    )
    axes.set_xscale("log")
    ticks = [t for t in (0.001, 0.01, 0.1, 1, 10, 100) if bins[0] <= t <= bins[-1]]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("seconds a run (after compilation)")
    axes.set_ylabel("runs")


def write_report(results: Results, out: Path) -> list[Path]:
    """Both figures as SVG and PNG, and a page with all tables and sentences in the folder; their paths, the page first."""
    paths = [out / "report.md"]
    for name, figure in (("figure-1", figure_1(results)), ("figure-2", figure_2(results))):
        for suffix in (".svg", ".png"):
            paths.append(out / f"{name}{suffix}")
            with matplotlib.rc_context(RC):
                figure.savefig(paths[-1], dpi=200, metadata={"Date": None} if suffix == ".svg" else None)
    write_page(results, paths[0], CAPTIONS)
    return paths
