"""The full scorecard for a number: whole points on answers, and a prediction for every total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.checks import check_finite
from privsolve.models.linear import LinearRule
from privsolve.models.outcomes import Outcomes
from privsolve.models.scales import NumberScale


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
