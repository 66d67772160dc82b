"""Public priors for the exponential mechanism: they cost no privacy and decide what is likely before any data is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.checks import check_positive, check_share
from privsolve.domains import ConstrainedPoints, Domain, FiniteSet, SparsePoints
from privsolve.domains.scorecards import LOGS

LARGEST_SPREAD = 150.0


class Prior(Protocol):
    """A separable prior: a log weight for every value of every coordinate, up to one constant per coordinate."""

    def log_tables(self, domain: Domain) -> list[NDArray[np.float64]]:
        """One array per coordinate, aligned with `domain.values(j)`."""
        ...

    def log_probability(self, domain: Domain, weights: ArrayLike) -> float:
        """`log p₀(w)` for a `p₀` that sums to at most 1 over the domain; enters the utility bound."""
        ...


@dataclass(frozen=True)
class UniformPrior:
    """Every member of the domain is as likely as any other."""

    kind: ClassVar[str] = "uniform"

    def log_tables(self, domain: Domain) -> list[NDArray[np.float64]]:
        """Zeros."""
        return [np.zeros(len(domain.values(j))) for j in range(domain.dim)]

    def log_probability(self, domain: Domain, weights: ArrayLike) -> float:
        """Minus the log of the number of members."""
        return -math.log(domain.size)


@dataclass(frozen=True)
class SparsePrior:
    """Short models are likely: each weight is zero with probability `p_zero`, else decays by `decay` per further point.

    An intercept column (of `SparsePoints`) is uniform over its range.
    """

    p_zero: float = 0.9
    decay: float = 0.4
    kind: ClassVar[str] = "sparse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_zero", check_share("p_zero", self.p_zero, "; it is the share of zeros expected"))
        object.__setattr__(self, "decay", check_positive("decay", self.decay, bounded=False))
        if self.decay > 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay}")

    def log_tables(self, domain: Domain) -> list[NDArray[np.float64]]:
        """Normalised log probabilities per coordinate."""
        return [self._column(domain, j) for j in range(domain.dim)]

    def _column(self, domain: Domain, j: int) -> NDArray[np.float64]:
        values = domain.values(j)
        if isinstance(domain, SparsePoints) and j >= domain.columns:
            return np.full(len(values), -math.log(len(values)))
        others = np.where(values != 0, np.abs(values) * math.log(self.decay), -np.inf)
        log_total = np.logaddexp.reduce(others)
        if not (values == 0).any():
            return np.asarray(others - log_total)
        if (values == 0).all():
            return np.zeros(len(values))
        return np.where(values == 0, math.log(self.p_zero), math.log1p(-self.p_zero) + others - log_total)

    def log_probability(self, domain: Domain, weights: ArrayLike) -> float:
        """Sum of the coordinates' log probabilities; over a list of points, and under constraints, normalised to sum to one."""
        total = log_weights(self, domain, np.asarray(weights)[None, :])[0]
        if isinstance(domain, FiniteSet):
            total -= np.logaddexp.reduce(log_weights(self, domain, domain.members()))
        if isinstance(domain, ConstrainedPoints):
            nothing = sum(
                table[domain.values(j) == 0][0] for j, table in enumerate(self.log_tables(domain)[: domain.columns])
            )
            total -= log_mass(self, domain) + nothing
        return float(total)


