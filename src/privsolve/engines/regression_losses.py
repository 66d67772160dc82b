"""The losses of a regression: what a row's records cost as a function of its score (theory, sections 19.1 and 20.1).

Each loss is convex, and linear where its slope would exceed a cap: the cap is a public function of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from privsolve.arrays import Floats, Int64Array

UNIT_ROUNDOFF = 2.0**-53
EXPIT_ERROR = 2.0**-48
"""Allowed for SciPy's logistic function; `privsolve.noise.accuracy` checks it before anything is paid for."""


class RowLosses(Protocol):
    """The losses of the records of all rows. `place` says which rows scores and caps belong to."""

    def counts(self, place: slice) -> Int64Array | Floats:
        """Number of records of some rows, or the sum of their weights, multiples of `2^-10`."""

    def sampled(self, some: slice, share: float) -> RowLosses:
        """The losses of some rows only, times a share, so that they stand for all records."""

    def value(self, scores: Floats, cap: Floats, place: slice) -> float:
        """The total loss of some rows."""

    def slopes(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The derivative of the loss of every row by its score, summed over its records."""

    def curvatures(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The second derivative of the loss of every row by its score, summed over its records."""

    def slope_error(self, score_error: float) -> float:
        """How far the computed slope of one record may be off if its score is off by `score_error` (section 19.6)."""


@dataclass(frozen=True)
class Logistic:
    """`log(1 + e^-u)` with the margin u: labels. A sample of rows has numbers that stand for all records."""

    positives: Int64Array | Floats
    negatives: Int64Array | Floats

    def counts(self, place: slice) -> Int64Array | Floats:
        """Number of records of some rows, or the sum of their weights, multiples of `2^-10`."""
        return np.asarray(self.positives[place] + self.negatives[place])

    def sampled(self, some: slice, share: float) -> Logistic:
        """The losses of some rows only, times a share."""
        return Logistic(*(np.asarray(counts[some] * share) for counts in (self.positives, self.negatives)))

    def value(self, scores: Floats, cap: Floats, place: slice) -> float:
        """The total loss of some rows: linear beyond the score against the label at which the slope is the cap."""
        safe = np.where(cap < 1, cap, 0.5)
        kink = np.where(cap < 1, np.log(safe / (1 - safe)), np.finfo(float).max)
        total = 0.0
        for count, against in ((self.negatives[place], scores), (self.positives[place], -scores)):
            inside = np.minimum(against, kink)
            total += float(count @ (np.logaddexp(0.0, inside) + cap * (against - inside)))
        return total

    def slopes(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(
            self.negatives[place] * np.minimum(expit(scores), cap)
            - self.positives[place] * np.minimum(expit(-scores), cap)
        )

    def curvatures(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The second derivative of the loss of every row by its score, summed over its records."""
        risk = expit(scores)
        count = self.negatives[place] * (risk <= cap) + self.positives[place] * (1 - risk <= cap)
        return np.asarray(count * risk * (1 - risk))

    def slope_error(self, score_error: float) -> float:
        """The slope changes by a quarter of the score at most."""
        return score_error / 4 + EXPIT_ERROR + 8 * UNIT_ROUNDOFF


@dataclass(frozen=True)
class Huber:
    """`r²/2` with the residual r, linear where |r| is above the cap: numbers. Each row has one target."""

    targets: Floats
    records: Int64Array | Floats

    def counts(self, place: slice) -> Int64Array | Floats:
        """Number of records of some rows."""
        return self.records[place]

    def sampled(self, some: slice, share: float) -> Huber:
        """The losses of some rows only, times a share."""
        return Huber(self.targets[some], np.asarray(self.records[some] * share))

    def value(self, scores: Floats, cap: Floats, place: slice) -> float:
        """The total loss of some rows."""
        off = np.abs(scores - self.targets[place])
        inside = np.minimum(off, cap)
        return float(self.records[place] @ (inside**2 / 2 + cap * (off - inside)))

    def slopes(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(self.records[place] * np.clip(scores - self.targets[place], -cap, cap))

    def curvatures(self, scores: Floats, cap: Floats, place: slice) -> Floats:
        """The second derivative of the loss of every row by its score, summed over its records."""
        return np.asarray(self.records[place] * (np.abs(scores - self.targets[place]) <= cap), dtype=np.float64)

    def slope_error(self, score_error: float) -> float:
        """The slope changes as much as the score does; caps are at most 1 (section 20)."""
        return score_error + 8 * UNIT_ROUNDOFF
