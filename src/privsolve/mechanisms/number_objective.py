"""Full scorecards for a number by objective perturbation of a clipped Huber regression (theory, section 20).

Targets are cut to public bounds and rounded to a public grid, record by record. All else is as for labels: noisy sums, a
random linear term, a certified minimiser, a little output noise, whole points.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.data.columns.label import STEPS, TargetTable
from privsolve.data.patterns import blocks_of
from privsolve.engines.regression_losses import Huber
from privsolve.errors import IntegerRangeError
from privsolve.mechanisms.card_points import Card, Options
from privsolve.mechanisms.objective import MARGIN, Plan, Records, centre_of, noisy, solved_card
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Paid

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
        moved = self.longest if self.adjacency is Adjacency.ADD_REMOVE else 2 * self.longest
        return MARGIN * math.sqrt(moved) / (math.sqrt(SUMS_SHARE) * self.scale)

    @property
    def target_deviation(self) -> float:
        """Deviation of the noise on the number of records, the sum of the targets and that of their squares."""
        moved = 3 if self.adjacency is Adjacency.ADD_REMOVE else 4
        return MARGIN * math.sqrt(moved) / (math.sqrt(TARGET_SHARE) * self.scale)

    def residuals_deviation(self, most: float) -> float:
        """Deviation of the noise on the sum of residuals that are cut to this size."""
        moved = 1 if self.adjacency is Adjacency.ADD_REMOVE else 2
        return MARGIN * moved * most / (math.sqrt(LEVEL_SHARE) * self.scale)


def perturbed_number_card(
    records: TargetTable,
    plan: NumberPlan,
    options: Options,
    *,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
    draft: Paid | None = None,
) -> tuple[Card, Guarantee, dict[str, Any]]:
    """The points of a Huber regression under differential privacy.

    Args:
        records: 0/1 features without a constant, and targets in steps from the lower bound: 0 to `STEPS`.
        plan: the public numbers, made for as many features as there are.
        options: what is known beforehand.
        random_state: None for releases; a seed is for testing only.
        budget: pays before any noise is drawn, or refuses.
        draft: the private draft of the schema that the records were read by, which is paid for with the first release.

    Returns:
        The card, its guarantee, and the curator's diagnostics. Unit and intercept of the card are for targets scaled to -1..1.

    Raises:
        BudgetExceeded: if the budget refuses.
        OracleNotCertified: if the minimiser could not be certified; nothing is released then.

    Guarantee:
        `plan.curve` under `plan.adjacency`, rounding included (theory, section 20), provided that plan and options were
        chosen without looking at the data. Running time and the diagnostics are not covered.
    """
    start = time.perf_counter()
    _check(records, plan)
    rng = as_randomness(random_state)
    guarantee = Guarantee(
        plan.curve,
        plan.adjacency,
        "objective perturbation of Huber regression",
        "rounded Gaussian noise",
        theory="20",
        oracle="Newton's method, certified",
        seeded=rng.is_seeded,
    )
    with charged(budget, guarantee, draft=draft):
        standard = _standardised(records, plan, options, rng)
        found, values = solved_card(standard.records, plan, options, rng)
        card = Card(found.points, found.unit * standard.scale, found.intercept * standard.scale + standard.mean)
        card = _levelled(records, standard, plan, card, rng)
    return card, guarantee, values | {"seconds": time.perf_counter() - start}


def _check(records: TargetTable, plan: Plan) -> None:
    """Refuse what the plan was not made for, before anything is paid."""
    if records.rows.shape != (len(records.targets), plan.dim):
        raise ValueError(f"rows has the shape {records.rows.shape}: the plan was made for {plan.dim} features")
    if not all(block.min() >= 0 and block.max() <= 1 for _, block in blocks_of(records.rows)):
        raise ValueError("rows must hold 0/1 features")
    if max(int(block.sum(axis=1).max()) for _, block in blocks_of(records.rows)) > plan.longest:
        raise ValueError(f"longest={plan.longest} is exceeded by a record: state the largest number of features of one")
    if records.targets.min() < 0 or records.targets.max() > STEPS:
        raise ValueError(f"targets must be whole numbers from 0 to {STEPS}: cut and round them first")
    if records.n > MOST_RECORDS:
        raise IntegerRangeError(f"there are more than {MOST_RECORDS:,} records: sample them by a public rate first")


def turned(records: TargetTable) -> Int64Array:
    """The targets scaled to -1..1, times `STEPS`."""
    return np.asarray(2 * records.targets - STEPS)


@dataclass(frozen=True)
class _Standardised:
    """The records as a solve sees them: the target is 0 at `mean` and 1 `scale` above it. `number` records, by noisy counts."""

    records: Records
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
    return _Standardised(Records(records.rows, losses, centre, off), mean, scale, number)


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
