"""What is public about a table: its columns, their categories, bins and bounds, and the label."""

from privsolve.schema.columns import Bins, Categories, Category, Column, Label, Number
from privsolve.schema.draft import Draft, draft
from privsolve.schema.schema import INTERCEPT, EncodedTable, Schema

__all__ = [
    "INTERCEPT",
    "Bins",
    "Categories",
    "Category",
    "Column",
    "Draft",
    "EncodedTable",
    "Label",
    "Number",
    "Schema",
    "draft",
]
