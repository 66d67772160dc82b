"""What the leaves of a decision tree may say, and what saying it costs: public tables of whole numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privsolve import registry
from privsolve.arrays import Int64Array, plain
from privsolve.checks import check_finite, check_integer, check_items
from privsolve.data.columns import Value, check_values, value_text

COST_LIMIT = 2**20
LARGEST_VALUES = 200
UNIT = 1000
"""A Brier loss of 1 in whole numbers."""

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Probabilities that leaves may say, where nothing else is asked for."""

CONFIDENCES = (0.4, 0.6, 0.8, 0.9, 0.97)
"""Probabilities of the likeliest of three or more labels."""


class LeafKind(StrEnum):
    """What the leaves of a tree of classes say."""

    LABELS = "labels"
    """A class, chosen by mistakes and their costs."""

    PROBABILITIES = "probabilities"
    """Probabilities of the classes, chosen by Brier's loss."""


class Leaves(ABC):
    """The public values that leaves may say of records with one of a few public `labels`.

    The cost of a set of records follows from how many of them have each label, so that an engine adds and subtracts whole
    counts and multiplies by the `table` at the end (theory, trees: loss and sensitivity).
    """

    kind: ClassVar[str]
    labels: tuple[Value, ...]

    @property
    @abstractmethod
    def table(self) -> Int64Array:
        """`ℓ(y, v)`: one row per label, one column per value."""

    @property
    @abstractmethod
    def shares(self) -> NDArray[np.float64]:
        """What each value says of the probability of each label."""

    @abstractmethod
    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """A value in words; `words` are what the labels are called, if not by themselves."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the `kind`; what was not stated is left out."""
        stated = {f.name: plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind} | {name: value for name, value in stated.items() if value is not None}

    @property
    def range(self) -> int:
        """The largest difference that the value of a leaf makes to one record (theory, trees)."""
        return int(np.ptp(self.table, axis=1).max())

    @property
    def size(self) -> int:
        """Number of values."""
        return int(self.table.shape[1])

    @property
    def width(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def answers(self) -> NDArray[Any]:
        """The likeliest label of every value, the first of equally likely ones."""
        return np.asarray(label_array(self.labels)[self.shares.argmax(axis=1)])

    def _named(self, label: int, words: Sequence[str] | None) -> str:
        return value_text(self.labels[label], "labels") if words is None else words[label]


@dataclass(frozen=True)
class LabelLeaves(Leaves):
    """A leaf says one of the public `labels`. `costs[y][v]` is what saying label v costs for a record of label y; 1 for
    every mistake if left out.
    """

    labels: tuple[Value, ...]
    costs: tuple[tuple[int, ...], ...] | None = None
    kind: ClassVar[str] = "labels"

    def __init__(self, labels: Sequence[Value], costs: Sequence[Sequence[int]] | None = None) -> None:
        object.__setattr__(self, "labels", _labels(labels))
        k = len(self.labels)
        rows = None
        if costs is not None:
            wanted = f"have a row and a column for each of the {k} labels"
            listed = [check_items("costs", row, wanted) for row in check_items("costs", costs, wanted)]
            if len(listed) != k or any(len(row) != k for row in listed):
                raise ValueError(f"costs must {wanted}")
            rows = tuple(tuple(check_integer("costs", cost, 0, COST_LIMIT) for cost in row) for row in listed)
            if all(max(row) == min(row) for row in rows):
                raise ValueError("costs do not depend on what a leaf says: at least one mistake must cost something")
        object.__setattr__(self, "costs", rows)

    @cached_property
    def table(self) -> Int64Array:
        """The costs."""
        return np.array(self.costs, dtype=np.int64) if self.costs else 1 - np.eye(self.width, dtype=np.int64)

    @property
    def shares(self) -> NDArray[np.float64]:
        """All or nothing."""
        return np.eye(self.width)

    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """The label."""
        return self._named(value, words)


@dataclass(frozen=True)
class ProbabilityLeaves(Leaves):
    """A leaf says how likely each of the public `labels` is, by one of the rows of `shares`; the loss is Brier's.

    With two labels `grid` holds probabilities of the second one. With more, it holds probabilities of the likeliest label,
    the others sharing the rest equally, and a leaf may also say that all are equally likely.
    """

    labels: tuple[Value, ...]
    grid: tuple[float, ...]
    kind: ClassVar[str] = "probabilities"

    def __init__(self, labels: Sequence[Value], grid: Sequence[float] | None = None) -> None:
        object.__setattr__(self, "labels", _labels(labels))
        k = self.width
        stated = grid if grid is not None else SHARES if k == 2 else tuple(c for c in CONFIDENCES if c > 1.5 / k)
        shares = tuple(check_finite("grid", share) for share in stated)
        low = 0.0 if k == 2 else 1 / k
        if len(shares) < 2 - (k > 2) or list(shares) != sorted(set(shares)):
            raise ValueError("grid must list probabilities in ascending order without repeats, two at least")
        if not all(low <= share <= 1 for share in shares) or (k > 2 and shares[0] == low):
            raise ValueError(f"grid must lie {'between 0' if k == 2 else f'above 1/{k}'} and 1, got {list(shares)}")
        object.__setattr__(self, "grid", shares)
        if self.size > LARGEST_VALUES:
            raise ValueError(f"leaves can say at most {LARGEST_VALUES} different values, got {self.size}")
        if self.range == 0:
            raise ValueError("grid has values so close that all cost the same: spread them")

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The probabilities of the labels, by value."""
        k = self.width
        if k == 2:
            return np.array([[1 - share, share] for share in self.grid])
        likeliest = [np.where(np.arange(k) == c, p, (1 - p) / (k - 1)) for c in range(k) for p in self.grid]
        return np.array([np.full(k, 1 / k), *likeliest])

    @cached_property
    def table(self) -> Int64Array:
        """Half the squared distance to what is true, in whole units of 1/1000."""
        truth = np.eye(self.width)
        half = 0.5 * ((truth[:, None, :] - self.shares[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.floor(UNIT * half + 0.5), dtype=np.int64)

    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """The likeliest label and its probability; with two labels the probability of the second."""
        share = self.shares[value]
        at = 1 if self.width == 2 else int(share.argmax())
        if self.width > 2 and value == 0:
            return "all equally likely"
        return f"{self._named(at, words)}: {100 * share[at]:.3g}%"


def leaves_from_dict(values: object) -> Leaves:
    """The inverse of `to_dict` of either kind."""
    if isinstance(values, dict) and values.get("kind") == "numbers":
        raise ValueError(
            "leaves: trees for a number are not read any more: use the version that wrote the file, or fit a full scorecard "
            "for the number (PrivateScorecardRegressor)"
        )
    cls: type[LabelLeaves | ProbabilityLeaves] = registry.look_up(
        {"labels": LabelLeaves, "probabilities": ProbabilityLeaves}, values, "leaves"
    )
    assert isinstance(values, dict)
    stated = {name: value for name, value in values.items() if name != "kind"}
    wanted, optional = ({"labels"}, {"costs"}) if cls is LabelLeaves else ({"labels", "grid"}, set())
    if wrong := wanted ^ (set(stated) - optional):
        raise ValueError(f"leaves have missing or unknown fields: {', '.join(sorted(wrong))}")
    return cls(**stated)


def label_array(labels: Sequence[Value]) -> NDArray[Any]:
    """Labels as an array of their own type, or of objects where they have several."""
    kinds = {type(label) for label in labels}
    return np.array(labels) if len(kinds) == 1 else np.array(labels, dtype=object)


def _labels(labels: Sequence[Value]) -> tuple[Value, ...]:
    if isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) < 2:
        raise ValueError("labels must list two or more different labels")
    if len(labels) > LARGEST_VALUES:
        raise ValueError(f"labels must be at most {LARGEST_VALUES}, got {len(labels)}")
    check_values(list(labels), "labels")
    return tuple(labels)
