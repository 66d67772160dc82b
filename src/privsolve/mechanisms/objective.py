"""Full scorecards by objective perturbation of a clipped regression (theory, section 19): labels, and what numbers share.

The mechanism adds a random linear term to a strongly convex objective, minimises it, adds a little noise to the minimiser,
and makes whole points of what comes out. The noise is drawn exactly, the minimiser is certified, and the guarantee covers
floating point. Nothing here is compiled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_integer
from privsolve.data.patterns import BitRows, HeldRows, PatternTable, blocks_of
from privsolve.engines.regression import CENTRE_BITS, Logistic, Objective, Rows, minimise
from privsolve.errors import IntegerRangeError
from privsolve.mechanisms.card_points import MOST_FEATURES, Card, Options, chosen_features, whole_points, with_average
from privsolve.noise.accuracy import check_scipy
from privsolve.noise.discrete import RoundedGaussian
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.gaussian_curve import GaussianCurve, largest_shift, vertex_shifts
from privsolve.privacy.guarantee import Guarantee, Paid

OFFSET_SHARE = 0.15
"""Share of ε for the curvature, Λ (section 19.9 says how the public rules were found)."""

SUMS_SHARE = 0.02
"""Share of the squared shift for the noisy sums of the features."""

LEVEL_SHARE = 0.02
"""Share of the squared shift for the level of the risks, after the card is found."""

CHOICE_SHARE = 0.3
"""Share of the rest for choosing questions, if their number is limited."""

CLIP = 1.0
"""Largest length of a record's gradient."""

RADIUS = 1.3
"""Rows are shrunk to this many times their expected length."""

GUESS_VARIANCE = 0.004
"""How far, squared, the guess that all answers are equally likely is from the truth, when it meets the noisy sums."""

COMMON_DEVIATIONS = 2.0
COMMON_FEATURES = 8
"""So many features or more that have the same guess are moved together, if their mean share is so many deviations off."""

LABEL_DEVIATIONS = 4.0
"""Records of each label, in deviations of their noise, that are added before the log-odds of the labels are taken."""

LEVEL_VARIANCE = 0.25
"""How far, squared, the level of the risks is expected to be off, in log-odds, when it meets the noisy counts."""

RISK_UNITS = 2**20
"""Risks are rounded to multiples of `2^-20` before they are added up."""

NOISE_BITS = 40
"""Gaussian noise is drawn in steps of `2^-40` deviations."""

SUM_BITS = 56
"""That on sums in steps of `2^-56` deviations: they are in units of down to `2^-30`."""

FEWEST_STEPS = 16
"""A unit of a sum is at least so many steps of its noise, so that rounding down adds little noise."""

OUTPUT_DEVIATION = 2.0**-7
"""Deviation of the output noise, in log-odds: far below one point."""

BLUR = 2.0**-16
"""The shift that output noise hides, in its deviations, times the smaller of 1 and ε."""

MARGIN = 1 + 1e-12
"""Covers the roundings of the numbers that noise and penalty are computed from."""

MOST_RECORDS = 2**26
MOST_UNITS = 2**10


