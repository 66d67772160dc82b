"""The linear rule: whole weights on features, and a decision by the sign of the score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.arrays import Int64Array, plain
from privsolve.data import Label, Schema
from privsolve.data.columns import Column, Value
from privsolve.data.patterns import checked_names, checked_scales
from privsolve.data.questions import Quantity
from privsolve.models.bands import Bands
from privsolve.models.base import Model, check_fields, texts, whole_numbers
from privsolve.models.outcomes import Outcomes, total_outcomes
from privsolve.models.points import Levels, Part, Points, Slope, from_zero, smallest
from privsolve.models.scales import NumberScale, RiskScale
from privsolve.models.tally import Entry, Tally, check_scores


@dataclass(frozen=True, eq=False)
class LinearRule(Model):
    """A record scores `Σ_j w_j x_j / scales[j]` and is predicted positive iff the score is positive.

    With an `intercept` the last feature is the constant 1. The `schema` says how the features are made from the columns
    of a table, and what the label is called, if there is one. `bands` name ranges of the card's totals (`with_bands`).
    """

    weights: Int64Array
    features: tuple[str, ...]
    scales: tuple[int, ...]
    intercept: bool
    schema: Schema | None = None
    bands: Bands | None = None
    cut: ClassVar[int] = 0
    kind: ClassVar[str] = "linear-rule"
    own_fields: ClassVar[tuple[str, ...]] = ()
    """What a description of the model states beside what every linear rule does."""

    states_risks: ClassVar[bool] = False
    states_numbers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", whole_numbers(self.weights, "weights"))
        object.__setattr__(self, "features", checked_names(self.features, len(self.weights)))
        object.__setattr__(self, "scales", checked_scales(self.scales, len(self.weights)))
        if not isinstance(self.intercept, bool):
            raise ValueError(f"the release's intercept must be true or false, got {self.intercept!r}")
        if self.bands is not None and self.bands.by_risk and not self.states_risks:
            raise ValueError("bands: this card has no risks; cut its totals instead, for example 3,5")
        if self.unit != 1 and (self.states_risks or self.states_numbers):
            raise ValueError(f"the release's scales must be 1 in a {self.kind}")
        if self.schema is None:
            return
        stated = (self.schema.features, self.schema.scales, self.schema.intercept)
        if stated != (self.features, self.scales, self.intercept):
            raise ValueError("the release's schema has other features than its weights")

    @cached_property
    def unit(self) -> int:
        """Common denominator of all scales: scores are whole numbers of `1 / unit`."""
        return math.lcm(*self.scales)

    @property
    def unit_weights(self) -> list[int]:
        """The weights in units of `1 / unit`."""
        return [int(w) * (self.unit // scale) for w, scale in zip(self.weights, self.scales, strict=True)]

    @property
    def points(self) -> Mapping[str, Fraction]:
        """The points of every feature, exactly."""
        return {n: Fraction(int(w), s) for n, w, s in zip(self.features, self.weights, self.scales, strict=True)}

    @property
    def threshold(self) -> Fraction:
        """What the points of the other features must exceed: the intercept, on the other side, and the cut."""
        return self.cut - (self.points[self.features[-1]] if self.intercept else Fraction(0))

    @cached_property
    def used(self) -> LinearRule:
        """The same rule on the columns that have points, so that no other column is needed to apply it."""
        schema = self.stated_schema
        kept = [c for c in schema.columns if any(self.points[name] for name in c.names)] or schema.columns[:1]
        less = schema.of_columns(kept, intercept=schema.intercept)
        places = [self.features.index(name) for name in less.features]
        return replace(self, weights=self.weights[places], features=less.features, scales=less.scales, schema=less)

    @cached_property
    def tally(self) -> Tally:
        """How a table is added up, with the points that the card prints (theory, section 17)."""
        rule = self.used
        schema, weights = rule.stated_schema, rule.unit_weights
        check_scores(schema, weights)
        raw, first = [], 0
        for column in schema.columns:
            mine = tuple(weights[first : first + len(column.names)])
            first += len(mine)
            raw.append((column, mine, _part(column, mine)))
        chosen = Points(tuple(part for *_, part in raw), int(rule.threshold * rule.unit) + 1)
        required = self.schema is not None and self.schema.constraints.required  # stays on the card
        says_something = self.states_risks or self.states_numbers
        printed = from_zero(chosen) if says_something or required else smallest(chosen)
        entries = [Entry(*found, part) for found, part in zip(raw, printed.parts, strict=True)]
        asked = [entry for entry in entries if entry.spread]
        some = [entry.column for entry in asked or entries[:1]]  # a schema has at least one column
        return Tally(tuple(asked), printed.threshold, schema.of_columns(some, intercept=False))

    @property
    def scale(self) -> RiskScale | None:
        """The risk of every total as the card prints it, if it states risks."""
        return None

    @property
    def number_scale(self) -> NumberScale | None:
        """What is predicted at totals as the card prints them, if that is a number."""
        return None

    def with_bands(self, bands: str | Bands | None) -> Self:
        """The same rule with names for ranges of its totals (`Bands.of`). Free: it looks at no data."""
        return replace(self, bands=None if bands is None else Bands.of(bands))

    @property
    def band_starts(self) -> tuple[tuple[int, str], ...]:
        """The bands but the first, the highest first: the least total, and the name."""
        if self.bands is None:
            return ()
        return tuple(zip(self.bands.starts(self.scale), self.bands.names[1:], strict=True))[::-1]

    @property
    def stated_schema(self) -> Schema:
        """The schema, or an error that says that there is none."""
        if self.schema is None:
            raise ValueError("the release has no schema, so it cannot be applied to a table: fit with one")
        return self.schema

    def scores(self, table: Any) -> Int64Array:
        """The score of every row by the weights themselves, in units of `1 / unit` of the used columns, exactly.

        It ranks finer than the total of the card, which keeps the decisions only.
        """
        rule = self.used
        encoded = rule.stated_schema.encode(table)
        return np.asarray(encoded @ np.array(rule.unit_weights, dtype=np.int64), dtype=np.int64)

    def outcomes(self) -> Outcomes:
        """The totals of the card."""
        return total_outcomes(self.tally)

    def totals(self, table: Any) -> Int64Array:
        """The total of every row, as the card prints it. Only the columns that the card asks for are looked at."""
        return self.tally.totals(table)

    def decide(self, table: Any) -> NDArray[np.bool_]:
        """Whether each row is predicted positive, by the exact total."""
        return np.asarray(self.tally.totals(table) >= self.tally.threshold)

    def predict(self, table: Any) -> NDArray[Any]:
        """The predicted label of every row: the label's own values where there are two, otherwise words."""
        yes, no = answers(self.stated_schema.label)
        return np.where(self.decide(table), np.array(yes, dtype=object), np.array(no, dtype=object))

    def describe(self) -> str:
        """The rule as a sum."""
        terms = [
            f"{p} × {name}"
            for name, p in self.points.items()
            if p and not (self.intercept and name == self.features[-1])
        ]
        return f"positive if {' + '.join(terms) or '0'} > {self.threshold}"

    @override
    def to_dict(self) -> dict[str, Any]:
        names = ("weights", "features", "scales", "intercept", *self.own_fields)
        values = {"kind": self.kind} | {name: plain(getattr(self, name)) for name in names}
        stated = {"schema": self.schema, "bands": self.bands}
        return values | {name: found.to_dict() for name, found in stated.items() if found is not None}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> LinearRule:
        own = set(cls.own_fields)
        check_fields(values, {"weights", "features", "scales", "intercept"} | own, frozenset({"schema", "bands"}))
        if not isinstance(values["scales"], list):
            raise ValueError("the release file's scales must be a list of integers")
        return cls(
            whole_numbers(values["weights"], "weights"),
            tuple(texts(values["features"], "features")),
            tuple(values["scales"]),
            values["intercept"],
            Schema.from_dict(values["schema"]) if "schema" in values else None,
            Bands.from_dict(values["bands"]) if "bands" in values else None,
            **{name: values[name] for name in own},
        )


def _part(column: Column, weights: tuple[int, ...]) -> Part:
    """What a column can add to a total."""
    if isinstance(column.question(), Quantity):
        return Slope(weights[0])
    return Levels(tuple(sorted(set(column.points_by_code(weights)))))


def answers(label: Label | None) -> tuple[Value, Value]:
    """What is predicted: by the label, or plain words."""
    return ("positive", "negative") if label is None else label.answers


def decision_words(schema: Schema | None) -> tuple[str, str]:
    """What the two decisions are called: by the words of the schema, otherwise by the label and its values."""
    if schema is None:
        return "positive", "negative"
    yes, no = "positive", "negative"
    if schema.label is not None:
        yes, no = (f"{schema.label.column} {value}" for value in schema.label.words)
    about = schema.about
    return about.positive or yes, about.negative or (f"not {about.positive}" if about.positive else no)
