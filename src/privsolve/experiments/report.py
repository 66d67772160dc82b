"""What became of the paper's four claims, from the runs: sentences, tables, and one page with both figures.

The figures are the paper's Figure 1 with its two panels, and the extended comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsolve.arrays import Floats
from privsolve.errors import from_extra
from privsolve.experiments.adult import Results
from privsolve.experiments.methods import (
    EXTENDED,
    HALF,
    LR,
    METHODS,
    OPDISC,
    OTHER_UNIT,
    PAPER_UNIT,
    PRINTED,
    RSPM,
    UNIT_EPSILONS,
    UNITS,
    unit_key,
)

with from_extra("experiments"):
    import matplotlib
    from matplotlib.figure import Figure

NOTE = (
    "n is public: two data sets are neighbours if one record differs. δ = 1/n². OPDisc, OPDisc with half scale, RSPM and "
    "private LR are as the paper prints them: the noise scales of OPDisc and RSPM have no valid proof, and private LR is "
    "accounted for one record added or removed, as its accountant does. All settings of LR were tuned on the training data "
    "without privacy, as in the paper: the guarantee covers one fit, not the tuning."
)
UNITS_NOTE = (
    "The unit of capital gain is a public choice. The paper divides it by 99,999; a ball of radius √23 then allows at most 4 "
    "where logistic regression has a weight of 34."
)
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


def summarise(results: Results) -> pd.DataFrame:
    """For each method and epsilon: mean, deviation and standard error of the accuracy, test accuracy, median seconds."""
    cells = results.rows.groupby(["method", "epsilon"]).agg(
        train=("train_accuracy", "mean"),
        deviation=("train_accuracy", "std"),
        runs=("run", "size"),
        test=("test_accuracy", "mean"),
        time=("seconds", "median"),
    )
    cells["error"] = cells["deviation"] / np.sqrt(cells["runs"])
    return cells.fillna(0.0)


def opening(results: Results) -> str:
    """Two sentences: the accuracies as printed, and what became of the paper's first claim."""
    cells = summarise(results)
    epsilon = max((e for e in results.plan.epsilons if e <= 1), default=results.plan.epsilons[0])
    parts = (f"{METHODS[key].label} {cells.train[key, epsilon]:.3f}" for key in (OPDISC, RSPM, LR))
    return (
        f"Mean accuracy at ε = {epsilon:g}, every method as the paper prints it: {', '.join(parts)}. "
        f"The paper reports OPDisc and RSPM far above private LR; here OPDisc is {_where(results, OPDISC, LR)}."
    )


def claims(results: Results) -> list[str]:
    """The paper's four claims, each with what these runs say about it."""
    return [
        "Claim 1, OPDisc and RSPM beat private LR: "
        + "; ".join(_compared(results, key, LR) for key in (OPDISC, HALF, RSPM))
        + ".",
        "Claim 2, OPDisc beats RSPM: " + "; ".join(_compared(results, key, RSPM) for key in (OPDISC, HALF)) + ".",
        "Claim 3, OPDisc varies less than the others: " + _deviations(results) + ".",
        "Claim 4, OPDisc is often fast and sometimes slow: " + _times(results) + ".",
    ]


def reading(results: Results) -> list[str]:
    """Sentences about the extended comparison."""
    pairs = (
        ("opdisc", "dp-sgd"),
        ("exponential", "dp-sgd"),
        ("exponential-5000", "dp-sgd-5000"),
        ("exponential-5000", "dp-sgd"),
    )
    return [_compared(results, one, other) + "." for one, other in pairs]


def _compared(results: Results, key: str, other: str) -> str:
    label = METHODS[key].label
    return f"{label[0].upper()}{label[1:]} against {METHODS[other].label}: {_where(results, key, other)}"


def _where(results: Results, key: str, other: str) -> str:
    """Where one method is above the other by more than two standard errors of the difference."""
    cells = summarise(results)
    sides: dict[str, list[float]] = {"above": [], "below": [], "level": []}
    for epsilon in results.plan.epsilons:
        ours, theirs = cells.loc[(key, epsilon)], cells.loc[(other, epsilon)]
        distance = ours.train - theirs.train
        close = abs(distance) <= 2 * np.hypot(ours.error, theirs.error)
        sides["level" if close else "above" if distance > 0 else "below"].append(epsilon)
    return ", ".join(f"{word} at ε = {_listed(values)}" for word, values in sides.items() if values)