@dataclass(frozen=True)
class Plan:
    """The public numbers of one use of the mechanism: all that the noise is computed from.

    Args:
        epsilon: the ε that is stated.
        delta: the δ that is stated; above 0.
        adjacency: `"replace"` or `"add-remove"`.
        dim: number of features, without a constant.
        longest: the largest number of features that one record can have.
        choosing: whether questions are chosen first.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    dim: int
    longest: int
    choosing: bool = False
    output_deviation: ClassVar[float] = OUTPUT_DEVIATION
    regression: ClassVar[str] = "logistic regression"
    theory: ClassVar[str] = "19"
    fits: ClassVar[type[Any]] = PatternTable

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", calibration.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", calibration.check_delta(self.delta))
        object.__setattr__(self, "adjacency", Adjacency.of(self.adjacency))
        check_integer("features", self.dim, 1, MOST_FEATURES)
        _ = self.curve
        for solve in range(len(self.offsets)):  # the shortest rows allow the least
            clip = self.clip(1.0)
            if self.tolerance(self.penalty(solve, RADIUS), self.deviation(solve, clip), self.dim + 1) <= 0:
                raise ValueError(f"epsilon={self.epsilon:g} is too small for {self.dim} features: use a larger one")

    @property
    def blur(self) -> float:
        """The shift that output noise hides in each solve."""
        return BLUR * min(1.0, self.epsilon)

    @property
    def offset_share(self) -> float:
        """Share of ε for the curvature."""
        return OFFSET_SHARE

    @property
    def count_shares(self) -> float:
        """Share of the squared shift for all noisy counts."""
        return SUMS_SHARE + LEVEL_SHARE

    @property
    def offsets(self) -> tuple[float, ...]:
        """Λ of each solve; the last is the one that is released."""
        return self._for_solves(self.offset_share * self.epsilon)

    def _for_solves(self, whole: float) -> tuple[float, ...]:
        return (CHOICE_SHARE * whole, (1 - CHOICE_SHARE) * whole) if self.choosing else (whole,)

    def shifts(self, scale: float) -> tuple[tuple[float, ...], ...]:
        """The vertices of each stage at a scale of noise: the noisy counts, then each solve (section 19.4)."""
        counts = ((math.sqrt(self.count_shares) * scale,),)
        return counts + tuple(
            self.vertices(math.sqrt(share) * scale) for share in self._for_solves(1 - self.count_shares)
        )

    def vertices(self, shift: float) -> tuple[float, ...]:
        """The vertices of a solve, the largest of which is `shift`."""
        return (0.0, shift) if self.adjacency is Adjacency.ADD_REMOVE else (0.0, shift / 2, shift / 2, shift)

    @cached_property
    def curve(self) -> GaussianCurve:
        """The privacy curve, which fixes the scale of all noise."""
        blur = math.sqrt(len(self.offsets)) * self.blur
        return largest_shift(
            lambda scale: vertex_shifts(*self.shifts(scale)), self.epsilon, self.delta, math.fsum(self.offsets), blur
        )

    def noise(self, moved: float, share: float) -> float:
        """Deviation of the noise on numbers that one record moves by `√moved`, with that share of the squared shift."""
        largest = self.curve.shifts[0]  # of all stages together
        return MARGIN * math.sqrt(moved) / (math.sqrt(share) * largest)

    @property
    def sums_deviation(self) -> float:
        """Deviation of the noise on the sums of the features and on the label counts (section 19.8)."""
        return self.noise(self.adjacency.range_factor * (self.longest + 1), SUMS_SHARE)

    @property
    def level_deviation(self) -> float:
        """Deviation of the noise on the label counts and the sum of the risks (section 19.9)."""
        return self.noise(1 + self.adjacency.range_factor, LEVEL_SHARE)

    def clip(self, length: float) -> float:
        """The largest length of a record's gradient, where rows are expected to have this length."""
        return CLIP

    def curvature(self, radius: float) -> float:
        """The largest curvature β that one record can add (section 19.1)."""
        return CLIP * (radius - CLIP) if radius >= 2 * CLIP else radius**2 / 4

    def deviation(self, solve: int, clip: float = CLIP) -> float:
        """Deviation σ of the linear term: `clip / g`, where g is the shift that one record causes."""
        share = self._for_solves(1 - self.count_shares)[solve]
        return clip * self.noise(self.adjacency.range_factor**2, share)

    def penalty(self, solve: int, radius: float) -> float:
        """The penalty λ: `Λ = log(1 + β/λ)`."""
        return MARGIN * self.curvature(radius) / math.expm1(self.offsets[solve])

    def tolerance(self, penalty: float, deviation: float, dim: int) -> float:
        """The length of a gradient that output noise hides (section 19.6)."""
        of_rounding = 2 * math.sqrt(dim) * 2.0**-NOISE_BITS
        of_noise = math.sqrt(dim) * deviation * 2.0**-NOISE_BITS
        return penalty * self.output_deviation * (self.blur - of_rounding) - 2 * of_noise

    def check(self, table: Any, units: int) -> None:
        """Refuse a table that the plan was not made for, before anything is paid."""
        self.check_kind(table)
        if table.dim != self.dim:
            raise ValueError(f"table has {table.dim} features, the plan was made for {self.dim}: they must match")
        if table.ranges is None or any(low < 0 or high > 1 for low, high in table.ranges):
            raise ValueError("table: objective perturbation needs features that are declared to be 0 or 1 (ranges)")
        if set(table.scales) != {1}:
            raise ValueError("table: objective perturbation needs features of scale 1")
        self.check_longest(table.held)
        if units < 1 or units & (units - 1) or units > MOST_UNITS:
            raise ValueError(f"units must be a power of two up to {MOST_UNITS}, got {units}")
        if max(self.level_deviation * RISK_UNITS, self.sums_deviation) * units * FEWEST_STEPS > 2**SUM_BITS:
            raise ValueError(f"epsilon={self.epsilon:g} is too small for exact noise on sums: use a larger one")
        if table.n > MOST_RECORDS * units:
            raise IntegerRangeError(
                f"the table has more than {MOST_RECORDS:,} records: state a sample_rate, for example 0.5"
            )

    def check_kind(self, table: object) -> None:
        """Refuse a table of labels for a plan for numbers, and the other way round."""
        if not isinstance(table, self.fits):
            raise ValueError(
                f"table must be a {self.fits.__name__} for a {type(self).__name__}, got {type(table).__name__}"
            )

    def check_options(self, options: Options) -> None:
        """Refuse options for other features than the plan was made for, before anything is paid."""
        signs = options.guess if options.signs is None else options.signs
        if not {np.shape(options.guess), np.shape(options.questions), np.shape(signs)} == {(self.dim,)}:
            raise ValueError(
                f"options must say something of each of the {self.dim} features that the plan was made for"
            )
        if not np.array_equal(np.unique(options.questions), np.arange(len(options.nested))):
            raise ValueError("options must number the questions 0, 1, ..., with one entry of nested for each")
        if self.choosing and options.max_questions is None:
            raise ValueError("options must state max_questions, because the plan chooses questions")

    def check_longest(self, rows: HeldRows) -> None:
        """Refuse records with more features than the plan states."""
        if max(int(block.sum(axis=1).max()) for _, block in blocks_of(rows)) > self.longest:
            raise ValueError(
                f"longest={self.longest} is exceeded by a record: state the largest number of features of one"
            )

    def find(self, table: Any, options: Options, rng: Randomness, units: int) -> tuple[Card, dict[str, Any]]:
        """The card of a table that was checked, and the curator's diagnostics."""
        card, values = solved_card(*_centred(table, self, options.guess, rng, units), self, options, rng)
        return _levelled(table, self, card, rng, units), values

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as a release states them."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": str(self.adjacency),
            "features": self.dim,
            "longest": self.longest,
            "choosing": self.choosing,
            "clip": CLIP,
            "offset": math.fsum(self.offsets),
            "deviation": self.deviation(len(self.offsets) - 1),
            "output_deviation": self.output_deviation,
        }


