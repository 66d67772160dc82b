"""How a value of an engine is read, as expressions of Ibis."""

from __future__ import annotations

from typing import Any

from privsolve.data.reading import NUMBER_PATTERN, text_for_numbers


def text_of(value: Any, name: str) -> Any:
    """Text without surrounding spaces; null where there is none."""
    if not value.type().is_string():
        raise text_for_numbers(name)
    return value.strip().nullif("")


def truth_of(text: Any) -> Any:
    """1 for the text true, 0 for false, in any case; null for others."""
    import ibis

    return ibis.cases((text.lower() == "true", 1.0), (text.lower() == "false", 0.0), else_=ibis.null("float64"))


def number_of(value: Any, name: str) -> Any:
    """A number as float64; null where there is none, which engines order in their own ways if it is NaN."""
    import ibis

    kind, null = value.type(), ibis.null("float64")
    if kind.is_string():
        text = value.strip()
        return ibis.cases((text.re_search(NUMBER_PATTERN), text.try_cast("float64")), else_=truth_of(text))
    if kind.is_boolean():
        return value.cast("int8").cast("float64")
    if kind.is_floating():
        number = value.cast("float64")
        return ibis.cases((number.isnan(), null), else_=number)
    if kind.is_integer() or kind.is_decimal():
        return value.cast("float64")
    raise ValueError(f"column {name!r} holds {kind} values: convert them to numbers or texts")
