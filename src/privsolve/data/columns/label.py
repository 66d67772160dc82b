"""The column to predict: yes or no, one of several classes, or a number between public bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array, IntArray
from privsolve.data.columns.base import (
    MISSING,
    OTHER,
    Column,
    Real,
    Value,
    check_decimal,
    check_keys,
    check_missing_values,
    check_real,
    check_values,
    declared,
    declared_marks,
    number_text,
    tidy,
    value_text,
    values_of,
)
from privsolve.data.columns.categories import Categories, Category
from privsolve.data.columns.numbers import Bins
from privsolve.data.reading import NUMBER_PATTERN

COMPARISON = re.compile(f"(>=|>|<=|<) *({NUMBER_PATTERN.strip('^$')})")
"""A sign and a plain number, such as `>=150`. `>50K` is none."""

WORDS = {">=": ("at least", "below"), ">": ("above", "at most"), "<=": ("at most", "above"), "<": ("below", "at least")}


@dataclass(frozen=True)
class Comparison:
    """Which numbers are positive: those at least, above, at most or below a public one."""

    sign: str
    number: Real

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", tidy(check_real(self.number, "label: positive")))
        if COMPARISON.fullmatch(str(self)) is None:
            raise ValueError(f"label: positive must compare with a number of usual size by >=, >, <= or <, got {self}")

    @classmethod
    def of(cls, text: object) -> Comparison | None:
        """What a text such as `">=150"` says; None for any other text or value."""
        found = COMPARISON.fullmatch(text.strip()) if isinstance(text, str) else None
        return None if found is None else cls(found[1], float(found[2]))

    @property
    def cut(self) -> Real:
        """The first number on the upper side: v > c where v is at least the next 64-bit float after c."""
        return self.number if self.sign in (">=", "<") else math.nextafter(self.number, math.inf)

    @property
    def words(self) -> tuple[str, str]:
        """What positive and negative numbers are."""
        yes, no = WORDS[self.sign]
        return f"{yes} {number_text(self.number)}", f"{no} {number_text(self.number)}"

    def __str__(self) -> str:
        return f"{self.sign}{number_text(self.number)}"


@dataclass(frozen=True)
class Label:
    """The column to predict. Values in `positive` are positive, those in `negative` negative.

    Any other value is an error, unless `negative` is left out: then everything that is not positive is negative. A
    missing label is an error unless `missing = "negative"`. Errors come before any budget is spent, and no record is ever
    dropped, because the number of records is public.

    One text of `>=`, `>`, `<=` or `<` and a plain number, without `negative`, compares numbers: `Label("glucose", ">=150")`.
    A text that is no number is then missing. In a list, `[">50"]`, or beside `negative` it is a value like any other.
    `missing_values` are missing too, such as -999, and texts are read as numbers with the sign `decimal`.
    """

    column: str
    positive: tuple[Value, ...] | Comparison
    negative: tuple[Value, ...] | None = None
    missing: str | None = None
    missing_values: tuple[Value, ...] = ()
    decimal: str = "."

    def __init__(
        self,
        column: str,
        positive: Value | Sequence[Value] | Comparison,
        negative: Value | Sequence[Value] | None = None,
        missing: str | None = None,
        missing_values: Sequence[Value] = (),
        decimal: str = ".",
    ) -> None:
        if not isinstance(column, str) or not column:
            raise ValueError(f"label: column must be the name of a column, got {column!r}")
        yes: tuple[Value, ...] | Comparison | None = positive if isinstance(positive, Comparison) else None
        if negative is None and yes is None:
            yes = Comparison.of(positive)
        no = None if negative is None else values_of(negative, "label: negative")
        if not isinstance(yes, Comparison):
            yes = values_of(positive, "label: positive")
            check_values([*yes, *(no or ())], "label: positive and negative")
        elif no is not None:
            raise ValueError("label: negative goes without saying where positive compares numbers: leave it out")
        if missing not in (None, "negative"):
            raise ValueError(
                f'label: missing can only be "negative"; leave it out to refuse such data, got {missing!r}'
            )
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "positive", yes)
        set_field(self, "negative", no)
        set_field(self, "missing", missing)
        set_field(self, "missing_values", check_missing_values(missing_values, "label"))
        set_field(self, "decimal", check_decimal(decimal, "label"))

    @property
    def coded(self) -> Column:
        """The label as a column of two options, then other (of lists) and missing; `yes` is the code of positive values."""
        if isinstance(self.positive, Comparison):
            return Bins(self.column, [self.positive.cut], missing_values=self.missing_values, decimal=self.decimal)
        nowhere = Category("negative", self.negative) if self.negative is not None else None
        options = [Category("positive", self.positive), *([nowhere] if nowhere else [])]
        return Categories(self.column, options, missing_values=self.missing_values)

    @property
    def yes(self) -> int:
        """The code of positive values in `coded`: the first, or that of the numbers above a cut."""
        return int(isinstance(self.positive, Comparison) and self.positive.sign in (">=", ">"))

    @property
    def words(self) -> tuple[str, str]:
        """The positive and the negative values, in words."""
        if isinstance(self.positive, Comparison):
            return self.positive.words
        yes, no = (
            " or ".join(value_text(value, "label") for value in values)
            for values in (self.positive, self.negative or ())
        )
        return yes, no or f"not {yes}"

    @property
    def answers(self) -> tuple[Value, Value]:
        """What is predicted: the label's values where there are two, otherwise words."""
        if isinstance(self.positive, Comparison):
            yes, no = (f"{self.column} {words}" for words in self.words)
            return yes, no
        if len(self.positive) == 1 and self.negative is not None and len(self.negative) == 1:
            return self.positive[0], self.negative[0]
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        positive = str(self.positive) if isinstance(self.positive, Comparison) else list(self.positive)
        settings: dict[str, Any] = {"column": self.column, "positive": positive}
        if self.negative is not None:
            settings["negative"] = list(self.negative)
        return settings | declared(missing=self.missing) | declared_marks(self.missing_values, self.decimal)

    @classmethod
    def from_dict(cls, settings: object) -> Label:
        """As in a schema file."""
        check_keys(settings, ("column", "positive", "negative", "missing", "missing_values", "decimal"), "label")
        assert isinstance(settings, Mapping)
        for key in ("column", "positive"):
            if key not in settings:
                raise ValueError(f"label: {key} is missing")
        return cls(**settings)


