"""Public groups of records, by the options of a column."""

from __future__ import annotations

from privsolve.data.columns import Column
from privsolve.data.questions import Choice

MOST_GROUPS = 50


def group_names(column: Column) -> tuple[str, ...]:
    """What the records with each code of a column are called."""
    if not isinstance(column.question(), Choice):
        raise ValueError(f"by: the column {column.column!r} has no options to group by: use categories or bins")
    if column.radix > MOST_GROUPS:
        raise ValueError(f"by: the column {column.column!r} has more than {MOST_GROUPS} options: group them")
    return column.answers()
