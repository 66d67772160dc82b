"""Boxes of a grid with a lower bound each: split in halves where it matters, drawn from exactly (theory, section 15.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_count
from privsolve.engines.compiling import compile_for
from privsolve.engines.rejection import KEPT, LOST, SPARE_UNIFORMS, RejectionSampler, SamplingCallback
from privsolve.errors import OracleNotCertified, WorkLimitReached
from privsolve.noise.coins import SumTree, coin, copy_leaves, log_total, new_sum_tree, propose, set_weight
from privsolve.noise.entropy import Randomness
from privsolve.problems.grids import GridProblem

WRONG_BOUND = (
    "least gave a bound above the loss of a point of its box: nothing is released; correct least, which must hold for every "
    "point of a box, its corners included"
)
EVALUATIONS = 200_000
"""Records times boxes that are worth one call of the user's functions."""

MOST_HALVINGS = 6
FIRST_BOXES = 4096
"""Boxes that the grid is split into before the first draw, unless fewer are as good."""

WORTH = 0.01
"""Splitting goes on before the first draw while a round lowers the total of the bounds by more than this share."""


class Boxes(NamedTuple):
    """Corners of boxes, both included, and a number of steps that no total loss in each falls below."""

    low: Int64Array
    high: Int64Array
    least: Int64Array

    @property
    def single(self) -> Any:
        """Which boxes hold one point."""
        return (self.low == self.high).all(axis=1)


def whole(problem: GridProblem) -> Boxes:
    """The grid as one box."""
    low, high = np.array([problem.domain.low]), np.array([problem.domain.high])
    return Boxes(low, high, bounds(problem, low, high))


def bounds(problem: GridProblem, low: Int64Array, high: Int64Array) -> Int64Array:
    """Lower bounds of boxes: the loss itself where a box is one point, and the problem must not claim more than that."""
    least = problem.least_of(low, high)
    single = (low == high).all(axis=1)
    if single.any():
        losses = problem.losses_of(low[single])
        if (least[single] > losses).any():
            raise OracleNotCertified(WRONG_BOUND)
        least[single] = losses
    return least


def halvings(problem: GridProblem) -> int:
    """How often a box is halved at a time: what one call of the user's functions is worth."""
    return int(np.clip(np.log2(EVALUATIONS / problem.n), 1, MOST_HALVINGS))


def split(problem: GridProblem, boxes: Boxes, times: int) -> Boxes:
    """The boxes halved so often across their longest sides; a part is bounded by its own bound and that of its box."""
    low, high = boxes.low, boxes.high
    parent = np.arange(len(low))
    for _ in range(times):
        low, high, parent = _halves(low, high, parent)
    return Boxes(low, high, np.maximum(bounds(problem, low, high), boxes.least[parent]))


