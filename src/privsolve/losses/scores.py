"""Losses of a label and a score, as public integer tables: mistakes, and any table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer, check_items
from privsolve.losses.base import COST_LIMIT, Loss

LARGEST_WINDOW = 2**12
FARTHEST_SCORE = 2**20


class ScoreLoss(Loss):
    """A record with label y and score s loses `ℓ(y, ⌈s⌉)`: an entry of one of two public tables of integers.

    Scores are rounded up to whole points, so that "above 0" is "1 or more". The tables speak of the scores `first`,
    `first + 1`, ...; a score beyond either end counts as that end.
    """

    @property
    @abstractmethod
    def first(self) -> int:
        """The score of the first entry."""

    @property
    @abstractmethod
    def table(self) -> Int64Array:
        """`table[0]` is what a positive record loses at each score of the window, `table[1]` a negative one."""

    @property
    def largest(self) -> int:
        """The range: the most by which one record's loss can vary over scores, the larger of the two labels'."""
        return int(np.ptp(self.table, axis=1).max())

    @property
    def highest(self) -> int:
        """The largest entry."""
        return int(self.table.max())

    @property
    def is_step(self) -> bool:
        """Whether only the sign of a score matters: one step, from 0 to 1."""
        return self.first == 0 and self.table.shape[1] == 2

    def entries(self, scores: Int64Array, unit: int = 1) -> Int64Array:
        """Which entry of the tables each score, in units of `1 / unit` points, falls on."""
        return np.clip(-(-scores // unit) - self.first, 0, self.table.shape[1] - 1)


@dataclass(frozen=True, init=False)
class ScoreTable(ScoreLoss):
    """Any two tables over a window of scores: `positive[i]` and `negative[i]` are lost at the score `start + i`.

    Entries are integers from 0 to 2^20 in a unit of your choice; rounding to it is a public rule, made once.
    """

    start: int
    positive: tuple[int, ...]
    negative: tuple[int, ...]
    kind: ClassVar[str] = "score-table"

    def __init__(self, start: int, positive: Sequence[int], negative: Sequence[int]) -> None:
        set_field = object.__setattr__
        set_field(self, "start", check_integer("start", start, -FARTHEST_SCORE, FARTHEST_SCORE))
        set_field(self, "positive", _entries(positive, "positive"))
        set_field(self, "negative", _entries(negative, "negative"))
        if len(self.positive) != len(self.negative):
            raise ValueError(
                f"positive and negative must have one entry per score, got {len(self.positive)} and {len(self.negative)}"
            )
        if self.largest == 0:
            raise ValueError("positive and negative are both constant: some score must cost more than another")

    @property
    def first(self) -> int:
        """The score of the first entry."""
        return self.start

    @cached_property
    def table(self) -> Int64Array:
        """The two tables."""
        return np.array([self.positive, self.negative], dtype=np.int64)


def _entries(values: Sequence[int], name: str) -> tuple[int, ...]:
    """The entries as Python integers; raise for anything else."""
    wanted = f"be a list of 1 to {LARGEST_WINDOW:,} integers, one per score"
    listed = check_items(name, values, wanted)
    if not 1 <= len(listed) <= LARGEST_WINDOW:
        raise ValueError(f"{name} must {wanted}, got {len(listed):,}")
    return tuple(check_integer(name, value, 0, COST_LIMIT) for value in listed)


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