def log_weights(prior: Prior, domain: Domain, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log prior weight of each row of `members`, up to one constant."""
    total = np.zeros(len(members))
    for j, table in enumerate(prior.log_tables(domain)):
        total += table[np.searchsorted(domain.values(j), members[:, j])]
    return total


def relative_log_weights(prior: Prior, domain: SparsePoints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log weights of the points of every column relative to no points, and of the intercepts (of 0 where there is none).

    Points that constraints do not allow a column have minus infinity.
    """
    tables, points = prior.log_tables(domain), domain.points
    columns = np.full((domain.columns, len(points)), -np.inf)
    for j, table in enumerate(tables[: domain.columns]):
        values = domain.values(j)
        columns[j, np.isin(points, values)] = table[values != 0] - table[values == 0]
    return columns, tables[-1] if domain.intercept is not None else np.zeros(1)


def log_mass(prior: Prior, domain: SparsePoints) -> float:
    """The logarithm of the prior weight of all scorecards together, relative to no points, the intercept aside.

    Sums over supports are elementary symmetric polynomials of the columns' masses: one pass over the columns. Under
    constraints it is one over the variables (theory, section 16).
    """
    columns, intercepts = relative_log_weights(prior, domain)
    if isinstance(domain, ConstrainedPoints):
        masses = np.logaddexp.reduce(columns, axis=1)
        return float(np.logaddexp.reduce(domain.sum_over_supports(masses, LOGS)) + np.logaddexp.reduce(intercepts))
    sums = np.full(domain.max_features + 1, -np.inf)
    sums[0] = 0.0
    for mass in np.logaddexp.reduce(columns, axis=1):
        sums[1:] = np.logaddexp(sums[1:], sums[:-1] + mass)
    return float(np.logaddexp.reduce(sums) + np.logaddexp.reduce(intercepts))


def least_log_of_short(prior: Prior, domain: SparsePoints, features: int) -> tuple[int, float]:
    """How many features a short card has, about so many, and the least log prior of one with one point each.

    Under constraints it has at least a feature of every required variable, and the least is bounded by the least likely
    columns, whether or not they may stand together (theory, section 16); the prior is divided by its sum.
    """
    tables = prior.log_tables(domain)
    intercept = float(tables[-1].min()) if domain.intercept is not None else 0.0
    if not isinstance(domain, ConstrainedPoints):
        most = min(features, domain.max_features)
        short = np.zeros(domain.dim, dtype=np.int64)
        short[:most] = 1
        short[domain.columns :] = domain.values(domain.dim - 1)[0]  # all intercepts are as likely
        return most, prior.log_probability(domain, short)
    most = max(min(features, domain.most_columns), len(domain.required))
    values = [domain.values(j) for j in range(domain.columns)]
    nothing = sum(float(table[v == 0][0]) for table, v in zip(tables, values, strict=False))
    one = sorted(float((tables[j][np.abs(values[j]) == 1] - tables[j][values[j] == 0]).min()) for j in domain.usable)
    total = nothing + sum(one[:most]) + intercept
    return most, total - log_mass(prior, domain) - nothing


def prior_or_uniform(prior: Prior | None) -> Prior:
    """The prior, the uniform one for None; raise for what is no prior at all."""
    if prior is None:
        return UniformPrior()
    if isinstance(prior, type) or not callable(getattr(prior, "log_tables", None)):
        raise TypeError(f"prior must be a Prior such as SparsePrior(), got {prior!r}")
    return prior


def checked_prior(given: Prior | None, domain: Domain) -> Prior:
    """The prior, the uniform one for None; raise unless it has a finite log weight for every value of every coordinate."""
    prior = prior_or_uniform(given)
    tables = prior.log_tables(domain)
    sizes = [len(domain.values(j)) for j in range(domain.dim)]
    if [np.shape(t) for t in tables] != [(n,) for n in sizes] or not all(np.isfinite(t).all() for t in tables):
        raise ValueError("prior must give a finite log weight for every value of every coordinate of the domain")
    if max(float(np.ptp(t)) for t in tables) > LARGEST_SPREAD:
        raise ValueError(
            f"prior must not favour one value of a coordinate over another by more than e^{LARGEST_SPREAD:g}"
        )
    return prior


def default_prior(domain: Domain) -> Prior:
    """Uniform, but for scorecards, where about two features are the likeliest, however many there are to choose from."""
    if isinstance(domain, SparsePoints):
        columns = len(domain.usable) if isinstance(domain, ConstrainedPoints) else domain.columns
        return SparsePrior(p_zero=max(0.5, 1 - 2 / columns))
    return UniformPrior()
