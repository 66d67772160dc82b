"""Local search for a good first vector: the better it is, the more of the tree is never opened."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compile_for, compiled, helper
from privsolve.engines.coordinates.instance import INFEASIBLE, Layout, entry
from privsolve.problems.perturbation import UNIT_BITS


def improve(inst: Layout, path: Int64Array) -> tuple[Int64Array, int]:
    """Change one column at a time while that lowers the objective; returns the path and its objective."""
    value = _improve(inst, path)
    return path, int(value)


def compile_improve(inst: Layout, path: Int64Array) -> None:
    """Compile what `improve` runs."""
    compile_for(_improve, inst, path)


@compiled
def _improve(inst, path):
    dim = len(inst.order)
    scores = np.zeros(len(inst.rows), dtype=np.int64)
    for j in range(dim):
        scores += inst.rows[:, j] * inst.values[j, path[j]]
    best = _objective(inst, path, scores)
    again = True
    while again:
        again = False
        for j in range(dim):
            better = _move_one(inst, path, scores, j, best)
            if better < best:
                best, again = better, True
    return best


@helper
def _objective(inst, path, scores):
    """Objective of a path with the given scores; INFEASIBLE outside the domain."""
    total = np.int64(0)
    perturbed = np.int64(0)
    for j in range(len(path)):
        total += inst.costs[j, path[j]]
        perturbed += inst.tables[j, path[j]]
    if total >= len(inst.total_table) or inst.total_table[total] >= INFEASIBLE:
        return np.int64(INFEASIBLE)
    loss = np.int64(0)
    for i in range(len(scores)):
        loss += inst.row_costs[entry(inst.scale, scores[i]), i]
    return (loss << UNIT_BITS) + perturbed + inst.total_table[total]


@helper
def _shift(inst, path, scores, j, x):
    """Give column j its value number x and keep the scores in step."""
    change = inst.values[j, x] - inst.values[j, path[j]]
    if change != 0:
        for i in range(len(scores)):
            scores[i] += inst.rows[i, j] * change
    path[j] = x


@helper
def _move_one(inst, path, scores, j, best):
    """The best value of column j, all others kept."""
    chosen = path[j]
    for x in range(inst.n_values[j]):
        _shift(inst, path, scores, j, x)
        value = _objective(inst, path, scores)
        if value < best:
            best, chosen = value, x
    _shift(inst, path, scores, j, chosen)
    return best
