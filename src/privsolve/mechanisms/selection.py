"""Private selection: one of k candidates by their scores, drawn exactly (theory, section 14)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence, ValuesView
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import LARGEST, SMALLEST, check_choice, check_count, check_length
from privsolve.data.patterns import checked_names
from privsolve.models.choices import Candidate
from privsolve.noise.discrete import exp_coin
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange, Pure
from privsolve.releases import Diagnostics, Release, Run

Number = int | float | Fraction | Decimal
Scores = Mapping[str, Number] | Sequence[Number] | NDArray[Any]


class Selection(StrEnum):
    """How one of the candidates is chosen (theory, section 14)."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    """In a random order, the first whose coin comes up: never worse than the exponential mechanism."""

    EXPONENTIAL = "exponential"
    """With probability proportional to `exp(ε·score/R)`: its losses have bounded range, so many of them compose better."""


@dataclass(frozen=True)
class Sensitivity:
    """How far one record moves scores, on the grid that they are rounded to; all of it is public (theory, section 14).

    `stated` bounds how far one score moves between neighbours. `monotone` says that no score falls where another rises.
    """

    stated: Fraction
    monotone: bool = False
    step: Fraction | None = None

    @property
    def of_score(self) -> Fraction:
        """How far one score moves after rounding: whole steps, rounded up."""
        return self.stated if self.step is None else self.step * math.ceil(self.stated / self.step)

    @property
    def range(self) -> Fraction:
        """`R`: how far the difference of two scores moves. Twice the sensitivity, or once if all move the same way."""
        return self.of_score if self.monotone else 2 * self.of_score

    def rounded(self, score: Fraction) -> Fraction:
        """The nearest multiple of the step, halves up: a rule that commutes with whole steps (theory, section 14.3)."""
        return score if self.step is None else self.step * math.floor(score / self.step + Fraction(1, 2))


class Selector:
    """Exact draws of a candidate, for experiments and audits: *every draw spends epsilon*. See `choose`.

    `guarantee` is that of a single draw. Everything is integers and fractions: no draw has any rounding.
    """

    def __init__(
        self,
        scores: Scores,
        sensitivity: Number,
        epsilon: float,
        *,
        names: Sequence[str] | None = None,
        monotone: bool = False,
        method: Selection | str = Selection.PERMUTE_AND_FLIP,
        step: Number | None = None,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
    ) -> None:
        self.method, the_adjacency = check_choice("method", method, Selection), Adjacency.of(adjacency)
        if not isinstance(monotone, bool):
            raise ValueError(f"monotone must be True or False, got {monotone!r}")
        if monotone and the_adjacency is not Adjacency.ADD_REMOVE:
            raise ValueError(
                "monotone=True needs adjacency='add-remove': a record that is replaced can move one score up and another down"
            )
        self.sensitivity = _sensitivity(sensitivity, monotone, step)
        self.epsilon = exact(calibration.check_epsilon(epsilon))
        if isinstance(scores, Mapping) and names is None:
            names = list(scores)
        self.scores = [self.sensitivity.rounded(score) for score in _fractions(scores, self.sensitivity.step)]
        plain = [f"candidate {i}" for i in range(len(self.scores))]
        self.names = checked_names(plain if names is None else names, len(self.scores))
        self._rng = as_randomness(random_state)
        flips = self.method is Selection.PERMUTE_AND_FLIP
        self.guarantee = Guarantee(
            Pure(float(epsilon)) if flips else BoundedRange(float(epsilon)),
            the_adjacency,
            str(self.method) if flips else "exponential mechanism",
            "exact sample",
            theory="14",
            oracle="exact sampler",
            seeded=self._rng.is_seeded,
        )

    @property
    def kappa(self) -> Fraction:
        """`κ = ε/R`, exactly."""
        return self.epsilon / self.sensitivity.range

    @property
    def exponents(self) -> list[Fraction]:
        """`κ` times how far each score is below the best. Not private."""
        best = max(self.scores)
        return [self.kappa * (best - score) for score in self.scores]

    @property
    def setting(self) -> dict[str, Any]:
        """What is public about the choice, as plain values."""
        step = self.sensitivity.step
        return {
            "candidates": list(self.names),
            "sensitivity": str(self.sensitivity.stated),
            "monotone": self.sensitivity.monotone,
            "method": str(self.method),
            "step": None if step is None else str(step),
        }

    def draw(self, size: int = 1) -> Int64Array:
        """The places of `size` candidates drawn independently; each of them spends epsilon."""
        exponents = self.exponents
        one = _permute_and_flip if self.method is Selection.PERMUTE_AND_FLIP else _accepted_at_random
        return np.array([one(self._rng, exponents) for _ in range(size)], dtype=np.int64)

    def log_law(self) -> Floats:
        """The log probability of every candidate, in floating point: for audits of a few hundred. Not private."""
        exponents = np.array([float(exponent) for exponent in self.exponents])
        if self.method is Selection.EXPONENTIAL:
            return np.asarray(-exponents - np.logaddexp.reduce(-exponents))
        return permute_and_flip_law(exponents)


def choose(
    scores: Scores,
    sensitivity: Number,
    epsilon: float,
    *,
    names: Sequence[str] | None = None,
    monotone: bool = False,
    method: Selection | str = Selection.PERMUTE_AND_FLIP,
    step: Number | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose one of several candidates privately, one with a high score.

    Args:
        scores: one number per candidate, higher is better; a mapping from names to numbers will do. Whole numbers, fractions
            and decimals are taken as they are; floats need a `step`. How many candidates there are is public.
        sensitivity: how far one score can move at most between neighbouring data sets, a public number.
        epsilon: privacy budget of this release.
        names: public names of the candidates.
        monotone: state that between any two neighbours no score falls where another one rises, such as counts when a record is
            added. That halves the noise. It needs `adjacency="add-remove"`: a record that is replaced moves scores both ways.
        method: `"permute-and-flip"` (default, never worse) or `"exponential"` (composes better).
        step: a public grid that scores are rounded to, halves up; the sensitivity is rounded up to whole steps.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`: the one that the sensitivity is for.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before anything is drawn.

    Guarantee:
        The choice is `epsilon`-DP under the stated adjacency, if the sensitivity is true (theory, section 14); by the
        exponential mechanism it is `epsilon²/8`-zCDP too. It is drawn in integers, without any rounding. Running time and the
        diagnostics are not covered (section 7).
    """
    start = time.perf_counter()
    rng = as_randomness(random_state)
    stated: dict[str, Any] = {"monotone": monotone, "method": method, "step": step, "adjacency": adjacency}
    selector = Selector(scores, sensitivity, epsilon, names=names, random_state=rng, **stated)
    with charged(budget, selector.guarantee):
        index = int(selector.draw()[0])
    best = max(selector.scores)
    quality = {"score": float(selector.scores[index]), "best_score": float(best)}
    diagnostics = Diagnostics(time.perf_counter() - start, quality, {"candidates": len(selector.scores)})
    return Run(Release(Candidate(index, selector.names[index]), selector.guarantee, selector.setting), diagnostics)


