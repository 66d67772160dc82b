"""Risks by log-odds: what a score of whole points means, with ends beyond which risks do not go."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between

FARTHEST_LOG_ODDS = 5.0
"""Risks end where the log-odds do, at 0.7% and 99.3%: low enough for rare outcomes, and one record can move hardly more."""

FARTHEST_CUT = 2**20
"""No score of a card is as large."""

LEAST_UNIT, LARGEST_UNIT = 0.01, 3.5


def check_log_odds(value: object, name: str = "log_odds") -> float:
    """Log-odds per point."""
    return check_between(name, value, LEAST_UNIT, LARGEST_UNIT)


def check_span(value: object) -> float:
    """Log-odds beyond which a loss does not tell scores apart."""
    return check_between("span", value, LEAST_UNIT, FARTHEST_LOG_ODDS)


def last_score(log_odds: float, span: float = FARTHEST_LOG_ODDS) -> int:
    """Scores beyond plus or minus this count as it."""
    return max(1, math.floor(span / log_odds))


def risks_of(log_odds: float, scores: Int64Array) -> Floats:
    """The risk at each whole score: `1 / (1 + exp(-log_odds·s))`."""
    ends = last_score(log_odds)
    return np.asarray(1 / (1 + np.exp(-log_odds * np.clip(scores, -ends, ends))))


def risk_at(log_odds: float, score: Fraction) -> float:
    """The risk at one score, which is rounded up to whole points as the loss does."""
    return float(risks_of(log_odds, np.array([math.ceil(score)]))[0])


def cut_of_threshold(log_odds: float, threshold: float) -> int:
    """The largest whole score whose risk is not above a threshold: scores above it are decided positive.

    Where all risks are above it, or none, no score that a card can have lies on the other side.
    """
    threshold = check_between("threshold", threshold, 0.0, 1.0)
    scores = np.arange(-last_score(log_odds), last_score(log_odds) + 1)
    above = scores[risks_of(log_odds, scores) > threshold]
    if len(above) in (0, len(scores)):
        return -FARTHEST_CUT if len(above) else FARTHEST_CUT
    return int(above[0]) - 1
