"""The records of a stage: bit sets of rows by the score they have, their label and a binary digit of their number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.engines.bits import bit_sets
from privsolve.losses import ScoreLoss

WORD = 64


class Groups(NamedTuple):
    """Group g holds the words `first[g]..first[g + 1]` of every column's set of rows.

    Its rows stand for records of one label and one earlier score, `2^digit` of them each; `cost[g, x]` is what a row of
    the group loses where the stage adds the score number x. `total[x]` is what all records lose.
    """

    words: NDArray[np.uint64]
    first: Int64Array
    cost: Int64Array
    total: Int64Array


def groups_of(
    rows: Int64Array,
    positives: Int64Array,
    negatives: Int64Array,
    earlier: Int64Array,
    loss: ScoreLoss,
    scores: Int64Array,
) -> Groups:
    """Sort the rows into groups; `earlier` is the score that each has, `scores` are those that a stage can add."""
    members: list[Int64Array] = []
    costs: list[Int64Array] = []
    for label, counts in enumerate((positives, negatives)):
        for score in np.unique(earlier):
            entries = loss.table[label, loss.entries(scores + score)]
            here = np.where(earlier == score, counts, 0)
            for digit in range(int(here.max(initial=0)).bit_length()):
                members.append(np.flatnonzero(here >> digit & 1))
                costs.append(entries << digit)
    words = [bit_sets(rows[some].T.astype(np.uint8)) for some in members]
    first = np.cumsum([0, *(part.shape[1] for part in words)])
    cost = np.array(costs, dtype=np.int64).reshape(len(costs), len(scores))
    sizes = np.array([len(some) for some in members], dtype=np.int64)
    empty = np.zeros((rows.shape[1], 0), dtype=np.uint64)
    return Groups(np.concatenate([empty, *words], axis=1), first.astype(np.int64), cost, sizes @ cost)
