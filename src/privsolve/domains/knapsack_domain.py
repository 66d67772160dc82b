"""Domains that a knapsack cuts out of a product of values: all that solvers ask for follows from the costs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property

import numpy as np
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.domains.base import Domain
from privsolve.domains.knapsack import Knapsack


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

    @property
    @override
    def size(self) -> int:
        return self._size

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
    def _size(self) -> int:
        return self.knapsack().size

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
