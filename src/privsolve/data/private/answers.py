"""The first stage of a draft: noisy counts of the cells of every asked column (theory, 12.1 and 12.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privsolve.data.private.counts import SMALL_NUMBERS, Kinds
from privsolve.data.private.grids import Grid
from privsolve.data.private.names import COMMON_TEXTS
from privsolve.noise.discrete import DiscreteGaussian, DiscreteLaplace
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.composition import zcdp_limit
from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.profiles import Approximate, Profile, Pure

FIRST, SECOND, THIRD = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
"""Shares of ρ or, without a delta, of epsilon: for the answers, for cut points, and for the counts between them."""

BY_CHANCE = 3e-5
"""A value is there if noise alone would hardly be as large as its noisy count: with this probability at most."""


@dataclass(frozen=True)
class Costs:
    """What a draft of so many asked columns may spend, in its two stages (theory, 12.5)."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    columns: int

    @cached_property
    def _rho(self) -> Fraction:
        """Of both stages, so that they are `(epsilon, delta/2)`-DP."""
        return Fraction(zcdp_limit(self.epsilon, self.delta / 2))

    @property
    def profile(self) -> Profile:
        """What the draft promises."""
        if self.delta:
            return Approximate(self.epsilon, self.delta)
        whole = exact(self.epsilon)
        first, second, third = (share * whole for share in (FIRST, SECOND, THIRD))
        return Pure(self.epsilon, at_least(first**2 / (2 * self.columns) + second**2 / 8 + third**2 / 2))

    @cached_property
    def noise(self) -> DiscreteGaussian | DiscreteLaplace:
        """Of every count of the first stage."""
        return self._noise(self.columns, FIRST)

    def between_cuts(self, columns: int) -> DiscreteGaussian | DiscreteLaplace:
        """Of the counts between the cut points of so many columns."""
        return self._noise(columns, THIRD)

    def _noise(self, columns: int, share: Fraction) -> DiscreteGaussian | DiscreteLaplace:
        """One record changes the counts of all columns by at most `Δ₂² = Δ₁ = 2d`, or d under add-remove."""
        moved = columns * (2 if self.adjacency is Adjacency.REPLACE else 1)
        if self.delta:
            return DiscreteGaussian(moved / (2 * share * self._rho))
        return DiscreteLaplace(moved / (share * exact(self.epsilon)))

    def for_cuts(self, columns: int) -> float:
        """Epsilon of each of so many columns that are cut."""
        if self.delta:
            return math.sqrt(8 * float(SECOND * self._rho) / columns) * (1 - 1e-12)
        return float(SECOND * exact(self.epsilon) / columns) * (1 - 1e-12)

    @property
    def clear(self) -> float:
        """From how many records on a value is told from noise."""
        return float(self.noise.margin(BY_CHANCE))

    @cached_property
    def margin(self) -> int:
        """τ: so far above the least number of records a text is listed that is in no public list."""
        return self.noise.margin(self.delta / (2 * self.columns * (1 + math.exp(min(self.epsilon, 500.0)))))

    def least(self, records: int | None) -> int:
        """c₀: texts of fewer records are not looked at; it keeps the answer of an engine short."""
        return max(1, self.margin // 4, 0 if records is None else records // 10_000)


@dataclass(frozen=True)
class Answer:
    """The noisy counts of one column; they may be published."""

    missing: int
    negative: int
    whole: int
    fractions: int
    small: Mapping[int, int]
    """Of the whole numbers from 0 to 20; `whole` counts the larger ones."""

    texts: Mapping[str, int]
    """Of texts of the public list, and of those that appear."""


def noisy_answer(
    kinds: Kinds, texts: Mapping[str, int], grid: Grid, costs: Costs, least: int, rng: Randomness
) -> Answer:
    """One answer; `texts` are the exact counts of texts that are no numbers, `least` is c₀."""
    small = {v: kinds.whole_at(grid.only_whole(v)) for v in SMALL_NUMBERS}
    below = grid.zero if grid.zero is not None else 0
    negative = int(kinds.cells[:below].sum())
    fractions = int(kinds.fractions[below:].sum())
    whole = int(kinds.cells.sum()) - negative - fractions - sum(small.values())
    looked_at = sorted(t for t, c in texts.items() if t not in COMMON_TEXTS and c >= least) if costs.delta else []
    exact_counts = [
        kinds.missing,
        negative,
        whole,
        fractions,
        *small.values(),
        *(texts.get(text, 0) for text in COMMON_TEXTS),
        *(texts[text] for text in looked_at),
    ]
    noise = costs.noise.draws(rng, len(exact_counts))
    noisy = [count + int(xi) for count, xi in zip(exact_counts, noise, strict=True)]
    rest = noisy[4 + len(small) :]
    appearing = zip(looked_at, rest[len(COMMON_TEXTS) :], strict=True)
    shown = {text: count for text, count in appearing if count >= least + costs.margin} if looked_at else {}
    missing, negative, whole, fractions = noisy[:4]
    listed = dict(zip(COMMON_TEXTS, rest, strict=False))
    return Answer(missing, negative, whole, fractions, dict(zip(small, noisy[4:], strict=False)), listed | shown)
