"""What the leaves of a decision tree may say, and what saying it costs: public tables of whole numbers.

The cost of a set of records is linear in a few whole *statistics* of it, so that an engine adds and subtracts cells as
integers and multiplies by `coefficients` at the end (theory, trees: loss and sensitivity).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from privsolve import registry
from privsolve.arrays import Int64Array
from privsolve.checks import check_finite, check_integer, check_items
from privsolve.data.columns import Value, check_values, value_text
from privsolve.data.columns.label import STEPS

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
    """The public values that leaves may say. A class with a `kind` of its own is registered under it."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Leaves]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the class under its kind."""
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            registry.enter(Leaves.kinds, cls, "leaves")

    @property
    @abstractmethod
    def coefficients(self) -> Int64Array:
        """One row per value: the cost of saying it is its row times the statistics of the records."""

    @property
    @abstractmethod
    def range(self) -> int:
        """The largest difference that the value of a leaf makes to one record (theory, trees)."""

    @abstractmethod
    def statistics(self, targets: Int64Array) -> Int64Array:
        """The statistics of single records with these coded targets, one row each."""

    @abstractmethod
    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """A value in words; `words` are what the labels are called, if not by themselves."""

    @abstractmethod
    def answers(self) -> NDArray[Any]:
        """What is predicted for every value."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the `kind`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: dict[str, Any]) -> Leaves:
        """The inverse of `to_dict`."""

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.coefficients)

    @property
    def width(self) -> int:
        """Number of statistics."""
        return int(self.coefficients.shape[1])


class _Classes(Leaves):
    """Leaves whose records have one of a few public labels; the statistics are counts."""

    labels: tuple[Value, ...]

    @property
    @abstractmethod
    def table(self) -> Int64Array:
        """`ℓ(y, v)`: one row per label, one column per value."""

    @property
    @abstractmethod
    def shares(self) -> NDArray[np.float64]:
        """What each value says of the probability of each label."""

    @property
    def coefficients(self) -> Int64Array:
        """The loss table, by value."""
        return np.ascontiguousarray(self.table.T)

    @property
    def range(self) -> int:
        """The largest spread of a row of the table."""
        return int(np.ptp(self.table, axis=1).max())

    def _named(self, label: int, words: Sequence[str] | None) -> str:
        return value_text(self.labels[label], "labels") if words is None else words[label]

    def statistics(self, targets: Int64Array) -> Int64Array:
        """A one in the column of the label."""
        return np.eye(len(self.labels), dtype=np.int64)[targets]

    def answers(self) -> NDArray[Any]:
        """The likeliest label of every value, the first of equally likely ones."""
        return np.asarray(label_array(self.labels)[self.shares.argmax(axis=1)])


@dataclass(frozen=True)
class LabelLeaves(_Classes):
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
        k = len(self.labels)
        return np.array(self.costs, dtype=np.int64) if self.costs else 1 - np.eye(k, dtype=np.int64)

    @property
    def shares(self) -> NDArray[np.float64]:
        """All or nothing."""
        return np.eye(len(self.labels))

    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """The label."""
        return self._named(value, words)

    def to_dict(self) -> dict[str, Any]:
        """Labels, and costs where there are some."""
        values: dict[str, Any] = {"kind": self.kind, "labels": list(self.labels)}
        return values | ({"costs": [list(row) for row in self.costs]} if self.costs else {})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> LabelLeaves:
        """The inverse of `to_dict`."""
        _check_fields(values, {"labels"}, {"costs"})
        return cls(values["labels"], values.get("costs"))


@dataclass(frozen=True)
class ProbabilityLeaves(_Classes):
    """A leaf says how likely each of the public `labels` is, by one of the rows of `table_of_shares`; the loss is Brier's.

    With two labels `grid` holds probabilities of the second one. With more, it holds probabilities of the likeliest label,
    the others sharing the rest equally, and a leaf may also say that all are equally likely.
    """

    labels: tuple[Value, ...]
    grid: tuple[float, ...]
    kind: ClassVar[str] = "probabilities"

    def __init__(self, labels: Sequence[Value], grid: Sequence[float] | None = None) -> None:
        object.__setattr__(self, "labels", _labels(labels))
        k = len(self.labels)
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
        k = len(self.labels)
        if k == 2:
            return np.array([[1 - share, share] for share in self.grid])
        rows = [np.full(k, 1 / k)]
        for c in range(k):
            for share in self.grid:
                row = np.full(k, (1 - share) / (k - 1))
                row[c] = share
                rows.append(row)
        return np.array(rows)

    @cached_property
    def table(self) -> Int64Array:
        """Half the squared distance to what is true, in whole units of 1/1000."""
        truth = np.eye(len(self.labels))
        half = 0.5 * ((truth[:, None, :] - self.shares[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.floor(UNIT * half + 0.5), dtype=np.int64)

    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """The likeliest label and its probability; with two labels the probability of the second."""
        share = self.shares[value]
        at = 1 if len(self.labels) == 2 else int(share.argmax())
        if len(self.labels) > 2 and value == 0:
            return "all equally likely"
        return f"{self._named(at, words)}: {100 * share[at]:.3g}%"

    def to_dict(self) -> dict[str, Any]:
        """Labels and grid."""
        return {"kind": self.kind, "labels": list(self.labels), "grid": list(self.grid)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ProbabilityLeaves:
        """The inverse of `to_dict`."""
        _check_fields(values, {"labels", "grid"})
        return cls(values["labels"], values["grid"])


@dataclass(frozen=True)
class NumberLeaves(Leaves):
    """A leaf says a number between public bounds, one of `choices` that are equally far apart; the loss is squared error.

    Targets are clipped to `low..high` and rounded to one of `steps + 1` points, equally far apart, from `low` to `high`;
    leaves say every `steps / (choices - 1)`-th of them.
    """

    low: float
    high: float
    choices: int = 21
    steps: int = STEPS
    kind: ClassVar[str] = "numbers"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, check_finite(name, getattr(self, name)))
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        check_integer("choices", self.choices, 2, LARGEST_VALUES)
        check_integer("steps", self.steps, 1, 1000)
        if self.steps % (self.choices - 1):
            raise ValueError(f"steps must be a multiple of choices - 1 = {self.choices - 1}, got {self.steps}")

    @property
    def points(self) -> Int64Array:
        """The values in steps."""
        return np.arange(self.choices, dtype=np.int64) * (self.steps // (self.choices - 1))

    @property
    def coefficients(self) -> Int64Array:
        """`v²` for every record and `-2v` for the sum of targets; the sum of their squares is the same for all trees."""
        return np.stack([self.points**2, -2 * self.points], axis=1)

    @cached_property
    def range(self) -> int:
        """The largest spread of `(t - v)²` over the values, of any target."""
        targets = np.arange(self.steps + 1)[:, None]
        return int(np.ptp((targets - self.points[None, :]) ** 2, axis=1).max())

    def coded(self, targets: ArrayLike) -> Int64Array:
        """Targets in steps, clipped and rounded one by one."""
        share = (np.clip(np.asarray(targets, dtype=np.float64), self.low, self.high) - self.low) / (
            self.high - self.low
        )
        return np.clip(np.floor(share * self.steps + 0.5), 0, self.steps).astype(np.int64)

    def statistics(self, targets: Int64Array) -> Int64Array:
        """One record, and its target."""
        return np.stack([np.ones_like(targets), targets], axis=1)

    def answers(self) -> NDArray[Any]:
        """The values as numbers."""
        return self.low + self.points * ((self.high - self.low) / self.steps)

    def text(self, value: int, words: Sequence[str] | None = None) -> str:
        """The number."""
        return f"{self.answers()[value]:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """Bounds and resolution."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "choices": self.choices, "steps": self.steps}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> NumberLeaves:
        _check_fields(values, {"low", "high", "choices", "steps"})
        return cls(values["low"], values["high"], values["choices"], values["steps"])


def leaves_from_dict(values: object) -> Leaves:
    """The inverse of `to_dict` of any kind."""
    cls: type[Leaves] = registry.look_up(Leaves.kinds, values, "leaves")
    assert isinstance(values, dict)
    return cls.from_dict(values)


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


def _check_fields(values: dict[str, Any], wanted: set[str], optional: set[str] | None = None) -> None:
    if wrong := wanted ^ (set(values) - {"kind"} - (optional or set())):
        raise ValueError(f"leaves have missing or unknown fields: {', '.join(sorted(wrong))}")
