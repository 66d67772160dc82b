"""From the weights of a regression to whole points: post-processing, which looks at nothing but them (section 19.10)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between, check_integer
from privsolve.models.scales import LARGEST_UNIT, LEAST_UNIT

MOST_FEATURES = 2_000

NEARLY_ALL = 0.98
"""Share of the records with a listed answer from which on other answers count as the average one."""


@dataclass(frozen=True)
class Options:
    """What is known of a card before the data is seen.

    Args:
        guess: for every feature the share of records that is expected to have it.
        questions: for every feature the number of its question, in ascending order.
        nested: for every question whether its answers add up features (thresholds) or have one each.
        max_points: the most points, or minus that, of one feature.
        max_questions: the largest number of questions of the card.
        required: numbers of questions that are kept whatever they add.
        signs: +1 or -1 for features whose points must not be negative or positive, else 0.
        sparsity: price of the size of a weight (L1), per record gradient of length 1.
    """

    guess: Floats
    questions: Int64Array
    nested: tuple[bool, ...]
    max_points: int = 10
    max_questions: int | None = None
    required: frozenset[int] = field(default_factory=frozenset)
    signs: Int64Array | None = None
    sparsity: float = 0.0

    def __post_init__(self) -> None:
        check_between("sparsity", self.sparsity, 0)
        if self.max_questions is not None:
            check_integer("max_questions", self.max_questions, 1, MOST_FEATURES)


@dataclass(frozen=True)
class Card:
    """What the mechanism gives: points of every feature, the log-odds of a point, and those of a record without any.

    For numbers the outcome takes the place of the log-odds.
    """

    points: Int64Array
    unit: float
    intercept: float


def chosen_features(weights: Floats, options: Options) -> Any:
    """The features of the questions whose weights spread most: a choice by what the first solve has released."""
    numbers = np.unique(options.questions)
    spread = {
        int(number): float(np.ptp(np.append(np.cumsum(weights[options.questions == number]), 0.0)))
        for number in numbers
    }
    order = sorted(spread, key=lambda number: (number not in options.required, -spread[number], number))
    return np.isin(options.questions, order[: max(options.max_questions or 0, len(options.required))])


def with_average(
    weights: Floats, intercept: float, centre: Floats, unsure: float, options: Options
) -> tuple[Floats, float]:
    """The same risks for all listed answers; an answer that hardly anybody has given counts as the average one.

    Where the answers to a question have one feature each and nearly all records have one of them, the level of all others is
    noise. What is moved from the features to the intercept takes it out (post-processing, section 19.10).
    """
    weights = weights.copy()
    for number, adds_up in enumerate(options.nested):
        mine = options.questions == number
        least = NEARLY_ALL - 2 * unsure * math.sqrt(mine.sum())
        if not adds_up and mine.sum() > 1 and weights[mine].any() and centre[mine].sum() >= least:
            level = float(centre[mine] @ weights[mine] / centre[mine].sum())
            weights[mine] -= level
            intercept += level
    return weights, intercept


def whole_points(weights: Floats, options: Options) -> tuple[Int64Array, float]:
    """Whole points of the weights: post-processing, which looks at nothing but them (section 19.10).

    Args:
        weights: log-odds of every feature.
        options: which features belong to a question, whether its answers add up, and the most points.

    Returns:
        Points of every feature, and the log-odds of one point. Answers are rounded, not single thresholds, so that roundings do
        not add up.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    unit = min(max(largest / options.max_points, LEAST_UNIT), LARGEST_UNIT)
    points = np.zeros(len(weights), dtype=np.int64)
    for number, adds_up in enumerate(options.nested):
        mine = options.questions == number
        answers = np.cumsum(weights[mine]) if adds_up else weights[mine]
        levels = np.rint(answers / unit).astype(np.int64)
        points[mine] = np.diff(levels, prepend=0) if adds_up else levels
    if options.signs is not None:
        points = np.where(points * options.signs < 0, 0, points)
    return points, unit
