"""How a value of a table in memory is read, through narwhals.

The type of a column is what its maker inferred from all records together, so it decides nothing here: a value is read as what
it is itself. A column is refused for what it holds only where no value at all can be read (theory, sections 7 and 10).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.data.reading import PLAIN, SPACES, Marks, text_for_numbers

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
