"""A column with a public list of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.data.columns.base import MISSING, OTHER, Column, check_keys
from privsolve.data.columns.values import Value, check_values, declared, kind_of, option_name, value_text
from privsolve.data.expressions import number_of, text_of
from privsolve.data.questions import Choice, Option, Question
from privsolve.data.series import numbers_of, texts_of


@dataclass(frozen=True)
class Category:
    """One option of a column and the values it covers."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Categories(Column):
    """A column with a public list of options. Every other value is *other*, no value is *missing*.

    Where the schema names an `other` or a `missing` option, it has an indicator of its own. A missing value without one
    counts as other; an other value without one has no indicator at all.
    """

    key: ClassVar[str] = "categories"
    keys: ClassVar[tuple[str, ...]] = ("categories", "other", "missing")

    column: str
    options: tuple[Category, ...]
    other: str | None = None
    missing: str | None = None

    def __init__(
        self,
        column: str,
        options: Sequence[Value | Category],
        other: str | None = None,
        missing: str | None = None,
    ) -> None:
        where = f"columns.{column}"
        if isinstance(options, str) or not isinstance(options, Sequence) or not options:
            raise ValueError(f"{where}: categories must be a non-empty list of values")
        found = tuple(
            Category(o.name, tuple(o.values)) if isinstance(o, Category) else Category(value_text(o, where), (o,))
            for o in options
        )
        for option in found:
            if not isinstance(option.name, str) or not option.name.strip():
                raise ValueError(f"{where}: categories has an option without a name: give it one")
            if not option.values:
                raise ValueError(f"{where}: categories option {option.name!r} has no values: list at least one")
        check_values([v for option in found for v in option.values], f"{where}: categories")
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "options", found)
        set_field(self, "other", option_name(other, f"{where}: other"))
        set_field(self, "missing", option_name(missing, f"{where}: missing"))

    @property
    def kind(self) -> str:
        """`"text"`, `"number"` or `"boolean"`: how the data is read before it is compared."""
        return kind_of(self.options[0].values[0])

    @property
    def radix(self) -> int:
        """Codes are the options in order, then other, then missing."""
        return len(self.options) + 2

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values that are not in the lists."""
        return {OTHER: len(self.options), MISSING: len(self.options) + 1}

    @property
    def names(self) -> tuple[str, ...]:
        """The features, all 0/1."""
        declared = [option.name for option in self.options] + [n for n in (self.other, self.missing) if n is not None]
        return tuple(f"{self.column}={name}" for name in declared)

    @property
    def _feature_of(self) -> Int64Array:
        """The feature that is 1 for each code, -1 for none."""
        k = len(self.options)
        other = k if self.other is not None else -1
        return np.array([*range(k), other, other if self.missing is None else len(self.names) - 1])

    def codes(self, series: Any) -> Int64Array:
        """Options in order, then other, then missing."""
        flat = [(value, code) for code, option in enumerate(self.options) for value in option.values]
        other, missing = self.outside[OTHER], self.outside[MISSING]
        if self.kind == "text":
            by_text = dict(flat)
            texts = texts_of(series, self.column)
            return np.array([missing if t is None else by_text.get(t, other) for t in texts], dtype=np.int64)
        values = numbers_of(series, self.column, boolean=self.kind == "boolean")
        ordered = sorted((float(value), code) for value, code in flat)
        listed = np.array([value for value, _ in ordered])
        place = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
        codes = np.where(listed[place] == values, np.array([code for _, code in ordered])[place], other)
        return np.where(np.isnan(values), missing, codes).astype(np.int64)

    def code(self, value: Any) -> Any:
        """The same in an engine."""
        import ibis

        if self.kind == "text":
            read = text_of(value, self.column)
            options: list[tuple[Any, ...]] = [option.values for option in self.options]
        else:
            read = number_of(value, self.column, boolean=self.kind == "boolean")
            options = [tuple(float(v) for v in option.values) for option in self.options]
        matches = [(_is_in(read, values), i) for i, values in enumerate(options)]
        return ibis.cases((read.isnull(), self.outside[MISSING]), *matches, else_=self.outside[OTHER])

    def expand(self, codes: Int64Array) -> IntArray:
        """The indicators of every code."""
        return indicators(self._feature_of[codes], len(self.names))

    def points_by_code(self, weights: Sequence[int]) -> list[int]:
        """The weight of the indicator of every code."""
        return [weights[feature] if feature >= 0 else 0 for feature in self._feature_of]

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        names = [option.name for option in self.options]
        rest = self.other or next(
            text for text in (OTHER, "none of these", "no listed value", "") if text not in (*names, self.missing)
        )
        texts = [*names, rest, *([] if self.missing is None else [self.missing])]
        features, names_of = self._feature_of, self.names
        ones = [(names_of[feature],) if feature >= 0 else () for feature in features]
        return Choice(self.column, tuple(Option(text, one) for text, one in zip(texts, ones, strict=False)))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        options = [
            o.values[0] if o == _plain(o.values[0]) else {"name": o.name, "values": list(o.values)}
            for o in self.options
        ]
        return {"categories": options} | declared(other=self.other, missing=self.missing)

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Categories:
        """As in a schema file."""
        options = settings["categories"]
        if isinstance(options, list):
            options = [_option(option, f"columns.{name}") for option in options]
        return cls(name, options, settings.get("other"), settings.get("missing"))


def indicators(features: Int64Array, count: int) -> IntArray:
    """Rows of 0/1 features, the stated one of which is 1, or none where it is -1."""
    rows = np.zeros((len(features), count), dtype=np.int8)
    found = np.flatnonzero(features >= 0)
    rows[found, features[found]] = 1
    return rows


def _is_in(value: Any, values: Sequence[Any]) -> Any:
    return value == values[0] if len(values) == 1 else value.isin(list(values))


def _plain(value: Value) -> Category:
    return Category(value_text(value, ""), (value,))


def _option(option: Any, where: str) -> Any:
    if not isinstance(option, Mapping):
        return option
    check_keys(option, ("name", "values"), f"{where}: categories")
    if set(option) != {"name", "values"} or not isinstance(option["values"], list):
        raise ValueError(f"{where}: categories must hold values or tables like {{ name = ..., values = [...] }}")
    return Category(option["name"], tuple(option["values"]))
