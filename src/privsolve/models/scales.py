"""What a total means: a risk, by log-odds, or a predicted number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between

FARTHEST_CUT = 2**20
"""No score of a card is as large."""

LEAST_UNIT, LARGEST_UNIT = 1e-4, 3.5
"""Of the log-odds of one point."""


def risks_of(log_odds: float, scores: NDArray[Any]) -> Floats:
    """The risk at each score: `1 / (1 + exp(-log_odds·s))`."""
    return np.asarray(expit(log_odds * np.asarray(scores, dtype=np.float64)))


@dataclass(frozen=True)
class RiskScale:
    """What a total means: log-odds per point, and the total at which the risk is one half."""

    log_odds: float
    half: float

    def risk(self, total: int) -> float:
        """The risk of a total."""
        return float(expit(self.log_odds * (total - self.half)))

    def risks(self, totals: Int64Array) -> Floats:
        """The risks of many totals."""
        return risks_of(self.log_odds, totals - self.half)

    def text(self, total: int) -> str:
        """The risk in percent."""
        return percent(self.risk(total))

    def first_above(self, risk: float) -> int:
        """The least total whose risk is above this one."""
        total = math.floor(math.log(risk / (1 - risk)) / self.log_odds + self.half)
        while self.risk(total) > risk:
            total -= 1
        while self.risk(total) <= risk:
            total += 1
        return total


def percent(risk: float) -> str:
    """A probability as people say it: whole percents, with one decimal below 1% and above 99%."""
    if 0.01 <= risk <= 0.99:
        return f"{math.floor(100 * risk + 0.5)}%"
    if risk < 0.001 or risk > 0.999:
        return "under 0.1%" if risk < 0.001 else "over 99.9%"
    return f"{100 * risk:.1f}%"


@dataclass(frozen=True)
class NumberScale:
    """What a total means: `start + per_point × total`, cut to `low..high`, for an outcome that is called `name`."""

    name: str
    start: float
    per_point: float
    low: float
    high: float

    def numbers(self, totals: Any) -> Any:
        """What is predicted at totals."""
        return np.clip(self.start + self.per_point * np.asarray(totals, dtype=np.float64), self.low, self.high)

    def figures(self, value: float, more: int = 0) -> str:
        """A number to about a hundredth of the distance between the bounds, with so many decimals more."""
        decimals = max(0, math.ceil(2 - math.log10(self.high - self.low))) + more
        return f"{round(float(value), decimals) + 0.0:,.{decimals}f}".replace("-", "−")

    @property
    def formula(self) -> str:
        """The prediction as a sum, before it is cut to the bounds."""
        return f"{self.figures(self.start, 1)} + {self.figures(self.per_point, 3)} × total"

    def text(self, total: int) -> str:
        """What is predicted at a total, in figures."""
        return self.figures(self.numbers(float(total)))


def cut_of_threshold(log_odds: float, threshold: float, base: float = 0.0) -> int:
    """The largest whole score whose risk is not above a threshold: scores above it are decided positive.

    Args:
        log_odds: what one point adds to the log-odds.
        threshold: the risk, from 0 to 1.
        base: the log-odds of score 0.

    Returns:
        The cut. At the thresholds 0 and 1 all scores lie on one side of it.
    """
    threshold = check_between("threshold", threshold, 0.0, 1.0)
    if threshold in (0.0, 1.0):
        return FARTHEST_CUT if threshold else -FARTHEST_CUT
    cut = math.floor((math.log(threshold / (1 - threshold)) - base) / log_odds)
    cut += int(expit(log_odds * (cut + 1) + base) <= threshold) - int(expit(log_odds * cut + base) > threshold)
    return max(-FARTHEST_CUT, min(FARTHEST_CUT, cut))
