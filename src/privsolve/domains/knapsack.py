"""Additive costs and what each total means: the form in which solvers know a domain, and its dynamic programme.

Every value of every coordinate has a non-negative cost, and a vector of the product of values belongs to the domain iff
its total cost is allowed. For a ball the cost is `v²` and any total up to the squared radius is allowed; for sparse signs
it is `1[v != 0]` and the total must be exactly `k`.

Whatever is asked about all members is one dynamic programme over (coordinate, total) in a semiring: which totals can be
completed, how many members there are, which sum over one of them is the least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.errors import WorkLimitReached

NOWHERE = 2**62
"""Stands for plus infinity in sums of integers."""

LARGEST_TOTALS = 100_000_000
"""No table over totals may be longer than this."""

Entries = Callable[[int], NDArray[Any]]
"""One entry for every value of coordinate j: numbers, or rows of numbers for many questions at once."""


class Ring(NamedTuple):
    """A semiring on NumPy arrays. `zero` is what impossible totals have."""

    zero: int
    plus: np.ufunc
    times: np.ufunc


POSSIBLE = Ring(False, np.logical_or, np.logical_and)
COUNTS = Ring(0, np.add, np.multiply)
LEAST = Ring(NOWHERE, np.minimum, np.add)

_Terms = Callable[[int], Iterable[tuple[int, Any]]]


@dataclass(frozen=True, eq=False)
class Knapsack:
    """Costs per value of every coordinate, which totals are allowed, and the squared norm of members by their total.

    `norm_sq` is None where the squared norm does not follow from the total. Costs are shifted such that the cheapest
    value of every coordinate costs nothing, and the totals with them.
    """

    costs: tuple[Int64Array, ...]
    allowed: NDArray[np.bool_]
    norm_sq: Int64Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", tuple(map(np.asarray, self.costs)))
        object.__setattr__(self, "allowed", np.asarray(self.allowed))
        for array in _different(self.costs).values():
            if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or int(array.min()) < 0:
                raise ValueError("costs must hold, for every coordinate, one non-negative integer per value")
        if self.allowed.ndim != 1 or self.allowed.size == 0 or self.allowed.dtype != np.bool_:
            raise ValueError("allowed must hold a truth value for every total from 0 on")
        if self.norm_sq is not None and self.norm_sq.shape != self.allowed.shape:
            raise ValueError("norm_sq must hold a squared norm for every total that `allowed` knows")
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Take the cheapest cost of every coordinate out of its costs and out of the totals."""
        different = _different(self.costs)
        least = {key: int(c.min()) for key, c in different.items()}
        if not any(least.values()):
            return
        shift = sum(least[id(c)] for c in self.costs)
        shifted = {key: c - least[key] for key, c in different.items()}
        object.__setattr__(self, "costs", tuple(shifted[id(c)] for c in self.costs))
        nothing = shift >= len(self.allowed)
        object.__setattr__(self, "allowed", np.zeros(1, dtype=bool) if nothing else self.allowed[shift:])
        if self.norm_sq is not None:
            object.__setattr__(self, "norm_sq", np.zeros(1, dtype=np.int64) if nothing else self.norm_sq[shift:])

    @classmethod
    def between(cls, costs: Sequence[Int64Array], low: int, high: int, norm_sq: Int64Array | None = None) -> Knapsack:
        """Every total from `low` to `high` is allowed: 0 and `B` for "at most B", twice `k` for "exactly k"."""
        check_totals(high + 1)
        return cls(tuple(costs), np.arange(high + 1) >= low, norm_sq)

    @property
    def limit(self) -> int:
        """Largest total that may be allowed."""
        return len(self.allowed) - 1

    def with_norms(self, values: Callable[[int], Int64Array], largest: int) -> Knapsack:
        """The same members, by totals `total * (largest + 1) + squared norm`.

        No vector whose total is within the limit may have a squared norm above `largest`, member or not: it would be
        taken for a vector of another total.
        """
        step = largest + 1
        check_totals(len(self.allowed) * step)
        squares = [values(j) ** 2 for j in range(len(self.costs))]
        costs = tuple(c * step + s for c, s in zip(self.costs, squares, strict=True))
        total, norm_sq = np.divmod(np.arange(len(self.allowed) * step), step)
        return Knapsack(costs, self.allowed[total], norm_sq)

    def ordered(self, order: Iterable[int]) -> Knapsack:
        """The same costs with the coordinates in another order."""
        return Knapsack(tuple(self.costs[j] for j in order), self.allowed, self.norm_sq)

    @cached_property
    def completable(self) -> NDArray[np.bool_]:
        """`[j, t]`: can coordinates j.. be chosen so that the total is allowed, `t` being spent before?"""
        return np.stack([*self._tables(POSSIBLE, self.allowed, self._once)][::-1])

    @property
    def reached(self) -> NDArray[np.bool_]:
        """`[t]`: does some vector of the product of values have the total `t`?"""
        first = _last(self._tables(POSSIBLE, np.arange(self.limit + 1) == self.limit, self._once))
        return first[::-1]  # what leads from t to the limit is a total of `limit - t`

    @property
    def size(self) -> int:
        """Number of members, in Python's integers."""
        return int(_last(self._tables(COUNTS, self.allowed.astype(int).astype(object), self._counted))[0])

    def least(self, entries: Entries) -> Any:
        """The smallest sum of one entry per coordinate that a member has; for many questions where entries are rows."""
        last = np.zeros((self.limit + 1, *np.shape(entries(0))[1:]), dtype=np.int64)
        last[~self.allowed] = NOWHERE
        return _last(
            self._tables(LEAST, last, lambda j: zip(self.costs[j].tolist(), entries(j), strict=True), self.completable)
        )[0]

    def largest(self, entries: Entries) -> Any:
        """The largest sum of one entry per coordinate that a member has."""
        return -self.least(lambda j: -entries(j))

    def _tables(
        self, ring: Ring, last: NDArray[Any], terms: _Terms, possible: NDArray[np.bool_] | None = None
    ) -> Iterator[NDArray[Any]]:
        """The dynamic programme, from the last coordinate back to the first: `last`, then a table for every j.

        `table[t]` is the sum, over all choices of the coordinates j.., of the product of their terms and of `last` at
        the total that they reach, `t` being spent before. `terms(j)` are pairs of a cost and a factor, None for one.
        Where `possible[j, t]` is False the table is put back to zero: integers have no infinity that would stay.
        """
        here = last
        yield here
        for j in range(len(self.costs) - 1, -1, -1):
            after, here = here, np.full_like(here, ring.zero)
            for cost, factor in terms(j):
                end = len(here) - cost
                if end > 0:
                    added = after[cost:] if factor is None else ring.times(after[cost:], factor)
                    ring.plus(here[:end], added, out=here[:end])
            if possible is not None:
                here[~possible[j]] = ring.zero
            yield here

    def _once(self, j: int) -> Iterable[tuple[int, None]]:
        return ((cost, None) for cost in self._multiplicity[id(self.costs[j])])

    def _counted(self, j: int) -> Iterable[tuple[int, int]]:
        return self._multiplicity[id(self.costs[j])].items()

    @cached_property
    def _multiplicity(self) -> dict[int, Counter[int]]:
        """How many values have each cost."""
        return {key: Counter(c.tolist()) for key, c in _different(self.costs).items()}


def _different(costs: Iterable[Int64Array]) -> dict[int, Int64Array]:
    """The costs by their identity: coordinates mostly share them."""
    return {id(c): c for c in costs}


def _last(tables: Iterable[NDArray[Any]]) -> NDArray[Any]:
    for table in tables:
        result = table
    return result


def check_totals(totals: int) -> None:
    """Raise if a table with an entry for each of so many totals, or squared norms, would be too large."""
    if totals > LARGEST_TOTALS:
        raise WorkLimitReached(
            f"the domain needs a table of {totals:,} totals of costs or norms, which is too large: use smaller weights, or "
            "the exponential mechanism or RSPM, which do not look at norms"
        )
