"""The risk score: whole points on features, and a probability for every total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from privsolve.arrays import Floats
from privsolve.checks import check_finite, check_integer
from privsolve.models.linear import LinearRule
from privsolve.models.odds import FARTHEST_CUT, check_log_odds, cut_of_threshold, risk_at, risks_of
from privsolve.models.outcomes import Outcomes, total_outcomes
from privsolve.models.points import Points, from_zero


@dataclass(frozen=True, eq=False)
class RiskScore(LinearRule):
    """A linear rule whose score is a risk: `1 / (1 + exp(-(log_odds·score + base)))`.

    A record is decided positive if its score is above `cut`. The cut can be moved at any time (`deciding_at`), which takes
    nothing from the data.
    """

    log_odds: float = 0.5
    cut: int = 0  # type: ignore[misc]
    base: float = 0.0
    kind: ClassVar[str] = "risk-score"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "log_odds", check_log_odds(self.log_odds))
        object.__setattr__(self, "base", check_finite("base", self.base, "be a finite number of log-odds"))
        object.__setattr__(self, "cut", check_integer("cut", self.cut, -FARTHEST_CUT, FARTHEST_CUT))

    def risks(self, table: Any) -> Floats:
        """The risk of every row of a table."""
        return risks_of(self.log_odds, self.scores(table) / self.used.unit + self.base / self.log_odds)

    @property
    def half(self) -> Fraction:
        """The total, as the card prints it, at which the risk is one half."""
        return half_of(self, self.tally.threshold, self.tally.unit)

    def risk_of_total(self, total: Fraction) -> float:
        """The risk of a total as the card prints it."""
        return risk_at(self.log_odds, total - self.half)

    def deciding_at(self, threshold: float) -> RiskScore:
        """The same risks, with the decision positive where the risk is above `threshold`. Free: it looks at no data."""
        return replace(self, cut=cut_of_threshold(self.log_odds, threshold, self.base))

    def outcomes(self) -> Outcomes:
        """The totals of the card, with their risks."""
        return total_outcomes(self.tally, self.risk_of_total)

    @property
    def keeps_totals(self) -> bool:
        """Always: each total has a risk."""
        return True

    def as_printed(self, points: Points) -> Points:
        """The points of a card: totals keep their distances, because each has a risk."""
        return from_zero(points)

    def describe(self) -> str:
        """The score as a sum, and what it means."""
        return f"a risk of 1 / (1 + exp(-({self.log_odds:g} × score + {self.base:g}))); {super().describe()}"

    @override
    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        schema = {"schema": values.pop("schema")} if "schema" in values else {}
        return values | {"log_odds": self.log_odds, "cut": self.cut, "base": self.base} | schema

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> RiskScore:
        plain = {name: value for name, value in values.items() if name not in ("log_odds", "cut", "base")}
        missing = {"log_odds", "cut"} - set(values)
        if missing:
            raise ValueError(f"the release file's model has missing or unknown fields: {', '.join(sorted(missing))}")
        rule = LinearRule.from_dict(plain)
        return cls(
            np.asarray(rule.weights),
            rule.features,
            rule.scales,
            rule.intercept,
            rule.schema,
            log_odds=values["log_odds"],
            cut=values["cut"],
            base=values.get("base", 0.0),
        )


@dataclass(frozen=True, eq=False)
class FullCard(RiskScore):
    """A full scorecard: a risk score with points for every answer, found by objective perturbation.

    The release's setting says by which public numbers it was found (`objective`).
    """

    kind: ClassVar[str] = "full-card"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"objective"})


def half_of(rule: RiskScore, threshold: int, unit: int) -> Fraction:
    """The total at which the risk is one half, given the least total that is decided positive, in units of `1 / unit`."""
    return Fraction(threshold - 1, unit) - rule.cut - Fraction(rule.base / rule.log_odds)
