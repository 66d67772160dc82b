"""The kinds of columns a schema has: what is public about each, its codes and its features.

A value becomes a small integer *code* first (which option, which bin, which step of a number, or how it fell outside), in
the engine; codes become features by a public rule, in Python, for distinct rows only.
To add a kind, write a subclass of `Column` in a file of its own and import it here.
"""

from privsolve.data.columns.base import (
    KINDS,
    MISSING,
    OTHER,
    Column,
    Real,
    Value,
    check_values,
    tidy,
    value_text,
)
from privsolve.data.columns.categories import Categories, Category
from privsolve.data.columns.label import Label
from privsolve.data.columns.numbers import Bins, Dates, Encoding, Number

__all__ = [
    "KINDS",
    "MISSING",
    "OTHER",
    "Bins",
    "Categories",
    "Category",
    "Column",
    "Dates",
    "Encoding",
    "Label",
    "Number",
    "Real",
    "Value",
    "check_values",
    "tidy",
    "value_text",
]
