"""Any loss of the user's own over any domain that can be listed (theory, section 15)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_function
from privsolve.data.patterns import checked_names
from privsolve.domains import Domain, check_domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import StatedLoss, TotalLoss
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT
from privsolve.problems.problem import MemberProblem
from privsolve.problems.stating import (
    BLOCK,
    LossFunction,
    Number,
    Rounding,
    as_numbers,
    check_alone,
    count_records,
    public_number,
    state,
    state_total,
    total_steps,
)

PAIRS_CHECKED = 200
"""Up to this many members, a Lipschitz constant is held against every record and every pair of members."""


@dataclass(frozen=True, eq=False)
class DiscreteProblem(MemberProblem):
    """Choose the member of a domain with the least total of a loss of your own.

    Nothing is asked of the loss but that what is stated about it holds for *every possible record*, since it sets the noise:
    `bound`, `lipschitz`, or both, of which the mechanisms use what is better. Records that break it are refused.

    A total that is not a sum over records (a largest error, a median) is taken with `sensitivity`.

    Args:
        domain: public, of at most ten million members: `FiniteSet`, `IntegerGrid`, any other `Domain` or your own.
        loss: a function `loss(records, members)` that returns what every record (row) loses with every member (column), or a
            table of these numbers. A record's row must depend on that record alone, to the last bit. The function is called
            with some of the records and some of the members at a time, the members as rows of integers.
        records: what the function is called with: an array, a list or anything that can be sliced. Left out with a table.
        bound: every loss of every record lies between 0 and this.
        lipschitz: between two members no record's loss differs by more than this times their Euclidean distance. Held
            against all pairs of up to 200 members; for larger domains it is your statement.
        step: losses are rounded to the nearest multiple of this, halves up, each on its own. Without it they must be whole
            numbers.
        clip: cut losses to `0..bound` instead of refusing them; the release says so.
        columns: the member that each column of a table stands for, where they are not in the order of `domain.members()`.
        sensitivity: the total is no sum over records: one record changed, added or removed moves it by at most this, for
            every member. It is your statement. `loss(records, members)` is then called once and returns one total per
            member, and `bound` says that every total lies between 0 and it.
        names: public names of the coordinates.

    Example:
        >>> import numpy as np, privsolve as ps
        >>> def deviation(ages, members):  # from the median of the records: one record moves it by 10 years at most
        ...     return np.abs(np.clip(np.median(ages), 40, 50) - members[:, 0])
        >>> problem = ps.DiscreteProblem(
        ...     ps.IntegerGrid([0], [99]), deviation, [41, 44, 48], sensitivity=10, bound=99
        ... )
        >>> int(problem.total_loss([45]))
        1
    """

    domain: Domain
    loss: StatedLoss | TotalLoss
    records: int
    totals: Int64Array = field(repr=False)
    labels: tuple[str, ...]
    _members: Int64Array = field(repr=False)
    _largest_total: int = field(repr=False)

    def __init__(
        self,
        domain: Domain,
        loss: LossFunction | ArrayLike,
        records: Any = None,
        *,
        bound: Number | None = None,
        lipschitz: Number | None = None,
        step: Number | None = None,
        clip: bool = False,
        columns: ArrayLike | None = None,
        sensitivity: Number | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        check_domain(domain).check_listable("state a smaller domain")
        members = domain.members()
        stated: StatedLoss | TotalLoss
        if sensitivity is None:
            stated = state(domain, bound, lipschitz, step, clip)
            source = _source(loss, records, members, columns)
            rule = Rounding(stated, None if bound is None else public_number("bound", bound))
            count, totals = source.count, _totals(source, rule, members)
            largest_total = count * stated.largest
        else:
            if lipschitz is not None or clip or columns is not None or bound is None or not callable(loss):
                raise ValueError(
                    "sensitivity is for a function that returns one total per member: state its bound, and leave out "
                    "lipschitz, clip and columns"
                )
            stated, largest_total = state_total(sensitivity, bound, step)
            count, totals = _called_once(loss, records, members, stated, largest_total)
        set_field = object.__setattr__
        set_field(self, "domain", domain)
        set_field(self, "loss", stated)
        set_field(self, "records", count)
        set_field(self, "labels", checked_names(names, domain.dim))
        set_field(self, "_members", members)
        set_field(self, "totals", totals)
        set_field(self, "_largest_total", largest_total)
        if max(int(np.abs(self.totals).max()), largest_total) * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("losses add up beyond the exact integer range: use a coarser step")

    @property
    def largest_total(self) -> int:
        """The stated bound on a total, or the number of records times that on one loss."""
        return self._largest_total

    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)` in steps, exactly. Data-dependent: not for publication."""
        wanted = tuple(np.asarray(weights).tolist())
        at = bisect_left(range(len(self._members)), wanted, key=lambda i: tuple(self._members[i].tolist()))
        if at == len(self._members) or tuple(self._members[at].tolist()) != wanted:
            raise ValueError("weights is not a member of the problem's domain")
        return int(self.totals[at])

    def losses_of(self, members: Int64Array) -> Int64Array:
        """`L(D, w)` of many members at once: looked up."""
        if members is self._members or np.array_equal(members, self._members):
            return self.totals
        return np.array([self.total_loss(row) for row in members], dtype=np.int64)

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """Total loss in steps, and per record in the user's unit."""
        return self.loss.quality(self.total_loss(weights), self.n)


