"""Short cards with risks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privsolve.models.full_card import FullCard


@dataclass(frozen=True, eq=False)
class RiskScore(FullCard):
    """A short card with risks."""

    kind: ClassVar[str] = "risk-score"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"domain", "loss"})
