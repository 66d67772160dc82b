"""How long a scorecard will take, from public numbers alone: columns, features and, where it is public, the number of records.

The constants are CPU nanoseconds measured by `benchmarks/wide.py` on one core of a server with vector instructions for counting
bits; a machine without them takes two or three times as long. Nothing here looks at a record.
"""

from __future__ import annotations

import logging
import math

from privsolve.engines.supports.block_sums import MAX_ROWS
from privsolve.engines.supports.instance import count_supports
from privsolve.engines.workers import cores as usable_cores

CELL, SUPPORT, WORD = 1.2, 12.0, 0.35
"""For each cell of a support, for each support, and for each word of 64 rows that is counted."""

KEPT = 0.4
"""Share of the rows that one more column of a prefix keeps, roughly; columns that most rows have are turned round."""

FIXED = 0.1
"""Seconds that everything takes, with what is compiled at hand."""

LONG, LONGEST = 60.0, 3600.0
"""Seconds from which on it is said that a card takes long, and from which on it is refused."""

DEFAULT_FEATURES = 4
MOST_BY_DEFAULT = 20_000_000
"""Supports that a card goes through unless more features are asked for: seconds."""

_log = logging.getLogger("privsolve")


def default_max_features(columns: int) -> int:
    """The features of a card if nothing is said: four, or fewer where that means more supports than seconds allow."""
    fewer = (k for k in range(DEFAULT_FEATURES, 1, -1) if count_supports(columns, k) <= MOST_BY_DEFAULT)
    return min(next(fewer, 1), max(columns, 1))


def estimate(
    columns: int, max_features: int, records: int, cores: int | None = None, supports: int | None = None
) -> float:
    """About how many seconds an exact card takes; infinite where it cannot be done in the memory of a usual machine.

    `supports` are those that constraints leave, all if None.
    """
    most = min(max_features, columns)
    if most > 1 and math.comb(columns, most - 1) > MAX_ROWS:
        return math.inf
    words = max(records / 64 * KEPT ** max(most - 3, 0), 2.0)
    each = SUPPORT + CELL * (1 << most) + WORD * words
    gone_through = count_supports(columns, most) if supports is None else supports
    return FIXED + 1e-9 * each * gone_through / (cores or usable_cores())


def check_work(columns: int, max_features: int, records: int, supports: int | None = None) -> None:
    """Before anything is paid for: say that a card will take long, or refuse what cannot be done.

    What is refused follows from columns and features alone, and the `supports` that constraints leave of them; the records, 0
    where their number is private, only decide whether something is said.
    """
    if estimate(columns, max_features, 0, supports=supports) > LONGEST:
        fewer = next(k for k in range(max_features - 1, -1, -1) if estimate(columns, k, 0) <= LONGEST)
        raise ValueError(
            f"max_features={max_features} on {columns:,} columns means {count_supports(columns, max_features):.2g} supports, "
            f"more than can be gone through: use max_features={fewer} or less, fewer columns, or a decision tree"
        )
    seconds = estimate(columns, max_features, records, supports=supports)
    if seconds > LONG:
        _log.warning(
            "privsolve: %s supports to go through, which may take %.0f minutes; fewer features or columns take less",
            f"{count_supports(columns, max_features) if supports is None else supports:.2g}",
            math.ceil(seconds / 60),
        )
