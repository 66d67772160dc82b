"""The risk of every total of a card: as a number, and as the lines of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from privsolve.models.odds import risk_at

MOST_TOTALS = 2_000
MOST_LINES = 20


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
    """A probability as people say it: whole percents, with one decimal below 1% and above 99%."""
    if 0.01 <= risk <= 0.99:
        return f"{math.floor(100 * risk + 0.5)}%"
    if risk < 0.001 or risk > 0.999:
        return "under 0.1%" if risk < 0.001 else "over 99.9%"
    return f"{100 * risk:.1f}%"


def risk_lines(scale: RiskScale, rows: Iterable[Iterable[int]]) -> tuple[RiskLine, ...]:
    """A line for each total that the answers can add up to; neighbours whose risks read the same are one.

    `rows` are the points of the answers to each question. Where there would be too many lines, each is for a round number of
    totals, such as 40 to 44.
    """
    totals = {0}
    for points in rows:
        totals = {total + p for total in totals for p in set(points)}
        if len(totals) > MOST_TOTALS:
            totals = set(range(min(totals), max(totals) + 1))
    found = [(total, scale.text(Fraction(total))) for total in sorted(totals)]
    lines = _runs(found, lambda line: line[1])
    if len(lines) <= MOST_LINES:
        return lines
    for step in (k * 10**e for e in range(9) for k in (2, 5, 10)):
        # many totals that read like the first or the last are one line
        ends = {text for _, text in (found[0], found[-1]) if sum(text == other for _, other in found) > step}
        lines = _runs(found, lambda line: line[1] if line[1] in ends else line[0] // step)  # noqa: B023
        if len(lines) <= MOST_LINES:
            break
    return lines


def _runs(found: Sequence[tuple[int, str]], key: Callable[[tuple[int, str]], object]) -> tuple[RiskLine, ...]:
    runs = [list(run) for _, run in groupby(found, key=key)]
    return tuple(RiskLine(run[0][0], run[-1][0], _range(run[0][1], run[-1][1])) for run in runs)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
