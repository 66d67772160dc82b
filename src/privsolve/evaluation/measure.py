"""The one thing that looks at records: counts by outcome and label, to which noise is added once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.patterns import PatternTable
from privsolve.data.weights import UNITS, Weight
from privsolve.evaluation.cells import Cells
from privsolve.evaluation.evaluation import Evaluation, MeasuredOn
from privsolve.models.base import Model
from privsolve.models.outcomes import Outcomes
from privsolve.noise.discrete import LARGEST_SCALE, DiscreteLaplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import exact as exact_decimal
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import Pure


def exact_cells(outcomes: Outcomes, groups: Sequence[PatternTable | None], weight: Weight | None = None) -> Cells:
    """The counts without noise: the curator's, not private. A table needs the features of the outcomes' schema, by name."""
    counts = _counts(outcomes, groups, weight)
    return Cells(outcomes.listed, counts if weight is None else counts / UNITS, weight=weight)


def _counts(outcomes: Outcomes, groups: Sequence[PatternTable | None], weight: Weight | None) -> Int64Array:
    """Records by group, outcome and label; with a weight, the units that they count."""
    counts = np.zeros((len(groups), len(outcomes.listed), 2), dtype=np.int64)
    for g, group in enumerate(groups):
        if group is not None:
            places = [group.names.index(name) for name in outcomes.schema.features]
            for place, block in group.blocks():
                numbers = outcomes.number(block[:, places])
                units = 1 if weight is None else block[:, group.names.index(weight.column)]
                np.add.at(counts[g, :, 0], numbers, group.negatives[place] * units)
                np.add.at(counts[g, :, 1], numbers, group.positives[place] * units)
    return counts


def promise(epsilon: float, adjacency: Adjacency | str, *, seeded: bool = False) -> Guarantee:
    """What one noisy histogram promises (theory, 11.1)."""
    checked = check_epsilon(epsilon)
    if checked < (least := 2 * UNITS / LARGEST_SCALE):  # of weighted counts too, so that nothing is refused after a fit
        raise ValueError(f"epsilon must be at least {least:.3g} for exact noise, got {checked:g}")
    return Guarantee(
        Pure(checked),
        Adjacency.of(adjacency),
        "noisy histogram",
        "discrete Laplace noise",
        theory="11",
        oracle="none",
        seeded=seeded,
    )


def evaluate(
    model: Model,
    groups: Sequence[PatternTable | None],
    epsilon: float,
    *,
    labels: tuple[str, str],
    names: Sequence[str] = ("all",),
    by: str | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    tested: MeasuredOn = MeasuredOn.SAME,
    weight: Weight | None = None,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
) -> Evaluation:
    """Publish how many records of each group have each outcome and label, with noise.

    Guarantee:
        `epsilon`-DP for the records counted, under the adjacency: a record is in one cell, so adding or removing one
        changes one count by 1, replacing one changes two, and every count has exact discrete Laplace noise of scale
        `1 / epsilon` or `2 / epsilon` (theory, 11.1). The model, the outcomes and the groups are public. With a `weight`, which
        the tables were read with, a record adds at most 1024 units to one count, and the noise is 1024 times as large (11.6).
    """
    outcomes = model.outcomes()
    rng = as_randomness(random_state)
    guarantee = promise(epsilon, adjacency, seeded=rng.is_seeded)
    exact = _counts(outcomes, groups, weight)
    units = 1 if weight is None else UNITS
    law = DiscreteLaplace.on_cells(exact_decimal(guarantee.epsilon), guarantee.adjacency, units)
    with charged(budget, guarantee):
        noise = law.draws(rng, exact.size)
    noisy = exact + noise.reshape(exact.shape)
    return Evaluation(outcomes.kind, outcomes.listed, labels, noisy, tested, guarantee, by, tuple(names), weight)


def summary(cells: Cells) -> dict[str, Any]:
    """The main figures, for JSON and for the curator."""
    figures = [cells.accuracy, cells.false_positives, cells.false_negatives, cells.positives, cells.auc]
    figures += [cells.brier, cells.surplus] if cells.states_risks else []
    return {cells.counted: cells.records()} | {figure.__name__: figure().to_dict() for figure in figures}
