"""Numbers and words that users pass, checked in one place: what comes back is a plain number or a member of an enumeration."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable
from enum import StrEnum
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeVar

SMALLEST, LARGEST = 1e-50, 1e50
"""Sizes, rates and budgets lie between these: their products and squares then stay within float64."""

Word = TypeVar("Word", bound=StrEnum)

LARGEST_COUNT = 2**53
"""Counts up to this are exact in float64."""


def check_choice(name: str, value: object, choices: type[Word]) -> Word:
    """The member that is meant; raise, and list them, if it is none."""
    try:
        return choices(value)  # type: ignore[arg-type]
    except ValueError:
        listed = ", ".join(repr(str(member)) for member in choices)
        raise ValueError(f"{name} must be one of {listed}, got {reprlib.repr(value)}") from None


def check_finite(name: str, value: object, wanted: str = "be a finite number", advice: str = "") -> float:
    """`value` as a float; raise unless it is a real number that float64 can hold. True and False are no numbers."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _wrong(name, value, wanted, advice)
    try:
        number = float(value)
    except OverflowError:  # an int or a fraction
        raise ValueError(f"{name} must {wanted}, got a number beyond the range of float64{advice}") from None
    if not isfinite(number):
        raise _wrong(name, value, wanted, advice)
    return number


def check_number(name: str, value: object, holds: Callable[[float], bool], wanted: str, advice: str = "") -> float:
    """`value` as a float; raise unless it is finite and `holds` is true for it: it must be what is `wanted`."""
    number = check_finite(name, value, wanted, advice)
    if not holds(number):
        raise _wrong(name, value, wanted, advice)
    return number


def check_positive(name: str, value: object, advice: str = "", *, bounded: bool = True) -> float:
    """`value` as a float; raise unless it is a number from `SMALLEST` to `LARGEST`, or finite and positive if not `bounded`."""
    number = check_number(name, value, lambda number: number > 0, "be finite and positive", advice)
    words = f"lie between {SMALLEST:g} and {LARGEST:g}"
    return check_number(name, number, lambda n: not bounded or SMALLEST <= n <= LARGEST, words, advice)


def check_share(name: str, value: object, advice: str) -> float:
    """`value` as a float; raise unless it lies strictly between 0 and 1."""
    return check_number(name, value, lambda number: 0 < number < 1, "lie strictly between 0 and 1", advice)


def check_between(name: str, value: object, low: float, high: float = LARGEST) -> float:
    """`value` as a float; raise unless it is a number from `low` to `high`."""
    return check_number(name, value, lambda number: low <= number <= high, f"be a number from {low:g} to {high:g}")


def check_count(name: str, value: object) -> int:
    """`value` as an int; raise unless it is a whole number from 1 to `LARGEST_COUNT`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= LARGEST_COUNT:
        raise _wrong(name, value, "be a whole number of at least 1 and at most 2^53")
    return int(value)


def check_callback(name: str, value: object) -> None:
    """Raise unless `value` is None or can be called with one argument: found before a run, not by its first call."""
    if value is not None:
        check_function(name, value, 1, "be None or a function of one argument")


def check_function(name: str, value: object, arguments: int, wanted: str) -> None:
    """Raise unless `value` can be called with so many arguments: it must be what is `wanted`."""
    try:
        if not callable(value):
            raise TypeError
        inspect.signature(value).bind(*[None] * arguments)
    except TypeError:
        raise _wrong(name, value, wanted) from None
    except ValueError:  # built in, without a signature
        pass


def check_integer(name: str, value: object, low: int, high: int) -> int:
    """`value` as an int; raise unless it is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _wrong(name, value, "be an integer")
    if not low <= int(value) <= high:
        raise _wrong(name, int(value), f"be between {low} and {high}")
    return int(value)


MOST_ENTRIES = 2**34
"""Of anything that is copied into memory: a range may state more without having them."""


def check_length(name: str, value: object) -> None:
    """Raise for what states more entries than memory could hold, before they are gone through."""
    try:
        length = len(value) if hasattr(value, "__len__") else 0
    except (TypeError, OverflowError):  # scalars of NumPy have no length, and a range may have one beyond the integers
        length = 0 if not isinstance(value, range) else MOST_ENTRIES + 1
    if length > MOST_ENTRIES:
        raise ValueError(f"{name} has more than {MOST_ENTRIES:,} entries, too many to hold in memory: give fewer")


def check_items(name: str, value: object, wanted: str) -> tuple[Any, ...]:
    """The items of a list, a tuple, an array or whatever else can be gone through; raise if nothing can, or it is a text."""
    if isinstance(value, str | bytes):
        raise _wrong(name, value, wanted)
    check_length(name, value)
    try:
        return tuple(value)  # type: ignore[arg-type]
    except TypeError:
        raise _wrong(name, value, wanted) from None


def _wrong(name: str, value: object, wanted: str, advice: str = "") -> ValueError:
    return ValueError(f"{name} must {wanted}, got {reprlib.repr(value)}{advice}")  # short, however large the value is
