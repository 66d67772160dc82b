"""The privacy curve of objective perturbation: Gaussian privacy losses, moved by a constant (theory, section 19).

`gaussian_delta(g, ε)` is the δ of the Gaussian mechanism whose shift is `g` standard deviations. A `GaussianCurve` is a sum of
such curves, each moved by an `offset`, together with what floating point costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from privsolve.checks import check_between, check_finite, check_items
from privsolve.privacy.profiles import Approximate

ROUNDING = 1e-9
"""Relative allowance for the roundings of SciPy's normal distribution and of the sums below."""

DEVIATIONS = 9.0
"""`ε₂` is this many times the shift of the output noise (section 19.6): what is left has probability below `1e-18`."""

LARGEST_SHIFTS = 64


def gaussian_delta(shift: float, epsilon: float) -> float:
    """The least δ of the Gaussian mechanism at any `epsilon`: `Φ(g/2 - ε/g) - e^ε Φ(-g/2 - ε/g)`, where g is `shift`."""
    from scipy.special import log_ndtr

    if shift == 0:
        return max(0.0, -math.expm1(epsilon))
    above = float(log_ndtr(shift / 2 - epsilon / shift))
    below = epsilon + float(log_ndtr(-shift / 2 - epsilon / shift))
    return max(0.0, math.exp(above) * -math.expm1(min(0.0, below - above)))


def vertex_shifts(*stages: Sequence[float]) -> tuple[float, ...]:
    """The shifts of several stages together, those above 0, largest first (section 19.4).

    A stage is its shifts at the vertices of what a record can do; a combination is the root of their summed squares.
    """
    found = (math.sqrt(math.fsum(shift**2 for shift in combination)) for combination in product(*stages))
    return tuple(sorted((shift for shift in found if shift > 0), reverse=True))


def output_slack(blur: float) -> tuple[float, float]:
    """What output noise costs that hides a shift of `blur` deviations: `ε₂` and a bound on `δ₂` (section 19.6)."""
    if blur == 0:
        return 0.0, 0.0
    nearest = DEVIATIONS - blur / 2
    return DEVIATIONS * blur, blur * math.exp(-(nearest**2) / 2) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class GaussianCurve(Approximate):
    """`(ε, δ(ε))`-DP for every ε, with `δ(ε) = e^ε₂ Σ_k δ_Gauss(shifts[k], ε - offset - 2ε₂) + (1 + e^(ε-ε₂)) δ₂`.

    `epsilon` and `delta` are one point of the curve, the one that is stated. `offset` is the constant Λ by which every privacy
    loss is moved. `blur` is the shift that output noise hides, in deviations of that noise; `ε₂` and `δ₂` follow from it.

    Guarantee:
        Theory, section 19: 19.2 for `"add-remove"`, 19.3 for `"replace"`, 19.6 for the part of floating point.
    """

    shifts: tuple[float, ...]
    offset: float
    blur: float = 0.0
    kind: ClassVar[str] = "gaussian-curve"

    def __post_init__(self) -> None:
        super().__post_init__()
        shifts = check_items("guarantee's shifts", self.shifts, "be a list of positive numbers")
        shifts = tuple(check_finite("guarantee's shifts", shift, "be positive") for shift in shifts)
        if not 1 <= len(shifts) <= LARGEST_SHIFTS or min(shifts) <= 0:
            raise ValueError(f"guarantee's shifts must be 1 to {LARGEST_SHIFTS} positive numbers, got {len(shifts)}")
        object.__setattr__(self, "shifts", shifts)
        for name in ("offset", "blur"):
            object.__setattr__(self, name, check_between(f"guarantee's {name}", getattr(self, name), 0))
        if self.delta_at(self.epsilon) > self.delta * (1 + 2 * ROUNDING):
            raise ValueError(f"guarantee's delta={self.delta:g} is below the curve at epsilon={self.epsilon:g}")

    def delta_at(self, epsilon: float) -> float:
        """A δ such that the release is `(epsilon, δ)`-DP, for any `epsilon` of at least 0 (section 19.5)."""
        extra, slack = output_slack(self.blur)
        above = epsilon - self.offset - 2 * extra
        kept = math.fsum(gaussian_delta(shift, max(above, 0.0)) for shift in self.shifts)
        if above < 0:  # the losses are at most offset + max(0, Gaussian losses)
            kept = 1 - math.exp(above) * (1 - min(1.0, kept))
        return min(1.0, _with_slack(kept, epsilon, extra, slack))


def _with_slack(kept: float, epsilon: float, extra: float, slack: float) -> float:
    """`e^ε₂ kept + (1 + e^(ε-ε₂)) δ₂`, rounded up."""
    return (math.exp(extra) * kept + (1 + math.exp(min(epsilon - extra, 700.0))) * slack) * (1 + ROUNDING)


def largest_shift(
    shifts_of: Callable[[float], Iterable[float]], epsilon: float, delta: float, offset: float, blur: float
) -> GaussianCurve:
    """The curve below `(epsilon, delta)` with the largest scale of its shifts, found by bisection from below.

    `shifts_of` gives the shifts at a scale, which must grow with it, `offset` is Λ and `blur` the shift that output noise
    hides. Raises `ValueError` if they leave nothing of `epsilon`.
    """

    def holds(scale: float) -> bool:
        extra, slack = output_slack(blur)
        above = epsilon - offset - 2 * extra
        if above <= 0:
            return False
        kept = math.fsum(gaussian_delta(shift, above) for shift in shifts_of(scale))
        return _with_slack(kept, epsilon, extra, slack) <= delta

    low, high = 0.0, 1e-6
    if not holds(high):
        if epsilon > 1:  # e^epsilon times what floating point may add
            limit = math.floor(math.log(delta / output_slack(blur)[1]))
            raise ValueError(
                f"epsilon must be at most {limit} with delta={delta:g}, got {epsilon:g}: use a smaller one"
            )
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} leave nothing for the noise: use a larger epsilon or delta"
        )
    while holds(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return GaussianCurve(epsilon, delta, tuple(shifts_of(low)), offset, blur)
