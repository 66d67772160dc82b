"""What is minimised: a loss on a table, over a domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privsolve.domains import Domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import ZeroOneLoss
from privsolve.patterns import Int64Array, PatternTable, check_score_range
from privsolve.perturbation import OBJECTIVE_LIMIT, UNIT, AnyPerturbation


@dataclass(frozen=True, eq=False)
class Problem:
    """Choose `w` in `domain` with the fewest (or cheapest) mistakes of "positive iff `<x, w> > 0`" on `table`."""

    table: PatternTable
    domain: Domain
    loss: ZeroOneLoss = field(default_factory=ZeroOneLoss)

    def __post_init__(self) -> None:
        if not isinstance(self.table, PatternTable):
            raise ValueError(f"table must be a PatternTable, got {type(self.table).__name__}")
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a Domain such as IntegerBall, got {type(self.domain).__name__}")
        if not isinstance(self.loss, ZeroOneLoss):
            raise ValueError(f"loss must be a ZeroOneLoss, got {type(self.loss).__name__}")
        if self.domain.dim != self.table.dim:
            raise ValueError(
                f"domain has dimension {self.domain.dim} but the table has {self.table.dim} features: make them equal"
            )
        check_score_range(self.table, np.array([np.abs(self.domain.values(j)).max() for j in range(self.domain.dim)]))
        if self.table.n * self.loss.largest * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("records times largest cost leave the exact integer range: use smaller costs")

    @cached_property
    def cost_if_positive(self) -> Int64Array:
        """Cost of each row when it is predicted positive."""
        return self.table.negatives * self.loss.false_positive

    @cached_property
    def cost_if_negative(self) -> Int64Array:
        """Cost of each row when it is predicted negative."""
        return self.table.positives * self.loss.false_negative

    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)`, exactly. Data-dependent: not for publication."""
        positive = self.table.scores(weights) > 0
        return int(np.where(positive, self.cost_if_positive, self.cost_if_negative).sum())

    def check_perturbation(self, perturbation: AnyPerturbation) -> None:
        """Raise if the perturbation belongs to another domain."""
        if perturbation.domain != self.domain:
            raise ValueError("perturbation belongs to another domain than the problem's")

    def objective(self, weights: ArrayLike, perturbation: AnyPerturbation) -> int:
        """`L(D, w) + perturbation(w)` in units of `2^-20`, exactly."""
        self.check_perturbation(perturbation)
        return self.total_loss(weights) * UNIT + perturbation.of(weights)

    def losses_of(self, members: Int64Array) -> Int64Array:
        """`L(D, w)` of many members at once, in blocks that fit the cache."""
        losses = np.empty(len(members), dtype=np.int64)
        block = max(1, 2_000_000 // len(self.table.features))
        difference = self.cost_if_positive - self.cost_if_negative
        base = int(self.cost_if_negative.sum())
        for start in range(0, len(members), block):
            positive = members[start : start + block] @ self.table.score_features.T > 0
            losses[start : start + block] = base + positive @ difference
        return losses
