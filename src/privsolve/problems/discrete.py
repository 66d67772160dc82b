"""Any loss of the user's own over any domain that can be listed: what is stated about it, and its rounding (section 15)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_function, check_length, check_positive
from privsolve.data.patterns import checked_names
from privsolve.domains import Domain, check_domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import COST_LIMIT, ROUNDING, UPWARDS, StatedLoss, TotalLoss
from privsolve.privacy.decimals import exact
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT
from privsolve.problems.problem import MemberProblem

LossFunction = Callable[[Any, Int64Array], ArrayLike]
"""`loss(records, members)`: one row per record, one column per member."""

Number = int | float | Fraction | Decimal

BLOCK = 4_000_000
"""Losses held at a time."""

LARGEST_LOSS = 2**31
"""Of one record, in steps."""

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
            highest = None if bound is None else public_number("bound", bound)
            count, block = _source(loss, records, members, columns)
            totals, largest_total = _totals(count, block, stated, highest, members), count * stated.largest
        else:
            if lipschitz is not None or clip or columns is not None or bound is None or not callable(loss):
                raise ValueError(
                    "sensitivity is for a function that returns one total per member: state its bound, and leave out "
                    "lipschitz, clip and columns"
                )
            stated, largest_total = state_total(sensitivity, bound, step)
            count, totals = _called_once(loss, records, members, stated, largest_total)
        totals.setflags(write=False)
        labels = checked_names(names, domain.dim)
        vars(self).update(domain=domain, loss=stated, records=count, labels=labels, totals=totals)
        vars(self).update(_members=members, _largest_total=largest_total)
        if max(int(np.abs(totals).max()), largest_total) * UNIT >= OBJECTIVE_LIMIT // 2:
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


_Block = Callable[[slice, slice], ArrayLike]
"""Losses of some records (rows) with some members (columns)."""


def _source(
    loss: LossFunction | ArrayLike, records: Any, members: Int64Array, columns: ArrayLike | None
) -> tuple[int, _Block]:
    """How many records there are, and their losses by blocks."""
    if callable(loss):
        if columns is not None:
            raise ValueError("columns are for a table of losses: a function is told the members")
        count, shown = _checked_call(loss, records, members)
        _check_alone(loss, records, shown[: max(1, BLOCK // count)])
        return count, lambda rows, some: loss(records[rows], shown[some])
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
    return len(table), lambda rows, some: table[rows, some]


def _called_once(
    loss: LossFunction, records: Any, members: Int64Array, stated: TotalLoss, bound: int
) -> tuple[int, Int64Array]:
    """How many records there are, and one total per member, in whole steps between 0 and the bound."""
    count, shown = _checked_call(loss, records, members)
    found = _floats(
        loss(records, shown), (len(members),), stated.step, "one total per member, where a sensitivity is stated"
    )
    steps = np.floor(found / float(Fraction(stated.step or 1)) + (0.5 if stated.step else 0.0))
    if steps.min() < 0 or steps.max() > bound:
        raise ValueError("a total lies outside 0..bound: state a larger bound")
    return count, steps.astype(np.int64)


def _checked_call(loss: LossFunction, records: Any, members: Int64Array) -> tuple[int, Int64Array]:
    """How many records the loss is called with, one at least, and the members that it is shown."""
    check_function("loss", loss, 2, "be a function of 2 arguments: records, members")
    try:
        count = len(records)
        _ = records[:1]
    except (TypeError, KeyError):
        raise ValueError("records must be an array or a list that the loss function is called with") from None
    if count == 0:
        raise ValueError("records must hold at least one record")
    shown = members.copy()
    shown.setflags(write=False)
    return count, shown


def _check_alone(loss: LossFunction, records: Any, members: Int64Array) -> None:
    """Refuse a loss that looks at other records, which no sensitivity could cover, where the first record shows it."""
    few = records[: min(len(records), 100)]
    alone, together = (as_numbers("loss", loss(some, members)) for some in (records[:1], few))
    if alone.shape != (1, len(members)) or together.shape != (len(few), len(members)):
        return  # refused later, in words about shapes
    numbers = alone.dtype.kind in "biuf" and together.dtype.kind in "biuf"
    if numbers and not np.allclose(alone[0], together[0], rtol=1e-9, atol=1e-9, equal_nan=True):
        raise ValueError("loss gives a record another row beside other records: it must look at one record at a time")


def _order(columns: NDArray[Any], members: Int64Array) -> NDArray[np.intp]:
    if columns.shape == members.shape and columns.dtype.kind in "iu":
        order = np.lexsort(columns.T[::-1])
        if np.array_equal(columns[order], members):
            return order
    raise ValueError(f"columns must be the {len(members)} members of the domain, each once, as rows of integers")


def _totals(count: int, block: _Block, stated: StatedLoss, bound: Fraction | None, members: Int64Array) -> Int64Array:
    """The sum over records, every loss checked and rounded on its own.

    Some records at a time, and some members only where one record with all of them is too much.
    """
    totals = np.zeros(len(members), dtype=np.int64)
    width = min(len(members), BLOCK)
    height = max(1, BLOCK // width)
    for row, column in product(range(0, count, height), range(0, len(members), width)):
        rows, some = slice(row, min(row + height, count)), slice(column, min(column + width, len(members)))
        shape = rows.stop - row, some.stop - column
        steps = _rounded(block(rows, some), shape, stated, bound)
        if stated.lipschitz is not None and len(members) <= PAIRS_CHECKED:
            _check_lipschitz(steps, stated, members)
        totals[some] += steps.sum(axis=0)
    return totals


def _check_lipschitz(steps: Int64Array, stated: StatedLoss, members: Int64Array) -> None:
    for at, member in enumerate(members):
        allowed = [stated.within(int(square)) for square in ((members - member) ** 2).sum(axis=1)]
        if (np.abs(steps - steps[:, [at]]).max(axis=0) > np.maximum(allowed, 0.0)).any():
            raise ValueError(
                "a record's loss differs between two members by more than lipschitz times their distance: "
                "state a larger one"
            )


def _rounded(values: ArrayLike, shape: tuple[int, int], stated: StatedLoss, bound: Fraction | None) -> Int64Array:
    """Losses in whole steps, one row per record; those that break what was stated are refused or, where asked for, cut.

    No message shows a loss.
    """
    found = _floats(values, shape, stated.step, "one row per record and one column per member")
    if bound is not None:
        highest = float(bound)
        if stated.clipped:
            found = np.clip(found, 0.0, highest)
        elif found.min() < 0 or found.max() > highest:
            raise ValueError(
                f"a record's loss lies outside 0..bound={highest:g}: state a larger bound, or cut losses to it by clip=True"
            )
    unit = Fraction(stated.step or 1)
    if max(abs(found.min()), abs(found.max())) / float(unit) >= LARGEST_LOSS:
        raise IntegerRangeError(f"a record's loss is {LARGEST_LOSS:,} steps or more: use a coarser step")
    steps = np.floor(found / float(unit) + (0.5 if stated.step else 0.0)).astype(np.int64)
    if stated.step and bound is not None:  # floats could end one step above
        steps = np.minimum(steps, steps_of_bound(bound, unit, whole=False))
    if int((steps.max(axis=1) - steps.min(axis=1)).max()) > stated.largest:
        raise ValueError(
            f"a record's losses vary by more than {stated.largest} steps, which follows from what was stated: state a "
            "larger bound or Lipschitz constant"
        )
    return np.asarray(steps)


def state(
    domain: Domain, bound: Number | None, lipschitz: Number | None, step: Number | None, clip: bool
) -> StatedLoss:
    """What is public, in steps; `largest` is the smaller of what the two constants give over the whole domain."""
    if bound is None and lipschitz is None:
        raise ValueError("bound or lipschitz must be stated: without either no noise is enough")
    if not isinstance(clip, bool) or (clip and bound is None):
        raise ValueError("clip must be True or False, and needs a bound to cut losses to")
    unit = Fraction(1) if step is None else public_number("step", step)
    text = "" if step is None else str(unit)
    ranges = []
    if bound is not None:
        ranges.append(steps_of_bound(public_number("bound", bound), unit, step is None))
    per_unit = None if lipschitz is None else float(public_number("lipschitz", lipschitz) / unit) * UPWARDS
    if per_unit is not None:
        box = sum(int(values[-1] - values[0]) ** 2 for values in map(domain.values, range(domain.dim)))
        reach = StatedLoss(COST_LIMIT, per_unit, text).within(min(box, 4 * domain.radius_sq_bound))
        if reach >= COST_LIMIT and bound is None:
            raise ValueError("lipschitz times the diameter of the domain is too many steps: use a coarser step")
        ranges.append(max(1, math.floor(reach)))
    return StatedLoss(min(ranges), per_unit, text, clip)


def state_total(sensitivity: Number, bound: Number, step: Number | None) -> tuple[TotalLoss, int]:
    """What is public about a total that is no sum over records: its sensitivity and its bound in steps (section 15.5)."""
    unit = Fraction(1) if step is None else public_number("step", step)
    moved = public_number("sensitivity", sensitivity) / unit
    steps = math.floor(moved if step is None else moved + Fraction(ROUNDING))
    if not 1 <= steps <= COST_LIMIT:
        raise ValueError(f"sensitivity must be from 1 to {COST_LIMIT:,} steps: choose another step")
    highest = math.floor(public_number("bound", bound) / unit + Fraction(1, 2))
    if not 1 <= highest < LARGEST_LOSS:
        raise ValueError(f"bound must be from 1 to {LARGEST_LOSS:,} steps: choose another step")
    return TotalLoss(steps, "" if step is None else str(unit)), highest


def as_numbers(name: str, values: Any) -> NDArray[Any]:
    """An array, whose numbers are checked later; what hides some of them or has rows of several lengths is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} has a mask: fill the entries that it hides by a public rule first")
    check_length(name, values)
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be rows of numbers, all of one length") from None


