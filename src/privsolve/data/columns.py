"""The kinds of columns a schema has: what is public about each, its codes and its features.

A value becomes a small integer *code* first (which option, which bin, which step of a number, or how it fell outside),
in Python or in the engine that holds the data; codes become features by a public table, in Python, for distinct rows
only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from privsolve.data.patterns import Int64Array
from privsolve.data.questions import Choice, Option, Quantity, Question

Value = str | int | float | bool
Real = int | float

SPACES = " \t\n\r\v\f"
"""What is taken off both ends of a text before it is compared; what is then empty is missing."""

ENCODINGS = ("intervals", "thresholds")
LARGEST_INTEGER = 2**53
"""Beyond it not every integer is a float64."""

OTHER, MISSING, BELOW, ABOVE = "other", "missing", "below", "above"


@dataclass(frozen=True)
class Category:
    """One option of a column and the values it covers."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Categories:
    """A column with a public list of options. Every other value is *other*, no value is *missing*.

    Where the schema names an `other` or a `missing` option, it has an indicator of its own. A missing value without one
    counts as other; an other value without one has no indicator at all.
    """

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
        set_field(self, "other", _option_name(other, f"{where}: other"))
        set_field(self, "missing", _option_name(missing, f"{where}: missing"))

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
    def scales(self) -> tuple[int, ...]:
        """All 1."""
        return (1,) * len(self.names)

    def expand(self, codes: Int64Array) -> Int64Array:
        """Features of every code."""
        table = np.zeros((self.radix, len(self.names)), dtype=np.int64)
        k = len(self.options)
        table[:k, :k] = np.eye(k, dtype=np.int64)
        if self.other is not None:
            table[k:, k] = 1
        if self.missing is not None:
            table[k + 1] = 0
            table[k + 1, -1] = 1
        return np.asarray(table[codes], dtype=np.int64)

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        names = [option.name for option in self.options]
        rest = self.other or next(
            text for text in (OTHER, "none of these", "no listed value", "") if text not in (*names, self.missing)
        )
        texts = [*names, rest]
        return Choice(self.column, _options(self, texts))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        options = [
            o.values[0] if o == _plain(o.values[0]) else {"name": o.name, "values": list(o.values)}
            for o in self.options
        ]
        return {"categories": options} | _declared(other=self.other, missing=self.missing)


