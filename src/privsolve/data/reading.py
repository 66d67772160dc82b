"""What reading a value means: by itself, in an engine. Values in memory become columns of Arrow that the engine reads."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np

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

NO_TEXT = ""
"""Stands for a value that is no text: schemas list no empty one."""

PARTS = ("text", "number", "day")
"""The fields of a mixed column: each value of it is one of these, or missing."""


def column_of(values: Sequence[Any]) -> Any:
    """Values of any types as a column of Arrow: texts, numbers, days, or where they are mixed a field for each of these.

    Each value is taken apart by itself. What is none of these, such as a list, is missing.
    """
    import pyarrow as pa

    with suppress(pa.ArrowException, TypeError, ValueError):
        return pa.array(values, pa.string(), from_pandas=True)  # quick, and only if none is anything else
    parts = [_parts(value) for value in values]
    kinds = (pa.string(), pa.float64(), pa.date32())
    columns = [pa.array(found, kind) for found, kind in zip(zip(*parts, strict=True), kinds, strict=True)]
    used = [column for column in columns if column.null_count < len(column)]
    return used[0] if len(used) == 1 else pa.StructArray.from_arrays(columns, PARTS)


def _parts(value: Any) -> tuple[str | None, float | None, date | None]:
    """What a value is: a text, a number or a day. Bytes are the text that they spell, complex numbers may be real.

    One value of bytes, or one complex number, makes a column of them for some libraries, the other records included.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        with suppress(UnicodeDecodeError):
            return bytes(value).decode("utf-8"), None, None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode(), None, None
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = value.real
    if isinstance(value, np.datetime64):  # a day, whatever the other records are
        value = value.astype("M8[D]").item()
    if isinstance(value, _REAL) and not isinstance(value, np.timedelta64):  # which numpy has as a kind of integer
        number = float_of(value)
        return None, None if math.isnan(number) else number, None
    if isinstance(value, date) and getattr(value, "tzinfo", None) is None and value == value:  # NaT is a date, too
        return None, None, date(value.year, value.month, value.day)
    return None, None, None


def float_of(value: Any) -> float:
    """A number of any type as float64."""
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return math.inf if value > 0 else -math.inf


def is_mixed(kind: Any) -> bool:
    """Whether a type of Ibis is that of a mixed column."""
    return kind.is_struct() and tuple(kind.names) == PARTS


def text_of(value: Any, name: str, marks: Marks = PLAIN) -> Any:
    """Text without surrounding spaces; null where there is none, `NO_TEXT` where there is something else."""
    import ibis

    if is_mixed(value.type()):
        text = text_of(value["text"], name, marks)
        return ibis.cases((value["number"].notnull() | value["day"].notnull(), NO_TEXT), else_=text)
    if not value.type().is_string():
        raise text_for_numbers(name)
    text = stripped(value).nullif("")
    return ibis.cases((is_one_of(text, marks.texts), ibis.null("string")), else_=text) if marks.texts else text


def stripped(text: Any) -> Any:
    """Text without surrounding spaces. Engines are slow at taking them off, so only texts that have some go that way."""
    import ibis

    space = ord(" ")
    has_some = (text.ascii_str() <= space) | (text.right(1).ascii_str() <= space)
    return ibis.cases((has_some, text.strip()), else_=text)


def truth_of(text: Any, marks: Marks = PLAIN) -> Any:
    """1 for the text true, 0 for false, in any case, and for other such words; null for others."""
    import ibis

    yes, no = (is_one_of(text.lower(), words) for words in marks.words)
    return ibis.cases((yes, 1.0), (no, 0.0), else_=ibis.null("float64"))


def number_of(value: Any, name: str, marks: Marks = PLAIN) -> Any:
    """A number as float64; null where there is none, which engines order in their own ways if it is NaN."""
    import ibis

    number = _number(value, name, marks)
    if not marks.numbers:
        return number
    return ibis.cases((is_one_of(number, marks.numbers), ibis.null("float64")), else_=number)


def _number(value: Any, name: str, marks: Marks) -> Any:
    import ibis

    kind, null = value.type(), ibis.null("float64")
    if is_mixed(kind):
        number = value["number"]
        return ibis.cases((number.notnull(), number), else_=_number(value["text"], name, marks))
    if kind.is_string():
        text = stripped(value)
        written = text.replace(",", ".") if marks.comma else text
        missing = [(is_one_of(text, marks.texts), null)] if marks.texts else []
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


def is_one_of(value: Any, listed: Sequence[Any]) -> Any:
    """Whether a value is in a list, as an expression of Ibis."""
    return value == listed[0] if len(listed) == 1 else value.isin(list(listed))
