"""The tree in (min, +): depth-first branch and bound with a certificate, on as many threads as there are cores.

The result does not depend on threads or timing. The tree is first opened, always in the same way, into subproblems
(prefixes of fixed columns), ordered by bound; among optimal vectors the one of the first subproblem wins, and within a
subproblem the first one in depth-first order.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.compiled import compile_for, compiled, helper
from privsolve.engines.coordinates.bound import Workspace, charge, descend, new_workspace, tabulate_rows
from privsolve.engines.coordinates.instance import INFEASIBLE, Layout, entry
from privsolve.engines.coordinates.totals import add_column
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

    def zeros(*shape: int) -> Int64Array:
        return np.zeros(shape, dtype=np.int64)

    return Search(
        child_bound=zeros(dim + 1, most),
        child_order=zeros(dim + 1, most),
        next_child=zeros(dim + 1),
        spent=zeros(dim + 1),
        perturbed=zeros(dim + 1),
        path=zeros(dim + 1),
        suffix=suffix,
        unary=zeros(dim, most),
    )


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
    _combine(inst, search, k)
    best = np.int64(INFEASIBLE)
    for x in range(inst.n_values[k]):
        spent = search.spent[k] + inst.costs[k, x]
        bound = np.int64(INFEASIBLE)
        if spent < len(inst.total_table) and search.suffix[k + 1, spent] < FEASIBLE_LIMIT:
            bound = known + search.unary[k, x] + search.suffix[k + 1, spent]
        search.child_bound[k, x] = bound
        best = min(best, bound)
    return best


@helper
def _combine(inst, search, k):
    """`suffix[j, t]`: the least that columns from j on can add when a total of `t` is spent before them."""
    for j in range(len(inst.order) - 1, k, -1):
        add_column(
            Costs(INFEASIBLE, 0),
            search.suffix,
            j + 1,
            j,
            search.spent[k],
            j,
            inst.n_values[j],
            inst.costs,
            search.unary,
        )


@compiled
def step(inst, ws, search, k, x):
    """Go from the node at level `k` to its child number `x`."""
    search.path[k] = x
    search.spent[k + 1] = search.spent[k] + inst.costs[k, x]
    descend(inst, ws, k, x, len(inst.total_table) - 1 - search.spent[k + 1])
    search.perturbed[k + 1] = search.perturbed[k] + inst.tables[k, x]


@compiled
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


@compiled
def _to_beat(found, sub):
    """A node of subproblem `sub` can be dropped if its bound is at least this: ties go to earlier subproblems."""
    limit = np.int64(INFEASIBLE)
    for s in range(len(found)):
        limit = min(limit, found[s] if s <= sub + 1 else found[s] + 1)
    return limit


@compiled
def _search_below(inst, ws, search, prefix, found, sub, best_path, nodes, stop):
    """Depth-first search below `prefix`. `found[s + 1]` is the best of subproblem s, `found[0]` the first guess."""
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
                    found[sub + 1] = bound
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


def _open(inst: Layout, limit: int) -> tuple[list[Prefix], int]:
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
            if bound < limit:
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
    search = new_search(inst)
    ws = new_workspace(inst)
    enter(inst, ws, search, 0)
    _trace(inst, search, 0)
    first_path = search.path[: len(inst.order)].copy()
    first_value = int(improve(inst, first_path))
    subs, opened = _open(inst, first_value)
    team = _Team(inst, subs, first_value)
    team.run(threads or os.cpu_count() or 1, _limits(start, node_limit, time_limit), progress, start)
    winner = int(np.argmin(team.found))
    path = first_path if winner == 0 else team.paths[winner - 1]
    return Optimum(path, int(team.found[winner]), int(team.nodes.sum()) + opened)


def compile_search(inst: Layout) -> None:
    """Compile everything that `minimise` runs on an instance with the types of this one."""
    search, ws, numbers = new_search(inst), new_workspace(inst), np.zeros(1, dtype=np.int64)
    compile_for(tabulate_rows, inst, ws)
    compile_for(enter, inst, ws, search, 0)
    compile_for(step, inst, ws, search, 0, 0)
    compile_for(_trace, inst, search, 0)
    compile_for(_to_beat, numbers, 0)
    compile_for(_search_below, inst, ws, search, numbers, numbers, 0, numbers, numbers, numbers)
    compile_for(improve, inst, numbers)


def _limits(start: float, node_limit: int | None, time_limit: float | None) -> Callable[[int], str | None]:
    def exceeded(nodes: int) -> str | None:
        if node_limit is not None and nodes > node_limit:
            return f"node limit of {node_limit:,}"
        if time_limit is not None and time.monotonic() - start > time_limit:
            return f"time limit of {time_limit:g} s"
        return None

    return exceeded


class _Team:
    """Threads that take subproblems in order and share what they have found, one slot per subproblem."""

    def __init__(self, inst: Layout, subs: list[Prefix], first_value: int) -> None:
        self.inst = inst
        self.subs = subs
        self.found = np.full(len(subs) + 1, INFEASIBLE, dtype=np.int64)
        self.found[0] = first_value
        self.paths = np.zeros((len(subs), len(inst.order)), dtype=np.int64)
        self.stop = np.zeros(1, dtype=np.int64)
        self.nodes = np.zeros(0, dtype=np.int64)
        self.open = np.ones(len(subs), dtype=bool)
        self._next = 0
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []

    def run(
        self,
        threads: int,
        exceeded: Callable[[int], str | None],
        progress: ProgressCallback | None,
        start: float,
    ) -> None:
        self.nodes = np.zeros((threads, 8), dtype=np.int64)  # a cache line each
        workers = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(threads)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                while worker.is_alive():
                    worker.join(POLL_SECONDS)
                    nodes = int(self.nodes.sum())
                    if worker.is_alive() and progress is not None:
                        value, bound = self._state()
                        progress(Progress(value / UNIT, bound / UNIT, nodes, time.monotonic() - start))
                    if worker.is_alive() and (reason := exceeded(nodes)):
                        value, bound = self._state()
                        raise WorkLimitReached(
                            f"the tree search hit its {reason} at gap {(value - bound) / UNIT:.6g} (objective "
                            f"{value / UNIT:.6g}, bound {bound / UNIT:.6g}): nothing is released; "
                            "retry with the same noise and a larger limit"
                        )
        finally:
            self.stop[0] = 1
            for worker in workers:
                worker.join()
        if self._errors:
            raise self._errors[0]
        if reason := exceeded(int(self.nodes.sum())):
            raise WorkLimitReached(f"the tree search hit its {reason}: nothing is released; use a larger limit")

    def _state(self) -> tuple[int, int]:
        value = int(self.found.min())
        waiting = [sub.bound for sub, is_open in zip(self.subs, self.open.tolist(), strict=True) if is_open]
        return value, min([value, *waiting])

    def _work(self, index: int) -> None:
        try:
            search, ws = new_search(self.inst), new_workspace(self.inst)
            while self.stop[0] == 0:
                with self._lock:
                    sub, self._next = self._next, self._next + 1
                if sub >= len(self.subs):
                    return
                self._solve(sub, ws, search, self.nodes[index])
        except BaseException as error:
            self._errors.append(error)
            self.stop[0] = 1

    def _solve(self, sub: int, ws: Workspace, search: Search, nodes: Int64Array) -> None:
        prefix = self.subs[sub]
        if prefix.bound < _to_beat(self.found, sub):
            _search_below(
                self.inst,
                ws,
                search,
                np.array(prefix.indices, dtype=np.int64),
                self.found,
                sub,
                self.paths[sub],
                nodes,
                self.stop,
            )
        self.open[sub] = self.stop[0] != 0


# --- a good first vector ---------------------------------------------------------------------------
#
# Local search: the better the first vector is, the more of the tree is never opened.


@compiled
def improve(inst, path):
    """Change one column at a time while that lowers the objective; returns the objective."""
    dim = len(inst.order)
    scores = np.zeros(len(inst.rows), dtype=np.int64)
    for i in range(len(scores)):
        for j in range(dim):
            scores[i] += inst.rows[i, j] * inst.values[j, path[j]]
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
