"""Neighbouring data sets on which mechanisms tend to fail, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privsolve.audit.parity_pair import ParityProblem
from privsolve.data.patterns import PatternTable
from privsolve.domains import Domain, IntegerBall, SignCube, SparsePoints, Subsets, TernaryCube
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.losses import ZeroOneLoss
from privsolve.models.leaves import LabelLeaves, Leaves, ProbabilityLeaves
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.problem import LinearProblem, Problem
from privsolve.problems.trees import TreeProblem

Records = Sequence[tuple[Sequence[int], Any]]


@dataclass(frozen=True, eq=False)
class Case:
    """Two neighbouring data sets, and what goes wrong on them if something is wrong.

    `data` and `neighbour` are problems, of scores for `choose` the scores themselves. `options` are passed to the mechanism.
    """

    name: str
    why: str
    adjacency: Adjacency
    data: Any
    neighbour: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency.of(self.adjacency))


def parity(dim: int) -> Case:
    """The pair on which Gaussian noise that ignores the dimension fails (theory, section 2.3)."""
    why = "one record prices every second sign vector: the noise must hide all coordinates at once"
    data, neighbour = (ParityProblem(SignCube(dim), odd_costs) for odd_costs in (False, True))
    return Case(f"parity, d = {dim}", why, Adjacency.REPLACE, data, neighbour)


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
    adjacency: Adjacency = Adjacency.REPLACE,
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
        adjacency=Adjacency.ADD_REMOVE,
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
        Adjacency.REPLACE,
        LinearProblem([*ITEMS, [0, 1, 1]], Subsets(3, 1), 1),
        LinearProblem([*ITEMS, [1, 0, 0]], Subsets(3, 1), 1),
    ),
)
"""Small enough to list, the most telling first; `parity(dim)` gives the one that needs many dimensions."""

LABELS = LabelLeaves(["no", "yes"])
PLAIN = TreeQuestions.plain(2)
THRESHOLDS = TreeQuestions(("a>=1", "a>=2"), (0, 0), (3,), (0b110, 0b100))


def _tree(records: Records, leaves: Leaves, questions: TreeQuestions = PLAIN, depth: int = 2) -> TreeProblem:
    rows, targets = np.array([row for row, _ in records]), np.array([target for _, target in records])
    return TreeProblem.from_records(rows, targets, DecisionTrees(questions, depth, leaves))


def _tree_case(
    name: str,
    why: str,
    records: Records,
    changed: Records,
    leaves: Leaves = LABELS,
    questions: TreeQuestions = PLAIN,
    adjacency: Adjacency = Adjacency.REPLACE,
) -> Case:
    data, neighbour = (_tree(part, leaves, questions) for part in (records, changed))
    return Case(name, why, adjacency, data, neighbour)


AGREED = [((1, 0), 1)] * 20
ODD = [((1, 0), 1), ((0, 1), 1), ((0, 0), 0), ((1, 1), 0)] * 2

TREE_CASES: tuple[Case, ...] = (
    _tree_case(
        "one turns round",
        "twenty records agree and one changes its mind: the whole budget is used up",
        AGREED,
        [*AGREED[1:], ((1, 0), 0)],
    ),
    _tree_case(
        "a tie is broken",
        "two records balance each other",
        [((1, 0), 1), ((1, 0), 0)],
        [((1, 0), 1), ((1, 0), 1)],
    ),
    _tree_case(
        "one more",
        "a record is there once more: merged rows must count it",
        AGREED,
        [*AGREED, ((1, 0), 0)],
        adjacency=Adjacency.ADD_REMOVE,
    ),
    _tree_case("parity", "only trees that ask both questions are right", ODD, [*ODD[1:], ((1, 1), 1)]),
    _tree_case(
        "a bin is emptied",
        "thresholds decide each other, and the last record of a bin moves",
        [((0, 0), 0), ((1, 0), 1), ((1, 1), 0)],
        [((0, 0), 0), ((1, 1), 1), ((1, 1), 0)],
        questions=THRESHOLDS,
    ),
    _tree_case(
        "unequal costs",
        "a mistake costs five: the temperature must fall with the largest cost",
        AGREED,
        [*AGREED[1:], ((0, 1), 0)],
        LabelLeaves(["no", "yes"], [[0, 1], [5, 0]]),
    ),
    _tree_case(
        "three labels",
        "a record moves between two of three labels",
        [((1, 0), 1)] * 8,
        [*[((1, 0), 1)] * 7, ((1, 0), 2)],
        LabelLeaves(["a", "b", "c"]),
    ),
    _tree_case(
        "probabilities",
        "leaves say shares, and the loss is Brier's in thousandths",
        AGREED,
        [*AGREED[1:], ((1, 0), 0)],
        ProbabilityLeaves(["no", "yes"], [0.05, 0.5, 0.95]),
    ),
)
"""Small enough to list; the first is the most telling."""

VOTES = (3, 5, 4, 2)
MORE = (3, 6, 5, 3)

SELECTION_CASES = (
    Case("one vote goes over", "two counts move by one", Adjacency.REPLACE, VOTES, (4, 4, 4, 2)),
    Case(
        "one ballot for all but the first",
        "three counts grow at once, and it is stated that none falls",
        Adjacency.ADD_REMOVE,
        VOTES,
        MORE,
        {"monotone": True},
    ),
    Case("one ballot, stated as if for anything", "the same without the statement", Adjacency.ADD_REMOVE, VOTES, MORE),
)
"""Counts of votes with one ballot more or less, or another one."""
