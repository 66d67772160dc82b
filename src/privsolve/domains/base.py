"""What every domain offers: a finite set `W` of integer vectors, with members, size, norm bound, separation and lift."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.domains.knapsack import Knapsack, check_totals
from privsolve.registry import enter

ENUMERATION_LIMIT = 10_000_000


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
        return {"kind": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


_KINDS: dict[str, type[Domain]] = {}


def domain_kinds(base: type[Domain] | tuple[type[Domain], ...] = Domain) -> tuple[str, ...]:
    """The kinds of domain that are known at this moment, of all classes or of those derived from `base`."""
    return tuple(kind for kind, cls in _KINDS.items() if issubclass(cls, base))


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


def _plain(value: Any) -> Any:
    """A field as JSON has it: lists for arrays and tuples."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(entry) for entry in value] if isinstance(value, (tuple, list)) else value


def _readable(size: int) -> str:
    return f"{size:,}" if size < 10**30 else f"about 10^{math.log10(size):.0f}"
