"""Perturbations of the objective as tables of exact integers, and the separator set of RSPM.

Everything a mechanism adds to the loss has the form `Σ_j h_j(w_j) + ψ(‖w‖²)`: the noise of OPDisc
and RSPM. Entries are integers in units of `2^-20` (theory, section 6), so objectives compare exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, Knapsack, check_domain
from privsolve.errors import IntegerRangeError

UNIT_BITS = 20
UNIT = 1 << UNIT_BITS
"""Objective values are integers in units of `1 / UNIT` mistakes."""

OBJECTIVE_LIMIT = 2**60
"""Loss and perturbation together stay below this in absolute value: each of them below one half of it."""

OUT_OF_RANGE = "the perturbation leaves the exact integer range: the noise scale is too large"


@dataclass(frozen=True, eq=False)
class Perturbation:
    """`Σ_j coordinate[j][i_j] + norm[i]`: `w_j` is value number `i_j` of coordinate j, `‖w‖²` is `norms_sq[i]`."""

    domain: Domain
    coordinate: tuple[Int64Array, ...]
    norm: Int64Array | None = None

    def __post_init__(self) -> None:
        check_domain(self.domain)
        if len(self.coordinate) != self.domain.dim:
            raise ValueError(f"coordinate must hold {self.domain.dim} tables, one per coordinate of the domain")
        sizes = [len(self.domain.values(j)) for j in range(self.domain.dim)]
        tables = [_checked_table(t, f"coordinate[{j}]", sizes[j]) for j, t in enumerate(self.coordinate)]
        object.__setattr__(self, "coordinate", tuple(tables))
        if self.norm is not None:
            object.__setattr__(self, "norm", _checked_table(self.norm, "norm", len(self.domain.norms_sq)))
        if self.largest >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError(OUT_OF_RANGE)

    @classmethod
    def zero(cls, domain: Domain) -> Perturbation:
        """No perturbation: the plain loss."""
        return cls(domain, tuple(np.zeros(len(domain.values(j)), dtype=np.int64) for j in range(domain.dim)))

    @classmethod
    def lifted(cls, domain: Domain, eta: ArrayLike) -> Perturbation:
        """`-<η, π(w)>` for the sphere lift π of the domain (theory, section 2); η has `domain.lift_dim` entries."""
        noise = noise_vector(eta, check_domain(domain).lift_dim)
        radius_sq = domain.radius_sq_bound
        if radius_sq == 0:
            raise ValueError("the domain holds only the zero vector: there is nothing to choose")
        coordinate = tuple(_linear_table(noise[j], domain.values(j), radius_sq) for j in range(domain.dim))
        if domain.equal_norms:
            return cls(domain, coordinate)
        lengths = [noise[-1] ** 2 * (radius_sq - int(s)) / radius_sq for s in domain.norms_sq]
        sign = -1 if noise[-1] > 0 else 1
        return cls(domain, coordinate, _table([sign * _rounded_sqrt(x) for x in lengths]))

    @classmethod
    def of_thresholds(cls, domain: Domain, eta: ArrayLike) -> Perturbation:
        """`Σ_i η_i e_i(w)` for the thresholds of a domain, which is separable (theory, section 3).

        They are `1[w_j <= t]` for every coordinate and every value `t` of it but the largest. Value number x of a
        coordinate collects the thresholds from x on.
        """
        noise, tables, start = noise_vector(eta, count_thresholds(domain)), [], 0
        for j in range(domain.dim):
            own = noise[start : start + len(domain.values(j)) - 1]
            start += len(own)
            tables.append(_table([round(UNIT * sum(own[x:])) for x in range(len(own) + 1)]))
        return cls(domain, tuple(tables))

    @property
    def largest(self) -> int:
        """An upper bound on the absolute value of the perturbation, in units."""
        tables = [*self.coordinate, *([] if self.norm is None else [self.norm])]
        return sum(max(abs(int(t.min())), abs(int(t.max()))) for t in tables)

    def of(self, weights: ArrayLike) -> int:
        """The perturbation of one member of the domain, in units."""
        w = np.asarray(weights)
        if not self.domain.contains(w):
            raise ValueError("weights is not a member of the perturbation's domain")
        return int(self.of_members(w.astype(np.int64)[None])[0])

    def of_members(self, members: Int64Array) -> Int64Array:
        """The perturbation of many members at once, in units."""
        total = np.zeros(len(members), dtype=np.int64)
        for j, table in enumerate(self.coordinate):
            total += table[np.searchsorted(self.domain.values(j), members[:, j])]
        return total if self.norm is None else total + self.of_norms((members**2).sum(axis=1))

    def of_norms(self, norms_sq: ArrayLike) -> Int64Array:
        """`ψ` at squared norms of members, in units."""
        if self.norm is None:
            return np.zeros(np.shape(norms_sq), dtype=np.int64)
        return self.norm[np.searchsorted(self.domain.norms_sq, norms_sq)]

    def by_total(self) -> tuple[Knapsack, Int64Array]:
        """The domain's knapsack, and `ψ` in units at every total of it (0 where the total is not allowed)."""
        knapsack = self.domain.knapsack() if self.norm is None else self.domain.knapsack_with_norms()
        table = np.zeros(knapsack.limit + 1, dtype=np.int64)
        if self.norm is not None and knapsack.norm_sq is not None:
            table[knapsack.allowed] = self.of_norms(knapsack.norm_sq[knapsack.allowed])
        return knapsack, table


def count_thresholds(domain: Domain) -> int:
    """Number `m` of thresholds: `dim` for sign vectors, `2 dim` for `{-1, 0, 1}^dim`, `2 B dim` for integers in `[-B, B]`."""
    return sum(len(domain.values(j)) - 1 for j in range(domain.dim))


def noise_vector(eta: ArrayLike, size: int) -> list[Fraction]:
    """Noise as exact fractions, checked to be `size` finite numbers."""
    try:
        noise = np.asarray(eta, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"eta must be {size} real numbers ({error})") from None
    if noise.shape != (size,):
        raise ValueError(f"eta must have {size} entries, one per noise coordinate, got shape {noise.shape}")
    if not np.isfinite(noise).all():
        raise ValueError("eta has NaN or infinite entries: draw it from privsolve.noise.laws")
    return [Fraction(float(x)) for x in noise]


def _linear_table(eta: Fraction, values: Int64Array, radius_sq: int) -> Int64Array:
    """`-η v / D` for every value v, rounded to the unit; exact because `(η v / D)²` is rational."""
    return _table([(-1 if eta * int(v) > 0 else 1) * _rounded_sqrt((eta * int(v)) ** 2 / radius_sq) for v in values])


def _rounded_sqrt(x: Fraction) -> int:
    """`sqrt(x)` in units, rounded to the nearest integer without any floating point."""
    scaled = x * UNIT * UNIT
    return (math.isqrt(4 * scaled.numerator // scaled.denominator) + 1) // 2


def _table(entries: Sequence[int]) -> Int64Array:
    if any(abs(e) >= OBJECTIVE_LIMIT // 2 for e in entries):
        raise IntegerRangeError(OUT_OF_RANGE)
    table = np.array(entries, dtype=np.int64)
    table.setflags(write=False)
    return table


def _checked_table(table: ArrayLike, name: str, size: int) -> Int64Array:
    array = np.asarray(table)
    if array.shape != (size,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold {size} integers, in units of 2^-{UNIT_BITS} mistakes, got dtype {array.dtype} "
            f"and shape {array.shape}"
        )
    return _table(array.tolist())
