"""A loss of the user's own over a grid too large to list, with lower bounds on boxes of it (theory, section 15.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.checks import check_function
from privsolve.data.patterns import checked_names
from privsolve.domains import IntegerGrid
from privsolve.errors import IntegerRangeError
from privsolve.losses import StatedLoss
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT
from privsolve.problems.problem import MemberProblem
from privsolve.problems.stating import (
    BLOCK,
    LossFunction,
    Number,
    Rounding,
    check_alone,
    count_records,
    public_number,
    state,
)

LeastFunction = Callable[[Any, Int64Array, Int64Array], ArrayLike]
"""`least(records, low, high)`: one row per record, one column per box from corner to corner."""


@dataclass(frozen=True, eq=False)
class GridProblem(MemberProblem):
    """Choose the point of an integer grid with the least total of a loss of your own; the grid may have 10^18 points.

    The exponential mechanism draws exactly from it, and the oracle `"boxes"` finds certified optima: both split boxes of
    points in halves where a lower bound on the losses in the box says that it matters. The bound is yours (`least`), or
    follows from the Lipschitz constant.

    Args:
        domain: an `IntegerGrid`.
        loss: a function `loss(records, members)`, one row per record and one column per member; a record's row must depend
            on that record alone, to the last bit. It must be a number everywhere: the points are not tried beforehand, and
            one without a number that is met after paying ends the run with nothing released.
        records: what the functions are called with: an array, a list or anything that can be sliced.
        least: a function `least(records, low, high)`: a number that no loss of the record in the box falls below, one row
            per record, one column per box; `low` and `high` are rows of integers, both ends included. However loose, it
            decides only how long it takes; but it must be true: where it is seen to be above a loss, nothing is released.
        bound: losses are cut to lie between 0 and this; the release says so.
        lipschitz: between two points no record's loss differs by more than this times their Euclidean distance, for *every
            possible record*: your statement, which sets the noise where it is stated without a bound.
        step: losses are rounded to the nearest multiple of this, halves up, each on its own. Without it they must be whole
            numbers.
        names: public names of the coordinates.
    """

    domain: IntegerGrid
    loss: StatedLoss
    records: int
    labels: tuple[str, ...]
    _data: Any = field(repr=False)
    _losses: LossFunction = field(repr=False)
    _least: LeastFunction | None = field(repr=False)
    _rule: Rounding = field(repr=False)

    def __init__(
        self,
        domain: IntegerGrid,
        loss: LossFunction,
        records: Any,
        least: LeastFunction | None = None,
        *,
        bound: Number | None = None,
        lipschitz: Number | None = None,
        step: Number | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(domain, IntegerGrid):
            raise ValueError(
                f"domain must be an IntegerGrid, got {type(domain).__name__}: use DiscreteProblem for others"
            )
        check_function("loss", loss, "records", "members")
        if least is not None:
            check_function("least", least, "records", "low", "high")
        if least is None and lipschitz is None:
            raise ValueError("least or lipschitz must be given: nothing else says where in the grid losses are small")
        count = count_records(records)
        corners = np.array([domain.low, domain.high])
        check_alone(loss, records, corners)
        stated = state(domain, bound, lipschitz, step, clip=bound is not None)
        set_field = object.__setattr__
        set_field(self, "domain", domain)
        set_field(self, "loss", stated)
        set_field(self, "records", count)
        set_field(self, "labels", checked_names(names, domain.dim))
        set_field(self, "_data", records)
        set_field(self, "_losses", loss)
        set_field(self, "_least", least)
        set_field(self, "_rule", Rounding(stated, None if bound is None else public_number("bound", bound)))
        self.least_of(corners[:1], corners[1:])  # a wrong shape or type shows before anything is paid
        if (abs(int(self.losses_of(corners[:1])[0])) + 2 * count * stated.largest) * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("losses add up beyond the exact integer range: use a coarser step")

    def losses_of(self, members: Int64Array) -> Int64Array:
        """`L(D, w)` of many points at once, in steps. Data-dependent: not for publication."""
        totals = np.zeros(len(members), dtype=np.int64)
        for rows, some in self._blocks(len(members)):
            totals[some] += self._steps(rows, members[some]).sum(axis=0)
        return totals

    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)` in steps, exactly. Data-dependent: not for publication."""
        point = np.asarray(weights)
        if not self.domain.contains(point):
            raise ValueError("weights is not a member of the problem's domain")
        return int(self.losses_of(point[None, :])[0])

    def least_of(self, low: Int64Array, high: Int64Array) -> Int64Array:
        """For each box from corner to corner a number of steps that no total loss in it falls below."""
        totals = np.zeros(len(low), dtype=np.int64)
        for rows, some in self._blocks(len(low)):
            totals[some] += self._least_steps(rows, low[some], high[some]).sum(axis=0)
        return totals

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """Total loss in steps, and per record in the user's unit."""
        return self.loss.quality(self.total_loss(weights), self.n)

    def _steps(self, rows: slice, points: Int64Array) -> Int64Array:
        """The losses of some records at some points, cut and rounded each on its own."""
        found = self._losses(self._data[rows], points)
        return self._rule.rounded(found, rows.stop - rows.start, len(points))

    def _least_steps(self, rows: slice, low: Int64Array, high: Int64Array) -> Int64Array:
        if self._least is not None:
            return self._rule.lowest(self._least(self._data[rows], low, high), rows.stop - rows.start, len(low))
        middle = low + (high - low) // 2
        farthest = (np.maximum(high - middle, middle - low) ** 2).sum(axis=1)
        reach = np.array([int(self.loss.within(int(square))) for square in farthest])
        steps = self._steps(rows, middle) - reach
        return np.asarray(steps if self._rule.bound is None else np.maximum(steps, 0))

    def _blocks(self, columns: int) -> list[tuple[slice, slice]]:
        """All records with some points or boxes at a time, of records only some where one point is too much."""
        height = min(self.records, BLOCK)
        width = max(1, BLOCK // height)
        return [
            (slice(row, min(row + height, self.records)), slice(column, column + width))
            for row in range(0, self.records, height)
            for column in range(0, columns, width)
        ]
