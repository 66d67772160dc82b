"""Losses that are only stated, a user's own and linear costs: what is public about them sets the noise (theory, section 15)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privsolve.checks import check_integer, check_positive
from privsolve.losses.base import COST_LIMIT, Loss
from privsolve.privacy.adjacency import Adjacency

ROUNDING = 1.0 + 2.0**-20
"""Rounding to whole steps moves the difference of two losses by less than this, the division in floats included."""

UPWARDS = 1.0 + 2.0**-40
"""More than the floats in a bound can lose."""


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
    if not isinstance(step, str) or (step and not (_fraction(step) or 0) > 0):
        raise ValueError("step must be the text of a positive number, or empty")


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


@dataclass(frozen=True)
class LinearLoss(Loss):
    """Linear costs; over the domain no record's loss varies by more than the public number `largest`."""

    largest: int
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))
