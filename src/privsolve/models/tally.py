"""How a table is added up: the points of a rule by column, as its card prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data import Schema
from privsolve.data.codes import check_order, codes_of_frame
from privsolve.data.columns import Column
from privsolve.data.patterns import SCORE_LIMIT
from privsolve.errors import IntegerRangeError
from privsolve.models.points import Levels, Part


@dataclass(frozen=True)
class Entry:
    """What one column adds to a total: raw points of its features, and the printed ones that stand for them."""

    column: Column
    weights: tuple[int, ...]
    raw: Part
    printed: Part

    @property
    def _ends(self) -> tuple[int, int]:
        """The fewest and the most points an answer can give."""
        if isinstance(self.printed, Levels):
            return self.printed.points[0], self.printed.points[-1]
        low, high = sorted(end * self.printed.points for end in self.column.range)
        return low, high

    @property
    def lowest(self) -> int:
        """The fewest points an answer can give."""
        return self._ends[0]

    @property
    def spread(self) -> int:
        """How many points an answer can move the total by; with 0 it need not be asked."""
        return self._ends[1] - self._ends[0]

    @property
    def by_code(self) -> list[int]:
        """The printed points of every code of a column with options."""
        raw = np.array(self.column.points_by_code(self.weights), dtype=np.int64)
        return [int(points) for points in self._printed(raw)]

    def of_features(self, rows: Any) -> Int64Array:
        """The printed points of rows of the column's features."""
        rows = np.asarray(rows, dtype=np.int64)
        if not isinstance(self.printed, Levels):
            return np.asarray(rows[:, 0] * self.printed.points)
        return self._printed(rows @ np.array(self.weights, dtype=np.int64))

    def expression(self, read: Any) -> Any:
        """The printed points inside an engine, of what was read of the column there."""
        if isinstance(self.printed, Levels):
            return self.column.points_of_codes(read, self.by_code)
        return self.column.points(read, (self.printed.points,))

    def _printed(self, raw: Int64Array) -> Int64Array:
        assert isinstance(self.raw, Levels)
        assert isinstance(self.printed, Levels)
        return np.array(self.printed.points, dtype=np.int64)[np.searchsorted(self.raw.points, raw)]


@dataclass(frozen=True)
class Tally:
    """The columns that a card asks for, and the least total that is decided positive."""

    entries: tuple[Entry, ...]
    threshold: int
    schema: Schema
    """Of the columns that are asked for, without intercept."""

    @property
    def by_weight(self) -> list[Entry]:
        """The columns in the order of the card: those that can move the total most first."""
        return sorted(self.entries, key=lambda entry: -entry.spread)

    def totals(self, table: Any) -> Int64Array:
        """The total of every row of a table; only the columns that are asked for are looked at."""
        check_order(table)
        if not self.entries:
            return np.zeros(len(table), dtype=np.int64)
        codes = codes_of_frame(table, [entry.column for entry in self.entries])
        parts = (entry.of_features(entry.column.expand(code)) for entry, code in zip(self.entries, codes, strict=True))
        return np.asarray(sum(parts), dtype=np.int64)

    def of_features(self, rows: Any) -> Int64Array:
        """The total of every row of the features of `schema`."""
        total, first = np.zeros(len(rows), dtype=np.int64), 0
        for entry in self.entries:
            last = first + len(entry.weights)
            total += entry.of_features(np.asarray(rows)[:, first:last])
            first = last
        return total


def check_scores(schema: Schema, weights: Sequence[int]) -> None:
    """Raise unless every record that the schema allows scores below the exact range; `weights` in the common unit."""
    sizes = [max(-low, high) for low, high in schema.ranges]
    if sum(size * abs(weight) for size, weight in zip(sizes, weights, strict=True)) >= SCORE_LIMIT:
        raise IntegerRangeError(
            "scores could leave the 64-bit integers: use narrower bounds, coarser steps or smaller scales in the schema"
        )
