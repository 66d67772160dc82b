"""What a model can say of a record, as a short public list: the totals of a card, the leaves of a tree.

Everything that is measured of a model (`privsolve.evaluation`) is counted by these, so that a model that lists its outcomes
can be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite
from privsolve.data import Schema
from privsolve.models.tally import Tally

MOST_OUTCOMES = 40
"""Totals beyond this are taken together, neighbours first: each one that is counted has noise of its own."""

FARTHEST = 6.0
"""Log-odds beyond which totals of a long risk score are taken together: risks below 0.25% and above 99.75%."""

MOST_TOTALS = 4096
"""Up to so many different totals are listed; beyond, only the lowest and the highest are known."""


@dataclass(frozen=True)
class Outcome:
    """One thing that a model can say. Of two outcomes the one of higher `rank` speaks more for the positive label; those of
    equal rank are not told apart. `positive` is the model's decision, `risk` the probability it states, if it does.
    """

    text: str
    rank: int
    positive: bool
    risk: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: object) -> Outcome:
        """The inverse of `to_dict`."""
        if not isinstance(values, dict) or {"text", "rank", "positive"} ^ (set(values) - {"risk"}):
            raise ValueError("an outcome in the release file has missing or unknown fields")
        text, rank, positive = values["text"], values["rank"], values["positive"]
        if not isinstance(text, str) or type(rank) is not int or not isinstance(positive, bool):
            raise ValueError("an outcome in the release file must have a text, a whole rank, and true or false")
        risk = values.get("risk")
        return cls(text, rank, positive, None if risk is None else check_finite("an outcome's risk", risk))


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of a model in ascending order of rank, and which one a record has.

    `number` maps rows of features of `schema` (`Schema.encode`, or the rows of its pattern table) to places in `listed`. It
    looks at one row at a time, so that a record is in one cell (theory, section 11).
    """

    listed: tuple[Outcome, ...]
    schema: Schema
    number: Callable[[Any], Int64Array]
    kind: str
    """What they are called: total, or leaf."""


def total_outcomes(tally: Tally, risk: Callable[[int], float] | None = None) -> Outcomes:
    """The totals of a card. `risk`, if given, is the probability that the model states at a total."""
    groups = _grouped(_reachable(tally), tally.threshold, risk)
    listed = []
    for rank, (low, high) in enumerate(groups):
        text = str(low) if low == high else f"{low} to {high}"
        stated = None if risk is None else (risk(low) + risk(high)) / 2
        listed.append(Outcome(text, rank, low >= tally.threshold, stated))
    starts = np.array([low for low, _ in groups[1:]], dtype=np.int64)

    def number(rows: Any) -> Int64Array:
        return np.searchsorted(starts, tally.of_features(rows), side="right").astype(np.int64)

    return Outcomes(tuple(listed), tally.schema, number, "total")


def _reachable(tally: Tally) -> list[int]:
    """All totals there can be; of very many, equally distant ones from the lowest to the highest."""
    found = {0}
    for entry in tally.entries:
        wide, mine = False, entry.printed.points
        if not isinstance(mine, tuple):
            low, high = entry.column.range
            wide = high - low > MOST_TOTALS
            mine = tuple(step * mine for step in ((low, high) if wide else range(low, high + 1)))
        found = {total + points for total in found for points in mine}
        if wide or len(found) > MOST_TOTALS:
            low, high = min(found), max(found)
            found = {low + (high - low) * i // (4 * MOST_OUTCOMES) for i in range(4 * MOST_OUTCOMES + 1)}
    return sorted(found)


def _grouped(
    totals: Sequence[int], threshold: int, risk: Callable[[int], float] | None = None
) -> list[tuple[int, int]]:
    """Runs of totals, at most `MOST_OUTCOMES`, none of which has the threshold inside.

    Where totals have risks, runs are equally wide in log-odds from `-FARTHEST` to `FARTHEST`, and what lies beyond is one run
    on each side: most records of a long card have totals in a small part of its range.
    """
    sides = [[t for t in totals if t < threshold], [t for t in totals if t >= threshold]]
    runs: list[tuple[int, int]] = []
    for side in filter(None, sides):
        if risk is not None and len(totals) > MOST_OUTCOMES:
            parts = [list(run) for _, run in groupby(side, key=lambda t: _place(risk(t)))]
            runs += [(part[0], part[-1]) for part in parts]
            continue
        room = max(1, MOST_OUTCOMES * len(side) // len(totals)) if len(totals) > MOST_OUTCOMES else len(side)
        edges = [len(side) * i // room for i in range(room + 1)]
        runs += [(side[a], side[b - 1]) for a, b in pairwise(edges)]
    return runs


def _place(risk: float) -> int:
    """Which of the equal parts of the log-odds a risk lies in: all but three of `MOST_OUTCOMES`, and the two beyond."""
    odds = math.log(max(risk, 1e-300) / max(1 - risk, 1e-300))
    return math.floor(min(max(odds / FARTHEST, -1.0), 1.0) * (MOST_OUTCOMES - 3) / 2)