@dataclass(frozen=True)
class _Source:
    """Losses by blocks of records and members."""

    count: int
    block: Callable[[slice, slice], ArrayLike]


def _source(loss: LossFunction | ArrayLike, records: Any, members: Int64Array, columns: ArrayLike | None) -> _Source:
    if callable(loss):
        if columns is not None:
            raise ValueError("columns are for a table of losses: a function is told the members")
        return _called(loss, records, members)
    if records is not None:
        raise ValueError("records are for a function: a table of losses has one row per record already")
    table = as_numbers("loss", loss)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] != len(members):
        raise ValueError(
            f"loss must be a function or a table with one row per record and {len(members)} columns, one per member, got "
            f"shape {table.shape}"
        )
    if columns is not None:
        table = table[:, _order(np.asarray(columns), members)]
    return _Source(len(table), lambda rows, some: table[rows, some])


def _called(loss: LossFunction, records: Any, members: Int64Array) -> _Source:
    check_function("loss", loss, "records", "members")
    count = count_records(records)
    shown = members.copy()
    shown.setflags(write=False)
    check_alone(loss, records, shown[: max(1, BLOCK // count)])
    return _Source(count, lambda rows, some: loss(records[rows], shown[some]))


def _called_once(
    loss: LossFunction, records: Any, members: Int64Array, stated: TotalLoss, bound: int
) -> tuple[int, Int64Array]:
    """How many records there are, and one total per member, in steps."""
    check_function("loss", loss, "records", "members")
    count = count_records(records)
    shown = members.copy()
    shown.setflags(write=False)
    found = total_steps(loss(records, shown), len(members), stated, bound)
    found.setflags(write=False)
    return count, found


def _order(columns: NDArray[Any], members: Int64Array) -> NDArray[np.intp]:
    if columns.shape == members.shape and columns.dtype.kind in "iu":
        order = np.lexsort(columns.T[::-1])
        if np.array_equal(columns[order], members):
            return order
    raise ValueError(f"columns must be the {len(members)} members of the domain, each once, as rows of integers")


def _totals(source: _Source, rule: Rounding, members: Int64Array) -> Int64Array:
    """The sum over records, every loss checked and rounded on its own."""
    totals = np.zeros(len(members), dtype=np.int64)
    for rows, some in _blocks(source.count, len(members)):
        height = min(rows.stop, source.count) - rows.start
        width = min(some.stop, len(members)) - some.start
        steps = rule.rounded(source.block(rows, some), height, width)
        if len(members) <= PAIRS_CHECKED:
            _check_lipschitz(steps, rule.stated, members)
        totals[some] += steps.sum(axis=0)
    totals.setflags(write=False)
    return totals


def _blocks(records: int, members: int) -> Iterator[tuple[slice, slice]]:
    """Few members at a time only where one record with all of them is too much."""
    width = min(members, BLOCK)
    height = max(1, BLOCK // width)
    for row in range(0, records, height):
        for column in range(0, members, width):
            yield slice(row, row + height), slice(column, column + width)


def _check_lipschitz(steps: Int64Array, stated: StatedLoss, members: Int64Array) -> None:
    if stated.lipschitz is None:
        return
    for at, member in enumerate(members):
        allowed = [stated.within(int(square)) for square in ((members - member) ** 2).sum(axis=1)]
        if (np.abs(steps - steps[:, [at]]).max(axis=0) > np.maximum(allowed, 0.0)).any():
            raise ValueError(
                "a record's loss differs between two members by more than lipschitz times their distance: "
                "state a larger one"
            )
