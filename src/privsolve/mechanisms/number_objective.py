"""Full scorecards for a number by objective perturbation of a clipped Huber regression (theory, section 20).

Targets are cut to public bounds and rounded to a public grid, record by record. All else is as for labels: noisy sums, a
random linear term, a certified minimiser, a little output noise, whole points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.data.columns.label import STEPS, TargetTable
from privsolve.data.patterns import blocks_of
from privsolve.engines.regression import Huber, Rows
from privsolve.errors import IntegerRangeError
from privsolve.mechanisms.card_points import Card, Options
from privsolve.mechanisms.objective import Plan, centre_of, noisy, solved_card
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency

OFFSET_SHARE = 0.08
"""Share of ε for the curvature, Λ (section 20 says how the public rules were found)."""

SUMS_SHARE = 0.02
"""Share of the squared shift for the noisy sums of the features."""

TARGET_SHARE = 0.08
"""Share of the squared shift for the number of records, the sum of the targets and that of their squares."""

LEVEL_SHARE = 0.05
"""Share of the squared shift for the sum of the residuals, after the card is found."""

RESIDUALS = 1.0
"""Residuals beyond this many standard deviations of the target count as that many."""

GUESS_MEAN = 0.1
"""How far, squared, the mean of targets scaled to -1..1 is expected to be from 0, when it meets the noisy sums."""

GUESS_SPREAD = 0.1
GUESS_UNSURE = 0.01
"""The variance that they are guessed to have, and how far, squared, it may be off."""

LEVEL_RESIDUALS = 3.0
"""Residuals are cut to so many times the largest that counted in the solve before they are added up."""

GUESS_LEVEL = 0.0025
"""How far, squared, the mean of the predictions is expected to be off, when it meets the noisy sum of the residuals."""

LEAST_SPREAD = 0.0004
"""Targets are taken to have at least this variance: a deviation of one hundredth of the distance of the bounds."""

MOST_RECORDS = 2**24


@dataclass(frozen=True)
class NumberPlan(Plan):
    """The public numbers of one use of the mechanism for numbers."""

    output_deviation: ClassVar[float] = 2.0**-9
    regression: ClassVar[str] = "Huber regression"
    theory: ClassVar[str] = "20"
    fits: ClassVar[type[Any]] = TargetTable

    @property
    def offset_share(self) -> float:
        """Share of ε for the curvature."""
        return OFFSET_SHARE

    @property
    def count_shares(self) -> float:
        """Share of the squared shift for all noisy sums."""
        return SUMS_SHARE + TARGET_SHARE + LEVEL_SHARE

    def vertices(self, shift: float) -> tuple[float, ...]:
        """A residual can have either sign: all vertices of a solve are as far as the largest."""
        return (shift,) * (2 if self.adjacency is Adjacency.ADD_REMOVE else 4)

    def clip(self, length: float) -> float:
        """The largest length of a record's gradient: that of a usual row whose residual is the largest that counts."""
        return length

    def curvature(self, radius: float) -> float:
        """The largest curvature that one record can add: the loss has second derivative 0 or 1."""
        return radius**2

    @override
    def to_dict(self) -> dict[str, Any]:
        """Clip and noise grow with the length of a usual row, which is not known beforehand: the noise is for a clip of 1."""
        found = super().to_dict()
        found["deviation_per_clip"] = found.pop("deviation")
        return {name: value for name, value in found.items() if name != "clip"}

    @property
    def sums_deviation(self) -> float:
        """Deviation of the noise on the sums of the features."""
        return self.noise(self.adjacency.range_factor * self.longest, SUMS_SHARE)

    @property
    def target_deviation(self) -> float:
        """Deviation of the noise on the number of records, the sum of the targets and that of their squares."""
        return self.noise(2 + self.adjacency.range_factor, TARGET_SHARE)

    def residuals_deviation(self, most: float) -> float:
        """Deviation of the noise on the sum of residuals that are cut to this size."""
        return most * self.noise(self.adjacency.range_factor**2, LEVEL_SHARE)

    def check(self, table: TargetTable, units: int) -> None:
        """Refuse a table that the plan was not made for, before anything is paid."""
        self.check_kind(table)
        if units != 1:
            raise ValueError(f"units must be 1 for numbers, whose records have no weights, got {units}")
        if table.rows.shape != (len(table.targets), self.dim):
            raise ValueError(f"rows has the shape {table.rows.shape}: the plan was made for {self.dim} features")
        if not all(block.min() >= 0 and block.max() <= 1 for _, block in blocks_of(table.rows)):
            raise ValueError("rows must hold 0/1 features")
        self.check_longest(table.rows)
        if table.targets.min() < 0 or table.targets.max() > STEPS:
            raise ValueError(f"targets must be whole numbers from 0 to {STEPS}: cut and round them first")
        if table.n > MOST_RECORDS:
            raise IntegerRangeError(
                f"there are more than {MOST_RECORDS:,} records: fit on a part of them that is public"
            )

    def find(self, table: TargetTable, options: Options, rng: Randomness, units: int) -> tuple[Card, dict[str, Any]]:
        """The card of a table that was checked, and the curator's diagnostics."""
        standard = _standardised(table, self, options, rng)
        card, values = solved_card(standard.rows, standard.unsure, self, options, rng)
        card = Card(card.points, card.unit * standard.scale, card.intercept * standard.scale + standard.mean)
        return _levelled(table, standard, self, card, rng), values