def choice_utility_bound(
    candidates: int,
    sensitivity: Number,
    epsilon: float,
    *,
    monotone: bool = False,
    step: Number | None = None,
    beta: float = 0.05,
) -> float:
    """With probability `1 - beta` the score of the choice is at most this far below the best (theory, section 14.2).

    For permute-and-flip and the exponential mechanism; looks at no data.
    """
    count, beta = check_count("candidates", candidates), calibration.check_beta(beta)
    stated = _sensitivity(sensitivity, bool(monotone), step)
    return float(stated.range / exact(calibration.check_epsilon(epsilon))) * math.log(count / beta)


def permute_and_flip_law(exponents: Floats) -> Floats:
    """Log probabilities `p_r ∫₀¹ Π_{s≠r} (1 - t·p_s) dt` with `p = exp(-exponents)`, the least of which is 1 (section 14).

    The integrand is a polynomial of degree k-1, which k/2 points of Gauss and Legendre integrate without error.
    """
    coins = np.exp(-exponents)
    nodes, weights = np.polynomial.legendre.leggauss(len(coins) // 2 + 1)
    factors = np.log1p(-0.5 * (nodes[:, None] + 1.0) * coins[None, :])
    others = np.exp(factors.sum(axis=1, keepdims=True) - factors)
    return np.asarray(-exponents + np.log(0.5 * weights @ others))


def _permute_and_flip(rng: Randomness, exponents: Sequence[Fraction]) -> int:
    """The first in a random order whose coin comes up: the best one's always does."""
    order = list(range(len(exponents)))
    for i in range(len(order)):
        j = i + rng.integer_below(len(order) - i)
        order[i], order[j] = order[j], order[i]
        if exp_coin(rng, exponents[order[i]]):
            return order[i]
    raise AssertionError("the coin of the best candidate did not come up")


def _accepted_at_random(rng: Randomness, exponents: Sequence[Fraction]) -> int:
    """A candidate at random, kept with probability `exp(-exponent)`, or another one: the exponential mechanism, exactly."""
    while True:
        i = rng.integer_below(len(exponents))
        if exp_coin(rng, exponents[i]):
            return i


def _sensitivity(sensitivity: Number, monotone: bool, step: Number | None) -> Sensitivity:
    """What is stated, as fractions."""
    found = []
    for name, value in (("sensitivity", sensitivity), ("step", 1 if step is None else step)):
        number = _fraction(value, floats=True)
        if number is None or not SMALLEST <= number <= LARGEST:
            raise ValueError(f"{name} must be a positive number from {SMALLEST:g} to {LARGEST:g}, got {value!r}")
        found.append(number)
    return Sensitivity(found[0], monotone, None if step is None else found[1])


def _fractions(scores: object, step: Fraction | None) -> list[Fraction]:
    """Every score as it is, exactly. No message shows one: they are data."""
    check_length("scores", scores)
    given = scores.values() if isinstance(scores, Mapping) else scores
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray | ValuesView):
        raise ValueError(f"scores must be a list, a vector or a mapping of numbers, got {type(scores).__name__}")
    if np.ndim(given if isinstance(given, np.ndarray) else 0) > 1:
        raise ValueError("scores must be one number per candidate, got an array of several dimensions")
    listed = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if len(listed) < 2:
        raise ValueError(f"scores must be of at least 2 candidates to choose from, got {len(listed)}")
    found = []
    for score in listed:
        number = _fraction(score, floats=step is not None)
        if number is None:
            advice = "" if step is not None else "; floats need step=, a public grid to round them to"
            raise ValueError(f"scores must be finite numbers: whole ones, fractions or decimals{advice}")
        if abs(number) > LARGEST:
            raise ValueError(f"scores must lie within ±{LARGEST:g}: use a larger unit")
        found.append(number)
    return found


def _fraction(value: object, *, floats: bool) -> Fraction | None:
    """A number without loss, or None: integers, fractions, finite decimals, and floats where they are taken."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    if floats and isinstance(value, Real) and math.isfinite(value):
        return exact(float(value))
    return None
