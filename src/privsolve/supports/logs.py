"""Sums and draws within one support in logarithms, for weights beyond the range of floats.

All scorecards of the support are tabulated, so this is slow; it is reached only where the best of them is more than
`exp(-400)` below the support's bound, which takes a large `κ`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privsolve.choice import Stream, choose_log
from privsolve.noise import Floats
from privsolve.patterns import Int64Array
from privsolve.supports.chain import Current, Law
from privsolve.supports.instance import Instance

LARGEST_TABLE = 2**22


def log_sum(inst: Instance, law: Law, now: Current, size: int) -> float:
    """`log` of the support's total weight relative to `U0`."""
    return float(logsumexp(_terms(inst, law, now, size, ())))


def draw_in_logs(inst: Instance, law: Law, now: Current, size: int, stream: Stream) -> None:
    """Choose points and intercept of the support: column by column, each in proportion to the sum of what it leaves."""
    fixed: tuple[int, ...] = ()
    for i in range(size + 1):
        terms = _terms(inst, law, now, size, fixed)
        now.chosen[i] = choose_log(stream, terms, len(terms))
        fixed = (*fixed, int(now.chosen[i]))


def _terms(inst: Instance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> Floats:
    """`log` weights by the next choice (a point, or the intercept after all points), the first ones being fixed."""
    left = size - len(fixed)
    n_points = len(inst.points)
    if left > 0 and n_points**left * len(inst.intercepts) > LARGEST_TABLE:
        return np.array([logsumexp(_terms(inst, law, now, size, (*fixed, p))) for p in range(n_points)])
    table = _table(inst, law, now, size, fixed)
    return np.asarray(logsumexp(table, axis=tuple(range(1, table.ndim)))) if table.ndim > 1 else table


def _table(inst: Instance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> Floats:
    """`log` weight of every completion: one axis per free column, the intercept last."""
    dims = size - len(fixed) + 1
    intercept = _along(inst.intercepts, dims - 1, dims)
    excess: Int64Array = np.zeros((len(inst.points),) * (dims - 1) + (len(inst.intercepts),), dtype=np.int64)
    for c in np.flatnonzero(now.cells[: 1 << size]):
        score = intercept + sum(int(inst.points[p]) for i, p in enumerate(fixed) if c >> i & 1)
        for i in range(len(fixed), size):
            if c >> i & 1:
                score = score + _along(inst.points, i - len(fixed), dims)
        d = int(now.cells[c])
        excess += np.where(score > 0, max(d, 0), max(-d, 0))
    log_weight = _along(np.log(law.prior_intercept), dims - 1, dims) - law.inverse_temperature * excess
    for i in range(size):
        prior = np.log(law.weight[now.columns[i], : len(inst.points)])
        log_weight = log_weight + (prior[fixed[i]] if i < len(fixed) else _along(prior, i - len(fixed), dims))
    return np.asarray(log_weight, dtype=np.float64)


def _along(values: NDArray[Any], axis: int, dims: int) -> NDArray[Any]:
    return values.reshape([-1 if i == axis else 1 for i in range(dims)])
