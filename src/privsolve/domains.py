"""The finite sets `W` that weights are chosen from: members, size, norm bound, separation and lift.

A domain is described to the solvers as a list of values per coordinate and one additive *budget*: every value of
every coordinate has a non-negative cost, and a vector belongs to the domain iff its total cost is allowed. For a
ball the cost is `v²` and any total up to the squared radius is allowed; for sparse signs it is `1[v != 0]` and the
total must be exactly `k`.
"""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from privsolve.data.patterns import Int64Array

ENUMERATION_LIMIT = 5_000_000
LARGEST_VALUE = 2**20


@dataclass(frozen=True)
class Budget:
    """Additive costs per coordinate value, and what each total means.

    `norm_sq[t]` is the squared norm of the members with total cost `t`, or -1 where `t` is not allowed. Where the
    squared norm does not follow from the total (`tracks_norm` is False) allowed totals hold 0.
    """

    costs: tuple[Int64Array, ...]
    norm_sq: Int64Array
    tracks_norm: bool

    @property
    def limit(self) -> int:
        """Largest total cost that may be allowed."""
        return len(self.norm_sq) - 1


class Domain(ABC):
    """A finite set of integer vectors, known without looking at any data."""

    kind: ClassVar[str]
    dim: int

    @property
    @abstractmethod
    def radius_sq_bound(self) -> int:
        """`D²`: the largest squared norm of a member."""

    @property
    @abstractmethod
    def separation_sq(self) -> int:
        """`τ²`: a lower bound on the squared distance of two different members."""

    @property
    @abstractmethod
    def equal_norms(self) -> bool:
        """Whether all members have the same norm; the lift then needs no extra coordinate (theory, section 2)."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Exact number of members."""

    @abstractmethod
    def values(self, j: int) -> Int64Array:
        """Values that coordinate `j` takes, ascending."""

    @abstractmethod
    def budget(self, track_norm: bool = True) -> Budget:
        """The additive budget that cuts the domain out of the product of `values`."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release."""

    @property
    def norms_sq(self) -> Int64Array:
        """Squared norms that members may have, ascending: the arguments of the table ψ."""
        return np.arange(self.radius_sq_bound + 1)

    @property
    def lift_dim(self) -> int:
        """Dimension `k` of the lifted vectors: `dim`, plus one unless all norms are equal."""
        return self.dim if self.equal_norms else self.dim + 1

    def lift(self, weights: ArrayLike) -> NDArray[np.float64]:
        """The unit vector `π(w) = (w, sqrt(D²-‖w‖²)) / D` (theory, section 2)."""
        w = np.asarray(weights, dtype=np.float64)
        if self.radius_sq_bound == 0:
            raise ValueError("the domain holds only the zero vector, which has no lift")
        last = np.sqrt(self.radius_sq_bound - (w**2).sum(axis=-1, keepdims=True))
        lifted = w if self.equal_norms else np.concatenate([w, last], axis=-1)
        return np.asarray(lifted / math.sqrt(self.radius_sq_bound))

    def contains(self, weights: ArrayLike) -> bool:
        """Whether `weights` is a member."""
        w = np.asarray(weights)
        if w.shape != (self.dim,) or w.dtype.kind not in "iu":
            return False
        budget = self.budget(track_norm=False)
        total = 0
        for j, value in enumerate(w):
            position = np.flatnonzero(self.values(j) == value)
            if len(position) == 0:
                return False
            total += int(budget.costs[j][position[0]])
        return total <= budget.limit and bool(budget.norm_sq[total] >= 0)

    def check_listable(self) -> None:
        """Raise if the domain has too many members to list them."""
        if self.size > ENUMERATION_LIMIT:
            raise ValueError(
                f"the domain has {_readable(self.size)} members, too many to list (limit {ENUMERATION_LIMIT:,}): "
                "use the tree oracle"
            )

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order; refuses domains of more than five million."""
        self.check_listable()
        prefixes = self._prefixes()
        result = np.empty((self.size, self.dim), dtype=np.int64)
        at = np.arange(self.size)
        for j in range(self.dim - 1, -1, -1):
            parent, value = prefixes[j]
            result[:, j] = value[at]
            at = parent[at]
        return result

    def _prefixes(self) -> list[tuple[Int64Array, Int64Array]]:
        """The beginnings of members, by length, in lexicographic order: index of the one it extends, and last value."""
        budget = self.budget(track_norm=False)
        reachable = _reachable_totals(budget)
        prefixes = []
        totals = np.zeros(1, dtype=np.int64)
        for j, costs in enumerate(budget.costs):
            extended = totals[:, None] + costs
            can_go_on = extended <= budget.limit
            can_go_on[can_go_on] = reachable[j + 1][extended[can_go_on]]
            parent, choice = np.nonzero(can_go_on)
            prefixes.append((parent, self.values(j)[choice]))
            totals = extended[can_go_on]
        return prefixes


def check_domain(domain: object) -> Domain:
    """`domain` itself; raise unless it is a `Domain`."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain must be a Domain such as IntegerBall, got {type(domain).__name__}")
    return domain


