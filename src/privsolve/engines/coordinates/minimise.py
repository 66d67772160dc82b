"""The tree in (min, +): depth-first branch and bound with a certificate, on as many threads as there are cores.

The result does not depend on threads or timing. The tree is first opened, always in the same way, into subproblems
(prefixes of fixed columns), ordered by bound; among optimal vectors the one of the first subproblem wins, and within a
subproblem the first one in depth-first order.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import heapq
import math
import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compile_for, compiled, helper
from privsolve.engines.coordinates.bound import Workspace, add_column, charge, descend, new_workspace, tabulate_rows
from privsolve.engines.coordinates.instance import INFEASIBLE, Layout
from privsolve.engines.semirings import Costs
from privsolve.errors import WorkLimitReached
from privsolve.noise.coins import sort_indices
from privsolve.problems.perturbation import UNIT, UNIT_BITS

SUBPROBLEMS = 100
POLL_SECONDS = 0.1
FEASIBLE_LIMIT = INFEASIBLE // 2


@dataclass(frozen=True)
class Progress:
    """How far a search is: best objective so far and lower bound, in mistakes, nodes and seconds."""

    objective: float
    bound: float
    nodes: int
    seconds: float


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class Optimum:
    """A certified minimiser in the order of the instance's columns, with the work it took."""

    indices: Int64Array
    value: int
    nodes: int


class Search(NamedTuple):
    """One thread's depth-first search: child bounds, their order and the path, one slot per level."""

    child_bound: Int64Array
    child_order: Int64Array
    next_child: Int64Array
    spent: Int64Array
    perturbed: Int64Array
    path: Int64Array
    suffix: Int64Array
    unary: Int64Array


def new_search(inst: Layout) -> Search:
    """Empty search state; `suffix[dim]` is the table of total costs."""
    dim, most = inst.values.shape
    suffix = np.full((dim + 1, len(inst.total_table)), INFEASIBLE, dtype=np.int64)
    suffix[dim] = inst.total_table

    child_bound, child_order = np.zeros((2, dim + 1, most), dtype=np.int64)
    next_child, spent, perturbed, path = np.zeros((4, dim + 1), dtype=np.int64)
    unary = np.zeros((dim, most), dtype=np.int64)
    return Search(child_bound, child_order, next_child, spent, perturbed, path, suffix, unary)


@compiled
def enter(inst, ws, search, k):
    """Bound the node at level `k`: `child_bound[k, x]` for every value of column k. Returns the node's own bound."""
    decided = charge(inst, ws, k, len(inst.total_table) - 1 - search.spent[k])
    known = search.perturbed[k] + (decided << UNIT_BITS)
    dim = len(inst.order)
    if k == dim:
        return known + inst.total_table[search.spent[k]]
    for j in range(k, dim):
        for x in range(inst.n_values[j]):
            search.unary[j, x] = (ws.gain[j, x] << UNIT_BITS) + inst.tables[j, x]
    for j in range(
        dim - 1, k, -1
    ):  # `suffix[j, t]`: the least that columns from j on can add, t being spent before them
        add_column(Costs(INFEASIBLE, 0), search.suffix, j, search.spent[k], inst.n_values[j], inst.costs, search.unary)
    best = np.int64(INFEASIBLE)
    for x in range(inst.n_values[k]):
        spent = search.spent[k] + inst.costs[k, x]
        bound = np.int64(INFEASIBLE)
        if spent < len(inst.total_table) and search.suffix[k + 1, spent] < FEASIBLE_LIMIT:
            bound = known + search.unary[k, x] + search.suffix[k + 1, spent]
        search.child_bound[k, x] = bound
        best = min(best, bound)
    return best


@compiled
def step(inst, ws, search, k, x):
    """Go from the node at level `k` to its child number `x`."""
    search.path[k] = x
    search.spent[k + 1] = search.spent[k] + inst.costs[k, x]
    descend(inst, ws, k, x, len(inst.total_table) - 1 - search.spent[k + 1])
    search.perturbed[k + 1] = search.perturbed[k] + inst.tables[k, x]


@helper
def _trace(inst, search, k):
    """Complete `path` from level `k` on by the choices that attain the bound."""
    spent = search.spent[k]
    for j in range(k, len(inst.order)):
        best = np.int64(INFEASIBLE) * 2
        chosen = 0
        for x in range(inst.n_values[j]):
            after = spent + inst.costs[j, x]
            if after < len(inst.total_table):
                value = search.unary[j, x] + search.suffix[j + 1, after]
                if value < best:
                    best, chosen = value, x
        search.path[j] = chosen
        spent += inst.costs[j, chosen]


@helper
def _to_beat(found, sub):
    """A node of subproblem `sub` can be dropped if its bound is at least this: ties go to earlier subproblems."""
    limit = np.int64(INFEASIBLE)
    for s in range(len(found)):
        limit = min(limit, found[s] if s <= sub else found[s] + 1)
    return limit


