"""The tree in (sum, *): upper bounds on the total weight below a node, for the exponential mechanism.

The weight of a vector is `f(w) = exp(-κ (loss(w) - reference) + Σ_j log p_j(w_j))`. The separable lower bound of
`bound.charge` on the loss is an upper bound on the weight, and the same dynamic programme that minimises it, run with
sums and products, adds the weights of all completions within the budget. It is exact where the bound is (theory,
section 4). Everything that can be small is kept as a logarithm; sums are only formed after rescaling.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper
from privsolve.engines.coordinates.bound import add_column, charge, descend
from privsolve.engines.coordinates.instance import INFEASIBLE, Layout
from privsolve.engines.semirings import Weights
from privsolve.noise.coins import choose_log

INFLATION = math.log1p(1e-9)
"""Log bounds grow by this, and by what logarithms can be rounded by, per level above the exact ones."""

SMALLEST = 1e-250
"""Below this a rescaled sum may have lost terms."""

NEGLIGIBLE = 1e-12
"""Sums of which raised terms together make up more than this are formed again in logarithms."""


class Weighing(NamedTuple):
    """The target and one path: `kappa`, `reference`, `log_prior[j, x]`, and per level what the path has collected.

    `child_log[k, x]` is the log bound of child x of the node at level k; `suffix[j, t]` and `suffix_log[j]` hold the sum
    over the columns from j on as `suffix * exp(suffix_log)`, relative to the `least[j]` gain of each of them that the
    budget can pay for. `inflation` is what log bounds are raised by per level; `shifted` is scratch.
    """

    kappa: float
    reference: int
    log_prior: NDArray[np.float64]
    spent: Int64Array
    prior: NDArray[np.float64]
    path: Int64Array
    child_log: NDArray[np.float64]
    suffix: NDArray[np.float64]
    suffix_log: NDArray[np.float64]
    factor: NDArray[np.float64]
    least: Int64Array
    inflation: float
    shifted: NDArray[np.float64]


def public_logarithms(log_prior: NDArray[np.float64]) -> float:
    """A bound on the logarithms that do not come from losses: the prior, and sums of at most the range of floats."""
    return 1000.0 + float(np.abs(log_prior).max(axis=1).sum())


def new_weighing(inst: Layout, kappa: float, reference: int, log_prior: NDArray[np.float64]) -> Weighing:
    """A path of length zero. `log_prior` is in branching order and may be -inf nowhere."""
    dim, most = inst.values.shape
    suffix = np.zeros((dim + 1, len(inst.total_table)))
    suffix[dim] = inst.total_table < INFEASIBLE
    largest = kappa * float(np.ptp(inst.row_costs, axis=0).sum()) + public_logarithms(log_prior)
    return Weighing(
        kappa=float(kappa),
        reference=int(reference),
        log_prior=np.ascontiguousarray(log_prior),
        spent=np.zeros(dim + 1, dtype=np.int64),
        prior=np.zeros(dim + 1),
        path=np.zeros(dim + 1, dtype=np.int64),
        child_log=np.full((dim + 1, most), -np.inf),
        suffix=suffix,
        suffix_log=np.zeros(dim + 1),
        factor=np.zeros((dim, most)),
        least=np.zeros(dim, dtype=np.int64),
        inflation=INFLATION + 2.0**-53 * 8 * (dim + 1) * largest,
        shifted=np.zeros(most),
    )


@helper
def record(inst, weighing, k, x):
    """Write down that column `k` is fixed to its value number `x`."""
    weighing.path[k] = x
    weighing.spent[k + 1] = weighing.spent[k] + inst.costs[k, x]
    weighing.prior[k + 1] = weighing.prior[k] + weighing.log_prior[k, x]


@helper
def advance(inst, ws, weighing, k, x):
    """Go from the node at level `k` to its child number `x`."""
    record(inst, weighing, k, x)
    descend(inst, ws, k, x, len(inst.total_table) - 1 - weighing.spent[k + 1])


@helper
def inflation(inst, weighing, k):
    """Log of the factor by which bounds at level `k` are inflated; nothing where they are exact."""
    return max(0, inst.exact_from - k) * weighing.inflation


@compiled
def weigh(inst, ws, weighing, k):
    """Log of the (inflated) bound of the node at level `k`; fills `child_log[k]` with the children's shares of it."""
    dim = len(inst.order)
    decided = charge(inst, ws, k, len(inst.total_table) - 1 - weighing.spent[k])
    loss = decided - weighing.reference
    if k == dim:
        feasible = inst.total_table[weighing.spent[k]] < INFEASIBLE
        return weighing.prior[k] - weighing.kappa * loss if feasible else -np.inf
    loss += _least_gains(inst, ws, weighing, k)
    _combine(inst, ws, weighing, k)
    total, raised = _share_out(inst, ws, weighing, k, loss)
    # below an exact node shares are drawn from as they are, so there none may be raised
    if raised > -np.inf and (k >= inst.exact_from or raised > total + math.log(NEGLIGIBLE)):
        _combine_logs(inst, ws, weighing, k)
        total, _ = _share_out(inst, ws, weighing, k, loss)
    return total


@helper
def _least_gains(inst, ws, weighing, k):
    """Sum of the least gains of the columns after `k`: taken out as an integer, so that large losses cancel exactly."""
    total = np.int64(0)
    left = len(inst.total_table) - 1 - weighing.spent[k]
    for j in range(k + 1, len(inst.order)):
        least = np.int64(INFEASIBLE)
        for x in range(inst.n_values[j]):
            if inst.costs[j, x] <= left:
                least = min(least, ws.gain[j, x])
        weighing.least[j] = least if least < INFEASIBLE else 0
        total += weighing.least[j]
    return total


