"""What to expect of a release, before anything is spent: proved bounds for every table, and fits of made-up records.

No record of anybody is looked at, so nothing here spends budget, and all of it may be repeated at will.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data import EncodedTable, Schema
from privsolve.data.patterns import PatternTable
from privsolve.domains import SparsePoints
from privsolve.domains.trees import DecisionTrees
from privsolve.learn.recipe import Recipe
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import SHORT, inverse_temperature
from privsolve.mechanisms.trees import tree_temperature
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import default_prior, least_log_of_short

BETA = 0.05
"""A bound fails with at most this probability."""


@dataclass(frozen=True)
class Expectation:
    """With probability 0.95 a release costs at most `excess` more than the best of the models `compared_with`."""

    mechanism: str
    excess: float
    compared_with: str


def card_expectation(
    domain: SparsePoints,
    epsilon: float,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: ZeroOneLoss | None = None,
) -> Expectation:
    """What a short card may cost at most beyond the best small one, under the prior that fitting uses.

    Looks at no data, so it may be called as often as one likes (theory, section 4).
    """
    features, log_p = least_log_of_short(default_prior(domain), domain, SHORT)
    excess = -(log_p + math.log(BETA)) / inverse_temperature(epsilon, adjacency, loss or ZeroOneLoss())
    words = f"{features} features, 1 point each" if features > 1 else "1 feature, 1 point"
    return Expectation("exponential", excess, words)


def tree_expectations(
    trees: DecisionTrees, epsilon: float, adjacency: Adjacency | str = Adjacency.REPLACE
) -> tuple[Expectation, ...]:
    """What a private tree may lose at most beyond the best tree of each depth, in the whole units of the loss.

    Looks at no data (theory, trees: utility).
    """
    kappa = tree_temperature(trees, epsilon, str(adjacency))
    found = []
    for depth in range(1, trees.depth + 1):
        words = "trees with 1 question" if depth == 1 else f"trees of depth {depth}"
        found.append(Expectation("tree", -(trees.least_log_prior(depth) + math.log(BETA)) / kappa, words))
    return tuple(found)


SMALLEST, LARGEST = 1e-4, 100.0


def smallest_epsilon(share: Callable[[float], float], lose: float) -> float:
    """The smallest epsilon, to three digits, with a promised share of at most `lose`; `share` falls as epsilon grows."""
    if not 0 < lose < 1:
        raise ValueError(f"lose must be a share between 0 and 1, for example 0.02, got {lose:g}")
    if share(LARGEST) > lose:
        raise ValueError(
            f"lose={lose:g}: no epsilon up to {LARGEST:g} promises that; use more records or smaller cards"
        )
    low, high = SMALLEST, LARGEST
    while high > low * 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if share(middle) <= lose else (middle, high)
    digits = 10.0 ** (math.floor(math.log10(high)) - 2)
    rounded = math.ceil(high / digits) * digits
    return float(f"{rounded:.3g}")


MOST_RECORDS = 200_000
"""More are not made up: what is chosen from so many is as good as from all."""

PLANTED, REDRAWN = 3, 0.3
"""Features with points in the rule that makes up the labels, and the share of labels that are drawn at random instead."""


@dataclass(frozen=True)
class Rehearsal:
    """Accuracy and seconds of some private fits on made-up records, beside the rule that made up the labels."""

    records: int
    planted: float
    accuracies: tuple[float, ...]
    seconds: tuple[float, ...]


TIMES = 5


def rehearse(recipe: Recipe, schema: Schema, records: int, positive_share: float = 0.5) -> Rehearsal:
    """Fit a few tables of made-up records, each with a rule of its own.

    Answers are uniform and independent of each other. A rule of three features with 1 or 2 points each says yes for about
    `positive_share` of the records. The label is what it says, except that 30% of the labels are drawn at random instead, yes
    with that share.
    """
    if not 0 < positive_share < 1:
        raise ValueError(f"positive_share must lie between 0 and 1, for example 0.1, got {positive_share:g}")
    count, asked = min(records, MOST_RECORDS), recipe.encoding(schema)
    planted, accuracies, seconds = [], [], []
    for seed in range(TIMES):
        encoded, share = _made_up(asked, count, np.random.default_rng(seed), positive_share)
        start = time.perf_counter()
        run = recipe.run(encoded, random_state=seed)
        seconds.append(time.perf_counter() - start)
        accuracies.append(float(run.diagnostics.training_accuracy))
        planted.append(share)
    return Rehearsal(count, float(np.mean(planted)), tuple(accuracies), tuple(seconds))


def _made_up(
    schema: Schema, records: int, rng: np.random.Generator, positive_share: float
) -> tuple[EncodedTable, float]:
    """Records with uniform answers that the schema lists, labelled by a planted rule, and how often the rule is right."""
    codes = [np.setdiff1d(np.arange(column.radix), list(column.outside.values())) for column in schema.columns]
    parts = [one.expand(rng.choice(usual, size=records)) for one, usual in zip(schema.columns, codes, strict=True)]
    features = np.hstack(parts)
    totals = _planted_totals(features.astype(np.int64), rng)
    if schema.intercept:
        features = np.hstack([features, np.ones((records, 1), dtype=features.dtype)])
    says = totals > np.quantile(totals, 1 - positive_share)
    positive = np.where(rng.random(records) < REDRAWN, rng.random(records) < positive_share, says)
    yes, no = positive.astype(np.int64), (~positive).astype(np.int64)
    table = PatternTable(features, yes, no, names=schema.features, scales=schema.scales, ranges=schema.ranges)
    return EncodedTable(table, schema, {}), float((says == positive).mean())


def _planted_totals(features: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Three features that vary, with 1 or 2 points of either sign, each relative to its spread."""
    varied = np.flatnonzero(features.min(axis=0) < features.max(axis=0))
    chosen = rng.permutation(varied)[:PLANTED]
    points = rng.integers(1, 3, size=len(chosen)) * rng.choice([-1, 1], size=len(chosen))
    spread = np.maximum(1, features[:, chosen].max(axis=0) - features[:, chosen].min(axis=0))
    return np.asarray((features[:, chosen] * (points * spread.max() // spread)).sum(axis=1))
