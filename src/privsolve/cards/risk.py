"""The risk of every total of a card: as a number, and as the lines of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from privsolve.models.odds import risk_at

MOST_TOTALS = 2_000
MOST_LINES = 24


@dataclass(frozen=True)
class RiskScale:
    """What a total means: log-odds per point, and the total at which the risk is one half."""

    log_odds: float
    half: Fraction

    def risk(self, total: Fraction) -> float:
        """The risk of a total."""
        return risk_at(self.log_odds, total - self.half)

    def text(self, total: Fraction) -> str:
        """The risk in percent."""
        return percent(self.risk(total))


@dataclass(frozen=True)
class RiskLine:
    """A run of totals of about the same risk."""

    low: int
    high: int
    risk: str

    @property
    def totals(self) -> str:
        """The totals in words."""
        low, high = (str(value).replace("-", "−") for value in (self.low, self.high))
        return low if low == high else f"{low} to {high}"


def percent(risk: float) -> str:
    """A probability as people say it."""
    return f"{math.floor(100 * risk + 0.5)}%"


def risk_lines(scale: RiskScale, rows: Iterable[Iterable[int]]) -> tuple[RiskLine, ...]:
    """A line for each total that the answers can add up to; neighbours whose risks are equal in percent are one.

    `rows` are the points of the answers to each question. A scale that would have too many lines is told in steps.
    """
    totals = {0}
    for points in rows:
        totals = {total + p for total in totals for p in set(points)}
        if len(totals) > MOST_TOTALS:
            totals = set(range(min(totals), max(totals) + 1))
    runs = [list(run) for _, run in groupby(sorted(totals), key=lambda total: scale.text(Fraction(total)))]
    lines = [RiskLine(run[0], run[-1], scale.text(Fraction(run[0]))) for run in runs]
    step = -(-len(lines) // MOST_LINES)
    joined = [lines[i : i + step] for i in range(0, len(lines), step)]
    return tuple(RiskLine(part[0].low, part[-1].high, _range(part[0].risk, part[-1].risk)) for part in joined)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
