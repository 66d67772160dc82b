"""Sums over all trees of a depth, once; then exact draws, the logarithm of the sum, and the best tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compile_for
from privsolve.domains.trees import SPLIT, DecisionTrees
from privsolve.engines.trees.sums import UNREACHED, fill_counts, rows_of, solve_unit, solve_units
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
    m, width = trees.questions.size, trees.leaves.width
    d = max(min(trees.depth, m) - 2, 0)
    units = math.comb(m, d) << d
    pairs = m * (m + 1) // 2
    stored = sum(math.comb(m, k) for k in range(d)) * (pairs + 1) * width * 8
    tables = sum(math.comb(m, k) << k for k in range(d + 1)) * 8 * (2 + width)
    scratch = cores() * (((pairs + 1) * width * 8 << d) + (d + 1) * (rows + 1000) + 2 * m * m)
    table = rows * (m * 2 + width * 40)
    return Work(units, units * 4 * pairs * trees.leaves.size, stored + tables + scratch + table)


def relative_error(problem: TreeProblem, kappa: float) -> float:
    """Bound on the relative error of the weight of any tree (theory, trees: numbers)."""
    trees = problem.trees
    logarithm = 2**trees.depth * -math.log1p(-SPLIT) - trees.least_log_prior(trees.depth)
    per_node = 12 * logarithm + 12 * trees.questions.size + 4 * trees.leaves.size + 12_000
    return float(ROUNDING * (8 * kappa * problem.largest_loss + 2 * 2 ** (trees.depth + 1) * per_node))


class Alternatives(NamedTuple):
    """What a node can do: ask `questions[k]`, or for -1 say a value; least losses, and logarithms relative to these."""

    losses: Int64Array
    logs: Floats
    questions: Int64Array


Path = tuple[tuple[int, bool], ...]
"""Answered questions in ascending order."""


class TreeSums:
    """All sums of a problem under a law, and what can be read off them. Everything here depends on the data.

    Tables hold, for every level from 1 to that of the units, every set of questions and every pattern of answers, the least
    loss, the logarithm of the sum relative to it, and the counts of the labels.
    """

    def __init__(self, problem: TreeProblem, kappa: float, *, price: int = 0, sums: bool = True) -> None:
        trees = problem.trees
        self.problem, self.trees = problem, trees
        self.law = law_of(trees, kappa, problem.largest_loss + price * 2**trees.depth, price, sums)
        m = trees.questions.size
        self._depth = min(trees.depth, m)  # no path asks more
        self._units = max(self._depth - 2, 0)
        self._rows = rows_of(problem)
        self._binomials = np.array([[math.comb(j, k) for k in range(self._depth + 2)] for j in range(m + 1)], np.int64)
        self._offsets = np.cumsum([0, *(math.comb(m, k) for k in range(self._units))])
        self._tables: dict[int, tuple[Int64Array, Floats, Int64Array]] = {}
        self._kept: dict[Path, Alternatives] = {}

    def compile(self) -> None:
        """Make ready all machine code that sums and draws need: nothing is computed."""
        stored, table = self._empty_store(0), self._empty_table(0)
        compile_for(fill_counts, self._rows, self._binomials, 0, 0, 0, stored, 0)
        compile_for(solve_units, self._rows, self.law, self._binomials, 0, 0, 0, stored, self._offsets, *table)
        compile_for(answer, self.law, self.law.every, 0, True)
        compile_for(solve_unit, self.law, self.law.every, *self._scratch())
        compile_for(choose_log, Stream(np.zeros(1), np.zeros(1, np.int64)), np.zeros(1), 0)

    def _scratch(self) -> tuple[NDArray[Any], Int64Array, Floats, Int64Array, Int64Array]:
        m, width = self.trees.questions.size, self.trees.leaves.width
        cost = np.zeros(self.trees.leaves.size, np.int64)
        return (
            self._empty_store(1)[0],
            np.zeros((2, m), np.int64),
            np.zeros((2, m)),
            np.zeros((4, width), np.int64),
            cost,
        )

    def _empty_store(self, sets: int) -> NDArray[Any]:
        """For pair statistics, in half the space where they fit."""
        m, most = self.trees.questions.size, int(self.problem.statistics.sum(axis=0).max())
        kind = np.int32 if most < 2**31 else np.int64
        return np.zeros((sets, m * (m + 1) // 2 + 1, self.trees.leaves.width), kind)

    def _empty_table(self, level: int) -> tuple[Int64Array, Floats, Int64Array]:
        cells = math.comb(self.trees.questions.size, level), 1 << level
        return np.zeros(cells, np.int64), np.zeros(cells), np.zeros((*cells, self.trees.leaves.width), np.int64)

    def solve(self, progress: Callable[[float], None] | None = None) -> TreeSums:
        """Compute all sums, with all cores; `progress` is told the share of the units that are done, a public number."""
        m, d = self.trees.questions.size, self._units
        stored, offsets = self._empty_store(int(self._offsets[-1])), self._offsets
        for k in range(d):
            count = partial(fill_counts, self._rows, self._binomials, k)
            _in_chunks(math.comb(m, k), _between(count, stored, int(offsets[k])))
        self._tables[d] = self._empty_table(d)
        units = partial(solve_units, self._rows, self.law, self._binomials, d)
        _in_chunks(math.comb(m, d), _between(units, stored, offsets, *self._tables[d]), progress)
        for level in range(d - 1, 0, -1):
            self._tables[level] = self._empty_table(level)
            for members in itertools.combinations(range(m), level):
                self._store(members)
        return self

    def _store(self, members: tuple[int, ...]) -> None:
        """Fill in all cells of a set of questions above the units, from the level below it."""
        paths = [
            tuple(zip(members, ways, strict=True)) for ways in itertools.product((False, True), repeat=len(members))
        ]
        paths.sort(key=lambda path: self._cell(path)[1])
        others = np.array([j for j in range(self.trees.questions.size) if j not in members])
        opened = np.array([self.trees.questions.open(dict(path))[others] for path in paths])
        sides = self._sides(members, np.arange(len(paths))[:, None], others)
        (least, logs, counts), below = self._tables[len(members)], self._tables[len(members) + 1]
        number, among = self._cell(paths[0])[0], opened.sum(axis=1, keepdims=True)
        counts[number] = sum(below[2][side][:, 0] for side in sides)
        leaves, log_leaves = self._leaf(counts[number])
        asked = sum(below[1][side] for side in sides) + np.log(SPLIT / np.maximum(among, 1))
        terms = np.column_stack(
            [log_leaves + np.where(among[:, 0], math.log1p(-SPLIT), 0.0), np.where(opened, asked, -np.inf)]
        )
        losses = np.column_stack([leaves, np.where(opened, sum(below[0][side] for side in sides), UNREACHED)])
        least[number] = losses.min(axis=1)
        logs[number] = np.logaddexp.reduce(terms - self.law.kappa * (losses - least[number][:, None]), axis=1)

    def _sides(self, members: Sequence[int], pattern: Any, asked: Int64Array) -> list[tuple[Int64Array, Int64Array]]:
        """Where the table of the next level has the cells under no and yes to each question that is `asked`."""
        binomials = self._binomials
        before = np.cumsum([0, *(binomials[j, k + 1] for k, j in enumerate(members))])
        after = np.cumsum([0, *(binomials[j, k + 2] for k, j in enumerate(members))])
        at = np.searchsorted(members, asked)
        numbers = before[at] + binomials[asked, at + 1] + after[-1] - after[at]
        no = pattern & ((1 << at) - 1) | (pattern >> at) << (at + 1)
        return [(numbers, no), (numbers, no | 1 << at)]

    def _cell(self, path: Path) -> tuple[int, int]:
        """The number of the set of questions, the largest counting most, and the pattern of answers."""
        number = sum(int(self._binomials[j, k + 1]) for k, (j, _) in enumerate(path))
        return number, sum(1 << k for k, (_, yes) in enumerate(path) if yes)

    @property
    def least_loss(self) -> int:
        """The least loss of a tree, with the price of its leaves."""
        return int(self.alternatives(()).losses.min())

    @property
    def log_sum(self) -> float:
        """`log Σ_T p₀(T) exp(-κ (L(T) - least_loss))`."""
        found = self.alternatives(())
        return _log_sum(self._relative(found.losses, found.logs))

    def draw(self, rng: Randomness) -> Node:
        """A tree with probability `p₀(T) e^{-κ L(T)} / Z`."""
        return self._grown((), lambda logs: _chosen(rng, logs))

    def best(self) -> Node:
        """A tree with the least loss and price; the first in the order leaf, question 0, question 1, ..."""
        if self.law.sums:
            raise ValueError("the best tree is read off sums=False")
        return self._grown((), lambda logs: int(np.argmax(logs)))

    def _grown(self, path: Path, pick: Callable[[Floats], int]) -> Node:
        found = self.alternatives(path)
        k = pick(self._relative(found.losses, found.logs))
        j = int(found.questions[k])
        if j < 0:
            return Leaf(pick(self._relative(self.values(path))))
        yes, no = (self._grown(_longer(path, j, way), pick) for way in (True, False))
        return Split(j, yes, no)

    def _relative(self, losses: Int64Array, logs: Floats | float = 0.0) -> Floats:
        """Logarithms of the weights; without sums, the losses themselves with the sign turned."""
        excess = (losses - losses.min()).astype(np.float64)
        return np.asarray(logs - self.law.kappa * excess if self.law.sums else -excess)

    def values(self, path: Path) -> Int64Array:
        """The cost of every value at a leaf; all are alike beforehand."""
        return np.asarray(self.law.costs @ self._counts(path))

    def alternatives(self, path: Path) -> Alternatives:
        """What can stand at the end of a path."""
        if path not in self._kept:
            if len(self._kept) >= KEPT_NODES:
                self._kept.clear()
            self._kept[path] = self._opened(path)
        return self._kept[path]

    def _opened(self, path: Path) -> Alternatives:
        """The leaf first, then the questions, each as likely as the others."""
        least, log = self._leaf(self._counts(path)[None, :])
        asked = np.flatnonzero(self.trees.questions.open(dict(path)))
        if len(path) == self._depth or not len(asked):
            return Alternatives(least, log, np.array([-1]))
        ways = {self._depth - 1: self._last, self._depth - 2: self._unit}
        losses, logs = ways.get(len(path), self._above)(path, asked)
        return Alternatives(
            np.concatenate([least, losses]),
            np.concatenate([log + math.log1p(-SPLIT), logs + math.log(SPLIT / len(asked))]),
            np.concatenate([[-1], asked]),
        )

    def _leaf(self, counts: NDArray[Any]) -> tuple[Int64Array, Floats]:
        """Least costs and logarithms of the sums relative to them, one per row; nothing is looked up."""
        costs = counts @ self.law.costs.T
        least = costs.min(axis=1)
        if not self.law.sums:
            return least + self.law.price, np.zeros(len(least))
        sums = np.exp(-self.law.kappa * (costs - least[:, None])).sum(axis=1)
        return least + self.law.price, np.log(sums * self.law.share)

    def _above(self, path: Path, asked: Int64Array) -> tuple[Int64Array, Floats]:
        """The questions above the units: both sides are in the table of the next level."""
        no, yes = self._sides([j for j, _ in path], self._cell(path)[1], asked)
        least, logs, _ = self._tables[len(path) + 1]
        return least[no] + least[yes], logs[no] + logs[yes]

    def _unit(self, path: Path, asked: Int64Array) -> tuple[Int64Array, Floats]:
        """The questions of a unit, with the two levels under each computed anew and held against the stored sum."""
        cell, best, total, scratch, cost = self._scratch()
        answers, statistics = self._members(path)
        upper = np.triu_indices(self.trees.questions.size)
        whole = answers.astype(np.float64)
        for s in range(cell.shape[1]):  # exact: all totals are below 2^53
            cell[:-1, s] = np.rint((whole.T * statistics[:, s]) @ whole)[upper].astype(np.int64)
        cell[-1] = statistics.sum(axis=0)
        left = self.law.every.copy()
        for j, yes in path:
            answer(self.law, left, j, yes)
        loss, weight = solve_unit(self.law, left, cell, best, total, scratch, cost)
        least, logs, _ = (table[self._cell(path)] for table in self._tables[len(path)])
        if loss != least or (self.law.sums and abs(math.log(weight) - logs) > AGREEMENT):
            raise RuntimeError("a unit of the tree gave another sum the second time: nothing was released")
        logs_of = np.log(total[:, asked]).sum(axis=0) if self.law.sums else np.zeros(len(asked))
        return best[:, asked].sum(axis=0), logs_of

    def _last(self, path: Path, asked: Int64Array) -> tuple[Int64Array, Floats]:
        """The questions of the last level: two leaves each."""
        answers, statistics = self._members(path)
        yes = answers[:, asked].astype(np.int64).T @ statistics
        sides = [self._leaf(part) for part in (yes, statistics.sum(axis=0) - yes)]
        return sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]

    def _members(self, path: Path) -> tuple[NDArray[np.uint8], Int64Array]:
        kept = np.ones(len(self.problem.answers), dtype=np.bool_)
        for j, yes in path:
            kept &= self.problem.answers[:, j] == yes
        return self.problem.answers[kept], self.problem.statistics[kept]

    def _counts(self, path: Path) -> Int64Array:
        """How many records of each label come to the end of a path."""
        if len(path) in self._tables:
            return np.asarray(self._tables[len(path)][2][self._cell(path)])
        return np.asarray(self._members(path)[1].sum(axis=0))


def _longer(path: Path, j: int, yes: bool) -> Path:
    return tuple(sorted((*path, (j, yes))))


def _chosen(rng: Randomness, logs: Floats) -> int:
    if len(logs) == 1:
        return 0
    stream = Stream(rng.uniform(len(logs) + SPARE_UNIFORMS), np.zeros(1, dtype=np.int64))
    return int(choose_log(stream, logs, len(logs)))


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _between(task: Callable[..., Any], *rest: Any) -> Callable[[int, int], Any]:
    return lambda start, stop: task(start, stop, *rest)


def _in_chunks(total: int, task: Callable[[int, int], Any], progress: Callable[[float], None] | None = None) -> None:
    """Run `task(start, stop)` over all numbers below `total` on all cores."""
    chunks = min(CHUNKS, total)
    edges = sorted({round(k * total / chunks) for k in range(chunks + 1)})
    Workers(lambda: None).run(
        lambda _, k: task(edges[k], edges[k + 1]),
        range(len(edges) - 1),
        None if progress is None else lambda done: progress(done / (len(edges) - 1)),
    )
