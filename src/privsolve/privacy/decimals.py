"""Privacy parameters as the decimals people write, summed without rounding.

A double is read as its shortest decimal: 0.1 is one tenth, so a budget of 1 holds exactly ten releases of 0.1. The double
itself is off by at most one part in 10^16, less than the arithmetic of any mechanism.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction


def exact(value: float) -> Fraction:
    """The shortest decimal that stands for `value`, as a fraction."""
    return Fraction(repr(float(value)))


def at_least(value: Fraction) -> float:
    """The nearest double, or the next one if that one reads as less than `value`; infinity beyond the doubles."""
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return rounded if exact(rounded) >= value else math.nextafter(rounded, math.inf)


def shown_above(value: float, digits: int = 4) -> str:
    """So many digits for people to read, never less than `value`."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))):.{digits}g}"


def at_most(value: Fraction) -> float:
    """The nearest double, or the one before if that one reads as more than `value`."""
    rounded = float(value)
    return rounded if exact(rounded) <= value else math.nextafter(rounded, -math.inf)
