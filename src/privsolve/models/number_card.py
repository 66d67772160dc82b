"""The full scorecard for a number: whole points on answers, and a prediction for every total."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.checks import check_finite
from privsolve.models.linear import LinearRule

OWN_FIELDS = ("per_point", "base", "low", "high")


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
    def start(self) -> float:
        """What a total of 0, as the card prints it, stands for, before it is cut to the bounds."""
        return self.base - self.per_point * float(Fraction(self.tally.threshold - 1, self.tally.unit))

    def number(self, total: Any) -> Any:
        """What is predicted at totals as the card prints them."""
        return np.clip(self.start + self.per_point * np.asarray(total, dtype=np.float64), self.low, self.high)

    @override
    def predict(self, table: Any) -> NDArray[Any]:
        """The predicted number of every row."""
        return np.asarray(self.number(self.totals(table)))

    @override
    def decide(self, table: Any) -> NDArray[np.bool_]:
        """There is nothing to decide."""
        raise TypeError("a card for a number decides nothing: use predict")

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
