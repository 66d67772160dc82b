"""How good a model is, in words: the same for every form of a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from privsolve.evaluation import Cells, Evaluation, Figure, MeasuredOn

WHERE = {
    MeasuredOn.HELD_OUT: "records that were held out of the choice at random",
    MeasuredOn.OTHERS: "records of other people than those it was chosen from",
    MeasuredOn.SAME: "records that it may have been chosen from, so that it may look better here than elsewhere",
}


def where(evaluation: Evaluation) -> str:
    """What the figures were measured on."""
    about = max(evaluation.cells.records(), 0)
    return f"Measured on about {about:,} {WHERE[evaluation.tested]}, with noise so that it may be published."


def main_figures(cells: Cells, labels: tuple[str, str]) -> Iterator[tuple[str, Figure]]:
    """The figures that every form shows, by name."""
    no, yes = labels
    yield "Decisions that are right", cells.accuracy()
    yield f"Of those with {no}, decided {yes}", cells.false_positives()
    yield f"Of those with {yes}, decided {no}", cells.false_negatives()
    yield "Area under the ROC curve", cells.auc()
    if cells.states_risks:
        yield "Brier score", cells.brier()


def quality_lines(evaluation: Evaluation | None) -> list[str]:
    """Sentences for text and LaTeX; none without an evaluation."""
    if evaluation is None:
        return []
    lines = ["", f"How good it is. {where(evaluation)} In brackets the 95% intervals for people of the same kind."]
    lines += [f"  {name}: {figure.percent()}" for name, figure in main_figures(evaluation.cells, evaluation.labels)]
    risks = evaluation.cells.risks()
    yes = evaluation.labels[1]
    if evaluation.kind == "total":
        steps = _steps(evaluation, risks)
        lines.append(f"  Share of {yes} by total: {', '.join(steps)}.")
    if evaluation.by is not None:
        for name in evaluation.groups:
            accuracy = evaluation.of_group(name).accuracy().percent()
            lines.append(f"  {evaluation.by} {name}: decisions that are right {accuracy}")
    return lines


def _steps(evaluation: Evaluation, risks: tuple[float, ...]) -> list[str]:
    """Runs of totals with one risk: `0 to 2: 4%`."""
    runs: list[tuple[str, str, float]] = []
    for outcome, risk in zip(evaluation.outcomes, risks, strict=True):
        first, last = outcome.text.split(" to ")[0], outcome.text.split(" to ")[-1]
        if runs and runs[-1][2] == risk:
            runs[-1] = (runs[-1][0], last, risk)
        else:
            runs.append((first, last, risk))
    return [f"{low if low == high else f'{low} to {high}'}: {100 * risk:.3g}%" for low, high, risk in runs]


def quality_markdown(evaluation: Evaluation | None, escape: Callable[[str], str]) -> list[str]:
    """A table for Markdown; nothing without an evaluation."""
    if evaluation is None:
        return []
    lines = ["### How good it is", "", escape(where(evaluation)), "", "| figure | value | 95% interval | noise alone |"]
    lines.append("|---|--:|---|---|")
    for name, figure in main_figures(evaluation.cells, evaluation.labels):
        lines.append(f"| {escape(name)} | {' | '.join(escape(cell) for cell in figure_cells(figure))} |")
    return [*lines, ""]


def figure_cells(figure: Figure) -> tuple[str, str, str]:
    """Value, interval, and the part of the interval that is noise."""
    value = "not known" if figure.value is None else f"{100 * figure.value:.1f}%"
    wide = f"{100 * figure.low:.1f}% to {100 * figure.high:.1f}%"
    return value, wide, f"{100 * figure.noise_low:.1f}% to {100 * figure.noise_high:.1f}%"
