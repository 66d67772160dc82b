"""A noisy histogram that was published, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.weights import UNITS, Weight
from privsolve.evaluation.cells import Cells
from privsolve.evaluation.intervals import Figure, Moments
from privsolve.evaluation.words import figure_cells, main_figures, quality, rare_line, useless, where
from privsolve.models.outcomes import Outcome
from privsolve.notebooks import panel
from privsolve.privacy.guarantee import Guarantee

FIELDS = frozenset({"kind", "outcomes", "labels", "by", "groups", "tested", "counts", "guarantee"})
LARGEST = 2**53


class MeasuredOn(StrEnum):
    """Which records a model was evaluated on; it decides how the guarantees add up (theory, 11.5)."""

    HELD_OUT = "held out"
    """Split off at random before the fit: every record was in one of the two parts."""

    OTHERS = "other records"
    """Records of other people, none of whom was in the fit."""

    SAME = "the same people"
    """Records of people who may have been in the fit: the two guarantees add up."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Noisy counts by group, outcome and label, with what is promised for them.

    `kind` is what outcomes are called (total, or leaf), `labels` are the negative and the positive one in words, `groups`
    the public groups of the column `by`, or one group of all. With a `weight` counts are in units of 1/1024 of the largest
    weight.
    """

    kind: str
    outcomes: tuple[Outcome, ...]
    labels: tuple[str, str]
    counts: Int64Array
    tested: MeasuredOn
    guarantee: Guarantee
    by: str | None = None
    groups: tuple[str, ...] = ("all",)
    weight: Weight | None = None

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        if counts.shape != (len(self.groups), len(self.outcomes), 2) or not self.outcomes:
            raise ValueError("the evaluation's counts must have a number for every group, outcome and label")
        ranks = [outcome.rank for outcome in self.outcomes]
        if ranks != sorted(ranks):
            raise ValueError("the evaluation's outcomes must be in the order of their ranks")

    @property
    def scale(self) -> float:
        """Of the noise on every count: `1/ε`, or `2/ε` where a record may change its cell (theory, 11.1)."""
        return self.guarantee.adjacency.range_factor / self.guarantee.epsilon

    @property
    def cells(self) -> Cells:
        """The counts, with the moments of their noise: every figure is read off them."""
        if self.weight is None:
            return Cells(self.outcomes, self.counts, Moments.of_scale(self.scale))
        return Cells(self.outcomes, self.counts / UNITS, Moments.of_scale(self.scale, UNITS), self.weight)

    @property
    def accuracy(self) -> Figure:
        """The share of records whose decision is right."""
        return self.cells.accuracy()

    @property
    def auc(self) -> Figure:
        """The area under the ROC curve."""
        return self.cells.auc()

    def to_text(self) -> str:
        """The figures in words, one per line."""
        lead, *lines = quality(self)
        return "\n".join([f"How good it is: {lead}", *(f"  {line}" for line in lines)]) + "\n"

    __str__ = to_text

    def _repr_html_(self) -> str:
        rows = [(name, *figure_cells(figure)) for name, figure in main_figures(self.cells, self.labels)]
        notes = [where(self), *filter(None, [rare_line(self)]), f"Privacy: {self.guarantee.sentence()}"]
        heads = ("Figure", "Value", "95% interval", "Noise alone")
        return panel("How good it is", heads, rows, notes, [*filter(None, [useless(self)])])

    def of_group(self, name: str) -> Cells:
        """The counts of one group."""
        if name not in self.groups:
            raise ValueError(f"group must be one of {', '.join(self.groups)}, got {name!r}")
        return self.cells.group(self.groups.index(name))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "tested": str(self.tested),
            "labels": list(self.labels),
            "by": self.by,
            "groups": list(self.groups),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "counts": self.counts.tolist(),
            "guarantee": self.guarantee.to_dict(),
        } | ({} if self.weight is None else {"weight": self.weight.to_dict()})

    @classmethod
    def from_dict(cls, values: object) -> Evaluation:
        """The inverse of `to_dict`; errors say what is wrong."""
        if not isinstance(values, dict) or FIELDS ^ (set(values) - {"weight"}):
            raise ValueError("the release file's evaluation has missing or unknown fields")
        if values["tested"] not in tuple(MeasuredOn):
            raise ValueError(f"the release file's evaluation must be on one of {', '.join(MeasuredOn)}")
        labels, groups, kind, by = (values[name] for name in ("labels", "groups", "kind", "by"))
        lists = isinstance(labels, list) and isinstance(groups, list) and isinstance(values["outcomes"], list)
        if (
            not lists
            or len(labels) != 2
            or not all(isinstance(text, str) for text in (*labels, *groups, kind, "" if by is None else by))
        ):
            raise ValueError(
                "the release file's evaluation must list outcomes, groups and two labels, and name its kind"
            )
        outcomes = tuple(map(Outcome.from_dict, values["outcomes"]))
        return cls(
            kind,
            outcomes,
            (labels[0], labels[1]),
            _whole(values["counts"], (len(groups), len(outcomes), 2)),
            MeasuredOn(values["tested"]),
            Guarantee.from_dict(values["guarantee"]),
            by,
            tuple(groups),
            Weight.from_dict(values["weight"]) if "weight" in values else None,
        )


def _whole(values: object, shape: tuple[int, ...]) -> Int64Array:
    """Nested lists of whole numbers of this shape."""
    try:
        counts: Any = np.array(values, dtype=object)
    except ValueError:  # lists of other shapes
        counts = np.zeros(0)
    if counts.shape != shape or not all(type(count) is int and abs(count) < LARGEST for count in counts.ravel()):
        raise ValueError("the release file's evaluation must have a whole count for every group, outcome and label")
    return np.asarray(counts, dtype=np.int64)
