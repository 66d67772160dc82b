"""Neighbouring data sets for private trees, small enough to list everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privsolve.domains.trees import DecisionTrees, TreePrior, TreeQuestions
from privsolve.models.leaves import LabelLeaves, Leaves, NumberLeaves, ProbabilityLeaves
from privsolve.problems.trees import TreeProblem

Records = Sequence[tuple[Sequence[int], Any]]

LABELS = LabelLeaves(["no", "yes"])
PLAIN = TreeQuestions.plain(2)
THRESHOLDS = TreeQuestions(("a>=1", "a>=2"), (0, 0), (3,), (0b110, 0b100), ("a",), (3,))


@dataclass(frozen=True, eq=False)
class TreeCase:
    """Two neighbouring problems over trees, and what goes wrong on them if something is wrong."""

    name: str
    why: str
    adjacency: str
    data: TreeProblem
    neighbour: TreeProblem
    prior: TreePrior = field(default_factory=TreePrior)


def _tree(records: Records, leaves: Leaves, questions: TreeQuestions = PLAIN, depth: int = 2) -> TreeProblem:
    rows, targets = np.array([row for row, _ in records]), np.array([target for _, target in records])
    return TreeProblem.from_records(rows, targets, DecisionTrees(questions, depth, leaves))


def _tree_case(
    name: str,
    why: str,
    adjacency: str,
    records: Records,
    changed: Records,
    leaves: Leaves = LABELS,
    questions: TreeQuestions = PLAIN,
    prior: TreePrior | None = None,
) -> TreeCase:
    data, neighbour = (_tree(part, leaves, questions) for part in (records, changed))
    return TreeCase(name, why, adjacency, data, neighbour, prior or TreePrior())


AGREED = [((1, 0), 1)] * 20
ODD = [((1, 0), 1), ((0, 1), 1), ((0, 0), 0), ((1, 1), 0)] * 2

TREE_CASES: tuple[TreeCase, ...] = (
    _tree_case(
        "one turns round",
        "twenty records agree and one changes its mind: the whole budget is used up",
        "replace",
        AGREED,
        [*AGREED[1:], ((1, 0), 0)],
    ),
    _tree_case(
        "a tie is broken",
        "two records balance each other",
        "replace",
        [((1, 0), 1), ((1, 0), 0)],
        [((1, 0), 1), ((1, 0), 1)],
    ),
    _tree_case(
        "one more",
        "a record is there once more: merged rows must count it",
        "add-remove",
        AGREED,
        [*AGREED, ((1, 0), 0)],
    ),
    _tree_case("parity", "only trees that ask both questions are right", "replace", ODD, [*ODD[1:], ((1, 1), 1)]),
    _tree_case(
        "a bin is emptied",
        "thresholds decide each other, and the last record of a bin moves",
        "replace",
        [((0, 0), 0), ((1, 0), 1), ((1, 1), 0)],
        [((0, 0), 0), ((1, 1), 1), ((1, 1), 0)],
        questions=THRESHOLDS,
    ),
    _tree_case(
        "unequal costs",
        "a mistake costs five: the temperature must fall with the largest cost",
        "replace",
        AGREED,
        [*AGREED[1:], ((0, 1), 0)],
        LabelLeaves(["no", "yes"], [[0, 1], [5, 0]]),
    ),
    _tree_case(
        "three labels",
        "a record moves between two of three labels",
        "replace",
        [((1, 0), 1)] * 8,
        [*[((1, 0), 1)] * 7, ((1, 0), 2)],
        LabelLeaves(["a", "b", "c"]),
    ),
    _tree_case(
        "probabilities",
        "leaves say shares, and the loss is Brier's in thousandths",
        "replace",
        AGREED,
        [*AGREED[1:], ((1, 0), 0)],
        ProbabilityLeaves(["no", "yes"], [0.05, 0.5, 0.95]),
    ),
    _tree_case(
        "numbers",
        "a target moves from one end to the other",
        "replace",
        [((1, 0), 0.0)] * 12,
        [*[((1, 0), 0.0)] * 11, ((1, 0), 1.0)],
        NumberLeaves(0.0, 1.0, 3, 4),
    ),
    _tree_case(
        "monotone",
        "trees that fall with the first feature are ruled out beforehand",
        "replace",
        ODD,
        [*ODD[1:], ((0, 0), 1)],
        prior=TreePrior(monotone={"x0": 1}),
    ),
)
"""Small enough to list; the first is the most telling."""