def _floats(values: Any, shape: tuple[int, ...], step: str, wanted: str) -> Floats:
    """Losses as float64, finite and, without a step, whole.

    All are floats before anything is decided: NumPy gives a block one type for all its records (theory, section 15.3).
    """
    found = as_numbers("loss", values)
    if found.shape != shape:
        raise ValueError(f"loss must give {wanted}, got shape {found.shape}")
    if found.dtype.kind not in "biuf":
        raise ValueError(f"loss must give numbers, got dtype {found.dtype}")
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("loss gave NaN or infinite values: correct the records or the function first")
    if not step and (found != np.floor(found)).any():
        raise ValueError("loss must give whole numbers: state a step that they are rounded to")
    return found


def steps_of_bound(bound: Fraction, unit: Fraction, whole: bool) -> int:
    """The bound in steps, by the rule that losses are rounded by."""
    if whole and bound.denominator != 1:
        raise ValueError("bound must be a whole number where losses are: state a step otherwise")
    steps = math.floor(bound / unit + Fraction(1, 2))
    if not 1 <= steps <= COST_LIMIT:
        raise ValueError(f"bound must be from 1 to {COST_LIMIT:,} steps: choose another step")
    return steps


def public_number(name: str, value: object) -> Fraction:
    """A public positive number; a float is read as the decimal that is written."""
    if isinstance(value, Decimal) and value.is_finite():
        value = Fraction(value)
    check_positive(name, value)
    return Fraction(value) if isinstance(value, int | Fraction) else exact(float(value))  # type: ignore[arg-type]