@compiled
def _search_below(inst, ws, search, prefix, found, sub, best_path, nodes, stop):
    """Depth-first search below `prefix`. `found[s]` is the best of subproblem s so far."""
    top = len(prefix)
    for k in range(top):
        step(inst, ws, search, k, prefix[k])
    limit = _to_beat(found, sub)
    k, entering, count = top, True, 0
    while k >= top:
        if entering:
            count += 1
            if count & 63 == 0:
                nodes[0] += 64
                limit = _to_beat(found, sub)
                if stop[0] != 0:
                    return
            bound = enter(inst, ws, search, k)
            if k >= inst.exact_from or k == len(inst.order):
                if bound < limit:
                    _trace(inst, search, k)
                    for j in range(len(inst.order)):
                        best_path[j] = search.path[j]
                    found[sub] = bound
                    limit = bound
                entering = False
                k -= 1
                continue
            sort_indices(search.child_bound[k], inst.n_values[k], search.child_order[k])
            search.next_child[k] = 0
        position = search.next_child[k]
        entering = False
        if position < inst.n_values[k]:
            x = search.child_order[k, position]
            if search.child_bound[k, x] < limit:
                search.next_child[k] = position + 1
                step(inst, ws, search, k, x)
                k += 1
                entering = True
                continue
        k -= 1
    nodes[0] += count & 63


class Prefix(NamedTuple):
    """A node as the values its first columns are fixed to, with its bound; ordered by bound."""

    bound: int
    indices: tuple[int, ...]


def _open(inst: Layout) -> tuple[list[Prefix], int]:
    """Split the tree into about `SUBPROBLEMS` prefixes (where it has them), level by level; best bound first.

    Also returns the number of nodes that took.
    """
    search, ws = new_search(inst), new_workspace(inst)
    heap = [(0, Prefix(int(enter(inst, ws, search, 0)), ()))]
    done: list[Prefix] = []
    opened = 1
    while heap and len(heap) + len(done) < SUBPROBLEMS:
        level, node = heapq.heappop(heap)
        if level >= inst.exact_from:
            done.append(node)
            continue
        for k, x in enumerate(node.indices):
            step(inst, ws, search, k, x)
        enter(inst, ws, search, level)
        opened += 1
        for x in range(int(inst.n_values[level])):
            bound = int(search.child_bound[level, x])
            if bound < FEASIBLE_LIMIT:
                heapq.heappush(heap, (level + 1, Prefix(bound, (*node.indices, x))))
    return sorted(done + [node for _, node in heap]), opened


def minimise(
    inst: Layout,
    *,
    node_limit: int | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> Optimum:
    """The certified minimum of the instance; `WorkLimitReached` if a limit is hit first.

    Interrupting (Ctrl-C) stops the threads and raises `KeyboardInterrupt`: nothing is returned.
    """
    start = time.monotonic()
    subs, opened = _open(inst)
    found = np.full(len(subs), INFEASIBLE, dtype=np.int64)
    paths, nodes = np.zeros((len(subs), len(inst.order)), dtype=np.int64), np.zeros((len(subs), 8), dtype=np.int64)
    stop, spare = np.zeros(1, dtype=np.int64), list[tuple[Workspace, Search]]()

    def solve(sub: int) -> None:
        """What threads share is an entry each for every subproblem; of `nodes` a cache line each."""
        if stop[0] == 0 and subs[sub].bound < _to_beat(found, sub):
            ws, search = spare.pop() if spare else (new_workspace(inst), new_search(inst))
            prefix = np.array(subs[sub].indices, dtype=np.int64)
            _search_below(inst, ws, search, prefix, found, sub, paths[sub], nodes[sub], stop)
            spare.append((ws, search))

    def check(waiting: Collection[int]) -> None:
        """Tell the progress, and raise if there was too much work."""
        seconds, visited = time.monotonic() - start, int(nodes.sum())
        value = int(found.min())
        bound = min([value, *(subs[sub].bound for sub in waiting)])
        now = Progress(value / UNIT if value < INFEASIBLE else math.inf, bound / UNIT, visited, seconds)
        if waiting and progress is not None:
            progress(now)
        late = time_limit is not None and seconds > time_limit
        if late or (node_limit is not None and visited > node_limit):
            limit = f"time limit of {time_limit:g} s" if late else f"node limit of {node_limit:,}"
            raise WorkLimitReached(
                f"the tree search hit its {limit} at gap {now.objective - now.bound:.6g} (objective {now.objective:.6g}, "
                f"bound {now.bound:.6g}): nothing is released; retry with the same noise and a larger limit"
            )

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        tasks = {pool.submit(solve, sub): sub for sub in range(len(subs))}
        waiting = set(tasks)
        try:
            while waiting:
                done, waiting = wait(waiting, POLL_SECONDS, FIRST_EXCEPTION)
                for task in done:
                    task.result()
                check([tasks[task] for task in waiting])
        except BaseException:
            stop[0] = 1
            pool.shutdown(cancel_futures=True)
            raise
    winner = int(np.argmin(found))
    return Optimum(paths[winner], int(found[winner]), int(nodes.sum()) + opened)


def compile_search(inst: Layout) -> None:
    """Compile everything that `minimise` runs on an instance with the types of this one."""
    search, ws, numbers = new_search(inst), new_workspace(inst), np.zeros(1, dtype=np.int64)
    compile_for(tabulate_rows, inst, ws)
    compile_for(enter, inst, ws, search, 0)
    compile_for(step, inst, ws, search, 0, 0)
    compile_for(_search_below, inst, ws, search, numbers, numbers, 0, numbers, numbers, numbers)
