"""Scores stay within 64 bits, for every record that a schema allows."""

from __future__ import annotations

from collections.abc import Sequence

from privsolve.data import Schema
from privsolve.data.patterns import SCORE_LIMIT
from privsolve.errors import IntegerRangeError


def check_scores(schema: Schema, weights: Sequence[int]) -> None:
    """Raise unless every record that the schema allows scores below the exact range; `weights` in the common unit."""
    sizes = [max(-low, high) for low, high in schema.ranges]
    if sum(size * abs(weight) for size, weight in zip(sizes, weights, strict=True)) >= SCORE_LIMIT:
        raise IntegerRangeError(
            "scores could leave the 64-bit integers: use narrower bounds, coarser steps or smaller scales in the schema"
        )
