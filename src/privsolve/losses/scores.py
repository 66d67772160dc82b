"""Losses of a label and a score, as public integer tables: mistakes, any table, and losses of a predicted risk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between, check_integer, check_items
from privsolve.losses.base import COST_LIMIT, Loss
from privsolve.models.scales import FARTHEST_LOG_ODDS, check_log_odds, check_span, last_score, risks_of

LARGEST_WINDOW = 2**12
FARTHEST_SCORE = 2**20

ROUNDED_TO = 4096
"""Losses of risks are whole numbers of 1/4096 of the largest loss that a record can have."""


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


class RiskLoss(ScoreLoss):
    """A score of s points is a risk of `p(s) = 1 / (1 + exp(-log_odds·s))`, and a record loses by its risk and its label.

    Scores beyond log-odds of `±span` count as these: the loss is flat there. With the whole scale (5) that is below 0.7% and
    above 99.3%. A narrower span needs less noise, but cannot tell rare outcomes apart: with 1.5 it is flat below 18% (theory,
    13.1). Entries are rounded to whole numbers of 1/4096 once, by this public rule.
    """

    log_odds: float
    span: float

    @abstractmethod
    def of_risk(self, risk: Floats) -> Floats:
        """What a positive record loses at each risk, from 0 to 1; a negative one loses this at one minus the risk."""

    @property
    def first(self) -> int:
        """The lowest score of the window."""
        return -self.ends

    @property
    def ends(self) -> int:
        """The window of scores is `-ends..ends`."""
        return last_score(self.log_odds, self.span)

    @cached_property
    def risks(self) -> Floats:
        """The risk of each score of the window."""
        return risks_of(self.log_odds, np.arange(-self.ends, self.ends + 1))

    @cached_property
    def table(self) -> Int64Array:
        """The two tables."""
        losses = np.array([self.of_risk(self.risks), self.of_risk(1 - self.risks)])
        return np.floor(losses * ROUNDED_TO + 0.5).astype(np.int64)

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """The inverse of `to_dict`; where no span is stated it is the whole scale."""
        stated = isinstance(description, dict)
        return super().from_dict({"span": FARTHEST_LOG_ODDS} | description if stated else description)


@dataclass(frozen=True)
class BrierLoss(RiskLoss):
    """The squared difference between risk and outcome: bounded, and least on average where the risk is the true one."""

    log_odds: float = 0.5
    span: float = FARTHEST_LOG_ODDS
    kind: ClassVar[str] = "brier"

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_odds", check_log_odds(self.log_odds))
        object.__setattr__(self, "span", check_span(self.span))

    def of_risk(self, risk: Floats) -> Floats:
        """`(1 - p)²`."""
        return np.square(1 - risk)


@dataclass(frozen=True)
class LogLoss(RiskLoss):
    """Minus the logarithm of the probability given to what happened, at most `clip`, divided by `clip`."""

    log_odds: float = 0.5
    clip: float = 3.0
    span: float = FARTHEST_LOG_ODDS
    kind: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_odds", check_log_odds(self.log_odds))
        object.__setattr__(self, "span", check_span(self.span))
        object.__setattr__(self, "clip", check_between("clip", self.clip, 0.1, 4.0))
        if self.largest == 0:
            raise ValueError(f"clip={self.clip:g} is below what any risk within the span loses: raise clip or span")

    def of_risk(self, risk: Floats) -> Floats:
        """`min(-log p, clip) / clip`."""
        return np.minimum(-np.log(risk), self.clip) / self.clip