def decided(label: Label, codes: Int64Array, counts: Int64Array) -> NDArray[np.bool_]:
    """Which codes of the label are positive; `counts` are how many records have each."""
    outside = label.coded.outside
    missing = int(counts[codes == outside[MISSING]].sum())
    other = int(counts[codes == outside[OTHER]].sum()) if OTHER in outside else 0
    if missing and label.missing is None:
        if missing == counts.sum():
            raise no_label(label)
        raise ValueError(
            f"label {label.column!r}: at least one record has none{of_numbers(label)}: correct the data, or add "
            'missing = "negative" to [label] in the schema'
        )
    if other and label.negative is not None:
        raise ValueError(
            f"label {label.column!r}: at least one record has a value that is neither in positive nor in negative: "
            "list it, or leave out negative to count every other value as negative"
        )
    return np.asarray(codes == label.yes)


def of_numbers(label: Label) -> str:
    """What a missing value of a label is that compares numbers."""
    return " that is a number" if isinstance(label.positive, Comparison) else ""


def no_label(label: Label) -> ValueError:
    """The error where no record has a value of the label that the schema lists; it shows no value."""
    if isinstance(label.positive, Comparison):
        return ValueError(
            f"label {label.column!r}: no record has a number, so none can be {label.words[0]}: if {label.positive} is a "
            f"text of this column, write --positive '={label.positive}', or positive = [\"{label.positive}\"] in a schema "
            "file (nothing was spent)"
        )
    return ValueError(
        f"label {label.column!r}: no record has a value that the schema lists: write positive and negative as the data has "
        "them, numbers as numbers and texts in quotes (nothing was spent)"
    )


