"""What a user states about a loss of their own, and how losses become whole steps by it (theory, section 15)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_length, check_positive
from privsolve.domains import Domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import COST_LIMIT, StatedLoss, TotalLoss
from privsolve.losses.stated import ROUNDING, UPWARDS
from privsolve.privacy.decimals import exact

LossFunction = Callable[[Any, Int64Array], ArrayLike]
"""`loss(records, members)`: one row per record, one column per member."""

Number = int | float | Fraction | Decimal

BLOCK = 4_000_000
"""Losses held at a time."""

LARGEST_LOSS = 2**31
"""Of one record, in steps."""


@dataclass(frozen=True)
class Rounding:
    """How the losses of a record become whole steps, and which are refused. Nothing here shows a loss."""

    stated: StatedLoss
    bound: Fraction | None

    def rounded(self, values: ArrayLike, rows: int, columns: int) -> Int64Array:
        """Losses in steps, one row per record; those that break what was stated are refused or, where asked for, cut.

        All are float64 before anything is decided: NumPy gives a block one type for all its records (theory, section 15.3).
        """
        found = as_numbers("loss", values)
        if found.shape != (rows, columns):
            raise ValueError(f"loss must give one row per record and one column per member, got shape {found.shape}")
        if found.dtype.kind not in "biuf":
            raise ValueError(f"loss must give numbers, got dtype {found.dtype}")
        found = found.astype(np.float64)
        if not np.isfinite(found).all():
            raise ValueError("loss gave NaN or infinite values: correct the records or the function first")
        if not self.stated.step and (found != np.floor(found)).any():
            raise ValueError("loss must give whole numbers: state a step that they are rounded to")
        steps = self._steps(self._bounded(found))
        self._check_range(steps)
        return steps

    @property
    def unit(self) -> float:
        """One step."""
        return float(Fraction(self.stated.step or 1))

    def _bounded(self, found: Floats) -> Floats:
        if self.bound is None:
            return found
        highest = float(self.bound)
        if self.stated.clipped:
            return np.asarray(np.clip(found, 0.0, highest))
        if found.size and (found.min() < 0 or found.max() > highest):
            raise ValueError(
                f"a record's loss lies outside 0..bound={highest:g}: state a larger bound, or cut losses to it by clip=True"
            )
        return found

    def _steps(self, found: Floats) -> Int64Array:
        unit = self.unit
        if found.size and max(abs(found.min()), abs(found.max())) / unit >= LARGEST_LOSS:
            raise IntegerRangeError(f"a record's loss is {LARGEST_LOSS:,} steps or more: use a coarser step")
        if not self.stated.step:
            return found.astype(np.int64)
        steps = np.floor(found / unit + 0.5).astype(np.int64)
        if self.bound is not None:  # floats could end one step above
            steps = np.minimum(steps, steps_of_bound(self.bound, Fraction(self.stated.step), whole=False))
        return np.asarray(steps)

    def _check_range(self, steps: Int64Array) -> None:
        if steps.size and int((steps.max(axis=1) - steps.min(axis=1)).max()) > self.stated.largest:
            raise ValueError(
                f"a record's losses vary by more than {self.stated.largest} steps, which follows from what was stated: state a "
                "larger bound or Lipschitz constant"
            )


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
        reach = StatedLoss(COST_LIMIT, per_unit, text).within(diameter_sq(domain))
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


def total_steps(values: ArrayLike, members: int, stated: TotalLoss, bound: int) -> Int64Array:
    """Totals in whole steps, one per member, between 0 and the bound."""
    found = as_numbers("loss", values)
    if found.shape != (members,) or found.dtype.kind not in "biuf":
        raise ValueError(f"with sensitivity loss must give {members} numbers, one total per member, got {found.shape}")
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("loss gave NaN or infinite values: correct the records or the function first")
    if not stated.step and (found != np.floor(found)).any():
        raise ValueError("loss must give whole numbers: state a step that they are rounded to")
    steps = np.floor(found / float(Fraction(stated.step or 1)) + (0.5 if stated.step else 0.0))
    if steps.min() < 0 or steps.max() > bound:
        raise ValueError("a total lies outside 0..bound: state a larger bound")
    return steps.astype(np.int64)


def count_records(records: Any) -> int:
    """How many records a loss is called with: one at least."""
    try:
        count = len(records)
        _ = records[:1]
    except (TypeError, KeyError):
        raise ValueError("records must be an array or a list that the loss function is called with") from None
    if count == 0:
        raise ValueError("records must hold at least one record")
    return count


def as_numbers(name: str, values: Any) -> NDArray[Any]:
    """An array, whose numbers are checked later; what hides some of them or has rows of several lengths is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} has a mask: fill the entries that it hides by a public rule first")
    check_length(name, values)
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be rows of numbers, all of one length") from None


def check_alone(loss: LossFunction, records: Any, members: Int64Array) -> None:
    """Refuse a loss that looks at other records, which no sensitivity could cover, where the first record shows it."""
    few = records[: min(len(records), 100)]
    alone, together = (as_numbers("loss", loss(some, members)) for some in (records[:1], few))
    if alone.shape != (1, len(members)) or together.shape != (len(few), len(members)):
        return  # refused later, in words about shapes
    numbers = alone.dtype.kind in "biuf" and together.dtype.kind in "biuf"
    if numbers and not np.allclose(alone[0], together[0], rtol=1e-9, atol=1e-9, equal_nan=True):
        raise ValueError("loss gives a record another row beside other records: it must look at one record at a time")


def steps_of_bound(bound: Fraction, unit: Fraction, whole: bool) -> int:
    """The bound in steps, by the rule that losses are rounded by."""
    if whole and bound.denominator != 1:
        raise ValueError("bound must be a whole number where losses are: state a step otherwise")
    steps = math.floor(bound / unit + Fraction(1, 2))
    if not 1 <= steps <= COST_LIMIT:
        raise ValueError(f"bound must be from 1 to {COST_LIMIT:,} steps: choose another step")
    return steps


def diameter_sq(domain: Domain) -> int:
    """An upper bound: the smaller of the box around the members and the ball."""
    box = sum(int(values[-1] - values[0]) ** 2 for values in map(domain.values, range(domain.dim)))
    return min(box, 4 * domain.radius_sq_bound)


def public_number(name: str, value: object) -> Fraction:
    """A public positive number; a float is read as the decimal that is written."""
    if isinstance(value, Decimal) and value.is_finite():
        value = Fraction(value)
    check_positive(name, value)
    return Fraction(value) if isinstance(value, int | Fraction) else exact(float(value))  # type: ignore[arg-type]
