"""Scorecard problems as the supports-first tree takes them: binary columns, and a constant column as intercept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.engines.supports.instance import LARGEST_SUPPORT, count_supports
from privsolve.engines.supports.minimise import MAX_SUPPORTS, Minimum, minimise_supports
from privsolve.engines.supports.sample import SupportSampler
from privsolve.noise.entropy import Randomness
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.priors import Prior, relative_log_weights
from privsolve.problems.problem import Problem


class Columns(NamedTuple):
    """A scorecard problem split into binary columns, the non-zero points and the intercepts."""

    rows: Int64Array
    points: Int64Array
    intercepts: Int64Array


def declares_columns(problem: Problem) -> bool:
    """Whether supports-first applies by what is public: a scorecard domain over a table that is 0/1 by its `ranges`.

    The records are not looked at. A scorecard asks yes/no questions, so features without declared ranges are taken for
    0/1, and `columns_of` refuses a table that is not; declared ranges send other features to the coordinate tree.
    """
    domain, ranges = problem.domain, problem.table.ranges
    if ranges is None or not _fits(problem):
        return _fits(problem)
    assert isinstance(domain, SparsePoints)
    columns, constant = ranges[: domain.columns], ranges[domain.columns :]
    return all(low >= 0 and high <= 1 for low, high in columns) and set(constant) <= {(1, 1)}


def columns_of(problem: Problem) -> Columns:
    """The problem's columns; raise, before anything is paid for, where supports-first does not apply."""
    domain, features = problem.domain, problem.table.features
    if not _fits(problem):
        raise ValueError(
            f"method='supports' needs a SparsePoints domain of at most {LARGEST_SUPPORT} features and scales of 1: use "
            "method='tree'"
        )
    assert isinstance(domain, SparsePoints)
    columns, constant = features[:, : domain.columns], features[:, domain.columns :]
    if not ((columns == 0) | (columns == 1)).all() or not (constant == 1).all():
        raise ValueError(
            "a scorecard needs a table of 0/1 features, and ones in the column of the intercept: encode the other columns as "
            "indicators, or say what they are by `ranges` of the PatternTable"
        )
    intercepts = domain.values(domain.dim - 1) if domain.intercept is not None else np.zeros(1, dtype=np.int64)
    return Columns(columns, domain.points, intercepts)


def _fits(problem: Problem) -> bool:
    domain = problem.domain
    few = isinstance(domain, SparsePoints) and domain.max_features <= LARGEST_SUPPORT
    return few and set(problem.table.scales) == {1}


def support_sampler(
    problem: Problem, kappa: float, prior: Prior, rng: Randomness, *, max_nodes: int, **options: Any
) -> SupportSampler:
    """The exact sampler of `prior · exp(-κ loss)`; the other options are those of `SupportSampler`."""
    columns, domain = columns_of(problem), problem.domain
    assert isinstance(domain, SparsePoints)
    return SupportSampler(
        columns.rows,
        problem.table.positives,
        problem.table.negatives,
        problem.loss,
        domain.max_features,
        columns.points,
        columns.intercepts,
        *relative_log_weights(prior, domain),
        kappa,
        rng,
        max_supports=max_nodes,
        constraints=domain if isinstance(domain, ConstrainedPoints) else None,
        **options,
    )


def log_prior_of_zero(problem: Problem, prior: Prior) -> float:
    """What the sampler's weights leave out: the log prior of a scorecard without points, intercept aside."""
    domain = problem.domain
    assert isinstance(domain, SparsePoints)
    tables = prior.log_tables(domain)[: domain.columns]
    return float(sum(table[domain.values(j) == 0][0] for j, table in enumerate(tables)))


def minimise(
    problem: Problem,
    columns: Columns,
    perturbation: Perturbation,
    node_limit: int | None = None,
    time_limit: float | None = None,
) -> Minimum:
    """The certified best scorecard under a perturbation without a norm term; reaching a limit raises."""
    domain = problem.domain
    assert isinstance(domain, SparsePoints)
    tables = np.zeros((domain.columns, 1 + len(columns.points)), dtype=np.int64)  # where points are not allowed, unused
    every = np.append(0, columns.points)
    for j, table in enumerate(perturbation.coordinate[: domain.columns]):
        values = domain.values(j)
        found = np.searchsorted(values, every).clip(max=len(values) - 1)
        tables[j] = np.where(values[found] == every, np.asarray(table)[found], 0)
    intercept = perturbation.coordinate[-1] if domain.intercept is not None else np.zeros(1, dtype=np.int64)
    return minimise_supports(
        columns.rows,
        problem.table.positives,
        problem.table.negatives,
        problem.loss,
        domain.max_features,
        columns.points,
        columns.intercepts,
        tables[:, 1:],
        intercept,
        tables[:, 0],
        node_limit=node_limit,
        time_limit=time_limit,
    )


def can_minimise(problem: Problem, perturbation: Perturbation) -> bool:
    """Whether columns are declared, supports are few and not constrained, and the perturbation is separable over columns."""
    domain = problem.domain
    if not declares_columns(problem) or perturbation.norm is not None or isinstance(domain, ConstrainedPoints):
        return False
    assert isinstance(domain, SparsePoints)
    return count_supports(domain.columns, domain.max_features) <= MAX_SUPPORTS