@helper
def _share_out(inst, ws, weighing, k, loss):
    """The children's shares of the node's weight; returns the log of their sum, and of that of the raised ones.

    A rescaled sum below SMALLEST may have lost terms. It is raised to SMALLEST, which is still an upper bound: the child
    keeps its true probability, because its own bound is computed afresh if it is ever picked.
    """
    raised, count = -np.inf, 0
    known = weighing.prior[k] + inflation(inst, weighing, k)
    in_logs = weighing.suffix_log[k + 1] == np.inf
    for x in range(inst.n_values[k]):
        spent = weighing.spent[k] + inst.costs[k, x]
        rest = weighing.suffix[k + 1, spent] if spent < len(inst.total_table) else -1.0
        share = known + weighing.log_prior[k, x] - weighing.kappa * (loss + ws.gain[k, x])
        if not inst.completable[k + 1, min(spent, len(inst.total_table) - 1)] or spent >= len(inst.total_table):
            share = -np.inf
        elif in_logs:
            share += rest
        else:
            share += math.log(max(rest, SMALLEST)) + weighing.suffix_log[k + 1]
            if rest < SMALLEST:
                raised, count = max(raised, share), count + 1
        weighing.child_log[k, x] = share
    return log_sum(weighing.child_log[k, : inst.n_values[k]]), raised + math.log(max(count, 1))


@helper
def log_sum(logs):
    """`log Σ exp(logs)` without overflow."""
    largest = -np.inf
    for value in logs:
        largest = max(largest, value)
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in logs:
        total += math.exp(value - largest)
    return largest + math.log(total)


@helper
def _combine(inst, ws, weighing, k):
    """Sums over the columns after `k`, each column rescaled by its largest factor."""
    dim, totals, start = len(inst.order), len(inst.total_table), weighing.spent[k]
    suffix, factor = weighing.suffix, weighing.factor
    for t in range(start, totals):
        suffix[dim, t] = 1.0 if inst.total_table[t] < INFEASIBLE else 0.0
    weighing.suffix_log[dim] = 0.0
    for j in range(dim - 1, k, -1):
        largest = -np.inf
        for x in range(inst.n_values[j]):
            factor[j, x] = weighing.log_prior[j, x] - weighing.kappa * (ws.gain[j, x] - weighing.least[j])
            if start + inst.costs[j, x] < totals:
                largest = max(largest, factor[j, x])
        for x in range(inst.n_values[j]):  # values that cost too much for any total may have larger factors
            factor[j, x] = math.exp(factor[j, x] - largest) if start + inst.costs[j, x] < totals else 0.0
        add_column(Weights(0.0, 1.0), suffix, j, start, inst.n_values[j], inst.costs, factor)
        weighing.suffix_log[j] = weighing.suffix_log[j + 1] + largest


@helper
def choose_child(inst, weighing, k, own, stream):
    """A child of the node at level `k`, whose children's shares add up to `exp(own)`, in proportion to its share."""
    n = inst.n_values[k]
    for x in range(n):  # shifted, so that the choice rounds small logarithms
        weighing.shifted[x] = weighing.child_log[k, x] - own
    return choose_log(stream, weighing.shifted, n)


@helper
def complete(inst, ws, weighing, k, stream):
    """Draw the free columns of the exact node that was weighed last, at level `k`, one after the other.

    No row has two of them, so their gains do not depend on each other: the tables of one pass in logarithms serve all.
    """
    if k == len(inst.order):
        return
    _least_gains(inst, ws, weighing, k)
    _combine_logs(inst, ws, weighing, k)
    spent, terms = weighing.spent[k], weighing.shifted
    for j in range(k, len(inst.order)):
        n = inst.n_values[j]
        _log_terms(inst, ws, weighing, j, spent, weighing.least[j] if j > k else 0, terms)
        highest = terms[:n].max()
        for x in range(n):
            terms[x] -= highest
        weighing.path[j] = choose_log(stream, terms, n)
        spent += inst.costs[j, weighing.path[j]]


@helper
def _combine_logs(inst, ws, weighing, k):
    """The same sums, every one in logarithms; `suffix_log = inf` marks the tables as logarithms."""
    dim, totals, start = len(inst.order), len(inst.total_table), weighing.spent[k]
    suffix, terms = weighing.suffix, weighing.shifted
    for t in range(start, totals):
        suffix[dim, t] = 0.0 if inst.total_table[t] < INFEASIBLE else -np.inf
    for j in range(dim - 1, k, -1):
        for t in range(start, totals):
            _log_terms(inst, ws, weighing, j, t, weighing.least[j], terms)
            suffix[j, t] = log_sum(terms[: inst.n_values[j]])
    weighing.suffix_log[k + 1 :] = np.inf


@helper
def _log_terms(inst, ws, weighing, j, spent, least, terms):
    """Logarithms of the weights of column j's values, and of all that may follow, when so much is spent before."""
    for x in range(inst.n_values[j]):
        after = spent + inst.costs[j, x]
        terms[x] = -np.inf
        if after < len(inst.total_table):
            gain = ws.gain[j, x] - least
            terms[x] = weighing.log_prior[j, x] - weighing.kappa * gain + weighing.suffix[j + 1, after]
