"""What a scorecard asks: each column of the data as one question that a person can answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One possible answer, and the 0/1 features that are 1 for it (none, one, or several for cumulative bins)."""

    text: str
    features: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A column whose value falls into exactly one of a few public options."""

    column: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Quantity:
    """A number between public bounds: clipped, the feature is `floor(value / step + 1/2)`, and scores `w / scale` each."""

    column: str
    feature: str
    low: float
    high: float
    step: float
    scale: int


Question = Choice | Quantity
