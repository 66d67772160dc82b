"""Sums and draws within one support in logarithms, for weights beyond the range of floats.

All scorecards of the support are tabulated, so this is slow; it is reached only where the best of them is more than
`exp(-400)` below the support's bound, which takes a large `κ` or very many records. The least excess loss is subtracted
in integers first, so that a scorecard's logarithm is rounded in proportion to its own distance from the best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privsolve.arrays import Floats, Int64Array
from privsolve.engines.supports.chain import Current, Law
from privsolve.engines.supports.costs import regrets
from privsolve.engines.supports.instance import CardInstance
from privsolve.noise.coins import Stream, choose_log, new_sum_tree, propose

LARGEST_TABLE = 2**22


def log_sum(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...] = ()) -> float:
    """`log` of the support's total weight relative to `U0`, the first columns being fixed to the points `fixed`."""
    if len(fixed) < nested_levels(inst, size):
        return float(logsumexp(_by_next_point(inst, law, now, size, fixed)))
    table, least = _table(inst, law, now, size, fixed)
    return float(logsumexp(table)) - law.kappa * least


def draw_in_logs(inst: CardInstance, law: Law, now: Current, size: int, stream: Stream) -> None:
    """Choose points and intercept of the support: all at once, after the columns that make its table small enough."""
    fixed: tuple[int, ...] = ()
    for _ in range(nested_levels(inst, size)):
        terms = _by_next_point(inst, law, now, size, fixed)
        fixed = (*fixed, int(choose_log(stream, terms - terms.max(), len(terms))))
    table, _ = _table(inst, law, now, size, fixed)
    chosen = np.unravel_index(int(propose(stream, new_sum_tree(table.ravel(), table.size))), table.shape)
    now.chosen[: size + 1] = np.array([*fixed, *chosen])


def nested_levels(inst: CardInstance, size: int) -> int:
    """Columns of a support that are fixed one by one because a table of all its scorecards would be too large."""
    for levels in range(size):
        if len(inst.points) ** (size - levels) * len(inst.intercepts) <= LARGEST_TABLE:
            return levels
    return size


def _by_next_point(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> Floats:
    return np.array([log_sum(inst, law, now, size, (*fixed, p)) for p in range(len(inst.points))])


def _table(inst: CardInstance, law: Law, now: Current, size: int, fixed: tuple[int, ...]) -> tuple[Floats, int]:
    """`log` weight of every completion relative to the least excess loss, which is returned too.

    One axis per free column, the intercept last.
    """
    dims = size - len(fixed) + 1
    intercept = _along(inst.intercepts, dims - 1, dims)
    excess: Int64Array = np.zeros((len(inst.points),) * (dims - 1) + (len(inst.intercepts),), dtype=np.int64)
    for c in np.flatnonzero(now.cells[: 1 << size]):
        score = intercept + sum(int(inst.points[p]) for i, p in enumerate(fixed) if c >> i & 1)
        for i in range(len(fixed), size):
            if c >> i & 1:
                score = score + _along(inst.points, i - len(fixed), dims)
        excess += regrets(inst.costs, int(now.cells[c]), score)
    prior = _along(np.log(law.prior_intercept), dims - 1, dims)
    for i in range(size):
        with np.errstate(divide="ignore"):  # points that are not allowed have no weight
            column = np.log(law.weight[now.columns[i], : len(inst.points)])
        prior = prior + (column[fixed[i]] if i < len(fixed) else _along(column, i - len(fixed), dims))
    least = int(excess.min())
    return np.asarray(prior - law.kappa * (excess - least), dtype=np.float64), least


def _along(values: NDArray[Any], axis: int, dims: int) -> NDArray[Any]:
    return values.reshape([-1 if i == axis else 1 for i in range(dims)])