def _halves(low: Int64Array, high: Int64Array, parent: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Every box of more than one point in two, single points as they are."""
    longest = np.argmax(high - low, axis=1)
    rows = np.arange(len(low))
    middle = (low[rows, longest] + high[rows, longest]) // 2
    left, right = high.copy(), low.copy()
    left[rows, longest], right[rows, longest] = middle, middle + 1
    several = high[rows, longest] > low[rows, longest]
    return (
        np.concatenate([low, right[several]]),
        np.concatenate([np.where(several[:, None], left, high), high[several]]),
        np.concatenate([parent, parent[several]]),
    )


class BoxSampler(RejectionSampler):
    """Draws from `exp(-κ loss)` over the points of a grid, exactly.

    An attempt proposes a box in proportion to `points·exp(-κ least)`, a point of it uniformly, and keeps it with probability
    `exp(-κ (loss - least))`; a box whose point was lost is split.
    """

    def __init__(
        self,
        problem: GridProblem,
        kappa: float,
        rng: Randomness,
        *,
        max_nodes: int,
        max_attempts: int,
        progress: SamplingCallback | None = None,
    ) -> None:
        super().__init__(rng, SPARE_UNIFORMS, 4 * SPARE_UNIFORMS, max_attempts, progress)
        self._problem, self._kappa, self._rng = problem, kappa, rng
        self._max_nodes = check_count("max_nodes", max_nodes)
        self._halvings = halvings(problem)
        first = whole(problem)
        self._floor = int(problem.losses_of(first.low)[0]) - problem.n * problem.loss.largest
        self.reference = max(int(first.least[0]), self._floor)
        self._boxes, self._size = first, 1
        self._tree = new_sum_tree(self._logs(first), 1)
        self._nodes = 1
        self._drawn = first.low[0]
        compile_for(propose, self._uniforms.stream, self._tree)
        compile_for(coin, self._uniforms.stream, 0.0)
        self._split_before_drawing()

    def draw(self) -> Int64Array:
        """One point."""
        return self._until_kept(lambda: np.array(self._drawn))

    def log_partition(self) -> float:
        """`log Σ f(w)` relative to the reference, by looking at every point: for small grids."""
        losses = self._problem.losses_of(self._problem.domain.members())
        return float(np.logaddexp.reduce(-self._kappa * (losses - self.reference)))

    def relative_error(self, largest_difference: int) -> float:
        """A bound on the relative error of every point's probability, from public numbers (theory, section 15.3)."""
        grid = self._problem.domain
        points = float(np.log2([b - a + 1.0 for a, b in zip(grid.low, grid.high, strict=True)]).sum())
        depth = (2 * self._max_nodes).bit_length()
        exponent = 2 * self._kappa * largest_difference
        return 2.0**-53 * ((4 + grid.dim) * (exponent + points + 1) + 5 * (exponent + points)) + 2.0**-52 * 8 * depth

    def _attempt(self, most: int) -> tuple[int, int]:
        for made in range(1, most + 1):
            at = int(propose(self._uniforms.stream, self._tree))
            sides = self._boxes.high[at] - self._boxes.low[at]
            self._drawn = self._boxes.low[at] + np.array([self._rng.integer_below(int(side) + 1) for side in sides])
            above = int(self._problem.losses_of(self._drawn[None, :])[0]) - int(self._boxes.least[at])
            if above < 0:
                raise OracleNotCertified(WRONG_BOUND)
            if coin(self._uniforms.stream, -self._kappa * above):
                return KEPT, made
            self._replace(np.array([at]))
            if self._uniforms.stream.used[0] + self._reserve > len(self._uniforms.stream.uniforms):
                return LOST, made
        return LOST, most

    def _split_before_drawing(self) -> None:
        """Split the heaviest boxes, round by round, while that lowers the total of the bounds."""
        before = np.inf
        while self._size < FIRST_BOXES:
            logs = self._logs(self._used())
            logs[self._used().single] = -np.inf
            total = float(log_total(self._tree))
            heaviest = np.argsort(-logs, kind="stable")[: max(1, EVALUATIONS >> self._halvings >> 10)]
            heaviest = heaviest[logs[heaviest] > total - np.log(1e6)]
            if len(heaviest) == 0 or not total < before + np.log1p(-WORTH):
                return
            before = total
            self._replace(heaviest)

    def _used(self) -> Boxes:
        return Boxes(*(part[: self._size] for part in self._boxes))

    def _logs(self, boxes: Boxes) -> Floats:
        """`log(points) - κ (least - reference)`."""
        points = np.log(boxes.high - boxes.low + 1.0).sum(axis=1)
        return np.asarray(points - self._kappa * (np.maximum(boxes.least, self._floor) - self.reference))

    def _replace(self, chosen: Int64Array) -> None:
        """Put the parts of some boxes into their place, the others behind the last."""
        parts = split(self._problem, Boxes(*(part[chosen] for part in self._boxes)), self._halvings)
        parts = parts._replace(least=np.maximum(parts.least, self._floor))
        places = np.concatenate([chosen, np.arange(self._size, self._size + len(parts.low) - len(chosen))])
        self._make_room(self._size + len(parts.low) - len(chosen))
        for part, new in zip(self._boxes, parts, strict=True):
            part[places] = new
        for place, log in zip(places, self._logs(parts), strict=True):
            set_weight(self._tree, place, log)
        self._nodes += len(parts.low)

    def _make_room(self, size: int) -> None:
        room = len(self._boxes.low)
        if size > self._max_nodes:
            raise WorkLimitReached(
                f"the sampler needs more than max_nodes={self._max_nodes:,} boxes: nothing is released; raise it, or use a "
                "smaller epsilon, a smaller grid or a tighter least"
            )
        while room < size:
            room *= 2
        if room > len(self._boxes.low):
            tree: SumTree = new_sum_tree(np.empty(0), room)
            copy_leaves(self._tree, tree)
            self._tree = tree
            grown = [
                np.concatenate([part, np.zeros((room - len(part), *part.shape[1:]), np.int64)]) for part in self._boxes
            ]
            self._boxes = Boxes(*grown)
        self._size = size

    def _frontier_size(self) -> int:
        return self._size

    def _engine_statistics(self) -> dict[str, Any]:
        return {"nodes": self._nodes, "log_frontier": float(log_total(self._tree))}
