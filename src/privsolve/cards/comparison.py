"""The curator's view: several models on the same held-out records, as a page that must not be published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsolve.cards.rendering import rendered
from privsolve.evaluation.cells import NEGATIVE, POSITIVE, Cells

GROUPS = 10
"""Points of a calibration curve: neighbouring outcomes are taken together until there are at most this many."""


@dataclass(frozen=True)
class Compared:
    """A model and its exact counts on the held-out records, or the reason why there is no such model."""

    name: str
    privacy: str
    cells: Cells | None
    problem: str = ""


@dataclass(frozen=True)
class Comparison:
    """Models side by side on the curator's own records. Nothing in it is private.

    Args:
        title: what is predicted.
        records: number of records that the models were fitted on, and number that they are measured on.
        labels: words for the negative and the positive label.
        models: the models in the order of the page.
    """

    title: str
    records: tuple[int, int]
    labels: tuple[str, str]
    models: tuple[Compared, ...]

    @property
    def found(self) -> list[tuple[Compared, Cells]]:
        """The models that there are, with their counts."""
        return [(model, model.cells) for model in self.models if model.cells is not None]

    def to_html(self) -> str:
        """The page, in one file. It says in red that it must not be published."""
        return rendered(
            "comparison.html",
            title=f"Curator's view: {self.title}",
            css="",
            script=None,
            fitted=f"{self.records[0]:,}",
            measured=f"{self.records[1]:,}",
            share=_percent(self.found[-1][1].positives().value),
            yes=self.labels[1],
            no=self.labels[0],
            rows=[(model.name, model.privacy, *figures(cells)) for model, cells in self.found],
            confusions=[(model.name, *confusion(cells)) for model, cells in self.found],
            problems=[(model.name, model.problem) for model in self.models if model.problem],
            roc=[(k, model.name, cells.roc()) for k, (model, cells) in enumerate(self.found) if len(cells.ranks) > 1],
            calibration=[
                (k, model.name, calibration_points(cells))
                for k, (model, cells) in enumerate(self.found)
                if cells.states_risks and len(cells.ranks) > 1
            ],
        )


def figures(cells: Cells) -> tuple[str, str, str, str]:
    """Accuracy, AUC, mean stated risk and Brier score, in words."""
    stated = cells.states_risks
    surplus, share = cells.surplus().value if stated else None, cells.positives().value
    mean = None if surplus is None or share is None else share - surplus
    accuracy, auc = cells.accuracy().value, cells.auc().value if len(cells.ranks) > 1 else None
    brier = cells.brier().value if stated else None
    return _percent(accuracy), _plain(auc), _percent(mean), _plain(brier)


def confusion(cells: Cells) -> tuple[str, str, str, str]:
    """Records at the model's own threshold: positive found and missed, negative mistaken and left alone."""
    counts = cells.counts.sum(axis=0)
    yes, no = counts[cells.decided], counts[~cells.decided]
    found = yes[:, POSITIVE].sum(), no[:, POSITIVE].sum(), yes[:, NEGATIVE].sum(), no[:, NEGATIVE].sum()
    first, second, third, fourth = (f"{int(count):,}" for count in found)
    return first, second, third, fourth


def calibration_points(cells: Cells) -> list[tuple[float, float]]:
    """Mean stated risk and share of positive records, in at most `GROUPS` groups of about equal size."""
    counts = cells.counts.sum(axis=0).astype(float)
    risks = np.array([float(outcome.risk or 0.0) for outcome in cells.outcomes])
    size = counts.sum(axis=1)
    group = np.minimum((np.cumsum(size) - size / 2) * GROUPS // max(size.sum(), 1.0), GROUPS - 1)
    found = []
    for number in np.unique(group):
        mine = (group == number) & (size > 0)
        if mine.any():
            total = size[mine].sum()
            found.append((float(risks[mine] @ size[mine] / total), float(counts[mine, POSITIVE].sum() / total)))
    return found


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
