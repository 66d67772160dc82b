"""Figures from noisy counts, with intervals: how far noise moved them, and how far another sample would (theory, 11.2)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from privsolve.arrays import Floats

Z = 1.959963984540054
"""The two-sided 95% quantile of the normal law."""

LARGEST_QUANTILE = 0.05**-0.5
"""Chebyshev's: no law is further from its mean than so many deviations more often than 5 times in 100."""


@dataclass(frozen=True)
class Moments:
    """Variance and fourth cumulant of the noise on one count."""

    variance: float = 0.0
    fourth: float = 0.0

    @classmethod
    def of_scale(cls, scale: float, units: int = 1) -> Moments:
        """Of discrete Laplace noise: the difference of two geometric numbers of mean `μ = 1/(e^(1/scale) - 1)`.

        With `units` the noise is drawn in steps of `1 / units`.
        """
        scale *= units
        if scale * 700 < 1:  # e^(1/scale) overflows, and the noise is 0 but for a probability below e^-700
            return cls()
        mean = 1 / math.expm1(1 / scale)
        spread = mean * (1 + mean)
        return cls(2 * spread / units**2, 2 * spread * (1 + 6 * spread) / units**4)


@dataclass(frozen=True)
class Figure:
    """A figure and two 95% intervals. `value` is None where the noise leaves no estimate.

    `noise_low` to `noise_high` is for the figure on these very records, which the noise hides; `low` to `high` is for the
    figure on records of the same kind, of which these are a sample.
    """

    value: float | None
    noise_low: float
    noise_high: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def percent(self) -> str:
        """The figure and its wider interval in per cent."""
        return f"{percent(self.value)} ({percent(self.low)} to {percent(self.high)})" if self.known else "not known"

    @property
    def known(self) -> bool:
        """Whether the noise leaves an estimate: an interval from 0 to 1 says nothing."""
        return self.value is not None and self.high - self.low < 0.995


def percent(share: float | None) -> str:
    """A share in per cent, never as minus zero."""
    return "not known" if share is None else f"{100 * share:.1f}%".replace("-0.0%", "0.0%")


def ratio(counts: Floats, top: Floats, bottom: Floats, noise: Moments, *, share: bool) -> Figure:
    """The figure `Σ top·n / Σ bottom·n` over cells with noisy counts n (theory, 11.2).

    `bottom` is 1 for the cells that are counted and 0 for others, where `top` must be 0. A `share` has tops of 0 and 1.
    """
    held = top[bottom > 0]
    ends = float(held.min(initial=math.inf)), float(held.max(initial=-math.inf))
    if not held.size or ends[0] == ends[1]:
        ends = (0.0, 1.0) if share or not held.size else ends
    above, below = float(top @ counts), float(bottom @ counts)
    if below <= 0:
        return Figure(None, *ends, *ends)
    value = min(max(above / below, ends[0]), ends[1])
    found = [_solve(counts, top, bottom, noise, value, share, sampled) for sampled in (False, True)]
    clipped = [min(max(end, ends[0]), ends[1]) for interval in found for end in interval]
    return Figure(value, *map(float, clipped))


def _solve(
    counts: Floats, top: Floats, bottom: Floats, noise: Moments, value: float, share: bool, sampled: bool
) -> tuple[float, float]:
    """All m for which `Σ (top - m·bottom)·n` is within its 95% quantile of 0: a quadratic inequality in m (Fieller)."""
    above, below = float(top @ counts), float(bottom @ counts)
    # variance of the sum as a polynomial in m: v0 + v1·m + v2·m²
    v0, v1, v2 = noise.variance * np.array([top @ top, -2 * (top @ bottom), bottom @ bottom])
    if sampled and share:
        v1, v2 = v1 + below, v2 - below  # below·m(1-m)
    elif sampled:
        known = np.maximum(counts, 0.0)
        v0, v1, v2 = v0 + known @ top**2, v1 - 2 * (known @ (top * bottom)), v2 + known @ bottom
    q2 = _quantile(v0 + v1 * value + v2 * value**2, noise.fourth * float(((top - value * bottom) ** 4).sum())) ** 2
    a, b, c = below**2 - q2 * v2, -2 * above * below - q2 * v1, above**2 - q2 * v0
    if a <= 0:
        return -math.inf, math.inf  # the noise may have made all of the denominator
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def _quantile(variance: float, fourth: float) -> float:
    """The 95% quantile of a symmetric law in deviations: normal, corrected for its fourth cumulant (Cornish and Fisher).

    It is never more than Chebyshev's, which holds for every law.
    """
    if variance**2 <= 0:
        return Z
    return min(Z + (Z**3 - 3 * Z) * (fourth / variance**2) / 24, LARGEST_QUANTILE)


def smooth(value: float, gradient: Floats, counts: Floats, noise: Moments) -> Figure:
    """A figure in (0, 1) that is a smooth function of the counts, by its gradient (theory, 11.3).

    Noise moves the figure up and down alike, wherever it lies. Sampling moves it less near 0 and 1: where it is the larger
    part, the interval is formed on the scale of log-odds.
    """
    of_noise, of_sampling = noise.variance * float(gradient @ gradient), float(gradient**2 @ np.maximum(counts, 0.0))
    found = []
    for variance in (of_noise, of_noise + of_sampling):
        reach = _quantile(variance, noise.fourth * float((gradient**4).sum())) * math.sqrt(variance)
        found += [min(max(end, 0.0), 1.0) for end in (value - reach, value + reach)]
    if 0 < value < 1 and of_sampling > of_noise:
        middle, wide = math.log(value / (1 - value)), reach / (value * (1 - value))
        found[2:] = [min(found[0], float(expit(middle - wide))), max(found[1], float(expit(middle + wide)))]
    return Figure(min(max(value, 0.0), 1.0), *found)
