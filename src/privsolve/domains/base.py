"""What every domain offers, and two ways to give one: by additive costs, or as a list of points.

A domain is a finite set `W` of integer vectors, with members, size, norm bound, separation and lift.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from privsolve.arrays import Int64Array, plain
from privsolve.checks import check_length
from privsolve.domains.knapsack import Knapsack, check_totals
from privsolve.registry import enter

ENUMERATION_LIMIT = 10_000_000
LARGEST_VALUE = 2**20

_KINDS: dict[str, type[Domain]] = {}


class Domain(ABC):
    """A finite set of integer vectors, known without looking at any data.

    A class with a `kind` of its own is registered under it, so that a release that names the kind can be read back where
    the class has been imported. What `to_dict` writes are the arguments of the constructor.
    """

    kind: ClassVar[str]
    dim: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the class under its kind; classes without one are bases of others."""
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            enter(_KINDS, cls, "domain")

    @property
    @abstractmethod
    def radius_sq_bound(self) -> int:
        """`D²`: the largest squared norm of a member."""

    @property
    def separation_sq(self) -> int:
        """`τ²`: a lower bound on the squared distance of two different members; 1 holds for all integer vectors."""
        return 1

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
    def has(self, vector: Int64Array) -> bool:
        """Whether a vector of `dim` integers is a member."""

    @abstractmethod
    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order; refuses domains of more than ten million."""

    def knapsack(self) -> Knapsack:
        """The additive costs that cut the domain out of the product of `values`, where there are such."""
        raise ValueError(
            f"{type(self).__name__} is not cut out by additive costs: use its own oracle or oracle='enumeration'"
        )

    def knapsack_with_norms(self) -> Knapsack:
        """The same domain with costs whose total also tells the squared norm."""
        return self.knapsack()

    def contains(self, weights: ArrayLike) -> bool:
        """Whether `weights` is a member."""
        w = np.asarray(weights)
        return w.shape == (self.dim,) and w.dtype.kind in "iu" and self.has(w)

    @property
    def norms_sq(self) -> Int64Array:
        """Squared norms that members may have, ascending: the arguments of the table ψ."""
        check_totals(self.radius_sq_bound + 1)
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

    def largest_linear(self, costs: Int64Array) -> Int64Array:
        """An upper bound on `<c, w>` over the members, for every row `c` of `costs`: the sum of the largest terms."""
        terms = [np.outer(costs[:, j], self.values(j)).max(axis=1) for j in range(self.dim)]
        return np.asarray(np.sum(terms, axis=0))

    def check_listable(self, advice: str = "use the tree oracle") -> None:
        """Raise, with advice, if the domain has too many members to list them, or none."""
        if self.size == 0:
            raise ValueError(f"{type(self).__name__} is empty: there is nothing to choose from")
        if self.size > ENUMERATION_LIMIT:
            raise ValueError(
                f"the domain has {_readable(self.size)} members, too many to list (limit {ENUMERATION_LIMIT:,}): "
                f"{advice}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release: the kind and the arguments of the constructor."""
        if not dataclasses.is_dataclass(self):
            raise TypeError(f"{type(self).__name__} must be a dataclass or have a to_dict of its own")
        return {"kind": self.kind} | {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


class KnapsackDomain(Domain):
    """A domain given by `dim`, `values(j)` and `knapsack()`; the rest is worked out by dynamic programming.

    To define one of your own, write these three on a frozen dataclass with a `kind`. Size, norms, members and all solvers
    follow; `separation_sq` may be raised above 1 where members lie further apart, which saves noise.
    """

    @abstractmethod
    def knapsack(self) -> Knapsack:
        """The additive costs that cut the domain out of the product of `values`."""

    def knapsack_with_norms(self) -> Knapsack:
        """The same domain with costs whose total also tells the squared norm."""
        knapsack = self.knapsack()
        if knapsack.norm_sq is not None:
            return knapsack
        both = knapsack.with_norms(self.values, self._largest_within_limit)
        return replace(both, allowed=both.allowed & (np.asarray(both.norm_sq) <= self.radius_sq_bound))

    @property
    def radius_sq_bound(self) -> int:
        """`D²`: the largest squared norm of a member."""
        return self._norm_range[1]

    @property
    def equal_norms(self) -> bool:
        """Whether all members have the same norm."""
        return self._norm_range[0] == self._norm_range[1]

    @cached_property
    @override
    def size(self) -> int:  # type: ignore[override]
        return self.knapsack().size

    def has(self, vector: Int64Array) -> bool:
        """Whether every entry is a value of its coordinate and the total cost is allowed."""
        positions = [np.flatnonzero(self.values(j) == value) for j, value in enumerate(vector)]
        if not all(len(position) for position in positions):
            return False
        knapsack = self.knapsack()
        total = sum(int(costs[position[0]]) for costs, position in zip(knapsack.costs, positions, strict=True))
        return total <= knapsack.limit and bool(knapsack.allowed[total])

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order; refuses domains of more than ten million."""
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
        knapsack = self.knapsack()
        prefixes = []
        totals = np.zeros(1, dtype=np.int64)
        for j, costs in enumerate(knapsack.costs):
            extended = totals[:, None] + costs
            can_go_on = extended <= knapsack.limit
            can_go_on[can_go_on] = knapsack.completable[j + 1, extended[can_go_on]]
            parent, choice = np.nonzero(can_go_on)
            prefixes.append((parent, self.values(j)[choice]))
            totals = extended[can_go_on]
        return prefixes

    @cached_property
    def _norm_range(self) -> tuple[int, int]:
        """The smallest and the largest squared norm of a member."""
        knapsack = self.knapsack()
        if not knapsack.completable[0, 0]:
            raise ValueError(f"{type(self).__name__} is empty: no vector has an allowed total")
        return int(knapsack.least(self._squares)), int(knapsack.largest(self._squares))

    @cached_property
    def _largest_within_limit(self) -> int:
        """The largest squared norm of a vector whose total is within the limit, member or not."""
        knapsack = self.knapsack()
        return int(Knapsack.between(knapsack.costs, 0, knapsack.limit).largest(self._squares))

    def _squares(self, j: int) -> Int64Array:
        return self.values(j) ** 2


@dataclass(frozen=True, eq=False)
class FiniteSet(Domain):
    """An explicit list of integer vectors, which must not depend on the data."""

    points: Int64Array
    kind: ClassVar[str] = "finite-set"

    def __init__(self, points: ArrayLike | Sequence[Sequence[int]]) -> None:
        check_length("points", points)
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
    @override
    def dim(self) -> int:  # type: ignore[override]
        return int(self.points.shape[1])

    @property
    def radius_sq_bound(self) -> int:
        """The largest squared norm in the list."""
        return int((self.points**2).sum(axis=1).max())

    @property
    def separation_sq(self) -> int:
        """Smallest squared distance of two points, recomputed in integers from the nearest neighbours."""
        from scipy.spatial import cKDTree  # takes a while to import

        if len(self.points) == 1:
            return 1
        _, nearest = cKDTree(self.points).query(self.points, k=2)
        return int(((self.points - self.points[nearest[:, 1]]) ** 2).sum(axis=1).min())

    @property
    def equal_norms(self) -> bool:
        """Whether all listed points have one norm."""
        return len(self.norms_sq) == 1

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

    def has(self, vector: Int64Array) -> bool:
        """Whether the vector is one of the points."""
        return bool((self.points == vector).all(axis=1).any())

    def members(self) -> Int64Array:
        """The points, in lexicographic order."""
        return self.points

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteSet) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))


def domain_from_dict(description: dict[str, Any]) -> Domain:
    """The inverse of `Domain.to_dict`, for every kind whose class has been imported."""
    if not isinstance(description, dict):
        raise ValueError(f"domain must be described by a dictionary with its kind, got {type(description).__name__}")
    arguments = dict(description)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"domain kind {reprlib.repr(kind)} is unknown: expected one of {', '.join(sorted(_KINDS))}; "
            "import the class first if it is a domain of your own"
        )
    try:
        return _KINDS[kind](**arguments)
    except TypeError:
        raise ValueError(f"domain {kind!r} has the wrong fields: {', '.join(sorted(arguments))}") from None


def check_domain(domain: object) -> Domain:
    """`domain` itself; raise unless it is a `Domain` whose releases can be read back."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain must be a Domain such as IntegerBall, got {type(domain).__name__}")
    if _KINDS.get(getattr(domain, "kind", "")) is not type(domain):
        raise ValueError(
            f"domain is of class {type(domain).__name__}, which has no `kind` of its own: give it one, so that a release "
            "says what it is and can be read back"
        )
    return domain


def _readable(size: int) -> str:
    return f"{size:,}" if size < 10**30 else f"about 10^{math.log10(size):.0f}"
