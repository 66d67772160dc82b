"""The prior of scorecards as the samplers use it: of sum 1 in every column, with the masses apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array

LARGEST_SPREAD = 150.0
"""The prior weights of the cards of one support differ by at most a factor of e to this: their sums stay precise."""


class CardShape(NamedTuple):
    """Numbers of columns, of points that a column may have, of intercepts, and of columns that have points at most."""

    columns: int
    points: int
    intercepts: int
    most: int


class CardPrior(NamedTuple):
    """The prior of points (by column) and of intercepts, each of sum 1, and the logarithms of their masses."""

    points: Floats
    intercepts: Floats
    log_mass: Floats
    log_mass_intercept: float

    @classmethod
    def of(
        cls, log_weight: ArrayLike, log_weight_intercept: ArrayLike, shape: CardShape, order: Int64Array | None = None
    ) -> CardPrior:
        """Normalise log weights of cards of this shape, columns in this order; raise for what is too uneven.

        `log_weight[j, i]` is that of the i-th points on column j relative to no points, minus infinity for points that are
        not allowed there. Of the columns in this order, each must have points that are allowed.
        """
        columns, starts = (np.asarray(w, dtype=np.float64) for w in (log_weight, log_weight_intercept))
        wanted = (shape.columns, shape.points), (shape.intercepts,)
        if (columns.shape, starts.shape) != wanted:
            raise ValueError(
                f"log_weight must have shape {wanted[0]} and log_weight_intercept {wanted[1]}, got {columns.shape} and "
                f"{starts.shape}"
            )
        columns = columns if order is None else columns[order]
        never = np.isneginf(columns)
        if not (np.isfinite(columns[~never]).all() and np.isfinite(starts).all()) or never.all(axis=1).any():
            raise ValueError("log weights must be finite, or minus infinity for points that are not allowed")
        mass, mass_intercept = np.asarray(logsumexp(columns, axis=1)), float(logsumexp(starts))
        points, intercepts = columns - mass[:, None], starts - mass_intercept
        least = np.where(never, 0.0, points).min(axis=1, initial=0.0)
        spread = np.sort(-least)[::-1][: shape.most].sum() - intercepts.min()
        if spread > LARGEST_SPREAD:
            raise ValueError(
                f"the prior weights of one support differ by more than exp({LARGEST_SPREAD:g}): use a flatter prior, or "
                "smaller points"
            )
        return cls(np.exp(points), np.exp(intercepts), mass, mass_intercept)
