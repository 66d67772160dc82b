"""Random choices of small *relative* error, from uniforms of full relative precision (theory, sections 4 and 6).

Comparing a 53-bit uniform with a cumulative sum has an absolute error of 2^-53 for every outcome, which for a rare
outcome is a large relative one. Here every comparison tests the smaller of two chances against a uniform that is as
precise near zero as anywhere, so every outcome keeps its probability up to a few units in the last place.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def choose(logs, uniforms, at):
    """An index with probability proportional to `exp(logs)`, smallest first; uses one uniform per index at most.

    Returns the index and the position after the uniforms that were used.
    """
    order = np.empty(len(logs), dtype=np.int64)
    sort_indices(logs, len(logs), order)
    largest = logs[order[-1]]
    running = np.empty(len(logs))
    total = 0.0
    for i in range(len(logs)):
        running[i] = math.exp(logs[order[i]] - largest)
        total += running[i]
        running[i] = total
    for i in range(len(logs) - 1):  # take index i unless one of the larger ones is meant
        below = running[i - 1] if i > 0 else 0.0
        rest = total - below  # at least twice the chance of index i: no cancellation
        chance = math.exp(logs[order[i]] - largest)
        if chance > 0.0 or logs[order[i]] > -np.inf:
            log_chance = logs[order[i]] - largest - math.log(rest)
            hit = uniforms[at] < chance / rest if chance > 1e-300 else math.log(uniforms[at]) < log_chance
            at += 1
            if hit:
                return order[i], at
    return order[-1], at


@njit(cache=True, nogil=True)
def succeeds(log_chance, uniforms, at):
    """True with probability `exp(log_chance)`; the complement keeps its relative precision too."""
    if log_chance >= 0.0:
        return True, at
    if log_chance > -0.5:
        return uniforms[at] >= -math.expm1(log_chance), at + 1
    return math.log(uniforms[at]) < log_chance, at + 1


@njit(cache=True, nogil=True)
def sort_indices(values, n, order):
    """`order[:n]` sorts `values[:n]`, equal values in their order: an insertion sort, for the few values of a column."""
    for i in range(n):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


def sum_tree(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Binary tree of log sums over the given logs: entry 1 is the total, the leaves start at `len // 2`."""
    size = 1 << max(0, int(len(logs) - 1).bit_length())
    tree = np.full(2 * size, -np.inf)
    tree[size : size + len(logs)] = logs
    _fill(tree)
    return tree


@njit(cache=True, nogil=True)
def _fill(tree):
    for i in range(len(tree) // 2 - 1, 0, -1):
        tree[i] = log_add(tree[2 * i], tree[2 * i + 1])


@njit(cache=True, nogil=True)
def log_add(a, b):
    """`log(exp(a) + exp(b))`."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@njit(cache=True, nogil=True)
def set_leaf(tree, leaf, value):
    """Change one leaf and the sums above it."""
    i = leaf + len(tree) // 2
    tree[i] = value
    i //= 2
    while i >= 1:
        tree[i] = log_add(tree[2 * i], tree[2 * i + 1])
        i //= 2


@njit(cache=True, nogil=True)
def pick_leaf(tree, uniforms, at):
    """A leaf with probability proportional to its weight: at every fork the smaller side is tested."""
    i = 1
    while i < len(tree) // 2:
        left, right = tree[2 * i], tree[2 * i + 1]
        small, large = (2 * i, 2 * i + 1) if left < right else (2 * i + 1, 2 * i)
        hit = False
        if tree[small] > -np.inf:
            hit, at = succeeds(tree[small] - log_add(left, right), uniforms, at)
        i = small if hit else large
    return i - len(tree) // 2, at
