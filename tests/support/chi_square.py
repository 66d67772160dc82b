"""How far counts are from a law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)


def deviation(found: Counter[Outcome], law: Mapping[Outcome, float], runs: int) -> float:
    """Chi-square in standard deviations, what is expected fewer than five times taken together."""
    often = {outcome for outcome, p in law.items() if p * runs >= 5}
    pairs = [(found[outcome], law[outcome] * runs) for outcome in often]
    pairs.append((runs - sum(n for n, _ in pairs), runs * (1 - sum(law[outcome] for outcome in often))))
    kept = [(n, e) for n, e in pairs if e >= 5]
    return (sum((n - e) ** 2 / e for n, e in kept) - len(kept)) / (2 * len(kept)) ** 0.5
