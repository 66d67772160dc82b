"""Texts that many records have, published without a list of what there can be: by a threshold, with a δ (theory, 12.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class Threshold:
    """A text appears if `least` records or more have it, and its count plus noise is `least + margin` or more."""

    noise: DiscreteLaplace
    least: int
    margin: int

    @classmethod
    def of(cls, epsilon: Fraction, delta: float, least: int, adjacency: Adjacency) -> Threshold:
        """For `(epsilon, delta)`: a text that only one of two neighbours may show appears with probability `delta` at most.

        Where a record is replaced there may be two such texts, each with half of `delta`.
        """
        noise = DiscreteLaplace.on_cells(epsilon, adjacency)
        return cls(noise, least, noise.margin(delta / 2 if adjacency is Adjacency.REPLACE else delta))

    def published(self, counts: Mapping[str, int], rng: Randomness) -> dict[str, int]:
        """The texts that appear, with their noisy counts."""
        texts = sorted(text for text, count in counts.items() if count >= self.least)
        noise = self.noise.draws(rng, len(texts))
        noisy = {text: counts[text] + int(xi) for text, xi in zip(texts, noise, strict=True)}
        return {text: count for text, count in noisy.items() if count >= self.least + self.margin}


def least_records(epsilon: Fraction, delta: float, records: int | None, adjacency: Adjacency) -> int:
    """How many records must have a text before it is looked at: a quarter of the smallest margin there can be, and where
    the number of records is public at least one in ten thousand. It keeps the list of texts short in an engine.
    """
    margin = Threshold.of(epsilon, delta, 1, adjacency).margin
    return max(1, margin // 4, 0 if records is None else records // 10_000)
