"""What a release promises, as a value that can be read, stored and composed."""

from __future__ import annotations

import math
import reprlib
from dataclasses import asdict, dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privsolve.checks import check_finite
from privsolve.privacy.decimals import at_least, exact

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

LARGEST_LOSS = 500.0
"""Beyond this privacy loss exponentials overflow."""

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

    def __post_init__(self) -> None:
        wanted = {"epsilon": "finite and positive", "delta": "at least 0 and below 1", "zcdp": "finite and positive"}
        for name in wanted if self.zcdp is not None else ("epsilon", "delta"):
            value = check_finite(f"guarantee's {name}", getattr(self, name), f"be {wanted[name]}")
            _check(name, value, 0 <= value < 1 if name == "delta" else value > 0, wanted[name])
            object.__setattr__(self, name, value)
        _check("adjacency", self.adjacency, self.adjacency in tuple(ADJACENCY_WORDS), "replace or add-remove")
        for name in ("mechanism", "noise", "theory", "oracle"):
            _check(name, getattr(self, name), isinstance(getattr(self, name), str), "a text")
        for name in ("proved", "seeded"):
            _check(name, getattr(self, name), isinstance(getattr(self, name), bool), "true or false")

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self) -> str:
        """The guarantee in words."""
        neighbours = ADJACENCY_WORDS[self.adjacency]
        parts = [
            f"{neighbours[0].upper()}{neighbours[1:]} of the data changes the probability of any published result by a "
            f"factor of at most e^{self.epsilon:.12g} = {_factor(self.epsilon)}"
            + (f", except with probability {self.delta:.3g}" if self.delta else "")
            + f" ({self.mechanism}, {self.noise}, theory section {self.theory})."
        ]
        if not self.proved:
            parts.append("NOT PROVED: the noise scale is the published one, which has no valid proof.")
        if self.seeded:
            parts.append("Seeded: for testing only.")
        return " ".join(parts)

    @property
    def bounded_range(self) -> bool:
        """Whether log-ratios of probabilities span at most `epsilon` from the smallest to the largest output."""
        return self.mechanism == "exponential mechanism" and self.delta == 0 and self.zcdp is not None

    def under(self, adjacency: str) -> Guarantee:
        """The same release under another adjacency, where that follows.

        A replaced record is one removed and one added, so `"add-remove"` gives `"replace"` at twice epsilon. Nothing
        follows in the other direction.
        """
        _check("adjacency", adjacency, adjacency in tuple(ADJACENCY_WORDS), "replace or add-remove")
        if adjacency == self.adjacency:
            return self
        if self.adjacency == "replace":
            raise ValueError("a guarantee under replace says nothing under add-remove: run with adjacency='add-remove'")
        epsilon, delta = group_privacy(self.epsilon, self.delta, 2)
        zcdp = None if self.zcdp is None else at_least(4 * exact(self.zcdp))
        return replace(self, epsilon=epsilon, delta=delta, zcdp=zcdp, adjacency=adjacency)

    @property
    def rho(self) -> Fraction:
        """The ρ of zero-concentrated privacy, but for an event of probability `delta`: `zcdp`, or ε²/2 where that is all."""
        if self.zcdp is None or self.delta > 0:  # with a delta, what is left beside the event is only known to be ε-DP
            return exact(self.epsilon) ** 2 / 2
        return exact(self.zcdp)

    def to_event(self) -> DpEvent:
        """A dp-accounting event for its `RdpAccountant`: zero-concentrated privacy, under this adjacency.

        With a delta there is no such event: use `to_pld()`. A pure guarantee is not stated as randomised response, because
        the `PLDAccountant` of dp-accounting 0.6 composes that event once, whatever its count.
        """
        from dp_accounting import dp_event

        if self.delta > 0:
            raise ValueError("dp-accounting has no event for a delta: compose with to_pld(), or privsolve.compose")
        return dp_event.ZCDpEvent(at_least(self.rho))

    def to_pld(self, step: float = 1e-4) -> PrivacyLossDistribution:
        """dp-accounting's privacy loss distribution of the most revealing `(epsilon, delta)` mechanism: randomised response.

        `compose` and `self_compose` of what it returns are valid for parameters fixed in advance.
        """
        from dp_accounting.pld import common, privacy_loss_distribution

        if self.epsilon > LARGEST_LOSS:
            raise ValueError(
                f"dp-accounting overflows beyond epsilon={LARGEST_LOSS:g}, got {self.epsilon:g}: use privsolve.compose"
            )
        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(self.epsilon, self.delta), step
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        if not isinstance(values, dict):
            raise ValueError(f"guarantee must be a dictionary of its fields, got {type(values).__name__}")
        names = {f.name for f in fields(cls)}
        if set(values) != names:
            wrong = ", ".join(sorted(set(values) ^ names))
            raise ValueError(f"guarantee has missing or unknown fields: {wrong}")
        return cls(**values)


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """The epsilon and delta that hold for `size` records at once: `kε` and `δ(1 + e^ε + ... + e^((k-1)ε))`, rounded up."""
    total = at_least(size * exact(epsilon))
    if delta == 0 or size == 0:
        return total, 0.0
    try:
        share = math.expm1(total) / math.expm1(epsilon) * (1 + 1e-12)
    except OverflowError:
        share = math.inf
    return total, min(1.0, delta * max(share, float(size)))


def _check(name: str, value: object, holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(f"guarantee's {name} must be {wanted}, got {reprlib.repr(value)}")


def _factor(epsilon: float) -> str:
    """`e^ε` to four digits, rounded up: the sentence says "at most"."""
    if epsilon > 700:
        return "infinity"
    factor = Decimal(math.exp(epsilon)) * Decimal("1.00000000000001")
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(factor)):.4g}"
