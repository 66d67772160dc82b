"""What every total of a card means, as the lines of a table: its risk or number, and its band."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from privsolve.models.number_card import NumberScale
from privsolve.models.odds import RiskScale

MOST_TOTALS = 2_000
MOST_LINES = 20

Read = tuple[int, str, int]
"""A total, its risk or number in words, and the number of its band."""


@dataclass(frozen=True)
class TotalLine:
    """A run of totals of about the same risk and of one band, by its number."""

    low: int
    high: int
    risk: str
    band: int = 0

    @property
    def totals(self) -> str:
        """The totals in words."""
        low, high = (str(value).replace("-", "−") for value in (self.low, self.high))
        return low if low == high else f"{low} to {high}"


def total_lines(
    rows: Iterable[Iterable[int]], scale: RiskScale | NumberScale | None = None, starts: Sequence[Fraction] = ()
) -> tuple[TotalLine, ...]:
    """A line for each total that the answers can add up to; neighbours of one band whose risks read the same are one.

    `rows` are the points of the answers to each question, `starts` the least totals of all bands but the first. Where there
    would be too many lines, each is for a round number of totals, such as 40 to 44.
    """
    totals = {0}
    for points in rows:
        totals = {total + p for total in totals for p in set(points)}
        if len(totals) > MOST_TOTALS:
            totals = set(range(min(totals), max(totals) + 1))
    found = [
        (total, "" if scale is None else scale.text(Fraction(total)), bisect_right(starts, total))
        for total in sorted(totals)
    ]
    lines = _runs(found, lambda line: line[1])
    if len(lines) <= MOST_LINES:
        return lines
    for step in (k * 10**e for e in range(9) for k in (2, 5, 10)):
        # many totals that read like the first or the last are one line
        ends = {text for _, text, _ in (found[0], found[-1]) if sum(text == other for _, other, _ in found) > step}
        lines = _runs(found, lambda line: line[1] if line[1] in ends else line[0] // step)  # noqa: B023
        if len(lines) <= MOST_LINES + len(starts):
            break
    return lines


def _runs(found: Sequence[Read], key: Callable[[Read], object]) -> tuple[TotalLine, ...]:
    runs = [list(run) for _, run in groupby(found, key=lambda line: (line[2], key(line)))]
    return tuple(TotalLine(run[0][0], run[-1][0], _range(run[0][1], run[-1][1]), run[0][2]) for run in runs)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