@dataclass(frozen=True)
class Bins:
    """A number cut at public points: `v` is in the bin of all cuts `<= v`, so that a value at a cut opens the next bin.

    `"intervals"` gives every bin an indicator, `"thresholds"` every cut (`v >= cut`). `whole` says that values are whole
    numbers, for names such as `age=25-34`. A missing value has no indicator, or that of the `missing` option.
    """

    column: str
    cuts: tuple[Real, ...]
    encoding: str = "intervals"
    whole: bool = False
    missing: str | None = None

    def __init__(
        self,
        column: str,
        cuts: Sequence[Real],
        encoding: str = "intervals",
        whole: bool = False,
        missing: str | None = None,
    ) -> None:
        where = f"columns.{column}"
        if isinstance(cuts, str) or not isinstance(cuts, Sequence) or not cuts:
            raise ValueError(f"{where}: bins must be a non-empty list of cut points")
        points = tuple(tidy(check_real(cut, f"{where}: bins")) for cut in cuts)
        if any(b <= a for a, b in pairwise(points)):
            raise ValueError(f"{where}: bins must be in ascending order without repeats, got {list(cuts)}")
        if encoding not in ENCODINGS:
            raise ValueError(f"{where}: encoding must be one of {', '.join(ENCODINGS)}, got {encoding!r}")
        if not isinstance(whole, bool):
            raise ValueError(f"{where}: whole must be true or false, got {whole!r}")
        if whole and any(isinstance(cut, float) for cut in points):
            raise ValueError(f"{where}: bins must be whole numbers where whole = true, got {list(cuts)}")
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "cuts", points)
        set_field(self, "encoding", encoding)
        set_field(self, "whole", whole)
        set_field(self, "missing", _option_name(missing, f"{where}: missing"))

    @property
    def radix(self) -> int:
        """Codes are the bins in order, then missing."""
        return len(self.cuts) + 2

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values that are in no bin."""
        return {MISSING: len(self.cuts) + 1}

    @property
    def names(self) -> tuple[str, ...]:
        """The features, all 0/1."""
        if self.encoding == "intervals":
            names = [self._bin_name(i) for i in range(len(self.cuts) + 1)]
        else:
            names = [f"{self.column}>={number_text(cut)}" for cut in self.cuts]
        return (*names, f"{self.column}={self.missing}") if self.missing is not None else tuple(names)

    def _bin_name(self, i: int) -> str:
        if i in (0, len(self.cuts)):
            return self.column + self._range_text(i)
        if self.whole:
            return f"{self.column}={self._range_text(i)}"
        return f"{number_text(self.cuts[i - 1])}<={self.column}<{number_text(self.cuts[i])}"

    def _range_text(self, i: int) -> str:
        """Bin i as the answer to a question."""
        if i == 0:
            return f"<{number_text(self.cuts[0])}"
        if i == len(self.cuts):
            return f">={number_text(self.cuts[-1])}"
        low, high = self.cuts[i - 1], self.cuts[i]
        if not self.whole:
            return f"{number_text(low)} to below {number_text(high)}"
        return number_text(low) if high == low + 1 else f"{number_text(low)}-{number_text(high - 1)}"

    @property
    def scales(self) -> tuple[int, ...]:
        """All 1."""
        return (1,) * len(self.names)

    def expand(self, codes: Int64Array) -> Int64Array:
        """Features of every code."""
        m = len(self.cuts)
        table = np.zeros((self.radix, len(self.names)), dtype=np.int64)
        if self.encoding == "intervals":
            table[: m + 1, : m + 1] = np.eye(m + 1, dtype=np.int64)
        else:
            table[: m + 1, :m] = np.tri(m + 1, m, -1, dtype=np.int64)
        if self.missing is not None:
            table[m + 1, -1] = 1
        return np.asarray(table[codes], dtype=np.int64)

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        return Choice(self.column, _options(self, [self._range_text(i) for i in range(len(self.cuts) + 1)]))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"bins": list(self.cuts), "encoding": self.encoding}
        return settings | ({"whole": True} if self.whole else {}) | _declared(missing=self.missing)


@dataclass(frozen=True)
class Number:
    """A number between public bounds: the feature is `floor(v / step + 1/2)` after clipping, and stands for itself / `scale`.

    A missing value counts as the number `missing`, which is `low` unless stated.
    """

    column: str
    low: Real
    high: Real
    step: Real = 1
    scale: int = 1
    missing: Real | None = None

    def __post_init__(self) -> None:
        where = f"columns.{self.column}"
        for key in ("low", "high", "step"):
            object.__setattr__(self, key, tidy(check_real(getattr(self, key), f"{where}: {key}")))
        if self.low >= self.high:
            raise ValueError(f"{where}: low must be less than high, got {self.low} and {self.high}")
        if self.step <= 0:
            raise ValueError(f"{where}: step must be positive, got {self.step}")
        if isinstance(self.scale, bool) or not isinstance(self.scale, int) or self.scale < 1:
            raise ValueError(f"{where}: scale must be a positive whole number, got {self.scale!r}")
        if max(abs(self.low), abs(self.high)) / self.step >= LARGEST_INTEGER:
            raise ValueError(f"{where}: step is too small for these bounds: they must be fewer than 2^53 steps from 0")
        if self.missing is not None:
            object.__setattr__(self, "missing", tidy(check_real(self.missing, f"{where}: missing")))
            if not self.low <= self.missing <= self.high:
                raise ValueError(f"{where}: missing must lie between low and high, got {self.missing}")

    def steps(self, value: Real) -> int:
        """The feature of a value within the bounds."""
        return math.floor(float(value) / float(self.step) + 0.5)

    @property
    def first(self) -> int:
        """The least value of the feature."""
        return self.steps(self.low)

    @property
    def radix(self) -> int:
        """Codes are below, then the steps in order, then above, then missing."""
        return self.steps(self.high) - self.first + 4

    @property
    def outside(self) -> dict[str, int]:
        """The codes of values out of bounds."""
        return {BELOW: 0, ABOVE: self.radix - 2, MISSING: self.radix - 1}

    @property
    def names(self) -> tuple[str, ...]:
        """One feature, named like the column."""
        return (self.column,)

    @property
    def scales(self) -> tuple[int, ...]:
        """The scale."""
        return (self.scale,)

    def expand(self, codes: Int64Array) -> Int64Array:
        """The feature of every code."""
        values = np.clip(codes - 1, 0, self.radix - 4) + self.first
        missing = self.steps(self.low if self.missing is None else self.missing)
        return np.where(codes == self.outside[MISSING], missing, values).astype(np.int64)[:, None]

    def question(self) -> Question:
        """What a scorecard asks about this column."""
        return Quantity(self.column, self.column, float(self.low), float(self.high), float(self.step), self.scale)

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"low": self.low, "high": self.high, "step": self.step, "scale": self.scale}
        return settings | _declared(missing=self.missing)


Column = Categories | Bins | Number


@dataclass(frozen=True)
class Label:
    """The column to predict. Values in `positive` are positive, those in `negative` negative.

    Any other value is an error, unless `negative` is left out: then everything that is not positive is negative. A
    missing label is an error unless `missing = "negative"`. Errors come before any budget is spent, and no record is ever
    dropped, because the number of records is public.
    """

    column: str
    positive: tuple[Value, ...]
    negative: tuple[Value, ...] | None = None
    missing: str | None = None

    def __init__(
        self,
        column: str,
        positive: Value | Sequence[Value],
        negative: Value | Sequence[Value] | None = None,
        missing: str | None = None,
    ) -> None:
        if not isinstance(column, str) or not column:
            raise ValueError(f"label: column must be the name of a column, got {column!r}")
        yes = _values(positive, "label: positive")
        no = None if negative is None else _values(negative, "label: negative")
        check_values([*yes, *(no or ())], "label: positive and negative")
        if missing not in (None, "negative"):
            raise ValueError(
                f'label: missing can only be "negative"; leave it out to refuse such data, got {missing!r}'
            )
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "positive", yes)
        set_field(self, "negative", no)
        set_field(self, "missing", missing)

    @property
    def coded(self) -> Categories:
        """The label as a column of two options: code 0 is positive, 1 is negative, then other and missing."""
        nowhere = Category("negative", self.negative) if self.negative is not None else None
        return Categories(self.column, [Category("positive", self.positive), *([nowhere] if nowhere else [])])

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"column": self.column, "positive": list(self.positive)}
        if self.negative is not None:
            settings["negative"] = list(self.negative)
        return settings | _declared(missing=self.missing)


def kind_of(value: object) -> str:
    """`"text"`, `"boolean"` or `"number"`."""
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"


def check_values(values: Sequence[Value], where: str) -> None:
    """Values of one kind, none twice."""
    kinds = {kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(f"{where} mixes {' and '.join(sorted(kinds))} values: quote all of them or none")
    for value in values:
        value_text(value, where)
    repeated = [value for i, value in enumerate(values) if value in values[:i]]
    if repeated:
        raise ValueError(f"{where} lists {repeated[0]!r} twice")


def value_text(value: object, where: str) -> str:
    """A value as the name of an option; raises if it cannot be one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if value != value.strip(SPACES) or not value:
            raise ValueError(f"{where} has {value!r}: texts are compared without surrounding spaces and are not empty")
        return value
    return number_text(check_real(value, where))


