"""The full scorecard for a number: whole points on answers, and a prediction for every total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.checks import check_finite
from privsolve.models.linear import LinearRule
from privsolve.models.outcomes import Outcomes

OWN_FIELDS = ("per_point", "base", "low", "high")


@dataclass(frozen=True)
class NumberScale:
    """What a total means: `start + per_point × total`, cut to `low..high`, for an outcome that is called `name`."""

    name: str
    start: float
    per_point: float
    low: float
    high: float

    def numbers(self, totals: Any) -> Any:
        """What is predicted at totals."""
        return np.clip(self.start + self.per_point * np.asarray(totals, dtype=np.float64), self.low, self.high)

    def figures(self, value: float, more: int = 0) -> str:
        """A number to about a hundredth of the distance between the bounds, with so many decimals more."""
        decimals = max(0, math.ceil(2 - math.log10(self.high - self.low))) + more
        return f"{round(float(value), decimals) + 0.0:,.{decimals}f}".replace("-", "−")

    @property
    def formula(self) -> str:
        """The prediction as a sum, before it is cut to the bounds."""
        return f"{self.figures(self.start, 1)} + {self.figures(self.per_point, 3)} × total"

    def text(self, total: Fraction) -> str:
        """What is predicted at a total, in figures."""
        return self.figures(self.numbers(float(total)))


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bands is not None:
            raise ValueError("bands: a card for a number has none")
        for name in OWN_FIELDS:
            object.__setattr__(self, name, check_finite(name, getattr(self, name)))
        if not self.per_point > 0:
            raise ValueError(f"per_point must be above 0, got {self.per_point:g}")
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")

    @property
    def number_scale(self) -> NumberScale:
        """What is predicted at totals as the card prints them."""
        return self.scale_of(self.tally.threshold, self.tally.unit)

    def scale_of(self, threshold: int, unit: int) -> NumberScale:
        """The same for a card on which the score 0 is the total `(threshold - 1) / unit`."""
        start = self.base - self.per_point * float(Fraction(threshold - 1, unit))
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

    @property
    def keeps_totals(self) -> bool:
        """Always: each total has a prediction."""
        return True

    def describe(self) -> str:
        """The prediction as a sum."""
        terms = [f"{p} × {name}" for name, p in self.points.items() if p]
        return f"{self.base:g} + {self.per_point:g} × ({' + '.join(terms) or '0'}), cut to {self.low:g}..{self.high:g}"

    @override
    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        last = {name: values.pop(name) for name in ("schema",) if name in values}
        return values | {name: getattr(self, name) for name in OWN_FIELDS} | last

    @classmethod
    @override
    def _arguments(cls, values: dict[str, Any]) -> dict[str, Any]:
        own = {name: values[name] for name in OWN_FIELDS if name in values}
        if missing := set(OWN_FIELDS) - set(own):
            raise ValueError(f"the release file's model has missing or unknown fields: {', '.join(sorted(missing))}")
        return super()._arguments({name: value for name, value in values.items() if name not in own}) | own