def _reachable_totals(budget: Budget) -> list[NDArray[np.bool_]]:
    """`reachable[j][t]`: can coordinates j.. be completed to an allowed total, `t` being spent before?"""
    reachable = [np.asarray(budget.norm_sq >= 0)]
    for costs in reversed(budget.costs):
        here = np.zeros(budget.limit + 1, dtype=bool)
        for cost in set(costs.tolist()):
            if cost <= budget.limit:
                here[: budget.limit + 1 - cost] |= reachable[0][cost:]
        reachable.insert(0, here)
    return reachable


def _count_by_total(budget: Budget) -> list[int]:
    """Number of vectors of the product of values for each total cost up to the limit, in Python integers."""
    counts = [1] + [0] * budget.limit
    for costs in budget.costs:
        multiplicity = [(c, int((costs == c).sum())) for c in sorted(set(costs.tolist())) if c <= budget.limit]
        counts = [sum(k * counts[t - c] for c, k in multiplicity if c <= t) for t in range(budget.limit + 1)]
    return counts


def _readable(size: int) -> str:
    return f"{size:,}" if size < 10**30 else f"about 10^{math.log10(size):.0f}"


def _largest_sum_of_squares(terms: int, limit: int) -> int:
    """The largest sum of `terms` squares that is at most `limit`; four squares reach every integer (Lagrange)."""
    if terms >= 4:
        return limit
    if terms == 1:
        return math.isqrt(limit) ** 2
    return max(v * v + _largest_sum_of_squares(terms - 1, limit - v * v) for v in range(math.isqrt(limit) + 1))


def _check_integer(value: object, name: str, low: int, high: int | None = None) -> int:
    """The integer itself, or an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < low or (high is not None and value > high):
        wanted = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be {wanted}, got {value}")
    return int(value)


@dataclass(frozen=True)
class IntegerBall(Domain):
    """Integer vectors with squared norm at most `radius_sq`: the paper's weight space."""

    dim: int
    radius_sq: int
    kind: ClassVar[str] = "integer-ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check_integer(self.dim, "dim", 1, 10_000))
        object.__setattr__(self, "radius_sq", _check_integer(self.radius_sq, "radius_sq", 1, 10_000))

    @property
    def radius_sq_bound(self) -> int:
        """The largest squared norm that is attained; it may be below `radius_sq` in fewer than four dimensions."""
        return _largest_sum_of_squares(self.dim, self.radius_sq)

    @property
    def separation_sq(self) -> int:
        """Neighbouring integer points are one apart."""
        return 1

    @property
    def equal_norms(self) -> bool:
        """Zero and a unit vector are members, so no."""
        return False

    @property
    def size(self) -> int:
        """Exact number of integer points of the ball."""
        return sum(_count_by_total(self.budget()))

    def values(self, j: int) -> Int64Array:
        """`-B..B` with `B = floor(radius)`."""
        largest = math.isqrt(self.radius_sq)
        return np.arange(-largest, largest + 1)

    def budget(self, track_norm: bool = True) -> Budget:
        """Cost `v²`, any total up to `radius_sq`."""
        return Budget((self.values(0) ** 2,) * self.dim, np.arange(self.radius_sq_bound + 1), tracks_norm=True)

    def to_dict(self) -> dict[str, Any]:
        """Kind, dimension and squared radius."""
        return {"kind": self.kind, "dim": self.dim, "radius_sq": self.radius_sq}


