"""Separator sets: indicators of which any two members of a domain differ on at least one (theory, section 3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_items
from privsolve.domains import Domain
from privsolve.problems.perturbation import ListedPerturbation, Perturbation, noise_vector, rounded_units

Indicator = Callable[[Int64Array], bool]


@dataclass(frozen=True)
class Thresholds:
    """`1[w_j <= t]` for every coordinate and every value `t` of it but the largest: a separator set of any domain.

    For sign vectors these are the `dim` indicators of a negative entry, for `{-1, 0, 1}^dim` the `2 dim` indicators of a
    negative and of a non-positive entry, for integers in `[-B, B]` the `2 B dim` thresholds.
    """

    domain: Domain

    @property
    def count(self) -> int:
        """Number of indicators `m`."""
        return sum(len(self.domain.values(j)) - 1 for j in range(self.domain.dim))

    def perturbation(self, eta: ArrayLike) -> Perturbation:
        """`Σ_i η_i e_i(w)`, which is separable: value number x of a coordinate collects the thresholds from x on."""
        noise = noise_vector(eta, self.count)
        tables, start = [], 0
        for j in range(self.domain.dim):
            own = noise[start : start + len(self.domain.values(j)) - 1]
            start += len(own)
            tables.append(rounded_units([sum(own[x:], start=Fraction(0)) for x in range(len(own) + 1)]))
        return Perturbation(self.domain, tuple(tables))


class Indicators:
    """A user's indicators on a domain that can be listed; refused unless they separate it."""

    def __init__(self, domain: Domain, indicators: Sequence[Indicator]) -> None:
        members = domain.members()
        functions = check_items("indicators", indicators, "be a list of functions of a member")
        if not all(map(callable, functions)):
            raise ValueError("indicators must be a list of functions of a member")
        values = np.array([[bool(e(w)) for e in functions] for w in members], dtype=bool).reshape(len(members), -1)
        distinct = np.unique(values, axis=0)
        if len(distinct) < len(members):
            raise ValueError(
                f"indicators do not separate the domain: its {len(members)} members show only {len(distinct)} patterns; "
                "add indicators until any two members differ on one"
            )
        self.domain = domain
        self._values: NDArray[np.bool_] = values

    @property
    def count(self) -> int:
        """Number of indicators `m`."""
        return int(self._values.shape[1])

    def perturbation(self, eta: ArrayLike) -> ListedPerturbation:
        """`Σ_i η_i e_i(w)` for every member."""
        noise = noise_vector(eta, self.count)
        sums = [sum(itertools.compress(noise, row), start=Fraction(0)) for row in self._values.tolist()]
        return ListedPerturbation(self.domain, rounded_units(sums))
