"""What reading a value means, the same in Python and in every engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SPACES = " \t\n\r\v\f"
"""What is taken off both ends of a text before it is compared; what is then empty is missing."""

NUMBER_PATTERN = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?$"
"""A text that is a number. Everything else (also `inf`, `nan`, hexadecimal and digits with separators, which engines
read differently) counts as missing where a number is expected."""


def check_columns(wanted: Iterable[str], found: Sequence[str]) -> None:
    """Raise if the data lacks a column of the schema."""
    for name in wanted:
        if name not in found:
            some = ", ".join(map(str, found[:20])) + (", ..." if len(found) > 20 else "")
            raise ValueError(f"the data has no column {name!r} as the schema says: its columns are {some}")


def text_for_numbers(name: str) -> ValueError:
    """The error where a schema lists texts for a column of numbers."""
    return ValueError(
        f"column {name!r} does not hold texts but the schema lists texts for it: write its values without quotes"
    )
