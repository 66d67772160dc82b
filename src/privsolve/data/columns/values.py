"""Values in a schema: texts, numbers and booleans, checked and as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.data.reading import SPACES, Marks

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
