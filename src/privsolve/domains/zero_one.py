"""What 0/1 vectors of one norm have in common that no additive costs cut out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.domains.base import Domain


class ZeroOneDomain(Domain):
    """Indicators of sets of the same number of coordinates, so that the sphere lift needs no extra one (section 2)."""

    @abstractmethod
    def sets(self) -> Iterable[tuple[int, ...]]:
        """The coordinates that are 1, for every member."""

    @property
    def equal_norms(self) -> bool:
        """Every member has the same number of ones."""
        return True

    @property
    def norms_sq(self) -> Int64Array:
        """The one squared norm."""
        return np.array([self.radius_sq_bound])

    def values(self, j: int) -> Int64Array:
        """0 and 1."""
        return np.array([0, 1])

    def members(self) -> Int64Array:
        """All members as rows, in lexicographic order, where they are few enough."""
        self.check_listable()
        result = np.zeros((self.size, self.dim), dtype=np.int64)
        result[np.arange(self.size)[:, None], list(self.sets())] = 1
        return result[np.lexsort(result.T[::-1])]
