"""Branch and bound over the boxes of a grid, for losses of the user's own (theory, section 15.3)."""

from __future__ import annotations

import heapq
from typing import ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_count
from privsolve.domains import Domain, IntegerGrid
from privsolve.engines.boxes import Boxes, halvings, split, whole
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import OracleNotCertified
from privsolve.oracles.base import Oracle, Solution, solution_of
from privsolve.oracles.catalogue import EXACT, Solver
from privsolve.problems.grids import GridProblem
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem

AT_A_TIME = 16
"""Boxes that are split together: those with the least bounds."""


class BoxOracle(Oracle):
    """Exact minimum of a `GridProblem`: the box with the least bound is split until a point is below all bounds."""

    name = "boxes"
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (GridProblem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (IntegerGrid,)
    about: ClassVar[Solver | None] = Solver(
        "boxes", "MIT", EXACT, "GridProblem: losses of your own", takes=(IntegerGrid,)
    )

    def __init__(self, max_boxes: int = 1_000_000) -> None:
        self.max_boxes = check_count("max_boxes", max_boxes)

    def minimise(
        self, problem: GridProblem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """Best first. Raises `OracleNotCertified` if `max_boxes` are not enough, or a bound of the problem is wrong."""
        problem.check_perturbation(perturbation)
        noise = _Lowest(perturbation)
        first = whole(problem)
        heap: list[tuple[int, int]] = [(int(noise.below(first)[0]), 0)]
        boxes, seen = [first], 1
        times = halvings(problem)
        best, best_value = first.low[0], problem.objective(first.low[0], perturbation)
        while heap and heap[0][0] < best_value:
            if seen > self.max_boxes:
                raise OracleNotCertified(
                    f"boxes: {self.max_boxes:,} boxes were not enough: nothing is released; give a tighter `least`, or "
                    "BoxOracle(max_boxes=...) more"
                )
            taken = [heapq.heappop(heap)[1] for _ in range(min(AT_A_TIME, len(heap)))]
            parts = split(problem, Boxes(*map(np.concatenate, zip(*(boxes[t] for t in taken), strict=True))), times)
            for t in taken:
                boxes[t] = first  # forgotten
            seen += len(parts.low)
            middles = parts.low + (parts.high - parts.low) // 2
            values = problem.losses_of(middles) * UNIT + perturbation.of_members(middles)
            if values.min() < best_value:
                at = int(np.argmin(values))
                best, best_value = middles[at], int(values[at])
            below = noise.below(parts)
            for at in np.flatnonzero((below < best_value) & ~parts.single).tolist():
                heapq.heappush(heap, (int(below[at]), len(boxes)))
                boxes.append(Boxes(*(part[at : at + 1] for part in parts)))
        return solution_of(problem, perturbation, best, best_value, boxes=seen)


class _Lowest:
    """The least that loss and perturbation can be together in a box."""

    def __init__(self, perturbation: Perturbation) -> None:
        self._perturbation = perturbation
        self._lowest = [_range_minima(table) for table in perturbation.coordinate]
        self._origin = np.array([int(perturbation.domain.values(j)[0]) for j in range(perturbation.domain.dim)])
        norm = perturbation.norm
        self._one_way = norm is None or bool((np.diff(norm) >= 0).all() or (np.diff(norm) <= 0).all())

    def below(self, boxes: Boxes) -> Int64Array:
        """In units of `2^-20`."""
        total = boxes.least * UNIT
        for j, levels in enumerate(self._lowest):
            first, last = boxes.low[:, j] - self._origin[j], boxes.high[:, j] - self._origin[j]
            level = np.array([int(width).bit_length() - 1 for width in last - first + 1])
            total = total + np.minimum(levels[level, first], levels[level, last + 1 - (1 << level)])
        return total + self._of_norms(boxes)

    def _of_norms(self, boxes: Boxes) -> Int64Array:
        if self._perturbation.norm is None:
            return np.zeros(len(boxes.low), dtype=np.int64)
        nearest = np.clip(0, boxes.low, boxes.high)
        shortest = (nearest**2).sum(axis=1)
        longest = np.maximum(boxes.low**2, boxes.high**2).sum(axis=1)
        if self._one_way:
            return np.minimum(self._perturbation.of_norms(shortest), self._perturbation.of_norms(longest))
        ends = zip(shortest, longest, strict=True)
        return np.array([self._perturbation.norm[a : b + 1].min() for a, b in ends], dtype=np.int64)


def _range_minima(table: Int64Array) -> Int64Array:
    """`levels[k, i]`: the least of `table[i : i + 2^k]`."""
    levels = [table]
    while 1 << len(levels) <= len(table):
        last, width = levels[-1], 1 << (len(levels) - 1)
        shifted = np.concatenate([last[width:], np.full(width, last[-1])])
        levels.append(np.minimum(last, shifted))
    return np.array(levels)
