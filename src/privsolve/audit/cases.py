"""Neighbouring data sets on which mechanisms tend to fail, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.data.patterns import PatternTable, checked_names
from privsolve.domains import Domain, IntegerBall, SignCube, SparsePoints, Subsets, TernaryCube
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.perturbed import Noise
from privsolve.models.choices import Member
from privsolve.noise.entropy import Randomness
from privsolve.oracles.base import Solution, solution_of
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, LinearProblem, Problem

Records = Sequence[tuple[Sequence[int], bool]]

BLOCK = 4_000_000
"""Numbers that `parity_draws` holds at a time."""


@dataclass(frozen=True, eq=False)
class Case:
    """Two neighbouring problems, and what goes wrong on them if something is wrong."""

    name: str
    why: str
    adjacency: str
    data: BaseProblem
    neighbour: BaseProblem


@dataclass(frozen=True, eq=False)
class ParityProblem(BaseProblem):
    """One record that costs 1 if the number of -1s in a sign vector is odd, or if it is even (theory, section 2.3)."""

    dim: int
    odd_costs: bool
    loss: Loss = field(default_factory=ZeroOneLoss)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The sign vectors."""
        return SignCube(self.dim)

    @property
    def n(self) -> int:
        """One record."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """Numbered coordinates."""
        return checked_names(None, self.dim)

    @property
    @override
    def scales(self) -> tuple[int, ...]:
        return (1,) * self.dim

    def losses_of(self, members: Int64Array) -> Int64Array:
        """1 where the parity is the one that costs."""
        odd = (np.asarray(members) < 0).sum(axis=1) % 2 == 1
        return np.asarray(odd == self.odd_costs, dtype=np.int64)

    def total_loss(self, weights: ArrayLike) -> int:
        """0 or 1."""
        return int(self.losses_of(np.asarray(weights)[None, :])[0])

    def model(self, weights: ArrayLike) -> Member:
        """The sign vector."""
        return Member(np.asarray(weights), self.names)

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """The loss."""
        return {"total_cost": self.total_loss(weights)}


class ParityOracle:
    """Exact minimiser for `ParityProblem`: the best point without the loss, or the same with its cheapest sign flipped."""

    name: ClassVar[str] = "parity"
    tolerance: ClassVar[float] = 0.0

    def check(self, problem: BaseProblem) -> None:
        """Raise before any noise is drawn if the problem is another."""
        if not isinstance(problem, ParityProblem):
            raise ValueError("the parity oracle solves a ParityProblem only")

    def minimise(self, problem: ParityProblem, perturbation: Perturbation) -> Solution:
        """In integers: flipping pays if it costs less than the record, which is one mistake."""
        tables = np.array(perturbation.coordinate)
        weights = np.where(tables[:, 0] <= tables[:, 1], -1, 1)
        if problem.total_loss(weights):
            price = np.abs(tables[:, 1] - tables[:, 0])
            if price.min() < UNIT:
                weights[price.argmin()] *= -1
        return solution_of(problem, perturbation, weights, problem.objective(weights, perturbation))


def parity_draws(problem: ParityProblem, noise: Noise, runs: int, rng: Randomness) -> Int64Array:
    """1 where the released sign vector has an odd number of -1s, in `runs` runs of OPDisc or RSPM, in any dimension.

    The noise is drawn coordinate by coordinate and the minimiser is exact: the signs that the noise prefers, or those with
    the cheapest one flipped if that costs less than the record does.
    """
    odd = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // noise.dim)
    for start in range(0, runs, block):
        eta = noise.geometry.parity_scale() * noise.law.draws(rng, min(block, runs - start))
        preferred = (eta < 0).sum(axis=1) % 2
        price = 2 * np.abs(eta).min(axis=1)
        flipped = (preferred == problem.odd_costs) & (price < 1)
        odd[start : start + len(eta)] = np.where(flipped, 1 - preferred, preferred)
    return odd


def parity(dim: int) -> Case:
    """The pair on which Gaussian noise that ignores the dimension fails (theory, section 2.3)."""
    why = "one record prices every second sign vector: the noise must hide all coordinates at once"
    return Case(f"parity, d = {dim}", why, "replace", ParityProblem(dim, False), ParityProblem(dim, True))


def _problem(records: Records, domain: Domain, loss: ZeroOneLoss | None = None) -> Problem:
    features, labels = [list(x) for x, _ in records], [y for _, y in records]
    ranges = [(0, 1), (0, 1), (1, 1)] if isinstance(domain, SparsePoints) else None
    return Problem(PatternTable.from_records(features, labels, ranges=ranges), domain, loss or ZeroOneLoss())


def _case(
    name: str,
    why: str,
    domain: Domain,
    records: Records,
    changed: Records,
    *,
    adjacency: str = "replace",
    loss: ZeroOneLoss | None = None,
) -> Case:
    return Case(name, why, adjacency, _problem(records, domain, loss), _problem(changed, domain, loss))


TWO = [((1, 0), True), ((0, 1), False)]
THREE = [*TWO, ((1, 1), True)]
CARD = [((1, 0, 1), True), ((0, 1, 1), False), ((0, 0, 1), False)]
ITEMS = [[0, 1, 1], [0, 1, 1]]

CASES: tuple[Case, ...] = (
    _case(
        "a tie is broken",
        "two records balance each other and one changes its mind: over {-1, 1} the whole budget is used up",
        SignCube(1),
        [((1,), True), ((1,), False)],
        [((1,), True), ((1,), True)],
    ),
    _case(
        "one record flipped",
        "a label flips, so every prediction on that record turns from right to wrong",
        TernaryCube(2),
        THREE,
        [*TWO, ((1, 1), False)],
    ),
    _case(
        "record duplicated",
        "a record is there twice: tables that merge equal rows must count it twice",
        IntegerBall(2, 2),
        THREE,
        [*THREE, THREE[-1]],
        adjacency="add-remove",
    ),
    _case(
        "a class is emptied",
        "the only negative record turns positive: nothing may be estimated from a class that can be empty",
        TernaryCube(2),
        [((1, 0), True), ((0, 1), True), ((1, -1), False)],
        [((1, 0), True), ((0, 1), True), ((1, -1), True)],
    ),
    parity(4),
    _case(
        "last of its pattern",
        "a row that only one record has becomes a copy of another: the table gets shorter, the noise must not",
        IntegerBall(2, 2),
        THREE,
        [*TWO, ((1, 0), True)],
    ),
    _case(
        "the only record",
        "n = 1 and everything about the record changes",
        TernaryCube(2),
        [((1, 1), True)],
        [((-1, 0), False)],
    ),
    _case(
        "unequal costs",
        "a false negative costs five mistakes: the noise must grow with the largest cost",
        SignCube(1),
        [((1,), True)] * 4,
        [((1,), True)] * 3 + [((-1,), True)],
        loss=ZeroOneLoss(false_positive=1, false_negative=5),
    ),
    _case(
        "scorecard",
        "sparse points and an intercept: supports are weighed before points",
        SparsePoints(3, 2, 1, intercept=1),
        [*CARD, ((1, 1, 1), True)],
        [*CARD, ((1, 1, 1), False)],
    ),
    Case(
        "cheapest item",
        "linear costs of either sign: one record moves all of its weight from one item to another",
        "replace",
        LinearProblem([*ITEMS, [0, 1, 1]], Subsets(3, 1), 1),
        LinearProblem([*ITEMS, [1, 0, 0]], Subsets(3, 1), 1),
    ),
)
"""Small enough to list, the most telling first; `parity(dim)` gives the one that needs many dimensions."""


@dataclass(frozen=True)
class SelectionCase:
    """Counts of votes with one ballot more or less, or another one."""

    name: str
    data: tuple[int, ...]
    neighbour: tuple[int, ...]
    adjacency: Adjacency
    monotone: bool = False


SELECTION_CASES = (
    SelectionCase("one vote goes over", (3, 5, 4, 2), (4, 4, 4, 2), Adjacency.REPLACE),
    SelectionCase("one ballot for all but the first", (3, 5, 4, 2), (3, 6, 5, 3), Adjacency.ADD_REMOVE, monotone=True),
    SelectionCase("one ballot, stated as if for anything", (3, 5, 4, 2), (3, 6, 5, 3), Adjacency.ADD_REMOVE),
)
