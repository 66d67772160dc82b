"""Any loss of the user's own over any domain that can be listed (theory, section 15)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_positive
from privsolve.data.patterns import checked_names
from privsolve.domains import Domain, check_domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import COST_LIMIT, StatedLoss
from privsolve.losses.stated import UPWARDS
from privsolve.models.member import Member
from privsolve.privacy.decimals import exact
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT
from privsolve.problems.problem import BaseProblem

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
class DiscreteProblem(BaseProblem):
    """Choose the member of a domain with the least total of a loss of your own.

    Nothing is asked of the loss but that what is stated about it holds for *every possible record*, since it sets the noise:
    `bound`, `lipschitz`, or both, of which the mechanisms use what is better. Records that break it are refused.

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
        names: public names of the coordinates.
    """

    domain: Domain
    loss: StatedLoss
    records: int
    totals: Int64Array = field(repr=False)
    labels: tuple[str, ...]
    _members: Int64Array = field(repr=False)

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
        names: Sequence[str] | None = None,
    ) -> None:
        check_domain(domain).check_listable()
        stated = _stated(domain, bound, lipschitz, step, clip)
        members = domain.members()
        source = _source(loss, records, members, columns)
        rule = _Rule(stated, None if bound is None else _number("bound", bound))
        set_field = object.__setattr__
        set_field(self, "domain", domain)
        set_field(self, "loss", stated)
        set_field(self, "records", source.count)
        set_field(self, "labels", checked_names(names, domain.dim))
        set_field(self, "_members", members)
        set_field(self, "totals", _totals(source, rule, members))
        if max(int(np.abs(self.totals).max()), self.n * stated.largest) * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("losses add up beyond the exact integer range: use a coarser step")

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return self.labels

    @property
    def scales(self) -> tuple[int, ...]:
        """All 1."""
        return (1,) * self.domain.dim

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

    def model(self, weights: ArrayLike) -> Member:
        """The member with these coordinates."""
        return Member(np.asarray(weights), self.names)

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """Total loss in steps, and per record in the user's unit."""
        total = self.total_loss(weights)
        unit = Fraction(self.loss.step or 1)
        return {"total_loss": total, "loss_per_record": float(total * unit / self.n)}


@dataclass(frozen=True)
class _Rule:
    """How the losses of a record become whole steps, and which are refused. Nothing here shows a loss."""

    stated: StatedLoss
    bound: Fraction | None

    def rounded(self, values: ArrayLike, rows: int, columns: int) -> Int64Array:
        found = np.asarray(values)
        found = found.astype(np.int64) if found.dtype.kind == "b" else found
        if found.shape != (rows, columns):
            raise ValueError(f"loss must give one row per record and one column per member, got shape {found.shape}")
        if found.dtype.kind not in ("iuf" if self.stated.step else "iu"):
            raise ValueError(
                f"loss must give whole numbers, got dtype {found.dtype}: state a step that they are rounded to"
                if found.dtype.kind == "f"
                else f"loss must give numbers, got dtype {found.dtype}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError("loss gave NaN or infinite values: correct the records or the function first")
        steps = self._steps(self._bounded(found))
        self._check_range(steps)
        return steps

    def _bounded(self, found: NDArray[Any]) -> NDArray[Any]:
        if self.bound is None:
            return found
        highest = float(self.bound)
        if self.stated.clipped:
            return np.asarray(np.clip(found, 0, int(self.bound) if found.dtype.kind in "iu" else highest))
        if found.size and (found.min() < 0 or found.max() > highest):
            raise ValueError(
                f"a record's loss lies outside 0..bound={highest:g}: state a larger bound, or cut losses to it by clip=True"
            )
        return found

    def _steps(self, found: NDArray[Any]) -> Int64Array:
        unit = float(Fraction(self.stated.step or 1))
        if found.size and max(abs(float(found.min())), abs(float(found.max()))) / unit >= LARGEST_LOSS:
            raise IntegerRangeError(f"a record's loss is {LARGEST_LOSS:,} steps or more: use a coarser step")
        if not self.stated.step:
            return found.astype(np.int64)
        steps = np.floor(found / unit + 0.5).astype(np.int64)
        if self.bound is not None:  # floats could end one step above
            steps = np.minimum(steps, _steps_of_bound(self.bound, Fraction(self.stated.step), whole=False))
        return np.asarray(steps)

    def _check_range(self, steps: Int64Array) -> None:
        if steps.size and int((steps.max(axis=1) - steps.min(axis=1)).max()) > self.stated.largest:
            raise ValueError(
                f"a record's losses vary by more than {self.stated.largest} steps, which follows from what was stated: state a "
                "larger bound or Lipschitz constant"
            )


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
    table = np.asarray(loss)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] != len(members):
        raise ValueError(
            f"loss must be a function or a table with one row per record and {len(members)} columns, one per member, got "
            f"shape {table.shape}"
        )
    if columns is not None:
        table = table[:, _order(np.asarray(columns), members)]
    return _Source(len(table), lambda rows, some: table[rows, some])