class _SmallValues(Domain):
    """Domains whose coordinates are -1, 0 or 1, so that the squared norm is the number of non-zeros."""

    def values(self, j: int) -> Int64Array:
        """-1, 0 and 1."""
        return np.array([-1, 0, 1])

    def _allowed_nonzeros(self) -> range:
        raise NotImplementedError

    def budget(self, track_norm: bool = True) -> Budget:
        """Cost `1[v != 0]`, total within the allowed numbers of non-zeros."""
        allowed = self._allowed_nonzeros()
        norm_sq = np.array([t if t in allowed else -1 for t in range(allowed[-1] + 1)])
        return Budget(tuple(np.abs(self.values(j)) for j in range(self.dim)), norm_sq, tracks_norm=True)

    @property
    def radius_sq_bound(self) -> int:
        """The largest number of non-zeros."""
        return self._allowed_nonzeros()[-1]


@dataclass(frozen=True)
class SignCube(_SmallValues):
    """The sign vectors `{-1, 1}^dim`."""

    dim: int
    kind: ClassVar[str] = "sign-cube"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check_integer(self.dim, "dim", 1, 10_000))

    def values(self, j: int) -> Int64Array:
        """-1 and 1."""
        return np.array([-1, 1])

    def _allowed_nonzeros(self) -> range:
        return range(self.dim, self.dim + 1)

    @property
    def separation_sq(self) -> int:
        """Two sign vectors differ by 2 in some coordinate."""
        return 4

    @property
    def equal_norms(self) -> bool:
        """Every member has squared norm `dim`."""
        return True

    @property
    def size(self) -> int:
        """`2^dim`."""
        return int(2**self.dim)

    def to_dict(self) -> dict[str, Any]:
        """Kind and dimension."""
        return {"kind": self.kind, "dim": self.dim}


@dataclass(frozen=True)
class TernaryCube(_SmallValues):
    """The vectors `{-1, 0, 1}^dim`."""

    dim: int
    kind: ClassVar[str] = "ternary-cube"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check_integer(self.dim, "dim", 1, 10_000))

    def _allowed_nonzeros(self) -> range:
        return range(self.dim + 1)

    @property
    def separation_sq(self) -> int:
        """Neighbouring integer points are one apart."""
        return 1

    @property
    def equal_norms(self) -> bool:
        """Zero and a unit vector are members, so no."""
        return False

    @property
    def size(self) -> int:
        """`3^dim`."""
        return int(3**self.dim)

    def to_dict(self) -> dict[str, Any]:
        """Kind and dimension."""
        return {"kind": self.kind, "dim": self.dim}


@dataclass(frozen=True)
class SparseSigns(_SmallValues):
    """Vectors with *exactly* `k` entries -1 or 1 and the others 0."""

    dim: int
    k: int
    kind: ClassVar[str] = "sparse-signs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check_integer(self.dim, "dim", 1, 10_000))
        object.__setattr__(self, "k", _check_integer(self.k, "k", 1, self.dim))

    def _allowed_nonzeros(self) -> range:
        return range(self.k, self.k + 1)

    @property
    def separation_sq(self) -> int:
        """Moving one non-zero changes two coordinates by one; with no room to move, a sign flips by 2."""
        return 2 if self.k < self.dim else 4

    @property
    def equal_norms(self) -> bool:
        """Every member has squared norm `k`."""
        return True

    @property
    def size(self) -> int:
        """`C(dim, k) 2^k`."""
        return int(math.comb(self.dim, self.k) * 2**self.k)

    def to_dict(self) -> dict[str, Any]:
        """Kind, dimension and number of non-zeros."""
        return {"kind": self.kind, "dim": self.dim, "k": self.k}


