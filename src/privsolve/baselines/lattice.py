"""Clipped gradients as integer vectors, so that sums are exact and noise on them can be too (docs, baselines, section B1).

A record with features x has the gradient `±p·x` of the logistic loss, clipped to norm C. On the lattice it is `±t·E`: a
whole number t from 0 to `2^SHARE_BITS`, the share of the clip norm, times an integer vector E along x of norm at most
`reach`. So its norm is at most `clip = 2^SHARE_BITS·reach` lattice units, exactly.

t and E of a record must depend on that record and on the public weights alone, to the last bit. They are made of integers,
of single additions, products, quotients and roots, which IEEE 754 rounds correctly, and of a public table of the logistic
function.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import frexp, sqrt
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from privsolve.arrays import Floats, Int64Array
from privsolve.baselines.linear import Rows
from privsolve.noise.rounded import LARGEST_BITS

SHARE_BITS = 15
CLIP_BITS = 31
"""The clip norm has at least this many bits of lattice units where the noise leaves room for them."""

MOST_RECORDS = 2**31
"""Their sum fits into int64."""

SCORE_BITS = 32
TABLE_BITS = 12
TABLE_EDGE = 32 << TABLE_BITS
"""Scores are multiples of `2^-SCORE_BITS`; the table has steps of `2^-TABLE_BITS` up to a score of 32."""

LARGEST_WEIGHT = 2.0**62


@dataclass(frozen=True)
class Lattice:
    """How fine the lattice is: noise of deviation `2^bits` units, directions of norm at most `reach` units."""

    bits: int
    reach: int

    @classmethod
    def of(cls, multiplier: float) -> Lattice:
        """The lattice on which that noise is at least `multiplier` times the clip norm, and hardly more."""
        bits = min(CLIP_BITS + frexp(multiplier)[1], LARGEST_BITS)
        reach = int(Fraction(2) ** (bits - SHARE_BITS) / Fraction(multiplier))
        if reach < 2**10:
            raise ValueError("the noise is too large for gradients to be seen: use fewer steps or a larger epsilon")
        return cls(bits, reach)

    @property
    def clip(self) -> int:
        """The clip norm in lattice units."""
        return self.reach << SHARE_BITS


@dataclass(frozen=True, eq=False)
class LatticeRows:
    """The rows of a table on a lattice: integer features, their norms, and the directions (as columns)."""

    lattice: Lattice
    rows: Rows
    directions: Any

    @classmethod
    def of(cls, rows: Rows, lattice: Lattice) -> LatticeRows:
        """Directions are rounded to the nearest integers, short enough that rounding cannot make them too long."""
        if (n := int(rows.positives.sum() + rows.negatives.sum())) >= MOST_RECORDS:
            raise ValueError(f"DP-SGD sums fewer than 2^31 records in integers, got {n:,}: take a sample")
        entries = rows.rows.tocoo()
        length = max(lattice.reach - sqrt(rows.dim), 0.0)
        values = np.rint(length * (entries.data / rows.norms[entries.row])).astype(np.int64)
        return cls(lattice, rows, sparse.csr_array((values, (entries.col, entries.row)), shape=rows.rows.shape[::-1]))

    def clipped_sum(self, weights: Floats, clips: Floats, positives: Int64Array, negatives: Int64Array) -> Int64Array:
        """Sums of clipped gradients in lattice units, a column for each of `weights` and `clips`.

        `positives` and `negatives` are how many records of each row take part. With `p = 1/(1+e^{-<x,w>})` the gradient is
        `p·x` for a negative record and `-(1-p)·x` for a positive one.
        """
        place = self._places(weights)
        ratio = self.rows.norms[:, None] / clips
        factor = negatives[:, None] * _shares(_logistic()[place], ratio)
        factor -= positives[:, None] * _shares(_logistic()[2 * TABLE_EDGE - place], ratio)
        return np.asarray(self.directions @ factor)

    def _places(self, weights: Floats) -> Int64Array:
        """Where in the table each score `<x / scales, w>` is; weights are public, so how they are rounded is free."""
        fixed = np.ldexp(weights / self.rows.scales[:, None], SCORE_BITS)
        fixed = np.rint(np.clip(fixed, -LARGEST_WEIGHT, LARGEST_WEIGHT)).astype(np.int64)
        shift = SCORE_BITS - TABLE_BITS
        scores = (np.asarray(self.rows.integers @ fixed) + (1 << (shift - 1))) >> shift
        return np.asarray(np.clip(scores, -TABLE_EDGE, TABLE_EDGE) + TABLE_EDGE)


def _shares(p: Floats, ratio: Floats) -> Int64Array:
    """`min(p·‖x‖/C, 1)` in units of `2^-SHARE_BITS`, rounded to the nearest."""
    return np.asarray(np.rint(np.ldexp(np.minimum(p * ratio, 1.0), SHARE_BITS)), dtype=np.int64)


@cache
def _logistic() -> Floats:
    """The logistic function on the grid of the table."""
    return np.asarray(expit(np.ldexp(np.arange(-TABLE_EDGE, TABLE_EDGE + 1, dtype=np.float64), -TABLE_BITS)))
