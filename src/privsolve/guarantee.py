"""What a release promises, as a value that can be read, stored and composed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

ADJACENCY_WORDS = {
    "replace": "changing one record",
    "add-remove": "adding or removing one record",
}


@dataclass(frozen=True)
class Guarantee:
    """`(epsilon, delta)`-differential privacy of one release, and on what it rests.

    `proved` says whether the noise scale is proved, and `theory` by which section of the theory pages. `zcdp` is the
    zero-concentrated bound ρ where a better one than `epsilon²/2` is known. `oracle` names the solver whose answer the
    proof relies on. A `seeded` run is reproducible by anybody who knows the seed: for testing only.
    """

    epsilon: float
    delta: float
    adjacency: str
    mechanism: str
    noise: str
    proved: bool
    theory: str
    oracle: str
    seeded: bool
    zcdp: float | None = None

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self) -> str:
        """The guarantee in words."""
        neighbours = ADJACENCY_WORDS[self.adjacency]
        parts = [
            f"{neighbours[0].upper()}{neighbours[1:]} of the data changes the probability of any published result by a "
            f"factor of at most e^{self.epsilon:g} = {_factor(self.epsilon)}"
            + (f", except with probability {self.delta:.3g}" if self.delta else "")
            + f" ({self.mechanism}, {self.noise} noise, theory section {self.theory})."
        ]
        if not self.proved:
            parts.append("NOT PROVED: the noise scale is the published one, which has no valid proof.")
        if self.seeded:
            parts.append("Seeded: for testing only.")
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        names = {f.name for f in fields(cls)}
        if set(values) != names:
            wrong = ", ".join(sorted(set(values) ^ names))
            raise ValueError(f"guarantee has missing or unknown fields: {wrong}")
        return cls(**values)


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "infinity"
