"""What is public about a table: its columns, their categories, bins and bounds, and the label."""

from privsolve.data.columns import Bins, Categories, Category, Column, Dates, Label, Number
from privsolve.data.constraints import About
from privsolve.data.schema import INTERCEPT, EncodedTable, Schema

__all__ = [
    "INTERCEPT",
    "About",
    "Bins",
    "Categories",
    "Category",
    "Column",
    "Dates",
    "EncodedTable",
    "Label",
    "Number",
    "Schema",
]
