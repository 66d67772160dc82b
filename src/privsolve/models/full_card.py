"""The full scorecard: points for every answer, and a risk for every total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privsolve.models.risk import RiskScore


@dataclass(frozen=True, eq=False)
class FullCard(RiskScore):
    """A risk score with points for every answer, chosen by objective perturbation.

    The release's setting says by which public numbers it was chosen (`objective`).
    """

    kind: ClassVar[str] = "full-card"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"objective"})
