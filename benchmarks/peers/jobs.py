"""What the harness asks of a worker and what it gets back; needs numpy alone, so that it runs in every environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """One fit. `epsilon` is None without privacy; `delta` is 0 for pure guarantees."""

    exchange: str
    model: str
    options: dict[str, Any]
    epsilon: float | None
    delta: float
    adjacency: str
    seed: int
    predictions: str = ""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model: how many numbers a person has to read to know it, and what it says of test records.

    `predict` gives labels, scores (to rank by) and risks (None if the model gives no probability).
    """

    numbers: int
    predict: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray | None]]
    notes: dict[str, Any] = field(default_factory=dict)


def by_risk(numbers: int, risks: Callable[[], np.ndarray], **notes: Any) -> Fitted:
    """A model that gives a probability and decides at one half."""

    def predict() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = np.asarray(risks(), dtype=float)
        return found > 0.5, found, found

    return Fitted(numbers, predict, notes)


def sigmoid(log_odds: np.ndarray) -> np.ndarray:
    """Probabilities of log-odds."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
