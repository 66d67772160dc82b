"""Counts of records by group, outcome and label, and every figure that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.data.weights import Weight
from privsolve.evaluation.intervals import Figure, Moments, ratio, smooth
from privsolve.models.outcomes import Outcome

NEGATIVE, POSITIVE = 0, 1
ENOUGH = 4.0
"""Neighbouring outcomes are taken together until their count is so many deviations of the noise: then it says something."""


NO_NOISE = Moments()
_LABEL, _ALL = np.array([[NEGATIVE, POSITIVE]]), np.ones((1, 2), dtype=np.int64)
"""Tables by outcome and label: 1 for positive records, and 1 for all."""


@dataclass(frozen=True)
class Cells:
    """`counts[g, o, y]` records of group g and outcome o have label y (0 negative, 1 positive), up to noise of these moments.

    Noisy counts may be negative: they are used as they are, because their errors then cancel in sums. With a `weight` each
    record counts as its share of the largest one (theory, 11.6).
    """

    outcomes: tuple[Outcome, ...]
    counts: NDArray[Any]
    noise: Moments = NO_NOISE
    weight: Weight | None = None

    def group(self, number: int) -> Cells:
        """The cells of one group."""
        return replace(self, counts=self.counts[number : number + 1])

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Whether each outcome is decided positive."""
        return np.array([outcome.positive for outcome in self.outcomes])

    @property
    def ranks(self) -> list[int]:
        """The ranks there are, ascending."""
        return sorted({outcome.rank for outcome in self.outcomes})

    def records(self, outcome: int | None = None) -> int:
        """How many records there are, of one outcome or of all, up to noise; or how much their weights add up to."""
        here = self.counts if outcome is None else self.counts[:, outcome]
        return int(here.sum()) if self.weight is None else round(float(here.sum()) * self.weight.largest)

    @property
    def counted(self) -> str:
        """What `records` says: the number of records, or the sum of their weights."""
        return "records" if self.weight is None else "weights"

    def accuracy(self) -> Figure:
        """The share of records whose decision is right."""
        return self._rates(self.decided)[0]

    def false_positives(self) -> Figure:
        """The share of negative records that are decided positive."""
        return self._rates(self.decided)[1]

    def false_negatives(self) -> Figure:
        """The share of positive records that are decided negative."""
        return self._rates(self.decided)[2]

    def positives(self) -> Figure:
        """The share of positive records."""
        return self._share(_LABEL)

    def chosen(self) -> Figure:
        """The share of records that are decided positive."""
        return self._share(self.decided[:, None])

    def highest(self, share: float) -> tuple[float, Figure, str] | None:
        """The records with the highest outcomes, about this share of all, never more than half.

        Returns:
            Their share of all records, the share of positive ones among them, and the lowest of their outcomes in words;
            None where there is no such set, or the noise leaves no estimate.
        """
        ranks, by_outcome = self._ranks, np.asarray(self.counts, dtype=np.float64).sum(axis=(0, 2))
        found = [(float(by_outcome[ranks >= rank].sum() / max(by_outcome.sum(), 1.0)), rank) for rank in self.ranks[1:]]
        fitting = [(abs(part - share), part, rank) for part, rank in found if 0 < part <= 0.5]
        if not fitting:
            return None
        _, part, least = min(fitting)
        text = self.outcomes[int(np.argmax(ranks >= least))].text.split(" to ")[0]
        return part, self._share(_LABEL, (ranks >= least)[:, None]), text

    def roc(self) -> list[tuple[float, float]]:
        """At every threshold that has both: negative records decided positive, and positive ones found."""
        rates = [self._rates(self._ranks >= rank)[1:] for rank in [*self.ranks, self.ranks[-1] + 1]]
        points = [(wrong.value, missed.value) for wrong, missed in rates]
        return [(wrong, 1 - missed) for wrong, missed in points if wrong is not None and missed is not None]

    def auc(self) -> Figure:
        """How often a positive record ranks above a negative one, equal ranks counting half (theory, 11.3)."""
        ranks = self._ranks
        above = 0.5 * (np.sign(ranks[:, None] - ranks[None, :]) + 1.0)  # [o, o']: o ranks above o'
        summed = np.asarray(self.counts, dtype=np.float64).sum(axis=0)
        negatives, positives = summed[:, NEGATIVE], summed[:, POSITIVE]
        if min(negatives.sum(), positives.sum()) <= 0:
            return Figure(None, 0.0, 1.0, 0.0, 1.0)
        of_positive = above @ negatives / negatives.sum()
        of_negative = positives @ above / positives.sum()
        value = float(positives @ of_positive / positives.sum())
        slopes = [(of_negative - value) / negatives.sum(), (of_positive - value) / positives.sum()]
        gradient = np.broadcast_to(np.stack(slopes, axis=1), self.counts.shape)
        return smooth(value, gradient.ravel(), self._flat, self.noise)

    def calibration(self) -> tuple[Figure, ...]:
        """The share of positive records at every outcome."""
        places = np.arange(len(self.outcomes))[:, None]
        return tuple(self._share(_LABEL, places == k) for k in range(len(self.outcomes)))

    @property
    def states_risks(self) -> bool:
        """Whether the model states a probability at every outcome."""
        return all(outcome.risk is not None for outcome in self.outcomes)

    def brier(self) -> Figure:
        """The mean squared distance of the stated risk from what is true."""
        return self._figure((_LABEL - self._stated) ** 2, share=False)

    def surplus(self) -> Figure:
        """The share of positive records less the mean of the stated risks: 0 if these are right on average."""
        return self._figure(_LABEL - self._stated, share=False)

    @property
    def _stated(self) -> Floats:
        if not self.states_risks:
            raise ValueError(
                "the model states no risks: fit a full scorecard or a tree with probabilities, or see risks()"
            )
        return np.array([[outcome.risk or 0.0] for outcome in self.outcomes])

    def risks(self) -> tuple[float, ...]:
        """A risk for every outcome that never falls as the rank rises (theory, 11.4).

        Neighbouring ranks are taken together until their noisy count says something, then made monotone by isotonic
        regression. It is a function of the noisy counts, so it costs nothing.
        """
        from sklearn.isotonic import isotonic_regression

        summed = np.asarray(self.counts, dtype=np.float64).sum(axis=0)
        by_rank = {r: summed[[o.rank == r for o in self.outcomes]].sum(axis=0) for r in self.ranks}
        cells = len(self.counts) * len(self.outcomes) / len(self.ranks)
        enough = max(1.0, ENOUGH * float(np.sqrt(2 * cells * self.noise.variance)))
        groups: list[tuple[list[int], Floats]] = []
        for rank, pair in by_rank.items():
            if groups and groups[-1][1].sum() < enough:
                groups[-1] = ([*groups[-1][0], rank], groups[-1][1] + pair)
            else:
                groups.append(([rank], pair))
        if len(groups) > 1 and groups[-1][1].sum() < enough:
            last = groups.pop()
            groups[-1] = (groups[-1][0] + last[0], groups[-1][1] + last[1])
        weights = np.array([max(1.0, float(pair.sum())) for _, pair in groups])
        shares = np.clip(np.array([float(pair[POSITIVE]) for _, pair in groups]) / weights, 0.0, 1.0)
        monotone = isotonic_regression(shares, sample_weight=weights)
        found = {rank: float(risk) for (ranks, _), risk in zip(groups, monotone, strict=True) for rank in ranks}
        return tuple(found[outcome.rank] for outcome in self.outcomes)

    @property
    def _flat(self) -> Floats:
        return np.asarray(self.counts, dtype=np.float64).ravel()

    @property
    def _ranks(self) -> Int64Array:
        return np.array([outcome.rank for outcome in self.outcomes], dtype=np.int64)

    def _figure(self, top: NDArray[Any], bottom: NDArray[Any] = _ALL, *, share: bool = True) -> Figure:
        """The sum of `top` over that of `bottom`: tables by outcome and label, the same in every group."""
        above, below = (np.broadcast_to(table.astype(np.float64), self.counts.shape).ravel() for table in (top, bottom))
        return ratio(self._flat, above, below, self.noise, share=share)

    def _share(self, of: NDArray[Any], among: NDArray[Any] = _ALL) -> Figure:
        return self._figure((of == 1) & (among == 1), among)

    def _rates(self, decided: NDArray[np.bool_]) -> tuple[Figure, Figure, Figure]:
        """The share of right decisions, and of wrong ones among negative and among positive records."""
        right = decided[:, None] == _LABEL
        return self._share(right), self._share(~right, 1 - _LABEL), self._share(~right, _LABEL)
