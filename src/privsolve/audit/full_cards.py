"""Neighbouring tables for full scorecards, and what an attacker reads off a card (theory, section 19).

One attack looks at the points of the record in question. The other looks at the last bits of a published number: which numbers
a floating point program can give at all may depend on the data (Mironov 2012). Output noise is there to hide that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsolve.data.patterns import PatternTable
from privsolve.mechanisms.card_points import Card, Options
from privsolve.mechanisms.objective import CONSTANT, NOISE_BITS, OUTPUT_DEVIATION, RADIUS, Plan, perturbed_card
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

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
    radius = RADIUS * math.sqrt(plan.dim / 4 + CONSTANT**2)
    deviation = math.sqrt(plan.dim) * plan.deviation(0) / plan.penalty(0, radius)
    return int(np.clip(math.floor(log_odds / deviation), -FARTHEST_BIN, FARTHEST_BIN))


def _all_points(plan: Plan, card: Card) -> int:
    return points_bin(plan, float(card.points.sum()) * card.unit)


def _is_noise(plan: Plan, card: Card) -> int:
    """1 if the weight is a number that the linear noise alone gives: a multiple of its step, divided by the penalty."""
    weight = float(card.points[0]) * card.unit
    step = plan.deviation(0) * 2.0**-NOISE_BITS / plan.penalty(0, RADIUS * CONSTANT)
    away = abs(weight - round(weight / step) * step)
    return int(away <= 2 * OUTPUT_DEVIATION * 2.0**-NOISE_BITS)


def _table(records: list[tuple[int, bool]], dim: int) -> PatternTable:
    """Records that have all features or none."""
    return PatternTable.from_records(
        [[value] * dim for value, _ in records], [label for _, label in records], ranges=[(0, 1)] * dim
    )


def _cases() -> tuple[FullCardCase, ...]:
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


FULL_CARD_CASES = _cases()
"""The claim on points has a large δ, so that a few hundred runs would show too little noise."""
