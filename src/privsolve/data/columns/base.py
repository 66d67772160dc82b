"""What a kind of column must say of itself, and the values that a schema states: texts, numbers and booleans."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from privsolve.arrays import Int64Array, IntArray
from privsolve.data.questions import Choice, Question
from privsolve.data.reading import SPACES, Marks
from privsolve.registry import enter

Value = str | int | float | bool
Real = int | float

LARGEST_INTEGER = 2**53
"""Beyond it not every integer is a float64."""


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
    seen: set[Value] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{where} lists {value!r} twice")
        seen.add(value)


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


def values_of(values: object, where: str) -> tuple[Value, ...]:
    """One value or several."""
    found = tuple(values) if isinstance(values, (list, tuple)) else (values,)
    if not found:
        raise ValueError(f"{where} must list at least one value")
    for value in found:
        value_text(value, where)
    return found


def option_name(name: object, where: str) -> str | None:
    """The name of an option, or None."""
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise ValueError(f"{where} must be the name of an option, got {name!r}")
    return name


def declared(**settings: object) -> dict[str, Any]:
    """Those settings that are stated."""
    return {key: value for key, value in settings.items() if value is not None}


DECIMALS = (".", ",")


def check_missing_values(values: object, where: str) -> tuple[Value, ...]:
    """Texts and numbers that stand for no value."""
    if isinstance(values, str | bool) or not isinstance(values, Sequence):
        raise ValueError(f"{where}: missing_values must be a list of texts and numbers, got {values!r}")
    for value in values:
        value_text(value, f"{where}: missing_values")
    return tuple(dict.fromkeys(values))


def check_decimal(decimal: object, where: str) -> str:
    """The sign between whole numbers and decimals."""
    if not isinstance(decimal, str) or decimal not in DECIMALS:
        raise ValueError(f'{where}: decimal must be "." or ",", got {decimal!r}')
    return decimal


def marks_of(missing_values: Sequence[Value], decimal: str = ".", *, truths: bool = False) -> Marks:
    """How values of a column are read, by what its schema says."""
    numbers = tuple(float(v) for v in missing_values if not isinstance(v, str | bool))
    return Marks(tuple(value_text(v, "missing_values") for v in missing_values), numbers, decimal == ",", truths)


def declared_marks(missing_values: Sequence[Value], decimal: str = ".") -> dict[str, Any]:
    """The marks that differ from what is usual, as in a schema file."""
    return declared(
        missing_values=list(missing_values) or None,
        decimal=decimal if decimal != "." else None,
    )


OTHER, MISSING, BELOW, ABOVE = "other", "missing", "below", "above"

KINDS: dict[str, type[Column]] = {}
"""Every kind of column, by the key that marks it in a schema file."""


class Column(ABC):
    """A column of the data and what is public about it. Subclasses are frozen dataclasses; to define one is to register it.

    *Guarantee.* `code` of what `read` gives must depend on the value alone, never on other records: reading then has
    sensitivity one record (theory, section 10).
    """

    column: str

    key: ClassVar[str]
    """The key that marks the kind in a schema file."""

    keys: ClassVar[tuple[str, ...]]
    """All keys of the kind in a schema file, `key` included."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Keys that cannot be left out, besides `key`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        enter(KINDS, cls, "column", "key")

    @property
    @abstractmethod
    def radix(self) -> int:
        """Codes are 0, 1, ..., `radix` - 1."""

    @property
    @abstractmethod
    def outside(self) -> Mapping[str, int]:
        """The codes of values that the schema does not list, by what became of them."""

    @property
    def saying_nothing(self) -> frozenset[int]:
        """The codes of values that cannot be read: if all values have them, the schema does not fit the data."""
        return frozenset(code for fate, code in self.outside.items() if fate == MISSING)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The features."""

    @property
    def scales(self) -> tuple[int, ...]:
        """A feature stands for itself divided by its scale: 1 for indicators."""
        return (1,) * len(self.names)

    @property
    def range(self) -> tuple[int, int]:
        """The least and largest integer that a feature can be: 0 and 1 for indicators."""
        return 0, 1

    @abstractmethod
    def read(self, value: Any) -> Any:
        """What a value says, as an expression of Ibis: a text or a number, null where it says nothing.

        Queries compute it once for a value and refer to it more often (`data.codes.with_read`).
        """

    @abstractmethod
    def code(self, read: Any) -> Any:
        """The code of what was read, as an expression of Ibis."""

    @abstractmethod
    def expand(self, codes: Int64Array) -> IntArray:
        """The features of every code, in integers as narrow as they can be."""

    def points(self, read: Any, weights: Sequence[int]) -> Any:
        """The column's part of a score, as an expression of Ibis; `weights` belong to its features, in a common unit."""
        return self.points_of_codes(read, self.points_by_code(weights))

    def points_of_codes(self, read: Any, by_code: Sequence[int]) -> Any:
        """The points of the code of what was read, as an expression of Ibis."""
        import ibis

        # a lookup in a list: engines evaluate the operand of a CASE once for every WHEN
        points = ibis.array([ibis.literal(int(each), type="int64") for each in by_code])
        return points[self.code(read).cast("int64")]

    def points_by_code(self, weights: Sequence[int]) -> list[int]:
        """The column's part of the score for every code."""
        rows = self.expand(np.arange(self.radix))
        return [sum(int(x) * w for x, w in zip(row, weights, strict=True) if x) for row in rows]

    @abstractmethod
    def question(self) -> Question:
        """What a scorecard asks about this column."""

    def answers(self) -> tuple[str, ...]:
        """What the values of every code are called: the answers to the question, then missing if it is none of them."""
        question = self.question()
        texts = tuple(option.text for option in question.options) if isinstance(question, Choice) else ()
        return (*texts, MISSING) if len(texts) < self.radix else texts

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The keys of the column in a schema file."""

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """The column of that name with the settings of `to_dict`, whose keys have been checked: what `key` has comes first."""
        make: Callable[..., Self] = cls
        return make(name, settings[cls.key], **{key: value for key, value in settings.items() if key != cls.key})


def column_from_dict(name: str, settings: object) -> Column:
    """The column of a schema file, of the kind whose key it has; errors name the column and the key."""
    where = f"columns.{name}"
    said = [" and ".join((kind.key, *kind.needs)) for kind in KINDS.values()]
    listed = f"{', '.join(said[:-1])}, or {said[-1]}"
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: must be a table with {listed}")
    found = [key for key in KINDS if key in settings]
    if len(found) != 1:
        has = f"it has {' and '.join(found)}" if found else "it has none of them"
        raise ValueError(f"{where}: needs exactly one of {listed}; {has}")
    kind = KINDS[found[0]]
    check_keys(settings, kind.keys, where)
    for key in kind.needs:
        if key not in settings:
            raise ValueError(f"{where}: {key} is missing")
    return kind.from_dict(name, settings)


def check_keys(settings: object, known: Sequence[str], where: str) -> None:
    """Raise unless the settings are a table of known keys."""
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: must be a table of {', '.join(known)}")
    for key in settings:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}; known are {', '.join(known)}")


def without_keys(columns: Mapping[str, Any], keys: Sequence[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The columns of a schema file without some keys, and for each of these what the columns say, by their names."""
    found: dict[str, dict[str, Any]] = {
        key: {n: s[key] for n, s in columns.items() if isinstance(s, Mapping) and key in s} for key in keys
    }
    left = {
        name: {k: v for k, v in settings.items() if k not in keys} if isinstance(settings, Mapping) else settings
        for name, settings in columns.items()
    }
    return left, found
