"""Several units of a risk score, offered with a public prior: the first stage chooses one with its card (theory, 13.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_finite
from privsolve.engines.choosing import FrontierChoice
from privsolve.engines.stages.sampler import StageSampler
from privsolve.losses import RiskLoss, ScoreLoss
from privsolve.models.odds import check_log_odds
from privsolve.noise.entropy import Randomness

MOST_UNITS = 4
LEAST_WEIGHT = 1e-9


@dataclass(frozen=True, init=False)
class Units:
    """What one point may add to the log-odds, and how likely each is before the data is seen."""

    log_odds: tuple[float, ...]
    weights: tuple[float, ...]

    def __init__(self, log_odds: Sequence[float], weights: Sequence[float] | None = None) -> None:
        offered = one_or_several(log_odds)
        found = tuple(sorted(offered))
        if not 2 <= len(set(found)) == len(found) <= MOST_UNITS:
            raise ValueError(f"log_odds must be one number, or 2 to {MOST_UNITS} different ones, got {list(offered)}")
        given = (1.0,) * len(found) if weights is None else weights
        if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or len(given) != len(found):
            raise ValueError(f"weights must be {len(found)} numbers, one for each unit, got {weights!r}")
        order = np.argsort(offered)
        likely = [check_finite("weights", given[i], "be positive numbers") for i in order]
        if not all(weight >= LEAST_WEIGHT * sum(likely) > 0 for weight in likely):
            raise ValueError(f"weights must be positive, and at least {LEAST_WEIGHT:g} of their sum")
        object.__setattr__(self, "log_odds", found)
        object.__setattr__(self, "weights", tuple(weight / sum(likely) for weight in likely))

    def losses(self, loss: ScoreLoss) -> tuple[RiskLoss, ...]:
        """The loss with each of the units."""
        if not isinstance(loss, RiskLoss):
            raise ValueError("log_odds: only a risk score has a unit; choose by objective='risk'")
        return tuple(replace(loss, log_odds=unit) for unit in self.log_odds)  # type: ignore[type-var]

    @property
    def log_weights(self) -> tuple[float, ...]:
        """Of the prior."""
        return tuple(map(math.log, self.weights))

    def to_dict(self) -> dict[str, Any]:
        """For the release."""
        return {"log_odds": list(self.log_odds), "weights": list(self.weights)}


def one_or_several(units: object) -> tuple[float, ...]:
    """Units as a tuple, a single number too; raise for anything else."""
    if isinstance(units, Real) or (isinstance(units, np.ndarray) and units.ndim == 0):
        return (check_log_odds(units),)
    if isinstance(units, str | bytes | Mapping) or not isinstance(units, Iterable):
        raise ValueError(f"log_odds must be a number, or several such as (0.25, 0.5), got {units!r}")
    return tuple(map(check_log_odds, units))


def joint_range(losses: Sequence[ScoreLoss]) -> int:
    """The most by which one record's loss can vary over scores and over the losses, the larger of the two labels'."""
    return int(np.ptp(np.concatenate([loss.table for loss in losses], axis=1), axis=1).max())


class UnitSampler:
    """Exact draws of a unit together with a card: `P(u, w) ∝ ω_u · p₀(w) · exp(-κ·L_u(w))`.

    Each unit has a frontier of its own. An attempt chooses one in proportion to its current bound and makes one attempt on it
    (theory, 13.4); a lost one has tightened that frontier, and the choice is made anew.
    """

    def __init__(self, samplers: Sequence[StageSampler], units: Units, kappa: float, rng: Randomness) -> None:
        self.samplers, self.units, self._kappa = tuple(samplers), units, kappa
        self._choice = FrontierChoice(rng)

    def log_bounds(self) -> list[float]:
        """The logarithms of the current bounds, all relative to the reference loss of the first. Not private."""
        first = self.samplers[0].reference
        return [
            sampler.log_bound() + log_weight - self._kappa * (sampler.reference - first)
            for sampler, log_weight in zip(self.samplers, self.units.log_weights, strict=True)
        ]

    def draw(self) -> tuple[int, Int64Array]:
        """The number of a unit, and the points of every column with the intercept at the end."""
        with self._choice.held():
            while True:
                unit = self._choice.among(self.log_bounds())
                if self.samplers[unit].attempt():
                    return unit, self.samplers[unit].drawn()

    @property
    def statistics(self) -> dict[str, Any]:
        """What the draws have cost, by unit: the curator's, not private."""
        each = zip(self.units.log_odds, self.samplers, strict=True)
        return {"units": {repr(unit): asdict(sampler.statistics) for unit, sampler in each}}
