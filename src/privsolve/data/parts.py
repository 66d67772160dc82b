"""Records in random parts: every record goes to one of them by a die of its own (theory, section 15.4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.data.patterns import PatternTable
from privsolve.noise.entropy import Randomness


def check_divisible(records: Any) -> int:
    """How many records there are; raises unless single ones can be taken out."""
    if isinstance(records, PatternTable):
        return records.n
    try:
        count = records.shape[0] if hasattr(records, "shape") else len(records)
        _taken(records, np.arange(min(count, 1)))
    except (TypeError, IndexError, KeyError):
        raise ValueError(
            f"records must be a PatternTable, an array, a list or a frame, one entry per record, got {type(records).__name__}"
        ) from None
    if count == 0:
        raise ValueError("records must hold at least one record")
    return int(count)


def in_parts(records: Any, count: int, rng: Randomness) -> Iterator[Any]:
    """The records of each part in turn; None for a part that has none. Equal records are dealt one by one as well."""
    labels = rng.integers_below(count, check_divisible(records))
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(count + 1))
    for first, last in pairwise(ends):
        yield _taken(records, order[first:last]) if last > first else None


def first_of(records: Any, count: int) -> Any:
    """The first records, for whoever wants to see what a part is like."""
    return _taken(records, np.arange(count))


def _taken(records: Any, places: NDArray[np.intp]) -> Any:
    """The records at these places; those of a pattern table are counted row by row, the positive ones first."""
    if isinstance(records, PatternTable):
        return _some_of(records, places)
    if hasattr(records, "iloc"):
        return records.iloc[places]
    if isinstance(records, list | tuple):
        return [records[place] for place in places]
    return records[places]


def _some_of(table: PatternTable, places: NDArray[np.intp]) -> PatternTable:
    entries = np.searchsorted(np.cumsum(np.concatenate([table.positives, table.negatives])), places, side="right")
    rows, where = np.unique(entries % len(table.features), return_inverse=True)
    positive = entries < len(table.features)
    counts = [np.bincount(where[some], minlength=len(rows)) for some in (positive, ~positive)]
    return PatternTable(table.features[rows], counts[0], counts[1], table.names, table.scales, table.ranges)
