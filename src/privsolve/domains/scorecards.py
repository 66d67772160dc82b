"""Scorecards: few columns with points and an intercept, and those that keep to what a person has stated beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.domains.base import KnapsackDomain
from privsolve.domains.knapsack import Knapsack

Names = tuple[str, ...]


@dataclass(frozen=True)
class SparsePoints(KnapsackDomain):
    """Scorecards: at most `max_features` columns have points, whole numbers in `-max_points..max_points`.

    With `intercept=(low, high)` (or a single number b for `(-b, b)`) the *last* column is an intercept: its weight lies in
    that range and does not count as a feature.
    """

    dim: int
    max_features: int
    max_points: int
    intercept: tuple[int, int] | None = None
    kind: ClassVar[str] = "sparse-points"

    def __init__(
        self, dim: int, max_features: int, max_points: int, intercept: int | Sequence[int] | None = None
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "dim", check_integer("dim", dim, 1 if intercept is None else 2, 10_000))
        set_field(self, "intercept", _intercept_range(intercept))
        set_field(self, "max_features", check_integer("max_features", max_features, 1, self.columns))
        set_field(self, "max_points", check_integer("max_points", max_points, 1, 1000))

    @property
    def columns(self) -> int:
        """Number of columns that may have points: all but the intercept."""
        return self.dim - (self.intercept is not None)

    @property
    def radius_sq_bound(self) -> int:
        """All allowed columns at the largest points, and the intercept at its larger end."""
        low, high = self.intercept or (0, 0)
        return self.max_features * self.max_points**2 + max(low**2, high**2)

    @property
    def equal_norms(self) -> bool:
        """Points of different size are members, so no."""
        return False

    @property
    def size(self) -> int:
        """Supports times points times intercepts."""
        low, high = self.intercept or (0, 0)
        supports = (math.comb(self.columns, k) * (2 * self.max_points) ** k for k in range(self.max_features + 1))
        return int(sum(supports)) * (high - low + 1)

    def values(self, j: int) -> Int64Array:
        """The range of points, or of the intercept in the last column."""
        if self.intercept is not None and j == self.dim - 1:
            return np.arange(self.intercept[0], self.intercept[1] + 1)
        return np.arange(-self.max_points, self.max_points + 1)

    @property
    def points(self) -> Int64Array:
        """The points other than 0 that some column may have."""
        values = np.arange(-self.max_points, self.max_points + 1)
        return np.asarray(values[values != 0])

    def knapsack(self) -> Knapsack:
        """Cost `1[v != 0]` but for the intercept, which is free; any total up to `max_features`."""
        costs = [(self.values(0) != 0).astype(np.int64)] * self.columns
        if self.intercept is not None:
            costs.append(np.zeros(len(self.values(self.columns)), dtype=np.int64))
        return Knapsack.between(costs, 0, self.max_features)

    def knapsack_with_norms(self) -> Knapsack:
        """The same scorecards; every vector whose total is within the limit is one, so `D²` bounds all norms."""
        return self.knapsack().with_norms(self.values, self.radius_sq_bound)


def _intercept_range(intercept: int | Sequence[int] | None) -> tuple[int, int] | None:
    if intercept is None:
        return None
    if isinstance(intercept, (int, Integral)):
        bound = check_integer("intercept", intercept, 0, 100_000)
        return -bound, bound
    try:
        low, high = (check_integer("intercept", v, -100_000, 100_000) for v in intercept)
    except (TypeError, ValueError):
        raise ValueError(f"intercept must be None, a number or a pair (low, high), got {intercept!r}") from None
    if low > high:
        raise ValueError(f"intercept must be a pair (low, high) with low <= high, got {intercept!r}")
    return low, high


class Ring(NamedTuple):
    """Where sums over cards are formed."""

    zero: Any
    one: Any
    plus: Callable[..., Any]
    times: Callable[..., Any]
    kind: Any


COUNTS = Ring(0, 1, np.add, np.multiply, object)
LOGS = Ring(-np.inf, 0.0, np.logaddexp, np.add, np.float64)


@dataclass(frozen=True)
class ConstrainedPoints(SparsePoints):
    """Scorecards as in `SparsePoints`, restricted by what is known without the data (theory, section 16).

    Args:
        variables: the variable (question) that every column belongs to, the intercept aside.
        max_questions: at most so many variables have points.
        signs: of every column, 1 if its points must not be negative, -1 if they must not be positive, 0 if they are free.
        required: variables that must have points.
        excluded: variables that must not.

    Guarantee:
        Nothing here looks at data: a card that is left out has prior weight 0, which no guarantee minds.
    """

    variables: Names = field(default=(), kw_only=True)
    max_questions: int | None = field(default=None, kw_only=True)
    signs: tuple[int, ...] = field(default=(), kw_only=True)
    required: Names = field(default=(), kw_only=True)
    excluded: Names = field(default=(), kw_only=True)
    kind: ClassVar[str] = "constrained-points"

    def __post_init__(self) -> None:
        super().__init__(self.dim, self.max_features, self.max_points, self.intercept)
        if self.max_questions is not None:
            most = check_integer("max_questions", self.max_questions, 1, 10_000)
            object.__setattr__(self, "max_questions", most)
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "signs", tuple(int(sign) for sign in self.signs) or (0,) * self.columns)
        for name in ("required", "excluded"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        self._check()

    def _check(self) -> None:
        if len(self.variables) != self.columns or not all(isinstance(name, str) for name in self.variables):
            raise ValueError(f"variables must name the variable of each of the {self.columns} columns")
        if len(self.signs) != self.columns or not set(self.signs) <= {-1, 0, 1}:
            raise ValueError(f"signs must hold -1, 0 or 1 for each of the {self.columns} columns")
        for what in ("required", "excluded"):
            for name in getattr(self, what):
                if name not in self.variables:
                    raise ValueError(f"{what}: there is no variable {name!r}")
        both = [name for name in self.required if name in self.excluded]
        if both:
            raise ValueError(f"{both[0]!r} is required and excluded: it cannot be both")
        if len(self.required) > min(self.max_features, self.max_questions or self.max_features):
            raise ValueError(
                f"{len(self.required)} questions are required, more than a card may have: raise max_questions or "
                "max_features"
            )
        if not self.usable:
            raise ValueError("the constraints leave no column that could have points: exclude fewer variables")

    @cached_property
    def usable(self) -> tuple[int, ...]:
        """The columns that may have points: those of excluded variables may not."""
        return tuple(j for j, name in enumerate(self.variables) if name not in self.excluded)

    @property
    def most_questions(self) -> int:
        """Variables that can have points at once."""
        return min(self.max_features, self.max_questions or self.max_features)

    def values(self, j: int) -> Int64Array:
        """Of a column, 0 alone if it may have no points, and one side of it if its sign is stated."""
        found = super().values(j)
        if j >= self.columns:
            return found
        if self.variables[j] in self.excluded:
            return np.zeros(1, dtype=np.int64)
        return np.asarray(found[found * self.signs[j] >= 0])

    def allows(self, points: Int64Array) -> NDArray[np.bool_]:
        """By column and point: whether the column may have that many points."""
        signs = np.array(self.signs)[:, None]
        usable = np.isin(np.arange(self.columns), self.usable)[:, None]
        return np.asarray(usable & (points[None, :] * signs >= 0) & (np.abs(points)[None, :] <= self.max_points))

    @property
    def points(self) -> Int64Array:
        """The points other than 0 that some column may have."""
        every = super().points
        return np.asarray(every[self.allows(every).any(axis=0)])

    def has(self, vector: Int64Array) -> bool:
        """Whether the values are allowed and the columns with points keep to the constraints."""
        allowed = all(value in self.values(j) for j, value in enumerate(vector.tolist()))
        return allowed and self.permits(np.flatnonzero(vector[: self.columns]))

    def permits(self, support: Sequence[int] | Int64Array) -> bool:
        """Whether cards with points on exactly these columns are allowed."""
        asked = {self.variables[int(j)] for j in support}
        few = len(support) <= self.max_features and len(asked) <= self.most_questions
        return few and asked.issuperset(self.required) and asked.isdisjoint(self.excluded)

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order; refuses domains that are too large without the constraints."""
        every = self.plain.members()
        return np.ascontiguousarray(every[[self.has(member) for member in every]])

    @property
    def plain(self) -> SparsePoints:
        """The same cards without the constraints."""
        return SparsePoints(self.dim, self.max_features, self.max_points, self.intercept)

    def sum_over_supports(self, terms: Sequence[Any], ring: Ring) -> NDArray[Any]:
        """By number of columns: the sum over all allowed supports of the product of the terms of their columns.

        One pass over the variables: what the columns of one add is an elementary symmetric polynomial (theory, section 16).
        """
        most, asked = self.max_features, self.most_questions
        columns: dict[str, list[int]] = {}
        for j in self.usable:
            columns.setdefault(self.variables[j], []).append(j)
        table = np.full((most + 1, asked + 1), ring.zero, dtype=ring.kind)
        table[0, 0] = ring.one
        for name, found in columns.items():
            new = np.full_like(table, ring.zero) if name in self.required else table.copy()
            sums = np.full(most + 1, ring.zero, dtype=ring.kind)  # over the sets of 0, 1, ... columns of the variable
            sums[0] = ring.one
            for j in found:
                sums[1:] = ring.plus(sums[1:], ring.times(sums[:-1], terms[j]))
            for count in range(1, most + 1):
                added = ring.times(table[: most + 1 - count, :asked], sums[count])
                new[count:, 1:] = ring.plus(new[count:, 1:], added)
            table = new
        return np.asarray(ring.plus.reduce(table, axis=1))  # type: ignore[attr-defined]

    @cached_property
    def supports(self) -> int:
        """How many sets of columns may have points together."""
        return int(sum(self.sum_over_supports([1] * self.columns, COUNTS)))

    @cached_property
    @override
    def size(self) -> int:  # type: ignore[override]
        low, high = self.intercept or (0, 0)
        points = [int((self.values(j) != 0).sum()) for j in range(self.columns)]
        return int(sum(self.sum_over_supports(points, COUNTS))) * (high - low + 1)

    @property
    def radius_sq_bound(self) -> int:
        """As many columns as can have points at once at the largest, and the intercept at its larger end."""
        low, high = self.intercept or (0, 0)
        return self.most_columns * self.max_points**2 + max(low**2, high**2)

    @cached_property
    def most_columns(self) -> int:
        """Columns that can have points at once."""
        return int(np.flatnonzero(self.sum_over_supports([1] * self.columns, COUNTS))[-1])

    def knapsack(self) -> Knapsack:
        """There is none: the constraints are not additive."""
        raise ValueError(
            "constraints on scorecards are not cut out by additive costs: the exponential mechanism keeps to them over yes/no "
            "features, and oracle='enumeration' where cards are few; or leave the constraints out"
        )
