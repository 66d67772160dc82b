"""What reading a value means, the same in Python and in every engine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats

SPACES = " \t\n\r\v\f"
"""What is taken off both ends of a text before it is compared; what is then empty is missing."""

NUMBER_PATTERN = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?$"
"""A text that is a number. Everything else (also `inf`, `nan`, hexadecimal and digits with separators, which engines
read differently) counts as missing where a number is expected."""

COMMA_PATTERN = NUMBER_PATTERN.replace(r"\.", "[.,]")
"""The same where decimals stand behind a comma. A point is read like a comma: files with semicolons have either."""

TRUE, FALSE = ("true",), ("false",)
"""What reads as 1 and as 0 where numbers are expected, in any case of letters."""

YES, NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
"""The same where true and false are expected."""


@dataclass(frozen=True)
class Marks:
    """What stands for no value in a column, and how its numbers are written: stated in a schema, so public.

    A value is missing if its text is one of `texts` or its number one of `numbers`.
    """

    texts: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    comma: bool = False
    truths: bool = False

    @property
    def pattern(self) -> str:
        """Of a text that is a number."""
        return COMMA_PATTERN if self.comma else NUMBER_PATTERN

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words that read as 1, and those that read as 0."""
        return (YES, NO) if self.truths else (TRUE, FALSE)


PLAIN = Marks()


def of_place(name: str, place: int) -> str:
    """What a column is called that has no name, or one that others have too."""
    return f"{name} (column {place})".strip()


def check_columns(wanted: Iterable[str], found: Sequence[str]) -> None:
    """Raise if the data lacks a column of the schema, or has it more than once."""
    for name in wanted:
        if name in found:
            continue
        alike = re.compile(rf"{re.escape(name)} \(column \d+\)", re.IGNORECASE)
        if places := [str(other) for other in found if alike.fullmatch(str(other))]:
            raise twice(name, places)
        raise no_column(name, [str(other) for other in found])


def no_column(name: str, found: Sequence[str]) -> ValueError:
    """The error where a table lacks a column: with the name that was meant, if there is one like it."""
    small = {other.lower(): other for other in found}
    alike = get_close_matches(str(name).lower(), list(small), 1)
    every = f"its columns are {', '.join(found)}"
    return ValueError(f"the data has no column {name!r}: " + (f"did you mean {small[alike[0]]!r}?" if alike else every))


def twice(name: str, places: Sequence[str]) -> ValueError:
    """The error where the name of a column that is used is not its own."""
    return ValueError(
        f"the data has {len(places)} columns called {name!r}: rename them, or use {' or '.join(map(repr, places))}"
    )


def text_for_numbers(name: str) -> ValueError:
    """The error where a schema lists texts for a column of numbers."""
    return ValueError(
        f"column {name!r} does not hold texts but the schema lists texts for it: write its values without quotes"
    )


_REAL = (bool, int, float, Decimal, np.bool_, np.integer, np.floating)

_WIDE = (nw.Int128, nw.UInt128)  # numpy has no such integers


NO_TEXT = ""
"""Stands for a value that is no text: schemas list no empty one."""


def texts_of(series: Any, name: str, marks: Marks = PLAIN) -> list[str | None]:
    """Texts without surrounding spaces; None where there is none, `NO_TEXT` where there is something else."""
    values = known_values(series)
    if all(value is None or not isinstance(value, str) for value in values) and any(v is not None for v in values):
        raise text_for_numbers(name)
    texts = [(v.strip(SPACES) or None) if isinstance(v, str) else None if v is None else NO_TEXT for v in values]
    return [None if text in marks.texts else text for text in texts] if marks.texts else texts


def numbers_of(series: Any, name: str, marks: Marks = PLAIN) -> Floats:
    """Numbers as float64; NaN where there is none. True is 1 and False is 0, as booleans and as texts."""
    found = _numbers(series, name, marks)
    if marks.numbers:
        found[np.isin(found, marks.numbers)] = math.nan
    return found


def _numbers(series: Any, name: str, marks: Marks) -> Floats:
    if series.dtype.is_integer() and series.dtype not in _WIDE:
        return _as_floats(series, 0)  # numpy rounds large integers as engines do, where Arrow's cast refuses them
    if series.dtype.is_float() or series.dtype == nw.Boolean or series.dtype in _WIDE:
        return _as_floats(series.cast(nw.Float64), 0.0)
    known = known_values(series)  # decimals too: what their cast rounds to depends on the scale of the column
    found: Floats = np.full(len(known), math.nan)
    parsed, others = number_parser(marks), set()
    for i, value in enumerate(known):
        if isinstance(value, str):
            found[i] = parsed(value.strip(SPACES))
        elif is_real(value):
            found[i] = float_of(value)
        elif value is not None:
            others.add(type(value).__name__)
    if others and not any(isinstance(value, str) or is_real(value) for value in known):
        raise ValueError(f"column {name!r} holds {min(others)} values: convert them to numbers or texts")
    return found


