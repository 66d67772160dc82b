"""The risk score: whole points on features, and a probability for every total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from typing_extensions import override

from privsolve.arrays import Floats
from privsolve.checks import check_finite, check_integer
from privsolve.models.linear import LinearRule
from privsolve.models.odds import FARTHEST_CUT, RiskScale, check_log_odds, cut_of_threshold, risks_of
from privsolve.models.outcomes import Outcomes, total_outcomes


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
    states_risks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "log_odds", check_log_odds(self.log_odds))
        object.__setattr__(self, "base", check_finite("base", self.base, "be a finite number of log-odds"))
        object.__setattr__(self, "cut", check_integer("cut", self.cut, -FARTHEST_CUT, FARTHEST_CUT))

    def risks(self, table: Any) -> Floats:
        """The risk of every row of a table."""
        return risks_of(self.log_odds, self.scores(table) / self.used.unit + self.base / self.log_odds)

    @property
    def scale(self) -> RiskScale:
        """The risk of every total as the card prints it."""
        return self.scale_of(self.tally.threshold, self.tally.unit)

    def scale_of(self, threshold: int, unit: int) -> RiskScale:
        """The same for a card whose least positive total is `threshold`, in units of `1 / unit`."""
        return RiskScale(self.log_odds, Fraction(threshold - 1, unit) - self.cut - Fraction(self.base / self.log_odds))

    def deciding_at(self, threshold: float) -> RiskScore:
        """The same risks, with the decision positive where the risk is above `threshold`. Free: it looks at no data."""
        return replace(self, cut=cut_of_threshold(self.log_odds, threshold, self.base))

    def outcomes(self) -> Outcomes:
        """The totals of the card, with their risks."""
        return total_outcomes(self.tally, self.scale.risk)

    @property
    def keeps_totals(self) -> bool:
        """Always: each total has a risk."""
        return True

    def describe(self) -> str:
        """The score as a sum, and what it means."""
        return f"a risk of 1 / (1 + exp(-({self.log_odds:g} × score + {self.base:g}))); {super().describe()}"

    @override
    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        last = {name: values.pop(name) for name in ("schema", "bands") if name in values}
        return values | {"log_odds": self.log_odds, "cut": self.cut, "base": self.base} | last

    @classmethod
    @override
    def _arguments(cls, values: dict[str, Any]) -> dict[str, Any]:
        own = {name: values[name] for name in ("log_odds", "cut", "base") if name in values}
        if missing := {"log_odds", "cut"} - set(own):
            raise ValueError(f"the release file's model has missing or unknown fields: {', '.join(sorted(missing))}")
        return super()._arguments({name: value for name, value in values.items() if name not in own}) | own


@dataclass(frozen=True, eq=False)
class FullCard(RiskScore):
    """A full scorecard: a risk score with points for every answer, found by objective perturbation.

    The release's setting says by which public numbers it was found (`objective`).
    """

    kind: ClassVar[str] = "full-card"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"objective"})
