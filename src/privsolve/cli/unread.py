"""What of a table a schema or a release cannot read: counted, said, and refused where it is too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

from privsolve.data import Schema
from privsolve.data.codes import run
from privsolve.data.columns import MISSING, OTHER, Column
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree
from privsolve.releases import Release

MOST_COLUMNS = 8
"""So many columns are listed with what falls outside their schema."""


def outside_lines(outside: Mapping[str, Mapping[str, int]], where: str) -> list[str]:
    """How many values fell outside the schema, of the columns with most of them first."""
    order = sorted(outside, key=lambda name: -sum(outside[name].values()))
    lines = [
        f"{name}: " + ", ".join(f"{count:,} {fate}" for fate, count in outside[name].items())
        for name in (order if len(order) > MOST_COLUMNS else outside)
    ]
    if len(lines) <= MOST_COLUMNS:
        return lines
    return [*lines[:MOST_COLUMNS], f"and {len(lines) - MOST_COLUMNS} more columns, {where}"]


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, or if the table has such a column already, one that it does not have."""
    known = {column.casefold() for column in taken}
    more = (f"card_{name}" + (f"_{k}" if k else "") for k in count())
    return next(free for free in chain([name], more) if free not in known)


def unread_values(table: Any, release: Release) -> tuple[int, dict[str, dict[str, int]]]:
    """The number of records, and by column that is used how many values are missing, or unknown to the release."""
    columns = used_columns(release)
    if not columns:
        return int(run(table.aggregate(records=table.count()))["records"][0].as_py()), {}
    schema = Schema(columns, intercept=False)
    records, outside = schema.unread(table)
    found: dict[str, dict[str, int]] = {}
    for name, fates in outside.items():
        column = schema.column(name)
        here = {MISSING: fates.get(MISSING, 0)}
        if column.outside.get(OTHER) in column.saying_nothing and getattr(column, "other", None) is None:
            here["unknown"] = fates.get(OTHER, 0)
        if any(here.values()):
            found[name] = {fate: n for fate, n in here.items() if n}
    return records, found


def check_read(records: int, unread: Mapping[str, Mapping[str, int]], release: Release, most: float) -> None:
    """Raise if too many values say nothing; missing ones that have an answer of their own count only if all are missing."""
    columns = {column.column: column for column in used_columns(release)}
    for name, counts in unread.items():
        column = columns[name]
        answered = isinstance(getattr(column, "missing", None), str) and counts.get(MISSING, 0) < records
        wrong = sum(counts.values()) - (counts.get(MISSING, 0) if answered else 0)
        if wrong > most * records:
            raise ValueError(
                f"column {name!r}: {wrong:,} of {records:,} values are missing or unknown to the release, more than "
                f"--max-missing {most:g} allows: look how the column is written, or raise --max-missing"
            )


def unread_lines(records: int, unread: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What is said about them."""
    said = {name: " and ".join(f"{n:,} {fate}" for fate, n in counts.items()) for name, counts in unread.items()}
    return [f"{name}: {words} of {records:,} values" for name, words in said.items()]


def used_columns(release: Release) -> tuple[Column, ...]:
    """The columns that the model uses."""
    if isinstance(release.model, DecisionTree):
        return release.model.used[0].columns if release.model.asked else ()
    return tuple(entry.column for entry in linear_rule(release).tally.entries)


def linear_rule(release: Release) -> LinearRule:
    """The release's model, if a table can be scored with it inside its engine."""
    if not isinstance(release.model, LinearRule):
        raise ValueError(
            f"--release: it holds a {release.model.kind}, and only a linear rule or a decision tree can score a table"
        )
    return release.model