def _called(loss: LossFunction, records: Any, members: Int64Array) -> _Source:
    try:
        count = len(records)
    except TypeError:
        raise ValueError("records must be an array or a list that the loss function is called with") from None
    if count == 0:
        raise ValueError("records must hold at least one record")
    shown = members.copy()
    shown.setflags(write=False)
    _check_alone(loss, records, shown[: max(1, BLOCK // count)])
    return _Source(count, lambda rows, some: loss(records[rows], shown[some]))


def _check_alone(loss: LossFunction, records: Any, members: Int64Array) -> None:
    """Refuse a loss that looks at other records, which no sensitivity could cover, where the first record shows it."""
    few = records[: min(len(records), 100)]
    alone, together = np.asarray(loss(records[:1], members)), np.asarray(loss(few, members))
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


def _totals(source: _Source, rule: _Rule, members: Int64Array) -> Int64Array:
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


def _stated(
    domain: Domain, bound: Number | None, lipschitz: Number | None, step: Number | None, clip: bool
) -> StatedLoss:
    """What is public, in steps; `largest` is the smaller of what the two constants give over the whole domain."""
    if bound is None and lipschitz is None:
        raise ValueError("bound or lipschitz must be stated: without either no noise is enough")
    if not isinstance(clip, bool) or (clip and bound is None):
        raise ValueError("clip must be True or False, and needs a bound to cut losses to")
    unit = Fraction(1) if step is None else _number("step", step)
    text = "" if step is None else str(unit)
    ranges = []
    if bound is not None:
        ranges.append(_steps_of_bound(_number("bound", bound), unit, step is None))
    per_unit = None if lipschitz is None else float(_number("lipschitz", lipschitz) / unit) * UPWARDS
    if per_unit is not None:
        reach = StatedLoss(COST_LIMIT, per_unit, text).within(_diameter_sq(domain))
        if reach >= COST_LIMIT and bound is None:
            raise ValueError("lipschitz times the diameter of the domain is too many steps: use a coarser step")
        ranges.append(max(1, math.floor(reach)))
    return StatedLoss(min(ranges), per_unit, text, clip)


def _steps_of_bound(bound: Fraction, unit: Fraction, whole: bool) -> int:
    if whole and bound.denominator != 1:
        raise ValueError("bound must be a whole number where losses are: state a step otherwise")
    steps = math.floor(bound / unit + Fraction(1, 2))
    if not 1 <= steps <= COST_LIMIT:
        raise ValueError(f"bound must be from 1 to {COST_LIMIT:,} steps: choose another step")
    return steps


def _diameter_sq(domain: Domain) -> int:
    """An upper bound: the smaller of the box around the members and the ball."""
    box = sum(int(values[-1] - values[0]) ** 2 for values in map(domain.values, range(domain.dim)))
    return min(box, 4 * domain.radius_sq_bound)


def _number(name: str, value: object) -> Fraction:
    """A public positive number; a float is read as the decimal that is written."""
    if isinstance(value, Decimal) and value.is_finite():
        value = Fraction(value)
    check_positive(name, value)
    return Fraction(value) if isinstance(value, int | Fraction) else exact(float(value))  # type: ignore[arg-type]
