"""What a record loses: mistakes with public costs, linear costs, and what is stated of a loss of your own (section 15)."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privsolve import registry
from privsolve.arrays import plain
from privsolve.checks import check_integer, check_positive
from privsolve.privacy.adjacency import Adjacency

COST_LIMIT = 2**20

ROUNDING = 1.0 + 2.0**-20
"""Rounding to whole steps moves the difference of two losses by less than this, the division in floats included."""

UPWARDS = 1.0 + 2.0**-40
"""More than the floats in a bound can lose."""

_KINDS: dict[str, type[Loss]] = {}


class Loss(ABC):
    """The loss of one record, in integers of a public unit. Fixed without looking at any record.

    A subclass is a frozen dataclass with a `kind` of its own; stating it registers the class, so that its losses are
    written into releases and read back. `largest` is the range of one record's loss: the sensitivity `Δ` is this times
    `range_factor`.
    """

    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def largest(self) -> int: ...  # noqa: D102

    def within(self, distance_sq: int) -> float:
        """How much one record's loss can differ between two members at this squared distance: `largest` unless more is known.

        It may grow with the distance, but not faster than its square (theory, section 15).
        """
        return self.largest

    def range_factor(self, adjacency: Adjacency) -> int:
        """`Δ` over `largest`: 2 if a record is replaced, 1 if one is added or removed (theory, section 0)."""
        return adjacency.range_factor

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            registry.enter(_KINDS, cls, "loss")

    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release: the kind and the fields."""
        return {"kind": self.kind} | {f.name: plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """The inverse of `to_dict`."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if not isinstance(description, dict) or set(description) != {"kind", *names}:
            raise ValueError(f"loss must have the fields kind, {' and '.join(names)}")
        return cls(**{name: description[name] for name in names})


def loss_from_dict(description: Any) -> Loss:
    """The inverse of a loss's `to_dict`, whatever its kind."""
    cls: type[Loss] = registry.look_up(_KINDS, description, "the release file's loss")
    return cls.from_dict(description)


@dataclass(frozen=True)
class StatedLoss(Loss):
    """Losses in whole steps that vary over the domain by at most `largest`, and between members by their distance.

    `lipschitz` is in steps per unit of Euclidean distance, before rounding. `step` is the public unit that losses were
    rounded to, empty if they are whole numbers as they are. `clipped` says that larger ones were cut to the bound.
    """

    largest: int
    lipschitz: float | None = None
    step: str = ""
    clipped: bool = False
    kind: ClassVar[str] = "stated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))
        if self.lipschitz is not None:
            object.__setattr__(self, "lipschitz", check_positive("lipschitz", self.lipschitz))
        if not isinstance(self.clipped, bool):
            raise ValueError("clipped must be true or false")
        _check_step(self.step)

    @property
    def slack(self) -> float:
        """What rounding adds to the difference of two losses."""
        return ROUNDING if self.step else 0.0

    def within(self, distance_sq: int) -> float:
        """The smaller of `largest` and `G·distance`, with what rounding adds to it (theory, section 15)."""
        if self.lipschitz is None:
            return self.largest
        return min(float(self.largest), (self.lipschitz * math.sqrt(distance_sq) + self.slack) * UPWARDS)

    def quality(self, total: int, records: int) -> dict[str, float]:
        """A total in steps, and per record in the user's unit. Data-dependent: not for publication."""
        return {"total_loss": total, "loss_per_record": float(total * Fraction(self.step or 1) / records)}


@dataclass(frozen=True)
class TotalLoss(Loss):
    """A total that is no sum over records: one record changed, added or removed moves it by at most `largest` steps.

    `step` is the public unit that totals were rounded to, empty if they are whole numbers as they are.
    """

    largest: int
    step: str = ""
    kind: ClassVar[str] = "total"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))
        _check_step(self.step)

    def range_factor(self, adjacency: Adjacency) -> int:
        """Always 2: the totals of two members may move in opposite directions (theory, section 15.5)."""
        return 2

    def quality(self, total: int, records: int) -> dict[str, float]:
        """The total in steps and in the user's unit. Data-dependent: not for publication."""
        return {"total_loss": total, "loss": float(total * Fraction(self.step or 1))}


def _check_step(step: object) -> None:
    try:
        right = isinstance(step, str) and (not step or Fraction(step) > 0)
    except (ValueError, ZeroDivisionError):
        right = False
    if not right:
        raise ValueError("step must be the text of a positive number, or empty")


@dataclass(frozen=True)
class LinearLoss(Loss):
    """Linear costs; over the domain no record's loss varies by more than the public number `largest`."""

    largest: int
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))


@dataclass(frozen=True)
class ZeroOneLoss(Loss):
    """Mistakes, with public integer costs for false positives and false negatives (1 and 1: plain 0/1 loss).

    A record is predicted positive iff its score is above 0.
    """

    false_positive: int = 1
    false_negative: int = 1
    kind: ClassVar[str] = "zero-one"

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 0, COST_LIMIT))
        if self.largest == 0:
            raise ValueError("false_positive and false_negative are both 0: at least one mistake must cost something")

    @property
    def largest(self) -> int:
        """The larger cost."""
        return max(self.false_positive, self.false_negative)
