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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_count
from privsolve.compiled import compile_for, compiled, helper
from privsolve.engines.coordinates.bound import Workspace, charge, new_workspace
from privsolve.engines.coordinates.instance import Layout
from privsolve.engines.coordinates.weigh import (
    advance,
    choose_child,
    complete,
    new_weighing,
    public_logarithms,
    record,
    weigh,
)
from privsolve.engines.rejection import (
    BLOCK,
    GREW,
    KEPT,
    LOST,
    NEEDS_ROOM,
    SPARE_UNIFORMS,
    RejectionSampler,
    SamplingCallback,
)
from privsolve.errors import WorkLimitReached
from privsolve.noise.coins import (
    SumTree,
    coin,
    copy_leaves,
    log_total,
    new_sum_tree,
    propose,
    set_weight,
)
from privsolve.noise.entropy import Randomness

FIRST_ROOM = 1 << 14
UNIFORM_BLOCK = 1 << 14
CACHE_LIMIT = 1 << 24


class RowCache(NamedTuple):
    """Tables of the first table level for prefixes of row levels met before: attempts come back to them all the time.

    A prefix is numbered by its values in mixed radix; `filled` is empty where there would be too many.
    """

    filled: NDArray[np.bool_]
    cells: NDArray[np.int64]
    decided: Int64Array


def _new_cache(inst: Layout, cell_type: np.dtype[Any]) -> RowCache:
    prefixes = math.prod(int(n) for n in inst.n_values[: inst.row_levels])
    cells = int(inst.n_groups[0]) * inst.width
    if inst.row_levels == 0 or prefixes * cells > CACHE_LIMIT:
        prefixes = 0
    return RowCache(
        np.zeros(prefixes, dtype=bool), np.zeros((prefixes, cells), dtype=cell_type), np.zeros(prefixes, dtype=np.int64)
    )


@helper
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


@compiled
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
                total = np.logaddexp(total, own)
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


class PathFrontier(NamedTuple):
    """Nodes that partition the domain: values their columns are fixed to, how many those are, and the log bound.

    `size[0]` nodes are in use; `tree` holds their weights.
    """

    paths: NDArray[np.int32]
    levels: Int64Array
    logs: NDArray[np.float64]
    size: Int64Array
    tree: SumTree


@compiled
def _attempts(inst, ws, weighing, cache, frontier, stream, reserve, most, result):
    """Attempts until one succeeds, `most` are made, or too few uniforms or too little room are left for another.

    Returns (outcome, attempts, nodes): KEPT with the path in `result`, LOST, NEEDS_ROOM, or GREW (a child is heavier than
    its share).
    """
    dim = len(inst.order)
    made, nodes = 0, 0
    while made < most:
        if stream.used[0] + reserve > len(stream.uniforms):
            return LOST, made, nodes
        if frontier.size[0] + inst.values.size > len(frontier.levels):
            return NEEDS_ROOM, made, nodes
        made += 1
        node = propose(stream, frontier.tree)
        bound = frontier.logs[node]
        k = top = frontier.levels[node]
        _go_to(inst, ws, weighing, cache, frontier.paths[node], top)
        while True:
            own = weigh(inst, ws, weighing, k)
            nodes += 1
            if own > bound:
                return GREW, made, nodes
            if not coin(stream, own - bound):
                _refine(inst, weighing, frontier, node, top, k, own)
                break
            if k >= inst.exact_from:
                complete(inst, ws, weighing, k, stream)
                for j in range(dim):
                    result[j] = weighing.path[j]
                return KEPT, made, nodes
            x = choose_child(inst, weighing, k, own, stream)
            bound = weighing.child_log[k, x]
            advance(inst, ws, weighing, k, x)
            k += 1
    return LOST, made, nodes


@helper
def _refine(inst, weighing, frontier, node, top, last, own):
    """Replace a frontier node by what a failed attempt has bounded: the end of its path, and all siblings on the way."""
    for k in range(top, last):
        for x in range(inst.n_values[k]):
            share = weighing.child_log[k, x]
            if x != weighing.path[k] and share > -np.inf:
                new = frontier.size[0]
                frontier.size[0] += 1
                for j in range(k):
                    frontier.paths[new, j] = weighing.path[j]
                frontier.paths[new, k] = x
                _put(frontier, new, k + 1, share)
    for j in range(top, last):
        frontier.paths[node, j] = weighing.path[j]
    _put(frontier, node, last, own)


