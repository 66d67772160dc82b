"""How a value of an engine is read, as expressions of Ibis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privsolve.data.reading import PLAIN, Marks, text_for_numbers


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
