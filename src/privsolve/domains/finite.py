"""Explicit lists of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_length
from privsolve.domains.base import Domain

LARGEST_VALUE = 2**20


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
