"""Sums over all trees of a depth, once; then exact draws, the logarithm of the sum, and the best tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compile_for
from privsolve.domains.trees import DecisionTrees, TreePrior
from privsolve.engines.trees.counts import Rows, rows_of
from privsolve.engines.trees.sums import alternatives, fill_counts, solve_level, solve_unit, solve_units
from privsolve.engines.trees.tables import answer, law_of
from privsolve.engines.workers import Workers, cores
from privsolve.models.tree import Leaf, Node, Split
from privsolve.noise.coins import Stream, choose_log
from privsolve.noise.entropy import Randomness
from privsolve.problems.trees import TreeProblem

ROUNDING = 2.0**-53
SPARE_UNIFORMS = 64
AGREEMENT = 1e-9
"""How far a unit that a draw recomputes may be from the stored sum: far above rounding, far below a wrong count."""

KEPT_NODES = 20_000
"""Alternatives of so many nodes are kept for further draws."""

CHUNKS = 64
LEAF_SECONDS = 1e-8
"""About what one leaf value of one cell of a pair takes on one core, for estimates."""


@dataclass(frozen=True)
class Work:
    """What a sum over all trees takes: public numbers, known before the data is looked at, but for the counting."""

    units: int
    leaf_values: int
    memory: int

    @property
    def processor_seconds(self) -> float:
        """About how long all cores together work on it, beside the counting."""
        return LEAF_SECONDS * self.leaf_values

    @property
    def seconds(self) -> float:
        """About how long it takes with all cores, beside the counting."""
        return self.processor_seconds / cores()


def work_of(trees: DecisionTrees, rows: int) -> Work:
    """The work for a table of at most so many different rows."""
    m, d, width = trees.questions.size, max(trees.depth - 2, 0), trees.leaves.width
    units = math.comb(m, d) << d
    pairs = m * (m + 1) // 2
    stored = sum(math.comb(m, k) for k in range(d)) * (pairs + 1) * width * 8
    tables = sum(math.comb(m, k) << k for k in range(d + 1)) * 16
    scratch = cores() * (((pairs + 1) * width * 8 << d) + (d + 1) * (rows * 9 + 1000))
    table = rows * (m * 6 + width * 40)
    return Work(units, units * 4 * pairs * trees.leaves.size, stored + tables + scratch + table)


def relative_error(problem: TreeProblem, prior: TreePrior, kappa: float) -> float:
    """Bound on the relative error of the weight of any tree (theory, trees: numbers)."""
    trees = problem.trees
    per_node = 12 * -prior.least_log(trees) + 12 * trees.questions.size + 4 * trees.leaves.size + 12_000
    return float(ROUNDING * (8 * kappa * problem.largest_loss + 2 * 2 ** (trees.depth + 1) * per_node))


class Alternatives(NamedTuple):
    """What a node can do: ask `questions[k]`, or for -1 say a value; least losses, and logarithms relative to these."""

    losses: Int64Array
    logs: Floats
    questions: Int64Array


Path = tuple[tuple[int, bool], ...]
"""Answered questions in ascending order."""


class TreeSums:
    """All sums of a problem under a law, and what can be read off them. Everything here depends on the data."""

    def __init__(
        self,
        problem: TreeProblem,
        prior: TreePrior,
        kappa: float,
        *,
        price: int = 0,
        sums: bool = True,
    ) -> None:
        trees = problem.trees
        self.problem, self.trees = problem, trees
        self.law = law_of(trees, prior, kappa, problem.largest_loss + price * 2**trees.depth, price, sums)
        self._units = max(trees.depth - 2, 0)
        self._rows = rows_of(problem, list(range(self._units + 1)))
        self._binomials = _binomials(trees.questions.size, trees.depth + 1)
        self._offsets = np.cumsum([0, *(math.comb(trees.questions.size, k) for k in range(self._units))])
        self._tables: list[tuple[Int64Array, Floats]] = []
        self._kept: dict[tuple[Path, int], Alternatives] = {}

    def compile(self) -> None:
        """Make ready all machine code that sums and draws need: nothing is computed."""
        stored, least, logs = self._empty_store(0), np.zeros((0, 1), np.int64), np.zeros((0, 1))
        fixed = (self._rows, self.law, self._binomials)
        compile_for(fill_counts, self._rows, self._binomials, 0, 0, 0, stored, 0)
        compile_for(solve_units, *fixed, 0, 0, 0, stored, self._offsets, least, logs)
        totals = np.ascontiguousarray(stored[:, -1])
        compile_for(solve_level, *fixed[1:], 0, 0, totals, self._offsets, least, logs, least, logs)
        m, members = self.trees.questions.size, np.zeros(1, np.int64)
        losses, weights, asked = np.zeros(m + 1, np.int64), np.zeros(m + 1), np.zeros(m + 1, np.int64)
        one = np.zeros((1, self.trees.leaves.width), np.int64)
        compile_for(alternatives, *fixed[1:], 0, members, 0, one, least, logs, losses, weights, asked)
        compile_for(answer, self.law, self.law.every, 0, True)
        compile_for(solve_unit, self.law, 0, self.law.every, *self._scratch(), losses)
        compile_for(choose_log, Stream(weights, losses), weights, 0)

    def _scratch(self) -> tuple[Int64Array, Int64Array, Floats, Int64Array]:
        m, width = self.trees.questions.size, self.trees.leaves.width
        cell = self._empty_store(1)[0]
        return cell, np.zeros((2, m), np.int64), np.zeros((2, m)), np.zeros((4, width), np.int64)

    def _empty_store(self, sets: int) -> NDArray[Any]:
        m = self.trees.questions.size
        return np.zeros((sets, m * (m + 1) // 2 + 1, self.trees.leaves.width), self._rows.statistics.dtype)

    def solve(self, progress: Callable[[float], None] | None = None) -> TreeSums:
        """Compute all sums, with all cores; `progress` is told the share of the units that are done, a public number."""
        m, d = self.trees.questions.size, self._units
        stored = self._empty_store(int(self._offsets[-1]))
        least, logs = np.zeros((math.comb(m, d), 1 << d), np.int64), np.zeros((math.comb(m, d), 1 << d))
        fixed = (self._rows, self.law, self._binomials)
        for k in range(d):
            where = stored, int(self._offsets[k])
            _in_chunks(math.comb(m, k), lambda a, b: fill_counts(self._rows, self._binomials, k, a, b, *where))  # noqa: B023
        _in_chunks(
            math.comb(m, d), lambda a, b: solve_units(*fixed, d, a, b, stored, self._offsets, least, logs), progress
        )
        tables = [(least, logs)]
        totals = np.ascontiguousarray(stored[:, -1])
        for level in range(d - 1, -1, -1):
            below, sets = tables[-1], math.comb(m, level)
            here = np.zeros((sets, 1 << level), np.int64), np.zeros((sets, 1 << level))
            solve_level(*fixed[1:], level, sets, totals, self._offsets, *below, *here)
            tables.append(here)
        self._tables = tables[::-1]
        return self

    @property
    def least_loss(self) -> int:
        """The least loss of a tree, with the price of its leaves."""
        return int(self._tables[0][0][0, 0])

    @property
    def log_sum(self) -> float:
        """`log Σ_T p₀(T) exp(-κ (L(T) - least_loss))`."""
        return float(self._tables[0][1][0, 0])

    def draw(self, rng: Randomness) -> Node:
        """A tree with probability `p₀(T) e^{-κ L(T)} / Z`."""
        return self._grown((), 0, lambda logs: _chosen(rng, logs))

    def best(self) -> Node:
        """A tree with the least loss and price; the first in the order leaf, question 0, question 1, ..."""
        if self.law.sums:
            raise ValueError("the best tree is read off sums=False")
        return self._grown((), 0, lambda logs: int(np.argmax(logs)))

    def _grown(self, path: Path, level: int, pick: Callable[[Floats], int]) -> Node:
        found = self.alternatives(path, level)
        k = pick(self._relative(found.losses, found.logs))
        j = int(found.questions[k])
        if j < 0:
            return Leaf(pick(self._relative(self.values(path))))
        yes, no = (self._grown(_longer(path, j, way), level + 1, pick) for way in (True, False))
        return Split(j, yes, no)

    def _relative(self, losses: Int64Array, logs: Floats | float = 0.0) -> Floats:
        """Logarithms of the weights; without sums, the losses themselves with the sign turned."""
        excess = (losses - losses.min()).astype(np.float64)
        return np.asarray(logs - self.law.kappa * excess if self.law.sums else -excess)

    def values(self, path: Path) -> Int64Array:
        """The cost of every value at a leaf; all are alike beforehand."""
        return np.asarray(self.law.costs @ self._statistics(path))

    def alternatives(self, path: Path, level: int) -> Alternatives:
        """What can stand at the end of a path."""
        if (path, level) not in self._kept:
            if len(self._kept) >= KEPT_NODES:
                self._kept.clear()
            self._kept[path, level] = self._opened(path, level)
        return self._kept[path, level]

    def _opened(self, path: Path, level: int) -> Alternatives:
        if level >= self.trees.depth:
            return self._joined(self._statistics(path), np.zeros(0, np.int64), 0.0, *_nothing())
        if level < self._units:
            return self._above(path, level)
        asked = np.flatnonzero(self.trees.questions.open(dict(path)) & (self.law.weights * self.law.split > 0))
        if not len(asked):
            return self._joined(self._statistics(path), asked, 0.0, *_nothing())
        weights = self.law.weights[asked]
        losses, logs = self._unit(path, asked) if level == self._units else self._last(path, asked)
        logs = logs + np.log(weights * (self.law.split / float(weights.sum())))
        return self._joined(self._statistics(path), asked, self.law.split, losses, logs)

    def _joined(
        self, statistics: Int64Array, asked: Int64Array, split: float, losses: Int64Array, logs: Floats
    ) -> Alternatives:
        """The leaf first, then the questions."""
        least, log = self._leaf(statistics[None, :])
        return Alternatives(
            np.concatenate([least, losses]),
            np.concatenate([log + math.log1p(-split), logs]),
            np.concatenate([[-1], asked]),
        )

    def _leaf(self, statistics: NDArray[Any]) -> tuple[Int64Array, Floats]:
        """Least costs and logarithms of the sums relative to them, one per row; nothing is looked up."""
        costs = statistics.astype(np.int64) @ self.law.costs.T
        least = costs.min(axis=1)
        if not self.law.sums:
            return least + self.law.price, np.zeros(len(least))
        sums = np.exp(-self.law.kappa * (costs - least[:, None])).sum(axis=1)
        return least + self.law.price, np.log(sums * self.law.share)

    def _above(self, path: Path, level: int) -> Alternatives:
        m = self.trees.questions.size
        losses, logs, asked = np.zeros(m + 1, np.int64), np.zeros(m + 1), np.zeros(m + 1, np.int64)
        members = np.array([j for j, _ in path] or [0], np.int64)
        pattern = sum(1 << k for k, (_, yes) in enumerate(path) if yes)
        n = alternatives(
            self.law,
            self._binomials,
            level,
            members,
            pattern,
            self._statistics(path)[None, :],
            *self._tables[level + 1],
            losses,
            logs,
            asked,
        )
        return Alternatives(losses[:n], logs[:n], asked[:n])

    def _unit(self, path: Path, asked: Int64Array) -> tuple[Int64Array, Floats]:
        """The questions of a unit, with the two levels under each computed anew and held against the stored sum."""
        cell, best, total, scratch = self._scratch()
        answers, statistics = self._members(path)
        upper = np.triu_indices(self.trees.questions.size)
        whole = answers.astype(np.float64)
        for s in range(cell.shape[1]):  # exact: all totals are below 2^53
            cell[:-1, s] = np.rint((whole.T * statistics[:, s]) @ whole)[upper].astype(np.int64)
        cell[-1] = statistics.sum(axis=0)
        cost = np.zeros(self.trees.leaves.size, np.int64)
        loss, weight = solve_unit(self.law, len(path), self._left(path), cell, best, total, scratch, cost)
        number = sum(int(self._binomials[j, k + 1]) for k, (j, _) in enumerate(path))
        pattern = sum(1 << k for k, (_, yes) in enumerate(path) if yes)
        least, logs = self._tables[len(path)]
        stored, log = int(least[number, pattern]), float(logs[number, pattern])
        if loss != stored or (self.law.sums and abs(math.log(weight) - log) > AGREEMENT):
            raise RuntimeError("a unit of the tree gave another sum the second time: nothing was released")
        logs_of = np.log(total[:, asked]).sum(axis=0) if self.law.sums else np.zeros(len(asked))
        return best[:, asked].sum(axis=0), logs_of

    def _last(self, path: Path, asked: Int64Array) -> tuple[Int64Array, Floats]:
        """The questions of the last level: two leaves each."""
        answers, statistics = self._members(path)
        yes = answers[:, asked].astype(np.int64).T @ statistics
        sides = [self._leaf(part) for part in (yes, statistics.sum(axis=0) - yes)]
        return sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]

    def _left(self, path: Path) -> NDArray[np.uint64]:
        left = self.law.every.copy()
        for j, yes in path:
            answer(self.law, left, j, yes)
        return left

    def _members(self, path: Path) -> tuple[NDArray[np.uint8], Int64Array]:
        rows: Rows = self._rows
        kept = np.ones(len(rows.answers), dtype=np.bool_)
        for j, yes in path:
            kept &= rows.answers[:, j] == yes
        return rows.answers[kept], rows.statistics[kept].astype(np.int64)

    def _statistics(self, path: Path) -> Int64Array:
        return np.asarray(self._members(path)[1].sum(axis=0))


def _nothing() -> tuple[Int64Array, Floats]:
    return np.zeros(0, np.int64), np.zeros(0)


def _longer(path: Path, j: int, yes: bool) -> Path:
    return tuple(sorted((*path, (j, yes))))


def _chosen(rng: Randomness, logs: Floats) -> int:
    if len(logs) == 1:
        return 0
    stream = Stream(rng.uniform(len(logs) + SPARE_UNIFORMS), np.zeros(1, dtype=np.int64))
    return int(choose_log(stream, logs, len(logs)))


def _binomials(m: int, size: int) -> Int64Array:
    return np.array([[math.comb(j, k) for k in range(size + 1)] for j in range(m + 1)], dtype=np.int64)


def _in_chunks(total: int, task: Callable[[int, int], Any], progress: Callable[[float], None] | None = None) -> None:
    """Run `task(start, stop)` over all numbers below `total` on all cores."""
    chunks = min(CHUNKS, total)
    edges = sorted({round(k * total / chunks) for k in range(chunks + 1)})
    Workers(lambda: None).run(
        lambda _, k: task(edges[k], edges[k + 1]),
        range(len(edges) - 1),
        None if progress is None else lambda done: progress(done / (len(edges) - 1)),
    )
