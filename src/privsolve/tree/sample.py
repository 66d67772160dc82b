"""Exact samples from the exponential mechanism by rejection down the tree (theory, section 4).

A *frontier* of nodes partitions the domain; `U` is a node's bound and `U_F` the sum over the frontier. One attempt picks
a frontier node with probability `U / U_F`, then goes down: it picks a child by its share of the node's bound and goes
on with probability (child's own bound) / (child's share), otherwise the attempt fails. A vector `w` is returned with
probability `f(w) / U_F` because the product telescopes, so accepted vectors have exactly the target law, whatever the
frontier. A failed attempt is not wasted: it has bounded the nodes on its way, so the frontier node it started from is
replaced by those. The frontier thus becomes fine where the bounds are loose and heavy, and stays coarse elsewhere.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privsolve.errors import PrivsolveError, WorkLimitReached
from privsolve.noise import Randomness
from privsolve.patterns import Int64Array
from privsolve.tree.bound import Workspace, charge, new_workspace
from privsolve.tree.choose import choose, log_add, pick_leaf, set_leaf, succeeds, sum_tree
from privsolve.tree.instance import Instance
from privsolve.tree.weigh import advance, new_weighing, record, weigh

FIRST_ROOM = 1 << 14
BLOCK = 1 << 12
UNIFORM_BLOCK = 1 << 14
CACHE_LIMIT = 1 << 24
ROUNDING = 1e-12
"""A child's own bound may exceed its share by rounding, never by more than this (relative)."""


@dataclass(frozen=True)
class SamplingProgress:
    """How far a draw is: attempts made, frontier nodes, and seconds since the sampler was made. Not private."""

    attempts: int
    frontier: int
    seconds: float


SamplingCallback = Callable[[SamplingProgress], None]


@dataclass
class Work:
    """What sampling has cost so far."""

    nodes: int = 0
    attempts: int = 0
    accepted: int = 0
    frontier: int = 0
    log_frontier: float = np.inf


class RowCache(NamedTuple):
    """Tables of the first table level for prefixes of row levels met before: attempts come back to them all the time.

    A prefix is numbered by its values in mixed radix; `filled` is empty where there would be too many.
    """

    filled: NDArray[np.bool_]
    cells: NDArray[np.int64]
    decided: Int64Array


def _new_cache(inst: Instance, cell_type: np.dtype[Any]) -> RowCache:
    prefixes = math.prod(int(n) for n in inst.n_values[: inst.row_levels])
    cells = int(inst.n_groups[0]) * inst.width
    if inst.row_levels == 0 or prefixes * cells > CACHE_LIMIT:
        prefixes = 0
    return RowCache(
        np.zeros(prefixes, dtype=bool), np.zeros((prefixes, cells), dtype=cell_type), np.zeros(prefixes, dtype=np.int64)
    )


@njit(cache=True, nogil=True)
def _go_to(inst, ws, weighing, cache, path, level):
    """Put the path at the node `path[:level]`."""
    k = 0
    if len(cache.filled) > 0 and level >= inst.row_levels:
        code = 0
        for j in range(inst.row_levels):
            code = code * inst.n_values[j] + path[j]
        k = inst.row_levels
        if cache.filled[code]:
            for j in range(k):
                record(inst, weighing, j, np.int64(path[j]))
            for t in range(cache.cells.shape[1]):
                ws.cells[t] = cache.cells[code, t]
            ws.decided[k] = cache.decided[code]
        else:
            for j in range(k):
                advance(inst, ws, weighing, j, np.int64(path[j]))
            for t in range(cache.cells.shape[1]):
                cache.cells[code, t] = ws.cells[t]
            cache.decided[code] = ws.decided[k]
            cache.filled[code] = True
    for j in range(k, level):
        advance(inst, ws, weighing, j, np.int64(path[j]))


@njit(cache=True, nogil=True)
def _total(inst, ws, weighing):
    """Log of the total weight, adding up the exact nodes in depth-first order."""
    next_child = np.zeros(len(inst.order) + 1, dtype=np.int64)
    total = -np.inf
    k, entering = 0, True
    while k >= 0:
        if entering:
            own = weigh(inst, ws, weighing, k)
            next_child[k] = 0
            if k >= inst.exact_from:
                total = log_add(total, own)
                k -= 1
                entering = False
                continue
        x = next_child[k]
        entering = x < inst.n_values[k] and weighing.child_log[k, x] > -np.inf
        next_child[k] = x + 1
        if entering:
            advance(inst, ws, weighing, k, x)
            k += 1
        elif x == inst.n_values[k]:
            k -= 1
    return total