@dataclass(frozen=True)
class SparsePoints(Domain):
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
        set_field(self, "dim", _check_integer(dim, "dim", 1 if intercept is None else 2, 10_000))
        set_field(self, "intercept", _intercept_range(intercept))
        set_field(self, "max_features", _check_integer(max_features, "max_features", 1, self.columns))
        set_field(self, "max_points", _check_integer(max_points, "max_points", 1, 1000))

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
    def separation_sq(self) -> int:
        """Neighbouring integer points are one apart."""
        return 1

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

    def budget(self, track_norm: bool = True) -> Budget:
        """Cost `1[v != 0]`; with the norm, totals count `non-zeros * (D² + 1) + squared norm`, which never mixes up."""
        largest = self.radius_sq_bound if track_norm else 0
        costs = tuple(
            (v != 0) * (largest + 1) * (j < self.columns) + (v**2 if track_norm else 0)
            for j, v in enumerate(map(self.values, range(self.dim)))
        )
        totals = np.arange((self.max_features + 1) * (largest + 1))
        return Budget(costs, totals % (largest + 1), tracks_norm=track_norm)

    def to_dict(self) -> dict[str, Any]:
        """Kind, dimension, sparsity, points and intercept range."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "max_features": self.max_features,
            "max_points": self.max_points,
            "intercept": None if self.intercept is None else list(self.intercept),
        }


def _intercept_range(intercept: int | Sequence[int] | None) -> tuple[int, int] | None:
    if intercept is None:
        return None
    if isinstance(intercept, (int, np.integer)):
        bound = _check_integer(intercept, "intercept", 0, 100_000)
        return -bound, bound
    try:
        low, high = (_check_integer(v, "intercept", -100_000, 100_000) for v in intercept)
    except (TypeError, ValueError):
        raise ValueError(f"intercept must be None, a number or a pair (low, high), got {intercept!r}") from None
    if low > high:
        raise ValueError(f"intercept must be a pair (low, high) with low <= high, got {intercept!r}")
    return low, high


@dataclass(frozen=True, eq=False)
class FiniteSet(Domain):
    """An explicit list of integer vectors, which must not depend on the data."""

    points: Int64Array
    kind: ClassVar[str] = "finite-set"

    def __init__(self, points: ArrayLike | Sequence[Sequence[int]]) -> None:
        try:
            array = np.asarray(points)
        except ValueError as error:
            raise ValueError(f"points must be a two-dimensional array of integers ({error})") from None
        if array.ndim != 2 or array.size == 0:
            raise ValueError(f"points must be a non-empty two-dimensional array of integers, got shape {array.shape}")
        if array.dtype.kind not in "iu":
            raise ValueError(f"points must be integers, got dtype {array.dtype}: scale and round them first")
        if max(int(array.max()), -int(array.min())) > LARGEST_VALUE:
            raise ValueError(f"points has entries beyond ±{LARGEST_VALUE:,}: use smaller integer weights")
        distinct = np.unique(array.astype(np.int64), axis=0)
        distinct.setflags(write=False)
        object.__setattr__(self, "points", distinct)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return int(self.points.shape[1])

    @property
    def radius_sq_bound(self) -> int:
        """The largest squared norm in the list."""
        return int((self.points**2).sum(axis=1).max())

    @property
    def separation_sq(self) -> int:
        """Smallest squared distance of two points, recomputed in integers from the nearest neighbours."""
        if len(self.points) == 1:
            return 1
        _, nearest = cKDTree(self.points).query(self.points, k=2)
        return int(((self.points - self.points[nearest[:, 1]]) ** 2).sum(axis=1).min())

    @property
    def equal_norms(self) -> bool:
        """Whether all listed points have one norm."""
        return len(np.unique((self.points**2).sum(axis=1))) == 1

    @property
    def size(self) -> int:
        """Number of different points."""
        return len(self.points)

    @property
    def norms_sq(self) -> Int64Array:
        """Squared norms that occur in the list."""
        return np.unique((self.points**2).sum(axis=1))

    def values(self, j: int) -> Int64Array:
        """Values that occur in column `j`."""
        return np.unique(self.points[:, j])

    def budget(self, track_norm: bool = True) -> Budget:
        """A list has no budget: its points are visited one by one."""
        raise ValueError("FiniteSet is a list of points without a budget: solve it with the enumeration oracle")

    def contains(self, weights: ArrayLike) -> bool:
        """Whether `weights` is one of the points."""
        w = np.asarray(weights)
        return w.shape == (self.dim,) and w.dtype.kind in "iu" and bool((self.points == w).all(axis=1).any())

    def members(self) -> Int64Array:
        """The points, in lexicographic order."""
        return self.points

    def to_dict(self) -> dict[str, Any]:
        """Kind and the points themselves."""
        return {"kind": self.kind, "points": self.points.tolist()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteSet) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))


DOMAINS: dict[str, type[Domain]] = {
    c.kind: c for c in (IntegerBall, SignCube, TernaryCube, SparseSigns, SparsePoints, FiniteSet)
}


def domain_from_dict(description: dict[str, Any]) -> Domain:
    """The inverse of `Domain.to_dict`."""
    if not isinstance(description, dict):
        raise ValueError(f"domain must be described by a dictionary with its kind, got {type(description).__name__}")
    arguments = dict(description)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in DOMAINS:
        raise ValueError(f"domain kind {reprlib.repr(kind)} is unknown: expected one of {', '.join(sorted(DOMAINS))}")
    try:
        return DOMAINS[kind](**arguments)
    except TypeError:
        raise ValueError(f"domain {kind!r} has the wrong fields: {', '.join(sorted(arguments))}") from None