STEPS = 100
"""Numbers are rounded to so many equal steps between their bounds."""


@dataclass(frozen=True)
class Target:
    """The column to predict: with `classes`, three at least, or with public bounds `low` and `high`, to which numbers are cut.

    A value that is missing or none of the classes is an error before any budget is spent. `missing_values` are missing too,
    such as -999, and texts are read as numbers with the sign `decimal`.
    """

    column: str
    classes: tuple[Value, ...] = ()
    low: Real | None = None
    high: Real | None = None
    missing_values: tuple[Value, ...] = ()
    decimal: str = "."

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "missing_values", check_missing_values(self.missing_values, "label"))
        check_decimal(self.decimal, "label")
        if not isinstance(self.column, str) or not self.column:
            raise ValueError(f"label: column must be the name of a column, got {self.column!r}")
        if self.classes:
            set_field(self, "classes", values_of(self.classes, "label: classes"))
            if len(self.classes) < 3 or self.low is not None or self.high is not None:
                raise ValueError(
                    "classes must be three or more, without low and high: for two state the positive value"
                )
        elif self.low is None or self.high is None:
            raise ValueError("label: state positive values, or classes, or low and high")
        else:
            set_field(self, "low", tidy(check_real(self.low, "label: low")))
            set_field(self, "high", tidy(check_real(self.high, "label: high")))
            if not self.low < self.high:
                raise ValueError(f"target: low must be less than high, got {self.low} and {self.high}")
        _ = self.coded  # what is wrong with the values is said here

    @property
    def coded(self) -> Column:
        """Classes in order; or numbers in steps, each rounded to the nearest one, which a record decides alone."""
        if self.classes:
            return Categories(self.column, self.classes, missing_values=self.missing_values)
        assert self.low is not None
        assert self.high is not None
        step = (self.high - self.low) / STEPS
        cuts = [self.low + (k + 0.5) * step for k in range(STEPS)]
        return Bins(self.column, cuts, missing_values=self.missing_values, decimal=self.decimal)

    @property
    def words(self) -> str:
        """What its values are."""
        return ", ".join(map(str, self.classes)) if self.classes else f"{self.low} to {self.high}"

    def check(self, codes: Int64Array) -> None:
        """Raise if a record has none of the values; no value is shown."""
        if np.isin(codes, list(self.coded.outside.values())).any():
            wanted = "one of the classes" if self.classes else "a number"
            raise ValueError(
                f"label {self.column!r}: at least one record has no value, or one that is not {wanted}: correct the data "
                "(nothing was spent)"
            )

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        stated = {"classes": list(self.classes)} if self.classes else {"low": self.low, "high": self.high}
        return {"column": self.column, **stated, **declared_marks(self.missing_values, self.decimal)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Target:
        """As in a schema file."""
        check_keys(settings, ("column", "classes", "low", "high", "missing_values", "decimal"), "label")
        return cls(**{"column": None, **settings})


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Distinct rows of 0/1 features and coded targets, and how many records have each: `counts`."""

    rows: IntArray
    targets: Int64Array
    counts: Int64Array

    @classmethod
    def of(cls, rows: IntArray, targets: Int64Array, counts: Int64Array) -> TargetTable:
        """Equal rows are added up, in an order that does not depend on that of the records."""
        both, place = np.unique(np.column_stack([rows, targets]), axis=0, return_inverse=True)
        summed = np.zeros(len(both), dtype=np.int64)
        np.add.at(summed, place.reshape(-1), counts)
        return cls(both[:, :-1].astype(rows.dtype), both[:, -1].astype(np.int64), summed)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())
