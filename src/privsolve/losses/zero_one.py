"""Mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.losses.base import COST_LIMIT
from privsolve.losses.scores import ScoreLoss


@dataclass(frozen=True)
class ZeroOneLoss(ScoreLoss):
    """Mistakes, with public integer costs for false positives and false negatives (1 and 1: plain 0/1 loss).

    A record is predicted positive iff its score is above 0: the table with one step, from 0 to 1.
    """

    false_positive: int = 1
    false_negative: int = 1
    kind: ClassVar[str] = "zero-one"

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 0, COST_LIMIT))
        if max(self.false_positive, self.false_negative) == 0:
            raise ValueError("false_positive and false_negative are both 0: at least one mistake must cost something")

    @property
    def first(self) -> int:
        """Scores of 0 and less are predicted negative."""
        return 0

    @cached_property
    def table(self) -> Int64Array:
        """A positive record costs `false_negative` at 0, a negative one `false_positive` at 1."""
        return np.array([[self.false_negative, 0], [0, self.false_positive]])