def turned(records: TargetTable) -> Int64Array:
    """The targets scaled to -1..1, times `STEPS`."""
    return np.asarray(2 * records.targets - STEPS)


@dataclass(frozen=True)
class _Standardised:
    """The records as a solve sees them: the target is 0 at `mean` and 1 `scale` above it. `number` records, by noisy counts."""

    rows: Rows
    unsure: float
    mean: float
    scale: float
    number: float


def _standardised(records: TargetTable, plan: NumberPlan, options: Options, rng: Randomness) -> _Standardised:
    """Centred features and standardised targets (section 20)."""
    scaled, counts = turned(records), records.counts
    exact = [records.n * STEPS**2, int(counts @ scaled) * STEPS, int(counts @ scaled**2)]
    count, total, squares = noisy(exact, plan.target_deviation, rng, STEPS**2)
    number = float(records.n) if plan.adjacency is Adjacency.REPLACE else max(count, plan.target_deviation)
    unsure = (plan.target_deviation / number) ** 2
    mean = min(max(total / number, -1.0), 1.0) * GUESS_MEAN / (GUESS_MEAN + unsure)
    trusted = GUESS_UNSURE / (GUESS_UNSURE + unsure)
    spread = GUESS_SPREAD + trusted * (min(max(squares / number - mean**2, 0.0), 1.0) - GUESS_SPREAD)
    scale = RESIDUALS * math.sqrt(max(spread, LEAST_SPREAD))
    sums = sum(counts[place] @ block.astype(np.int64) for place, block in blocks_of(records.rows))
    noisy_sums = noisy(np.asarray(sums).tolist(), plan.sums_deviation, rng)
    centre, off = centre_of(noisy_sums, number, plan.sums_deviation, options.guess)
    losses = Huber((scaled / STEPS - mean) / scale, counts)
    return _Standardised(Rows(records.rows, losses, centre), off, mean, scale, number)


def _levelled(records: TargetTable, standard: _Standardised, plan: NumberPlan, card: Card, rng: Randomness) -> Card:
    """The card with its predictions moved so that they are right on average, as far as noise allows."""
    most = math.ceil(min(2.0, LEVEL_RESIDUALS * standard.scale) * STEPS)
    total, scaled = 0, turned(records)
    for place, block in blocks_of(records.rows):
        predicted = (block.astype(np.int64) @ card.points) * card.unit + card.intercept
        off = scaled[place] - np.rint(np.clip(predicted, -1.0, 1.0) * STEPS).astype(np.int64)
        total += int(records.counts[place] @ np.clip(off, -most, most))
    deviation = plan.residuals_deviation(most / STEPS)
    (found,) = noisy([total], deviation, rng, STEPS)
    unsure = (deviation / standard.number) ** 2
    moved = min(max(found / standard.number, -1.0), 1.0) * GUESS_LEVEL / (GUESS_LEVEL + unsure)
    return replace(card, intercept=card.intercept + moved)