def _deviations(results: Results) -> str:
    deviation, parts = summarise(results).deviation, []
    for other in (RSPM, LR):
        smaller = [e for e in results.plan.epsilons if deviation[OPDISC, e] < deviation[other, e]]
        where = f"ε = {_listed(smaller)}" if smaller else "no ε"
        parts.append(f"below that of {METHODS[other].label} at {where}")
    return f"its standard deviation is {' and '.join(parts)}"


def _times(results: Results) -> str:
    seconds = {key: run_seconds(results, key) for key in (OPDISC, RSPM, LR)}
    parts = (
        f"{METHODS[key].label} took {np.median(s):.2f} s (median) and at most {s.max():.2f} s"
        for key, s in seconds.items()
    )
    faster = float(np.mean(seconds[OPDISC] < np.median(seconds[LR])))
    return f"{', '.join(parts)}; {faster:.0%} of the OPDisc runs were faster than the median LR run"


def run_seconds(results: Results, key: str) -> Floats:
    """The seconds of all runs of a method."""
    return np.asarray(results.rows.seconds[results.rows.method == key])


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


Table = list[tuple[str, ...]]
"""The head and the rows."""


def accuracy_table(results: Results, keys: Sequence[str]) -> Table:
    """Method, privacy, then `mean ± deviation` of the training accuracy per epsilon."""
    train, deviation, epsilons = summarise(results).train, summarise(results).deviation, results.plan.epsilons
    rows = [
        (METHODS[k].label, METHODS[k].privacy, *(f"{train[k, e]:.4f} ± {deviation[k, e]:.3f}" for e in epsilons))
        for k in keys
    ]
    return [("method", "privacy", *(f"ε = {e:g}" for e in epsilons)), *rows]


def unit_table(results: Results) -> Table:
    """The exponential mechanism for each unit of capital gain, and the best of the ball without privacy."""
    cells = summarise(results)
    epsilons = [e for e in UNIT_EPSILONS if e in results.plan.epsilons]
    best = {r.unit: r.train_accuracy for r in results.references if r.label.startswith("best")}
    head = ("unit", *(f"ε = {e:g}" for e in epsilons), "no privacy")
    means = {unit: (f"{cells.train[unit_key(unit), e]:.4f}" for e in epsilons) for unit in UNITS}
    return [head, *((f"{unit:,}", *means[unit], f"{best[unit]:.4f}") for unit in UNITS)]


def write_page(results: Results, path: Path, figures: dict[str, str]) -> None:
    """Both figures, the sentences and the tables as Markdown; `figures` has the file of each caption."""
    first, second = (f"![{caption}]({name})" for caption, name in figures.items())
    references = (f"{r.label} {r.train_accuracy:.4f} (test {r.test_accuracy:.4f})" for r in results.references)
    everything = (*PRINTED, *EXTENDED)
    blocks = [
        "# The paper's experiment on Adult",
        first,
        opening(results),
        f"As printed: training accuracy, mean ± standard deviation over {results.plan.runs} runs:",
        _markdown(accuracy_table(results, PRINTED)),
        "The paper's four claims:",
        _bullets(claims(results)),
        second,
        "Extended comparison: training accuracy:",
        _markdown(accuracy_table(results, EXTENDED)),
        _bullets([*reading(results), f"For comparison: {'; '.join(references)}."]),
        "Units of capital gain, exponential mechanism:",
        _markdown(unit_table(results)),
        UNITS_NOTE,
        "Mean accuracy on the balanced test file:",
        _markdown(_by_epsilon(results, everything, "test", ".4f")),
        "Median seconds a run:",
        _markdown(_by_epsilon(results, everything, "time", ".2f")),
        NOTE,
    ]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _by_epsilon(results: Results, keys: Sequence[str], name: str, digits: str) -> Table:
    """Method, then one number of each cell per epsilon."""
    column, epsilons = summarise(results)[name], results.plan.epsilons
    rows = [(METHODS[key].label, *(format(column[key, e], digits) for e in epsilons)) for key in keys]
    return [("method", *(f"ε = {e:g}" for e in epsilons)), *rows]


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _markdown(table: Table) -> str:
    head, *rows = table
    rule = ["---" if name in ("method", "privacy", "unit") else "--:" for name in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


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
