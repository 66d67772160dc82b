"""Linear costs, for assignments, subsets and spanning trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privsolve.checks import check_integer
from privsolve.losses.base import COST_LIMIT, Loss


@dataclass(frozen=True)
class LinearLoss(Loss):
    """Linear costs; over the domain no record's loss varies by more than the public number `largest`."""

    largest: int
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))