@helper
def _put(frontier, node, level, log_bound):
    frontier.levels[node] = level
    frontier.logs[node] = log_bound
    set_weight(frontier.tree, node, log_bound)


def _loss_bound(inst: Layout, ws: Workspace) -> int:
    """A lower bound on every loss, near the best one: what is subtracted before exponentials are taken."""
    decided = int(charge(inst, ws, 0, len(inst.total_table) - 1))
    return decided + sum(int(ws.gain[j, :n].min()) for j, n in enumerate(inst.n_values))


class TreeSampler(RejectionSampler):
    """Draws from `exp(-κ loss) · prior` over the instance, exactly; a frontier is kept from draw to draw."""

    def __init__(
        self,
        inst: Layout,
        kappa: float,
        log_prior: NDArray[np.float64],
        rng: Randomness,
        *,
        max_nodes: int,
        max_attempts: int,
        progress: SamplingCallback | None = None,
    ) -> None:
        reserve = len(inst.order) * (inst.values.shape[1] + 2) + SPARE_UNIFORMS
        super().__init__(rng, reserve, UNIFORM_BLOCK + 64 * inst.values.size, max_attempts, progress)
        self.inst = inst
        self._max_nodes = check_count("max_nodes", max_nodes)
        self._nodes = 0
        self._ws = new_workspace(inst)
        self.reference = _loss_bound(inst, self._ws)
        self._weighing = new_weighing(inst, kappa, self.reference, log_prior)
        self._cache = _new_cache(inst, self._ws.cells.dtype)
        self._drawn = np.empty(len(inst.order), dtype=np.int64)
        root = float(weigh(inst, self._ws, self._weighing, 0))
        self._frontier = PathFrontier(
            paths=np.zeros((FIRST_ROOM, len(inst.order)), dtype=np.int32),
            levels=np.zeros(FIRST_ROOM, dtype=np.int64),
            logs=np.full(FIRST_ROOM, root),
            size=np.ones(1, dtype=np.int64),
            tree=new_sum_tree(np.array([root]), FIRST_ROOM),
        )
        self._compile()

    def _compile(self) -> None:
        """Everything that `draw` runs, so that whoever has paid does not wait for the compiler."""
        tree = self._frontier.tree
        compile_for(_attempts, *self._arguments(BLOCK))
        compile_for(log_total, tree)
        compile_for(copy_leaves, tree, tree)

    def draw(self) -> Int64Array:
        """One vector, as value indices in branching order."""
        return self._until_kept(lambda: self._drawn.copy())

    def log_partition(self) -> float:
        """`log Σ f(w)` relative to the reference, by opening every node: for small domains."""
        return float(_total(self.inst, self._ws, self._weighing))

    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every vector's probability, from public numbers and the number of records.

        `largest_difference` bounds what two losses differ by. The count is that of "Rounding of the coordinate tree" in
        `docs/theory/04-exponential.md`.
        """
        dim, most = self.inst.values.shape
        small = public_logarithms(self._weighing.log_prior)
        large = self._weighing.kappa * largest_difference + small
        return float(2.0**-53 * (12 + 8 * dim) * large + 2.0**-52 * dim * (most + 16) * small)

    def _attempt(self, most: int) -> tuple[int, int]:
        outcome, made, nodes = _attempts(*self._arguments(most))
        self._nodes += nodes
        if outcome == NEEDS_ROOM:
            self._frontier, outcome = self._grown(), LOST
        return int(outcome), int(made)

    def _arguments(self, most: int) -> tuple[Any, ...]:
        state = self.inst, self._ws, self._weighing, self._cache, self._frontier
        return (*state, self._uniforms.stream, self._reserve, most, self._drawn)

    def _frontier_size(self) -> int:
        return int(self._frontier.size[0])

    def _engine_statistics(self) -> dict[str, Any]:
        return {"nodes": self._nodes, "log_frontier": float(log_total(self._frontier.tree))}

    def _grown(self) -> PathFrontier:
        """The frontier with twice the room."""
        old = self._frontier
        room = 2 * len(old.levels)
        if room > self._max_nodes:
            raise WorkLimitReached(
                f"the sampler's frontier needs more than max_nodes={self._max_nodes:,} nodes: nothing is released; raise "
                "it, or use a smaller epsilon or a smaller domain"
            )
        tree = new_sum_tree(np.empty(0), room)
        copy_leaves(old.tree, tree)
        paths, levels, logs = (np.concatenate([a, np.zeros_like(a)]) for a in (old.paths, old.levels, old.logs))
        return PathFrontier(paths, levels, logs, old.size, tree)
