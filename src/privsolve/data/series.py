"""How a value of a table in memory is read, through narwhals."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.data.reading import NUMBER_PATTERN, SPACES, text_for_numbers

_NUMBER = re.compile(NUMBER_PATTERN)
_WIDE = (nw.Int128, nw.UInt128)  # numpy has no such integers
_BOOLEANS = {"true": 1.0, "false": 0.0}


def texts_of(series: Any, name: str) -> list[str | None]:
    """Texts without surrounding spaces; None where there is none."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        raise text_for_numbers(name)
    values = _known(series)
    if not all(isinstance(value, str) for value in values if value is not None):
        raise text_for_numbers(name)
    return [(value.strip(SPACES) or None) if value is not None else None for value in values]


def numbers_of(series: Any, name: str, boolean: bool) -> Floats:
    """Numbers as float64; NaN where there is none."""
    if series.dtype.is_integer() and series.dtype not in _WIDE:
        return _as_floats(series, 0)  # numpy rounds large integers as engines do, where Arrow's cast refuses them
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _as_floats(series.cast(nw.Float64), 0.0)
    known = _known(series)
    found: Floats = np.full(len(known), math.nan)
    for i, value in enumerate(known):
        if isinstance(value, str):
            found[i] = _parsed(value.strip(SPACES), boolean)
        elif isinstance(value, (bool, int, float, Decimal, np.bool_, np.number)):
            found[i] = _float(value)
        elif value is not None:
            raise ValueError(f"column {name!r} holds {type(value).__name__} values: convert them to numbers or texts")
    return found


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return math.inf if value > 0 else -math.inf


def _parsed(text: str, boolean: bool) -> float:
    if boolean:
        return _BOOLEANS.get(text.lower(), math.nan)
    return float(text) if _NUMBER.search(text) else math.nan


def _as_floats(series: Any, filler: float) -> Floats:
    values = np.array(series.fill_null(filler).to_numpy(), dtype=np.float64)
    values[_nulls(series)] = math.nan
    return values


def _known(series: Any) -> list[Any]:
    """The values, with every kind of missing value as None."""
    nulls = _nulls(series)
    return [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]


def _nulls(series: Any) -> NDArray[np.bool_]:
    return np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
