"""Neighbouring data sets on which mechanisms tend to fail, as values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.audit.parity_pair import ParityProblem
from privsolve.data.patterns import PatternTable
from privsolve.domains import Domain, IntegerBall, SignCube, SparsePoints, Subsets, TernaryCube
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.card_points import Card, Options
from privsolve.mechanisms.objective import NOISE_BITS, OUTPUT_DEVIATION, RADIUS, Plan, perturbed_card
from privsolve.models.leaves import LabelLeaves, Leaves, ProbabilityLeaves
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.problem import LinearProblem, Problem
from privsolve.problems.trees import TreeProblem

Records = Sequence[tuple[Sequence[int], Any]]


@dataclass(frozen=True, eq=False)
class Case:
    """Two neighbouring data sets, and what goes wrong on them if something is wrong.

    `data` and `neighbour` are problems.
    """

    name: str
    why: str
    adjacency: Adjacency
    data: Any
    neighbour: Any

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

# Full scorecards (theory, section 19). One attack looks at the points of the record in question. The other looks at the last
# bits of a published number: which numbers a floating point program can give at all may depend on the data (Mironov 2012).
# Output noise is there to hide that.

FEATURES = 20
"""Of the records whose points are attacked: with so many, one record causes the whole shift that the noise hides."""

FARTHEST_BIN = 6


@dataclass(frozen=True, eq=False)
class FullCardCase:
    """Two neighbouring tables, the claim under attack, and what of a card the attack looks at.

    `guess` is the share of records that is publicly expected to have a feature.
    """

    name: str
    why: str
    data: PatternTable
    neighbour: PatternTable
    guess: float
    plan: Plan
    seen: Callable[[Plan, Card], int]

    def draw(self, table: PatternTable, rng: Randomness) -> int:
        """One release from a table by the whole program, and what the attack sees of it."""
        options = Options(np.full(table.dim, self.guess), np.arange(table.dim), (False,) * table.dim)
        card, _, _ = perturbed_card(table, self.plan, options, random_state=rng)
        return self.seen(self.plan, card)


def points_bin(plan: Plan, log_odds: float) -> int:
    """What the points of all features add to the log-odds, in deviations that the noise gives it."""
    radius = RADIUS * math.sqrt(plan.dim / 4 + 1)
    deviation = math.sqrt(plan.dim) * plan.deviation(0) / plan.penalty(0, radius)
    return int(np.clip(math.floor(log_odds / deviation), -FARTHEST_BIN, FARTHEST_BIN))


def _all_points(plan: Plan, card: Card) -> int:
    return points_bin(plan, float(card.points.sum()) * card.unit)


def _is_noise(plan: Plan, card: Card) -> int:
    """1 if the weight is a number that the linear noise alone gives: a multiple of its step, divided by the penalty."""
    weight = float(card.points[0]) * card.unit
    step = plan.deviation(0) * 2.0**-NOISE_BITS / plan.penalty(0, RADIUS)
    away = abs(weight - round(weight / step) * step)
    return int(away <= 2 * OUTPUT_DEVIATION * 2.0**-NOISE_BITS)


def _table(records: list[tuple[int, bool]], dim: int) -> PatternTable:
    """Records that have all features or none."""
    return PatternTable.from_records(
        [[value] * dim for value, _ in records], [label for _, label in records], ranges=[(0, 1)] * dim
    )


def _full_card_cases() -> tuple[FullCardCase, ...]:
    yes, no, other = (1, True), (1, False), (0, False)
    found = []
    for adjacency, neighbour, moved in (
        (Adjacency.REPLACE, [no, no], [no, other]),
        (Adjacency.ADD_REMOVE, [yes], [yes, no, other]),
    ):
        scores = FullCardCase(
            f"one label, {adjacency}",
            "the record has the largest gradient that is allowed, and it is in the direction of all points",
            _table([yes, no], FEATURES),
            _table(neighbour, FEATURES),
            0.5,
            Plan(1.0, 0.4, adjacency, FEATURES, FEATURES),
            _all_points,
        )
        bits = FullCardCase(
            f"last bits, {adjacency}",
            "without the record the weight is a multiple of the step of the noise; output noise must hide that",
            _table([no, no] if adjacency is Adjacency.REPLACE else [yes, no], 1),
            _table(moved, 1),
            1.0,
            Plan(1.0, 1e-6, adjacency, 1, 1),
            _is_noise,
        )
        found += [scores, bits]
    return tuple(found)


FULL_CARD_CASES = _full_card_cases()
"""The claim on points has a large δ, so that a few hundred runs would show too little noise."""