def is_real(value: object) -> bool:
    """Whether a single value is a number. A span of time is none, though numpy has it as a kind of integer."""
    return isinstance(value, _REAL) and not isinstance(value, np.timedelta64)


def float_of(value: Any) -> float:
    """A number of any type as float64."""
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return math.inf if value > 0 else -math.inf


def number_parser(marks: Marks) -> Callable[[str], float]:
    """What reads a text without surrounding spaces as a number."""
    number, (yes, no) = re.compile(marks.pattern), marks.words
    words = dict.fromkeys(yes, 1.0) | dict.fromkeys(no, 0.0)

    def parsed(text: str) -> float:
        if text in marks.texts:
            return math.nan
        return float(text.replace(",", ".")) if number.search(text) else words.get(text.lower(), math.nan)

    return parsed


def _as_floats(series: Any, filler: float) -> Floats:
    values = np.array(series.fill_null(filler).to_numpy(), dtype=np.float64)
    values[_nulls(series)] = math.nan
    return values


def known_values(series: Any) -> list[Any]:
    """The values, with every kind of missing value as None.

    One value of bytes, or one complex number, makes a column of them for some libraries, the other records included. So bytes
    are the text that they spell in UTF-8, and a complex number without an imaginary part is its real part.
    """
    nulls = _nulls(series)
    return [None if null else _plain(value) for value, null in zip(series.to_list(), nulls, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        return value.real
    return value


def _nulls(series: Any) -> NDArray[np.bool_]:
    return np.asarray(series.is_null().to_numpy(), dtype=np.bool_)


def text_of(value: Any, name: str, marks: Marks = PLAIN) -> Any:
    """Text without surrounding spaces; null where there is none."""
    import ibis

    if not value.type().is_string():
        raise text_for_numbers(name)
    text = stripped(value).nullif("")
    return ibis.cases((_is_one_of(text, marks.texts), ibis.null("string")), else_=text) if marks.texts else text


def stripped(text: Any) -> Any:
    """Text without surrounding spaces. Engines are slow at taking them off, so only texts that have some go that way."""
    import ibis

    space = ord(" ")
    has_some = (text.ascii_str() <= space) | (text.right(1).ascii_str() <= space)
    return ibis.cases((has_some, text.strip()), else_=text)


def truth_of(text: Any, marks: Marks = PLAIN) -> Any:
    """1 for the text true, 0 for false, in any case, and for other such words; null for others."""
    import ibis

    yes, no = (_is_one_of(text.lower(), words) for words in marks.words)
    return ibis.cases((yes, 1.0), (no, 0.0), else_=ibis.null("float64"))


def number_of(value: Any, name: str, marks: Marks = PLAIN) -> Any:
    """A number as float64; null where there is none, which engines order in their own ways if it is NaN."""
    import ibis

    number = _number(value, name, marks)
    if not marks.numbers:
        return number
    return ibis.cases((_is_one_of(number, marks.numbers), ibis.null("float64")), else_=number)


def _number(value: Any, name: str, marks: Marks) -> Any:
    import ibis

    kind, null = value.type(), ibis.null("float64")
    if kind.is_string():
        text = stripped(value)
        written = text.replace(",", ".") if marks.comma else text
        missing = [(_is_one_of(text, marks.texts), null)] if marks.texts else []
        is_number = (text.re_search(marks.pattern), written.try_cast("float64"))
        return ibis.cases(*missing, is_number, else_=truth_of(text, marks))
    if kind.is_boolean():
        return value.cast("int8").cast("float64")
    if kind.is_floating():
        number = value.cast("float64")
        return ibis.cases((number.isnan(), null), else_=number)
    if kind.is_decimal():  # by its digits: what a cast rounds to may depend on the scale of the column
        return value.cast("string").cast("float64")
    if kind.is_integer():
        return value.cast("float64")
    raise ValueError(f"column {name!r} holds {kind} values: convert them to numbers or texts")


def _is_one_of(value: Any, listed: Sequence[Any]) -> Any:
    return value == listed[0] if len(listed) == 1 else value.isin(list(listed))
