"""Limits on work, checked before anything is paid for or drawn."""

from __future__ import annotations

import operator

LARGEST_LIMIT = 2**62
"""Counters are 64-bit integers."""


def check_limit(name: str, value: object) -> int:
    """The limit as an integer of at least 1; raise, naming the argument, for anything else (`1e9` is a float)."""
    try:
        limit = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        limit = 0
    if isinstance(value, bool) or not 1 <= limit <= LARGEST_LIMIT:
        raise ValueError(f"{name} must be a whole number from 1 to 2^62, got {value!r}")
    return limit