def perturbed_card(
    table: Any,
    plan: Plan,
    options: Options,
    *,
    units: int = 1,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
    draft: Paid | None = None,
) -> tuple[Card, Guarantee, dict[str, Any]]:
    """The points of a regression under differential privacy.

    Args:
        table: 0/1 features, without a constant: a `PatternTable` for a plain `Plan`, which fits labels, and a `TargetTable` for
            a `NumberPlan`, which fits numbers.
        plan: the public numbers, made for as many features as the table has.
        options: what is known beforehand.
        units: the counts of the table are multiples of `1 / units` of a record, a public power of two: weights of records, each
            of which adds at most `units` to one count (section 19.13).
        random_state: None for releases; a seed is for testing only.
        budget: pays before any noise is drawn, or refuses.
        draft: the private draft of the schema that the table was read by, which is paid for with the first release.

    Returns:
        The card, its guarantee, and the curator's diagnostics. For numbers, unit and intercept are for targets scaled to -1..1.

    Raises:
        BudgetExceeded: if the budget refuses.
        OracleNotCertified: if the minimiser could not be certified; nothing is released then.

    Guarantee:
        `plan.curve` under `plan.adjacency`, rounding included (theory, sections 19 and 20), provided that plan and options were
        chosen without looking at the data. Running time and the diagnostics are not covered.
    """
    start = time.perf_counter()
    plan.check(table, units)
    plan.check_options(options)
    check_scipy()
    rng = as_randomness(random_state)
    guarantee = Guarantee(
        plan.curve,
        plan.adjacency,
        f"objective perturbation of {plan.regression}",
        "rounded Gaussian noise",
        theory=plan.theory,
        oracle="Newton's method, certified",
        seeded=rng.is_seeded,
    )
    with charged(budget, guarantee, draft=draft):
        card, values = plan.find(table, options, rng, units)
    return card, guarantee, values | {"seconds": time.perf_counter() - start}