def check_real(value: object, where: str) -> Real:
    """A finite number that float64 can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{where} must hold numbers, got {value!r}")
    number = value if isinstance(value, (int, float)) else value.item()
    if abs(number) > LARGEST_INTEGER if isinstance(number, int) else not math.isfinite(float(number)):
        raise ValueError(f"{where} must hold finite numbers up to 2^53, got {value!r}")
    return number


def tidy(number: Real) -> Real:
    """A whole number as an int."""
    return int(number) if float(number).is_integer() and abs(number) <= LARGEST_INTEGER else float(number)


def number_text(number: Real) -> str:
    """A number as people write it."""
    return str(tidy(number))


def _plain(value: Value) -> Category:
    return Category(value_text(value, ""), (value,))


def _values(values: object, where: str) -> tuple[Value, ...]:
    found = tuple(values) if isinstance(values, (list, tuple)) else (values,)
    if not found:
        raise ValueError(f"{where} must list at least one value")
    for value in found:
        value_text(value, where)
    return found


def _option_name(name: object, where: str) -> str | None:
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise ValueError(f"{where} must be the name of an option, got {name!r}")
    return name


def _declared(**settings: object) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _options(column: Categories | Bins, texts: Sequence[str]) -> tuple[Option, ...]:
    """One option per code, and one for missing values if it is declared, each with the features that are 1 for it."""
    codes = list(range(len(texts)))
    if column.missing is not None:
        texts, codes = [*texts, column.missing], [*codes, column.outside[MISSING]]
    rows = column.expand(np.array(codes))
    return tuple(
        Option(text, tuple(name for name, one in zip(column.names, row, strict=True) if one))
        for text, row in zip(texts, rows, strict=True)
    )
