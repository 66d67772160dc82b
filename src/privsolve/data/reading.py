"""What reading a value means, the same in Python and in every engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

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