def solved_card(
    rows: Rows, unsure: float, plan: Plan, options: Options, rng: Randomness
) -> tuple[Card, dict[str, Any]]:
    """The points of the perturbed minimiser, and the curator's diagnostics: questions are chosen first if there is a limit.

    Radius and clip of the rows are not known yet. `unsure` is the deviation of the noise in their centre.
    """
    kept = np.ones(plan.dim, dtype=bool)
    if plan.choosing:
        first, _ = _solve(rows, plan, options, rng, 0, kept)
        kept = chosen_features(first[0], options)
    (weights, intercept), values = _solve(rows, plan, options, rng, len(plan.offsets) - 1, kept)
    weights, intercept = with_average(weights, intercept, rows.centre, unsure, options)
    points, unit = whole_points(weights, options)
    return Card(points, unit, intercept), values


def _centred(table: PatternTable, plan: Plan, guess: Floats, rng: Randomness, units: int) -> tuple[Rows, float]:
    """The records, centred, with the log-odds of the labels as their offset (section 19.8), and how unsure the centre is."""
    sums = np.zeros(table.dim, dtype=np.int64)
    for place, block in table.blocks():
        sums += (table.positives[place] + table.negatives[place]) @ block
    found = noisy([*sums.tolist(), *_labels(table)], plan.sums_deviation, rng, units)
    positive, negative = np.maximum(found[-2:], 0.0)
    more = LABEL_DEVIATIONS * plan.sums_deviation
    offset = math.log((positive + more) / (negative + more))
    centre, unsure = centre_of(found[:-2], max(positive + negative, 1.0), plan.sums_deviation, guess)
    losses = Logistic(table.positives / units, table.negatives / units)
    return Rows(table.held, losses, centre, offset=offset), unsure


def centre_of(sums: Floats, records: float, deviation: float, guess: Floats) -> tuple[Floats, float]:
    """Where features with these noisy sums are centred, and the deviation of the noise in that (section 19.8)."""
    shares, spread = sums / records, (deviation / records) ** 2
    guess = _moved_together(guess, shares, spread)
    trusted = GUESS_VARIANCE / (GUESS_VARIANCE + spread)
    centre = guess + trusted * (np.clip(shares, 0.0, 1.0) - guess)
    return np.round(centre * 2**CENTRE_BITS) / 2**CENTRE_BITS, trusted * deviation / records


def _moved_together(guess: Floats, shares: Floats, spread: float) -> Floats:
    """The guess after a look at the mean noisy share of the features that have the same one.

    A mean of many shares has little noise. Words in messages, for example, are all guessed to be in half of them, and are rare.
    """
    moved = guess.copy()
    for value in np.unique(guess):
        mine = guess == value
        off = float(shares[mine].mean()) - value
        variance = spread * (1 / mine.sum() + 2 * value**2)  # of the sums, and of the number of records
        if mine.sum() >= COMMON_FEATURES and off**2 > COMMON_DEVIATIONS**2 * variance:
            moved[mine] += off * (1 - COMMON_DEVIATIONS**2 * variance / off**2)
    return np.clip(moved, 0.0, 1.0)


def _labels(table: PatternTable) -> tuple[int, int]:
    return int(table.positives.sum()), int(table.negatives.sum())


