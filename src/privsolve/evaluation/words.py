"""How good a model is, in words: the same for every form of a card, and for an evaluation by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from privsolve.evaluation.cells import Cells
from privsolve.evaluation.intervals import Figure, percent

if TYPE_CHECKING:
    from privsolve.evaluation.evaluation import Evaluation

RARE = 0.15
"""Below this share of the positive label, accuracy says little: always deciding "no" is right more often."""

TOP = 0.1
"""The share of records with the highest outcomes that is looked at where the positive label is rare."""

WHERE = {
    "held out": "records that were held out of the fit at random",
    "other records": "records of other people than those in the fit",
    "the same people": "records that may have been in the fit, so the figures may be better here than elsewhere",
}

HELP = "More records, a larger epsilon or fewer columns would help."


def where(evaluation: Evaluation) -> str:
    """What the figures were measured on."""
    about = max(evaluation.cells.records(), 0)
    if evaluation.weight is None:
        return f"Measured on about {about:,} {WHERE[evaluation.tested]}, with noise so that it may be published."
    return (
        f"Measured on {WHERE[evaluation.tested]}, with noise so that it may be published. All figures are weighted by "
        f"{evaluation.weight.column}, cut to at most {evaluation.weight.largest:,.10g}; the weights add up to about {about:,}."
    )


def records_in_words(evaluation: Evaluation) -> str:
    """How many records the figures are of, or by what they are weighted."""
    if evaluation.weight is None:
        return f"about {max(evaluation.cells.records(), 0):,} records"
    return f"records weighted by {evaluation.weight.column}"


def useless(evaluation: Evaluation | None) -> str | None:
    """A sentence if the model cannot be told apart from guessing."""
    if evaluation is None:
        return None
    auc = evaluation.cells.auc()
    if auc.value is not None and not auc.low <= 0.5 <= auc.high:
        return None
    wide = (
        f"its area under the ROC curve lies between {percent(auc.low)} and {percent(auc.high)}, and guessing gives 50%"
    )
    return f"It cannot be told whether this model is better than guessing{f': {wide}' if auc.known else ''}. {HELP}"


def is_rare(cells: Cells) -> bool:
    """Whether the positive label is so rare that accuracy says little."""
    share = cells.positives().value
    return share is not None and share < RARE


def rare_line(evaluation: Evaluation) -> str | None:
    """What the highest outcomes say, where the positive label is rare."""
    cells = evaluation.cells
    if not is_rare(cells) or (top := cells.highest(TOP)) is None:
        return None
    share, positives, text = top
    highest = f"totals ({text} or more)" if evaluation.kind == "total" else "risks"
    return (
        f"Of the {100 * share:.0f}% with the highest {highest}, {positives.percent()} are “{evaluation.labels[1]}”; "
        f"of all, {cells.positives().percent()}."
    )


def main_figures(cells: Cells, labels: tuple[str, str]) -> Iterator[tuple[str, Figure]]:
    """The figures that every form shows, by name."""
    no, yes = labels
    figures = [
        ("Decisions that are right", cells.accuracy()),
        (f"Of those with “{no}”, mistaken for “{yes}”", cells.false_positives()),
        (f"Of those with “{yes}”, mistaken for “{no}”", cells.false_negatives()),
    ]
    ranking = [("Area under the ROC curve", cells.auc())]
    if cells.states_risks:
        ranking.append(("Brier score", cells.brier()))
    yield from ranking + figures if is_rare(cells) else figures + ranking


def quality(evaluation: Evaluation) -> list[str]:
    """What was measured, and a line for each figure."""
    lines = [f"{where(evaluation)} In brackets: 95% intervals for people of the same kind."]
    lines += [line for line in (useless(evaluation), rare_line(evaluation)) if line]
    lines += [f"{name}: {figure.percent()}" for name, figure in main_figures(evaluation.cells, evaluation.labels)]
    if evaluation.kind == "total":
        lines.append(f"Share of “{evaluation.labels[1]}” by total: {', '.join(_steps(evaluation))}.")
    if evaluation.by is not None:
        for name in evaluation.groups:
            accuracy = evaluation.of_group(name).accuracy().percent()
            lines.append(f"{evaluation.by} {name}: decisions that are right {accuracy}")
    return lines


def _steps(evaluation: Evaluation) -> list[str]:
    """Runs of totals with one risk: `0 to 2: 4%`."""
    runs: list[tuple[str, str, float]] = []
    for outcome, risk in zip(evaluation.outcomes, evaluation.cells.risks(), strict=True):
        first, last = outcome.text.split(" to ")[0], outcome.text.split(" to ")[-1]
        if runs and runs[-1][2] == risk:
            runs[-1] = (runs[-1][0], last, risk)
        else:
            runs.append((first, last, risk))
    return [f"{low if low == high else f'{low} to {high}'}: {100 * risk:.3g}%" for low, high, risk in runs]


def figure_cells(figure: Figure) -> tuple[str, str, str]:
    """Value, interval, and the part of the interval that is noise."""
    wide = f"{percent(figure.low)} to {percent(figure.high)}"
    value = percent(figure.value if figure.known else None)
    return value, wide, f"{percent(figure.noise_low)} to {percent(figure.noise_high)}"
