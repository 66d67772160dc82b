"""Full scorecards: whole points on answers, and a risk or a predicted number for every total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.arrays import Floats
from privsolve.checks import check_between, check_finite, check_integer
from privsolve.models.linear import LinearRule
from privsolve.models.outcomes import Outcomes, total_outcomes
from privsolve.models.scales import (
    FARTHEST_CUT,
    LARGEST_UNIT,
    LEAST_UNIT,
    NumberScale,
    RiskScale,
    cut_of_threshold,
    risks_of,
)


@dataclass(frozen=True, eq=False)
class FullCard(LinearRule):
    """A linear rule whose score is a risk: `1 / (1 + exp(-(log_odds·score + base)))`.

    A record is decided positive if its score is above `cut`. The cut can be moved at any time (`deciding_at`), which takes
    nothing from the data. It was found by objective perturbation; the release's setting says by which public numbers
    (`objective`).
    """

    log_odds: float = 0.5
    cut: int = 0  # type: ignore[misc]
    base: float = 0.0
    kind: ClassVar[str] = "full-card"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"objective"})
    own_fields: ClassVar[tuple[str, ...]] = ("log_odds", "cut", "base")
    states_risks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        log_odds = check_between("log_odds", self.log_odds, LEAST_UNIT, LARGEST_UNIT)
        object.__setattr__(self, "log_odds", log_odds)
        object.__setattr__(self, "base", check_finite("base", self.base, "be a finite number of log-odds"))
        object.__setattr__(self, "cut", check_integer("cut", self.cut, -FARTHEST_CUT, FARTHEST_CUT))

    def risks(self, table: Any) -> Floats:
        """The risk of every row of a table."""
        return risks_of(self.log_odds, self.scores(table) + self.base / self.log_odds)

    @property
    def scale(self) -> RiskScale:
        """The risk of every total as the card prints it."""
        return RiskScale(self.log_odds, self.tally.threshold - 1 - self.cut - self.base / self.log_odds)

    def deciding_at(self, threshold: float) -> FullCard:
        """The same risks, with the decision positive where the risk is above `threshold`. Free: it looks at no data."""
        return replace(self, cut=cut_of_threshold(self.log_odds, threshold, self.base))

    def outcomes(self) -> Outcomes:
        """The totals of the card, with their risks."""
        return total_outcomes(self.tally, self.scale.risk)

    @override
    def describe(self) -> str:
        return f"a risk of 1 / (1 + exp(-({self.log_odds:g} × score + {self.base:g}))); {super().describe()}"


@dataclass(frozen=True, eq=False)
class NumberCard(LinearRule):
    """A record is predicted `base + per_point × score`, cut to the public bounds `low..high` of the outcome.

    It was found by objective perturbation; the release's setting says by which public numbers (`objective`).
    """

    per_point: float = 1.0
    base: float = 0.0
    low: float = 0.0
    high: float = 1.0
    kind: ClassVar[str] = "number-card"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"objective"})
    own_fields: ClassVar[tuple[str, ...]] = ("per_point", "base", "low", "high")
    states_numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bands is not None:
            raise ValueError("bands: a card for a number has none")
        for name in self.own_fields:
            object.__setattr__(self, name, check_finite(name, getattr(self, name)))
        if not self.per_point > 0:
            raise ValueError(f"per_point must be above 0, got {self.per_point:g}")
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")

    @property
    def number_scale(self) -> NumberScale:
        """What is predicted at totals as the card prints them, on which the score 0 is one below the threshold."""
        start = self.base - self.per_point * (self.tally.threshold - 1)
        name = None if self.schema is None else self.schema.predicted
        return NumberScale(name or "outcome", start, self.per_point, self.low, self.high)

    @override
    def predict(self, table: Any) -> NDArray[Any]:
        """The predicted number of every row."""
        return np.asarray(self.number_scale.numbers(self.totals(table)))

    @override
    def decide(self, table: Any) -> NDArray[np.bool_]:
        """There is nothing to decide."""
        raise TypeError("a card for a number decides nothing: use predict")

    @override
    def outcomes(self) -> Outcomes:
        """What is measured of a model counts right and wrong decisions."""
        raise ValueError("only models of a yes/no label can be evaluated, and this card predicts a number")

    def describe(self) -> str:
        """The prediction as a sum."""
        terms = [f"{p} × {name}" for name, p in self.points.items() if p]
        return f"{self.base:g} + {self.per_point:g} × ({' + '.join(terms) or '0'}), cut to {self.low:g}..{self.high:g}"
