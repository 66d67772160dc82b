"""Neighbouring data sets on which mechanisms tend to fail, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Int64Array
from privsolve.data.patterns import PatternTable, checked_names
from privsolve.domains import Domain, IntegerBall, SignCube, SparsePoints, Subsets, TernaryCube
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.models.member import Member
from privsolve.oracles.base import Solution, solution_of
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, LinearProblem, Problem

Records = Sequence[tuple[Sequence[int], bool]]


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
    def scales(self) -> tuple[int, ...]:
        """All 1."""
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


def parity(dim: int) -> Case:
    """The pair on which Gaussian noise that ignores the dimension fails (theory, section 2.3)."""
    why = "one record prices every second sign vector: the noise must hide all coordinates at once"
    return Case(f"parity, d = {dim}", why, "replace", ParityProblem(dim, False), ParityProblem(dim, True))


def _problem(records: Records, domain: Domain, loss: ZeroOneLoss | None = None) -> Problem:
    features, labels = [list(x) for x, _ in records], [y for _, y in records]
    ranges = [(0, 1), (0, 1), (1, 1)] if isinstance(domain, SparsePoints) else None
    return Problem(PatternTable.from_records(features, labels, ranges=ranges), domain, loss or ZeroOneLoss())


def _tie_broken() -> Case:
    why = "two records balance each other and one changes its mind: over {-1, 1} the whole budget is used up"
    data, changed = [((1,), True), ((1,), False)], [((1,), True), ((1,), True)]
    return Case("a tie is broken", why, "replace", _problem(data, SignCube(1)), _problem(changed, SignCube(1)))


def _flipped_record() -> Case:
    why = "a label flips, so every prediction on that record turns from right to wrong"
    rest, domain = [((1, 0), True), ((0, 1), False)], TernaryCube(2)
    data, changed = [*rest, ((1, 1), True)], [*rest, ((1, 1), False)]
    return Case("one record flipped", why, "replace", _problem(data, domain), _problem(changed, domain))


def _duplicated_record() -> Case:
    why = "a record is there twice: tables that merge equal rows must count it twice"
    data, domain = [((1, 0), True), ((0, 1), False), ((1, 1), True)], IntegerBall(2, 2)
    return Case("record duplicated", why, "add-remove", _problem(data, domain), _problem([*data, data[-1]], domain))


def _pattern_lost() -> Case:
    why = "a row that only one record has becomes a copy of another: the table gets shorter, the noise must not"
    rest, domain = [((1, 0), True), ((0, 1), False)], IntegerBall(2, 2)
    data, changed = [*rest, ((1, 1), True)], [*rest, ((1, 0), True)]
    return Case("last of its pattern", why, "replace", _problem(data, domain), _problem(changed, domain))


def _empty_class() -> Case:
    why = "the only negative record turns positive: nothing may be estimated from a class that can be empty"
    rest, domain = [((1, 0), True), ((0, 1), True)], TernaryCube(2)
    data, changed = [*rest, ((1, -1), False)], [*rest, ((1, -1), True)]
    return Case("a class is emptied", why, "replace", _problem(data, domain), _problem(changed, domain))


def _lone_record() -> Case:
    why = "n = 1 and everything about the record changes"
    domain = TernaryCube(2)
    return Case(
        "the only record", why, "replace", _problem([((1, 1), True)], domain), _problem([((-1, 0), False)], domain)
    )


def _unequal_costs() -> Case:
    why = "a false negative costs five mistakes: the noise must grow with the largest cost"
    loss, domain = ZeroOneLoss(false_positive=1, false_negative=5), SignCube(1)
    data, changed = [((1,), True)] * 4, [((1,), True)] * 3 + [((-1,), True)]
    return Case("unequal costs", why, "replace", _problem(data, domain, loss), _problem(changed, domain, loss))


def _scorecard() -> Case:
    why = "sparse points and an intercept: supports are weighed before points"
    domain = SparsePoints(3, 2, 1, intercept=1)
    rest = [((1, 0, 1), True), ((0, 1, 1), False), ((0, 0, 1), False)]
    data, changed = [*rest, ((1, 1, 1), True)], [*rest, ((1, 1, 1), False)]
    return Case("scorecard", why, "replace", _problem(data, domain), _problem(changed, domain))


def _subset() -> Case:
    why = "linear costs of either sign: one record moves all of its weight from one item to another"
    domain, rest = Subsets(3, 1), [[0, 1, 1], [0, 1, 1]]
    data, changed = LinearProblem([*rest, [0, 1, 1]], domain, 1), LinearProblem([*rest, [1, 0, 0]], domain, 1)
    return Case("cheapest item", why, "replace", data, changed)


CASES: tuple[Case, ...] = (
    _tie_broken(),
    _flipped_record(),
    _duplicated_record(),
    _empty_class(),
    parity(4),
    _pattern_lost(),
    _lone_record(),
    _unequal_costs(),
    _scorecard(),
    _subset(),
)
"""Small enough to list, the most telling first; `parity(dim)` gives the one that needs many dimensions."""
