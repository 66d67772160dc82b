"""Losses of a predicted risk: Brier and log loss, as public tables over scores (theory, risk scores)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between
from privsolve.losses.scores import ScoreLoss
from privsolve.models.odds import FARTHEST_LOG_ODDS, check_log_odds, check_span, last_score, risks_of

ROUNDED_TO = 4096
"""Entries are whole numbers of 1/4096 of the largest loss that a record can have."""


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