def noisy(counts: Sequence[int], deviation: float, rng: Randomness, units: int = 1) -> Floats:
    """Integers in multiples of `1 / units` with Gaussian noise of at least this deviation, rounded down to a fine grid."""
    steps = math.floor(2**SUM_BITS / (deviation * units))
    noise = RoundedGaussian(SUM_BITS).draws(rng, len(counts))
    return np.array([(count * steps + int(k)) / (steps * units) for count, k in zip(counts, noise, strict=True)])


def counts_by_total(table: PatternTable, points: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The totals that records have, in ascending order, and how many positive and negative records have each."""
    least = int(points[points < 0].sum())
    found = np.zeros((2, int(np.abs(points).sum()) + 1), dtype=np.int64)
    for place, block in table.blocks():
        totals = block @ points - least
        np.add.at(found[0], totals, table.positives[place])
        np.add.at(found[1], totals, table.negatives[place])
    used = np.flatnonzero(found.any(axis=0))
    return used + least, found[0, used], found[1, used]


def _levelled(table: PatternTable, plan: Plan, card: Card, rng: Randomness, units: int) -> Card:
    """The card with the level of its risks moved to the share of positive records, as far as noise allows (section 19.9)."""
    scores, yes, no = counts_by_total(table, card.points)
    risks = expit(scores * card.unit + card.intercept).tolist()
    expected = sum(int(count) * round(risk * RISK_UNITS) for count, risk in zip(yes + no, risks, strict=True))
    exact = [label * RISK_UNITS for label in _labels(table)]
    positive, negative, found = noisy([*exact, expected], plan.level_deviation, rng, RISK_UNITS * units)
    least = LABEL_DEVIATIONS * plan.level_deviation
    records = max(positive + negative, 4 * least)
    if min(positive, found) < least or max(positive, found) > records - least:
        return card
    moved = float(logit(positive / records) - logit(found / records))
    spread = plan.level_deviation**2 * (1 / positive**2 + 1 / found**2)
    return replace(card, intercept=card.intercept + moved * LEVEL_VARIANCE / (LEVEL_VARIANCE + spread))


def _solve(
    whole: Rows, plan: Plan, options: Options, rng: Randomness, solve: int, kept: Any
) -> tuple[tuple[Floats, float], dict[str, Any]]:
    """One perturbed problem on the features that are kept: noise, certified minimiser, output noise."""
    centre = whole.centre
    length = math.sqrt(float((centre * (1 - centre))[kept].sum()) + 1)
    radius, clip = RADIUS * length, plan.clip(length)
    rows = replace(whole, features=_only(whole.features, kept), centre=centre[kept], radius=radius, clip=clip)
    penalty, deviation = plan.penalty(solve, radius), plan.deviation(solve, clip)
    drawn = RoundedGaussian(NOISE_BITS).draws(rng, rows.dim)
    linear = np.asarray(drawn * (deviation * 2.0**-NOISE_BITS), dtype=np.float64)
    signs = None if options.signs is None else options.signs[kept]
    objective = Objective(rows, penalty, linear, options.sparsity * deviation, signs)
    found, bound = minimise(objective, plan.tolerance(penalty, deviation, rows.dim))
    released = _blurred(found, plan.output_deviation, rng)
    weights = np.zeros(plan.dim)
    weights[kept] = released[:-1]
    if options.signs is not None:
        weights = np.where(weights * options.signs < 0, 0.0, weights)
    intercept = float(released[-1]) - float(weights @ centre) + whole.offset
    return (weights, intercept), {"gradient_bound": bound, "penalty": penalty, "radius": radius}


def _only(rows: HeldRows, kept: Any) -> HeldRows:
    """The rows with only the features that are kept."""
    if kept.all():
        return rows
    return BitRows.of((block[:, kept] for _, block in blocks_of(rows)), len(rows), int(kept.sum()))


def _blurred(found: Floats, deviation: float, rng: Randomness) -> Floats:
    """The minimiser on a fine grid, with the output noise that hides rounding (section 19.6)."""
    step = deviation * 2.0**-NOISE_BITS
    noise = RoundedGaussian(NOISE_BITS).draws(rng, len(found))
    return np.array([(round(value / step) + int(k)) * step for value, k in zip(found, noise, strict=True)])