@njit(cache=True, nogil=True)
def _attempts(inst, ws, weighing, cache, paths, levels, tree, size, uniforms, used, most, result):
    """Attempts until one succeeds, `most` are made, or too few uniforms or too little room are left for another.

    `size[0]` is the number of frontier nodes. Returns (status, position in uniforms, attempts, nodes): 1 success with the
    path in `result`, 0 none, 2 uniforms needed, 3 room needed, -1 a child heavier than its share.
    """
    dim = len(inst.order)
    needed = dim * (inst.values.shape[1] + 2) + 200
    at, made, nodes = used, 0, 0
    while made < most:
        if at + needed > len(uniforms):
            return 2, at, made, nodes
        if size[0] + inst.values.size > len(levels):
            return 3, at, made, nodes
        made += 1
        node, at = pick_leaf(tree, uniforms, at)
        bound = tree[node + len(tree) // 2]
        top = levels[node]
        _go_to(inst, ws, weighing, cache, paths[node], top)
        k = top
        while True:
            own = weigh(inst, ws, weighing, k)
            nodes += 1
            if own > bound + ROUNDING * max(1.0, abs(bound)):
                return -1, at, made, nodes
            alive, at = succeeds(own - bound, uniforms, at)
            if not alive:
                _refine(inst, weighing, paths, levels, tree, size, node, top, k, own)
                break
            if k >= inst.exact_from:
                at = _complete(inst, ws, weighing, k, uniforms, at)
                for j in range(dim):
                    result[j] = weighing.path[j]
                return 1, at, made, nodes
            x, at = choose(weighing.child_log[k, : inst.n_values[k]], uniforms, at)
            bound = weighing.child_log[k, x]
            advance(inst, ws, weighing, k, x)
            k += 1
    return 0, at, made, nodes


@njit(cache=True, nogil=True)
def _refine(inst, weighing, paths, levels, tree, size, node, top, last, own):
    """Replace a frontier node by what a failed attempt has bounded: the end of its path, and all siblings on the way."""
    for k in range(top, last):
        for x in range(inst.n_values[k]):
            share = weighing.child_log[k, x]
            if x != weighing.path[k] and share > -np.inf:
                new = size[0]
                size[0] += 1
                for j in range(k):
                    paths[new, j] = weighing.path[j]
                paths[new, k] = x
                levels[new] = k + 1
                set_leaf(tree, new, share)
    for j in range(top, last):
        paths[node, j] = weighing.path[j]
    levels[node] = last
    set_leaf(tree, node, own)


@njit(cache=True, nogil=True)
def _complete(inst, ws, weighing, k, uniforms, at):
    """Draw the free columns of an exact node from their joint law, one after the other."""
    for j in range(k, len(inst.order)):
        if j > k:
            weigh(inst, ws, weighing, j)
        x, at = choose(weighing.child_log[j, : inst.n_values[j]], uniforms, at)
        advance(inst, ws, weighing, j, x)
    return at


def _loss_bound(inst: Instance, ws: Workspace) -> int:
    """A lower bound on every loss, near the best one: what is subtracted before exponentials are taken."""
    decided = int(charge(inst, ws, 0, len(inst.total_table) - 1))
    return decided + sum(int(ws.gain[j, :n].min()) for j, n in enumerate(inst.n_values))


class TreeSampler:
    """Draws from `exp(-κ loss) · prior` over the instance, exactly; a frontier is kept from draw to draw."""

    def __init__(
        self,
        inst: Instance,
        kappa: float,
        log_prior: NDArray[np.float64],
        rng: Randomness,
        *,
        max_nodes: int,
        max_attempts: int,
        progress: SamplingCallback | None = None,
    ) -> None:
        self._progress, self._start = progress, time.monotonic()
        self.inst = inst
        self.work = Work()
        self._rng = rng
        self._max_nodes, self._max_attempts = max_nodes, max_attempts
        self._ws = new_workspace(inst)
        self.reference = _loss_bound(inst, self._ws)
        self._weighing = new_weighing(inst, kappa, self.reference, log_prior)
        self._cache = _new_cache(inst, self._ws.cells.dtype)
        self._uniforms, self._used = np.empty(0), 0
        dim = len(inst.order)
        self._paths = np.zeros((FIRST_ROOM, dim), dtype=np.int16)
        self._levels = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._size = np.ones(1, dtype=np.int64)
        self._tree = sum_tree(np.full(FIRST_ROOM, -np.inf))
        set_leaf(self._tree, 0, weigh(inst, self._ws, self._weighing, 0))

    def draw(self) -> Int64Array:
        """One vector, as value indices in branching order."""
        result = np.empty(len(self.inst.order), dtype=np.int64)
        while not self._try(result):
            pass
        self.work.accepted += 1
        return result

    def log_partition(self) -> float:
        """`log Σ f(w)` relative to the reference, by opening every node: for small domains."""
        return float(_total(self.inst, self._ws, self._weighing))

    def _try(self, result: Int64Array) -> bool:
        """A block of attempts; limits are only checked here, between attempts."""
        left = self._max_attempts - self.work.attempts
        if left <= 0:
            raise WorkLimitReached(
                f"no sample was accepted within max_attempts={self._max_attempts:,}: nothing is released; raise it, or "
                "use a smaller epsilon or a smaller domain"
            )
        status, self._used, made, nodes = _attempts(
            self.inst, self._ws, self._weighing, self._cache, self._paths, self._levels, self._tree, self._size,
            self._uniforms, self._used, min(BLOCK, left), result,
        )  # fmt: skip
        self.work.attempts += made
        self.work.nodes += nodes
        self.work.frontier = int(self._size[0])
        self.work.log_frontier = float(self._tree[1])
        if self._progress is not None:
            elapsed = time.monotonic() - self._start
            self._progress(SamplingProgress(self.work.attempts, self.work.frontier, elapsed))
        if status == -1:
            raise PrivsolveError("a bound grew below its parent: the sample would be wrong, so nothing is released")
        if status == 2:
            self._uniforms, self._used = self._rng.uniform(UNIFORM_BLOCK + 64 * self.inst.values.size), 0
        if status == 3:
            self._grow()
        return bool(status == 1)

    def _grow(self) -> None:
        """Twice the room for the frontier."""
        room = len(self._levels)
        if 2 * room > self._max_nodes:
            raise WorkLimitReached(
                f"the sampler's frontier needs more than max_nodes={self._max_nodes:,} nodes: nothing is released; raise "
                "it, or use a smaller epsilon or a smaller domain"
            )
        self._paths = np.concatenate([self._paths, np.zeros_like(self._paths)])
        self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
        logs = self._tree[len(self._tree) // 2 :]
        self._tree = sum_tree(np.concatenate([logs, np.full(len(logs), -np.inf)]))
