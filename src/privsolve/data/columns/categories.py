"""A column with a public list of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.checks import check_items, check_length
from privsolve.data.columns.base import (
    MISSING,
    OTHER,
    Column,
    Value,
    check_keys,
    check_missing_values,
    check_values,
    declared,
    declared_marks,
    kind_of,
    marks_of,
    option_name,
    value_text,
)
from privsolve.data.questions import Choice, Option, Question
from privsolve.data.reading import Marks, is_one_of, number_of, text_of

MANY = 500
"""Of more values not each is compared in a query of its own: engines need seconds to understand thousands."""


@dataclass(frozen=True)
class Category:
    """One option of a column and the values it covers."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Categories(Column):
    """A column with a public list of options. Every other value is *other*, no value is *missing*.

    Where the schema names an `other` or a `missing` option, it has an indicator of its own. A missing value without one
    counts as other; an other value without one has no indicator at all. `no` is an option, with its values, that has no
    indicator either: the answer that scores nothing, such as "no" beside "yes". `missing_values` are missing too.
    """

    key: ClassVar[str] = "categories"
    keys: ClassVar[tuple[str, ...]] = ("categories", "no", "other", "missing", "missing_values")

    column: str
    options: tuple[Category, ...]
    other: str | None = None
    missing: str | None = None
    no: Category | None = None
    missing_values: tuple[Value, ...] = ()

    def __init__(
        self,
        column: str,
        options: Sequence[Value | Category],
        other: str | None = None,
        missing: str | None = None,
        no: Value | Category | None = None,
        missing_values: Sequence[Value] = (),
    ) -> None:
        where = f"columns.{column}"
        if isinstance(options, str) or not isinstance(options, Sequence) or not options:
            raise ValueError(f"{where}: categories must be a non-empty list of values")
        check_length(f"{where}: categories", options)
        found = tuple(_category(option, where) for option in options)
        nothing = None if no is None else _category(no, f"{where}: no")
        listed = (*found, *([] if nothing is None else [nothing]))
        for option in listed:
            if not isinstance(option.name, str) or not option.name.strip():
                raise ValueError(f"{where}: categories has an option without a name: give it one")
            if not option.values:
                raise ValueError(f"{where}: categories option {option.name!r} has no values: list at least one")
        check_values([v for option in listed for v in option.values], f"{where}: categories")
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "options", found)
        set_field(self, "other", option_name(other, f"{where}: other"))
        set_field(self, "missing", option_name(missing, f"{where}: missing"))
        set_field(self, "no", nothing)
        set_field(self, "missing_values", check_missing_values(missing_values, where))
        if {value_text(v, where) for v in self.missing_values} & {
            value_text(v, where) for o in listed for v in o.values
        }:
            raise ValueError(f"{where}: missing_values lists a value that is an option too: take it out of one of them")

    @property
    def kind(self) -> str:
        """`"text"`, `"number"` or `"boolean"`: how the data is read before it is compared."""
        return kind_of(self.options[0].values[0])

    @property
    def radix(self) -> int:
        """Codes are the options in order, then `no` if there is one, then other, then missing."""
        return len(self.listed) + 2

    @property
    def listed(self) -> tuple[Category, ...]:
        """All options with values: those with an indicator, then `no`."""
        return self.options if self.no is None else (*self.options, self.no)

    @property
    def _marks(self) -> Marks:
        return marks_of(self.missing_values, truths=self.kind == "boolean")

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values that are not in the lists."""
        return {OTHER: len(self.listed), MISSING: len(self.listed) + 1}

    @property
    def saying_nothing(self) -> frozenset[int]:
        """Missing values, and those in no list; a list of one value says something also where it does not occur."""
        return frozenset(self.outside.values()) if len(self.listed) > 1 else super().saying_nothing

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
        no = [] if self.no is None else [-1]
        return np.array([*range(k), *no, other, other if self.missing is None else len(self.names) - 1])

    def read(self, value: Any) -> Any:
        """The text or number that is compared."""
        return (text_of if self.kind == "text" else number_of)(value, self.column, self._marks)

    def code(self, read: Any) -> Any:
        """Options in order, then no, other and missing."""
        import ibis

        if self.kind == "text":
            options: list[tuple[Any, ...]] = [option.values for option in self.listed]
        else:
            options = [tuple(float(v) for v in option.values) for option in self.listed]
        if sum(map(len, options)) > MANY:
            return self._looked_up(read, options)
        matches = [(is_one_of(read, values), i) for i, values in enumerate(options)]
        return ibis.cases((read.isnull(), self.outside[MISSING]), *matches, else_=self.outside[OTHER])

    def _looked_up(self, read: Any, options: Sequence[tuple[Any, ...]]) -> Any:
        """The code by the place of a value in a list, which engines are given as one text."""
        import ibis

        values = [str(value) for values in options for value in values]
        comma = next(chr(k) for k in range(1, 0x110000) if not any(chr(k) in value for value in values))
        kind = "array<string>" if self.kind == "text" else "array<float64>"
        place = ibis.literal(comma.join(values)).split(comma).cast(kind).index(read)
        codes = ",".join(str(code) for code, values in enumerate(options) for _ in values)
        code = ibis.literal(codes).split(",").cast("array<int64>")[place]
        return ibis.cases((read.isnull(), self.outside[MISSING]), (place >= 0, code), else_=self.outside[OTHER])

    def expand(self, codes: Int64Array) -> IntArray:
        """The indicators of every code."""
        return indicators(self._feature_of[codes], len(self.names))

    def points_by_code(self, weights: Sequence[int]) -> list[int]:
        """The weight of the indicator of every code."""
        return [weights[feature] if feature >= 0 else 0 for feature in self._feature_of]

    def question(self) -> Question:
        """What a scorecard asks about this column; where `no` says what scores nothing, no other answer has to."""
        texts, features, names = self.answers(), self._feature_of, self.names
        shown = list(range(len(self.listed)))
        if self.no is None or self.other is not None:
            shown.append(self.outside[OTHER])
        if self.missing is not None:
            shown.append(self.outside[MISSING])
        ones = [(names[features[code]],) if features[code] >= 0 else () for code in shown]
        return Choice(self.column, tuple(Option(texts[code], one) for code, one in zip(shown, ones, strict=True)))

    def answers(self) -> tuple[str, ...]:
        """What the values of every code are called."""
        names = [option.name for option in self.listed]
        rest = self.other or next(
            text for text in (OTHER, "none of these", "no listed value", "") if text not in (*names, self.missing)
        )
        return (*names, rest, self.missing or MISSING)

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"categories": list(map(_stated, self.options))}
        settings |= declared(no=None if self.no is None else _stated(self.no), other=self.other, missing=self.missing)
        return settings | declared_marks(self.missing_values)

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Categories:
        """As in a schema file."""
        options = settings["categories"]
        if isinstance(options, list):
            options = [_option(option, f"columns.{name}") for option in options]
        rest = {key: settings[key] for key in ("other", "missing", "missing_values") if key in settings}
        return cls(name, options, no=_option(settings.get("no"), f"columns.{name}", "no"), **rest)


def indicators(features: Int64Array, count: int) -> IntArray:
    """Rows of 0/1 features, the stated one of which is 1, or none where it is -1."""
    rows = np.zeros((len(features), count), dtype=np.int8)
    found = np.flatnonzero(features >= 0)
    rows[found, features[found]] = 1
    return rows


def _category(option: Value | Category, where: str) -> Category:
    if isinstance(option, Category):
        return Category(option.name, check_items(f"{where}: the values of {option.name!r}", option.values, "be a list"))
    return Category(value_text(option, where), (option,))


def _stated(option: Category) -> Any:
    """As in a schema file: a value that is its own name, or a table."""
    plain = option == _category(option.values[0], "")
    return option.values[0] if plain else {"name": option.name, "values": list(option.values)}


def _option(option: Any, where: str, key: str = "categories") -> Any:
    if not isinstance(option, Mapping):
        return option
    check_keys(option, ("name", "values"), f"{where}: {key}")
    if set(option) != {"name", "values"} or not isinstance(option["values"], list):
        raise ValueError(f"{where}: {key} must hold values or tables like {{ name = ..., values = [...] }}")
    return Category(option["name"], tuple(option["values"]))
