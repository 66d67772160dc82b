"""Cards in stages: small cards one on top of the other, each an exact draw (theory, section 13)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_callback, check_integer
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.engines.card_priors import CardPrior, CardShape
from privsolve.engines.card_rules import rule_of
from privsolve.engines.choosing import choosing_error
from privsolve.engines.numbering import count_supports
from privsolve.engines.rejection import SamplingCallback
from privsolve.engines.stages.sampler import StageInstance, StageSampler, public_logs, relative_error
from privsolve.engines.supports.problems import Columns, columns_of
from privsolve.losses import ScoreLoss
from privsolve.mechanisms.exponential import RELATIVE_ERROR, TOO_LARGE, temperature_of_range
from privsolve.mechanisms.units import Units, UnitSampler, joint_range
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange, Profile, Pure
from privsolve.problems.priors import Prior, SparsePrior, check_prior, least_log_of_short, relative_log_weights
from privsolve.problems.problem import Problem
from privsolve.problems.questions import question_of
from privsolve.releases import STAGES, Diagnostics, Release, Run

MOST_STAGES = 6
MOST_SUPPORTS = 700_000
"""As many supports as are listed in about a second; each takes a few hundred bytes."""

USUAL_STAGE = 4
"""Columns of one stage, unless more are asked for: a fifth one takes ten times as long and hardly helps."""

LARGEST_STAGE = 5
MOST_CHOICES = 2_000_000
"""Columns of one stage, and ways to give them points: all are tried when a support is looked into."""

READABLE = 12
"""Features of all stages together, unless more are asked for."""

LATER_INTERCEPT = 3
"""Later stages move the intercept by at most so many points."""

ENOUGH_RECORDS = (700.0, 4_000.0)
"""A second and a third stage pay from so many records times epsilon on, counted as under add-remove (docs/risk-scores.md)."""


@dataclass(frozen=True)
class Stages:
    """A public plan: the domain of each stage in turn, with equal shares of epsilon, and a prior for all.

    Where `units` are offered the first stage chooses one of them, and later ones keep it.
    """

    domains: tuple[SparsePoints, ...]
    prior: Prior
    units: Units | None = None

    def __post_init__(self) -> None:
        check_integer("stages", len(self.domains), 1, MOST_STAGES)
        if not all(isinstance(domain, SparsePoints) for domain in self.domains):
            raise ValueError("domains must be SparsePoints: the cards of each stage")
        if self.units is not None and not isinstance(self.units, Units):
            raise ValueError(f"units must be Units, such as Units((0.25, 0.5)), got {self.units!r}")
        first = self.domains[0]
        if len({(domain.dim, domain.intercept is None) for domain in self.domains}) > 1:
            raise ValueError("domains must have the same columns, and all an intercept or none")
        if any(isinstance(first, ConstrainedPoints) and first.on(domain) != domain for domain in self.domains):
            raise ValueError("domains must have the same constraints in all stages")
        for domain in self.domains:
            check_prior(self.prior, domain)
            check_integer("max_features of a stage", domain.max_features, 1, LARGEST_STAGE)
            supports = count_supports(first.columns, domain.max_features)
            if supports > 4 * MOST_SUPPORTS:
                raise ValueError(
                    f"max_features={domain.max_features}: a stage on {first.columns} features would list {supports:,} sets of "
                    f"them; use at most {columns_of_a_stage(first.columns)} and more stages"
                )
            if choices_of(domain) > MOST_CHOICES:
                raise ValueError(
                    f"max_points={domain.max_points}: {choices_of(domain):,} ways to give points to {domain.max_features} "
                    f"features are more than {MOST_CHOICES:,}; use smaller points, fewer features or a smaller intercept"
                )

    @classmethod
    def of(
        cls,
        dim: int,
        count: int,
        *,
        max_features: int | None,
        max_points: int,
        intercept: tuple[int, int] | None,
        restrict: Callable[[SparsePoints], SparsePoints] | None = None,
        units: Units | None = None,
    ) -> Stages:
        """`count` stages of at most `max_features` columns each; as many as can be listed, if that is left out.

        `restrict` makes the cards with constraints of all cards of a stage.
        """
        columns = dim - (intercept is not None)
        count = check_integer("stages", count, 1, MOST_STAGES)
        most = min(columns_of_a_stage(columns), READABLE // count) if max_features is None else max_features
        check_integer("max_features of a stage", most, 1, LARGEST_STAGE)
        first = SparsePoints(dim, min(most, columns), max_points, intercept)
        later = first
        if intercept is not None:
            moves = min(max(abs(end) for end in intercept), LATER_INTERCEPT)
            later = SparsePoints(dim, first.max_features, max_points, (-moves, moves))
        if restrict is not None:
            first, later = restrict(first), restrict(later)
        usable = len(first.usable) if isinstance(first, ConstrainedPoints) else columns
        return cls((first, *[later] * (count - 1)), stage_prior(usable), units)

    @property
    def count(self) -> int:
        """Number of stages."""
        return len(self.domains)

    @property
    def domain(self) -> SparsePoints:
        """All cards that the sum of the stages can be."""
        first = self.domains[0]
        features = min(sum(domain.max_features for domain in self.domains), first.columns)
        ends = [domain.intercept for domain in self.domains if domain.intercept is not None]
        intercept = (sum(low for low, _ in ends), sum(high for _, high in ends)) if ends else None
        cards = SparsePoints(first.dim, features, sum(domain.max_points for domain in self.domains), intercept)
        return first.on(cards) if isinstance(first, ConstrainedPoints) else cards

    def epsilons(self, epsilon: float) -> tuple[float, ...]:
        """The epsilon of each stage: equal shares that add up to no more than `epsilon`, exactly."""
        share = at_most(exact(epsilon) / self.count)
        return (share,) * self.count

    def setting(self, shares: Sequence[float]) -> dict[str, Any]:
        """The public description of the stages, for the release."""
        domains = [domain.to_dict() for domain in self.domains]
        found = {"domains": domains, "epsilons": list(shares), "prior": self.prior.to_dict()}
        return found | ({"units": self.units.to_dict()} if self.units else {})

    def losses(self, loss: ScoreLoss) -> tuple[ScoreLoss, ...]:
        """What a record may lose: with each of the units, if some are offered."""
        return self.units.losses(loss) if self.units else (loss,)


def choices_of(domain: SparsePoints) -> int:
    """In how many ways the largest support can have points and an intercept."""
    low, high = domain.intercept or (0, 0)
    return int((2 * domain.max_points) ** domain.max_features) * (high - low + 1)


def columns_of_a_stage(columns: int) -> int:
    """The public rule: as many columns as there are supports to list, at most four and at least one."""
    fits = [most for most in range(1, USUAL_STAGE + 1) if count_supports(columns, most) <= MOST_SUPPORTS]
    return min(max(fits, default=1), max(columns, 1))


def number_of_stages(epsilon: float, records: int, adjacency: Adjacency | str = Adjacency.REPLACE) -> int:
    """The rule for how many stages are worth their noise: by `records·epsilon`, half of it where a record is replaced.

    The number of records must be one that may be known: it is public under `"replace"`, and a noisy count will do where it
    is not (`CountedStages`).
    """
    worth = records * calibration.check_epsilon(epsilon) / Adjacency.of(adjacency).range_factor
    return 1 + sum(worth >= enough for enough in ENOUGH_RECORDS)


def stage_prior(columns: int) -> SparsePrior:
    """About five features are expected before a stage cuts them off at its most, however many there are to choose from."""
    return SparsePrior(p_zero=max(0.5, 1 - 5 / columns))


def staged(
    problem: Problem,
    epsilon: float,
    plan: Stages,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: SamplingCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose a card in stages: each draws a small card exactly, given those before it, and adds it to them.

    `problem.domain` must be `plan.domain`. `budget` pays for all stages, or refuses, before anything is drawn.

    Guarantee:
        The sum is `epsilon`-DP under the stated adjacency, and `Σ ε_k²/8`-zCDP: stage k is an exact draw of the exponential
        mechanism with `ε_k`, and depends on the data beside that only through the earlier stages (theory, sections 4 and
        13). Running time, failures and the diagnostics are not covered (section 7).
    """
    start = time.perf_counter()
    check_plan(problem, plan, Stages)
    check_callback("progress", progress)
    rng = as_randomness(random_state)
    shares = plan.epsilons(epsilon)
    columns = columns_of(replace(problem, domain=plan.domains[0]))
    guarantee = Guarantee(
        _profile(epsilon, shares), Adjacency.of(adjacency), _words(plan), "exact sample", theory="13",
        oracle="exact sampler", seeded=rng.is_seeded, schema_guessed=problem.schema_guessed,
    )  # fmt: skip
    draws = StageDraws(problem, plan, columns, adjacency, rng, progress)
    draws.check(shares)
    ready = [draws.first(shares)]  # compiles, and takes the memory that later stages take again
    rng.ask(question_of(problem, epsilon=epsilon, adjacency=adjacency, plan=plan))
    with charged(budget, guarantee):
        try:
            found = draws.all_drawn(shares, ready)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while sampling: nothing was released") from None
    return found.run(start, guarantee, plan.setting(shares))


def check_plan(problem: object, plan: object, kind: type[Any]) -> None:
    """Raise unless it is a problem on records, and a plan of that kind for it."""
    if not isinstance(plan, kind):
        raise ValueError(f"plan must be {kind.__name__}, such as {kind.__name__}.of(...), got {type(plan).__name__}")
    if not isinstance(problem, Problem) or problem.domain != plan.domain:  # type: ignore[attr-defined]
        raise ValueError("problem: its domain must be that of the plan, `plan.domain`")


@dataclass(frozen=True)
class DrawnStages:
    """The sum of all stages, the problem with the unit that was chosen, and what each stage has cost."""

    problem: Problem
    weights: Int64Array
    statistics: list[dict[str, Any]]

    def run(self, start: float, guarantee: Guarantee, setting: dict[str, Any]) -> Run:
        """What is released, and the curator's diagnostics."""
        problem, values = self.problem, {"method": "stages", "stages": self.statistics}
        release = Release(problem.model(self.weights), guarantee, problem.setting | {STAGES: setting})
        return Run(release, Diagnostics(time.perf_counter() - start, problem.quality(self.weights), values))


@dataclass(frozen=True)
class StageDraws:
    """What all stages of a run share."""

    problem: Problem
    plan: Stages
    columns: Columns
    adjacency: Adjacency | str
    rng: Randomness
    progress: SamplingCallback | None

    def sampler(self, k: int, kappa: float, earlier: Int64Array, loss: ScoreLoss) -> StageSampler:
        """The sampler of stage k on top of the weights of those before it."""
        problem, domain = self.problem, self.plan.domains[k]
        has_intercept = domain.intercept is not None
        usable = self.usable
        instance = StageInstance(
            np.ascontiguousarray(self.columns.rows[:, usable]), problem.table.positives, problem.table.negatives,
            problem.table.features @ earlier, loss, min(domain.max_features, len(usable)), domain.points,
            domain.values(domain.dim - 1) if has_intercept else np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        weights, intercepts = relative_log_weights(self.plan.prior, domain)
        rule = None
        if isinstance(domain, ConstrainedPoints):
            rule = rule_of(domain, usable, instance.most, np.flatnonzero(earlier[: domain.columns]))
            weights = _without_cancelling(weights, domain, earlier)
        return StageSampler(instance, weights[usable], intercepts, kappa, self.rng, progress=self.progress, rule=rule)

    def temperature(self, epsilon: float, losses: Sequence[ScoreLoss]) -> float:
        """`κ` of a stage that chooses among cards and these losses (theory, 13.4)."""
        return temperature_of_range(epsilon, self.adjacency, joint_range(losses))

    def weights_of(self, drawn: Int64Array) -> Int64Array:
        """The weights of the card that a sampler has drawn."""
        found = np.zeros(self.problem.domain.dim, dtype=np.int64)
        found[self.usable] = drawn[:-1]
        if self.plan.domains[0].intercept is not None:
            found[-1] = drawn[-1]
        return found

    @property
    def usable(self) -> Int64Array:
        """The columns that may have points."""
        domain = self.plan.domains[0]
        return np.array(
            domain.usable if isinstance(domain, ConstrainedPoints) else range(domain.columns), dtype=np.int64
        )

    def first(self, shares: Sequence[float]) -> StageSampler | UnitSampler:
        """The sampler of the first stage."""
        losses, nothing = self.plan.losses(self.problem.loss), np.zeros(self.problem.domain.dim, dtype=np.int64)
        kappa = self.temperature(shares[0], losses)
        samplers = [self.sampler(0, kappa, nothing, loss) for loss in losses]
        return UnitSampler(samplers, self.plan.units, kappa, self.rng) if self.plan.units else samplers[0]

    def all_drawn(self, shares: Sequence[float], ready: list[StageSampler | UnitSampler]) -> DrawnStages:
        """All stages; `ready` is emptied, and holds the first sampler or none."""
        weights, statistics, loss = np.zeros(self.problem.domain.dim, dtype=np.int64), [], self.problem.loss
        for k in range(len(shares)):
            make = partial(self.drawn, k, shares, weights, loss, ready.pop() if ready else None)
            drawn = self.rng.remembered(f"stage {k + 1}", make)
            weights = weights + np.array(drawn["weights"], dtype=np.int64)
            if "unit" in drawn:
                loss = self.plan.losses(loss)[drawn["unit"]]
            statistics.append(drawn["statistics"])
        return DrawnStages(replace(self.problem, loss=loss), weights, statistics)

    def drawn(
        self,
        k: int,
        shares: Sequence[float],
        earlier: Int64Array,
        loss: ScoreLoss,
        ready: StageSampler | UnitSampler | None,
    ) -> dict[str, Any]:
        """What stage k adds to the weights of those before it, and what it has cost, as plain values."""
        sampler = ready or (
            self.first(shares) if k == 0 else self.sampler(k, self.temperature(shares[k], [loss]), earlier, loss)
        )
        if isinstance(sampler, UnitSampler):
            unit, card = sampler.draw()
            return {"weights": self.weights_of(card).tolist(), "unit": unit, "statistics": sampler.statistics}
        return {"weights": self.weights_of(sampler.draw()).tolist(), "statistics": asdict(sampler.statistics)}

    def check(self, shares: Sequence[float]) -> None:
        """Raise for whatever a stage would refuse; it depends on public numbers only."""
        for k, share in enumerate(shares):
            self._check_one(k, share)

    def _check_one(self, k: int, epsilon: float) -> None:
        domain, losses = self.plan.domains[k], self.plan.losses(self.problem.loss)
        points, intercepts = relative_log_weights(self.plan.prior, domain)
        points = points[self.usable]
        prior = CardPrior.of(
            points, intercepts, CardShape(len(points), points.shape[1], len(intercepts), domain.max_features)
        )
        # a point that would cancel those of a required column may be missing in a later stage: what that adds to logarithms
        missing = float(np.abs(points[np.isfinite(points)]).sum()) if isinstance(domain, ConstrainedPoints) else 0.0
        for offered in [losses] if k == 0 else [[loss] for loss in losses]:
            largest = self.temperature(epsilon, offered) * self.problem.n * joint_range(offered) + missing
            error = relative_error(prior, largest, choices_of(domain))
            if len(offered) > 1 and self.plan.units:
                error += choosing_error(largest + public_logs(prior) - sum(self.plan.units.log_weights))
            if not error <= RELATIVE_ERROR:
                raise ValueError(TOO_LARGE)


def _without_cancelling(log_weight: Floats, domain: ConstrainedPoints, earlier: Int64Array) -> Floats:
    """Points that would take those of a required variable away again are not allowed (theory, section 16)."""
    cancels = domain.points[None, :] == -earlier[: domain.columns, None]
    kept = np.array([name in domain.required for name in domain.variables])[:, None] & (
        earlier[: domain.columns, None] != 0
    )
    return np.where(cancels & kept, -np.inf, log_weight)


def _profile(epsilon: float, shares: Sequence[float]) -> Profile:
    if len(shares) == 1:
        return BoundedRange(calibration.check_epsilon(epsilon))
    return Pure(calibration.check_epsilon(epsilon), at_least(sum((exact(e) ** 2 for e in shares), Fraction()) / 8))


def _words(plan: Stages) -> str:
    return "exponential mechanism" if plan.count == 1 else f"exponential mechanism in {plan.count} stages"


def stages_utility_bound(
    plan: Stages, epsilon: float, *, loss: ScoreLoss, adjacency: Adjacency | str = Adjacency.REPLACE, beta: float = 0.05
) -> float:
    """With probability `1 - beta` no stage costs more than its best short card by more than this, all stages together.

    Each stage is compared with the best card of three features, one point each, that it could add (section 13), the first one
    in any unit that is offered.
    """
    beta = calibration.check_beta(beta)
    total = 0.0
    for k, (domain, share) in enumerate(zip(plan.domains, plan.epsilons(epsilon), strict=True)):
        # what later stages may add depends on the earlier ones, and so does the sum of their prior, which is at most 1
        _, log_p = least_log_of_short(plan.prior, domain, 3, normalised=k == 0)
        offered = plan.losses(loss)
        if k == 0 and plan.units:
            log_p += min(plan.units.log_weights)
        largest = joint_range(offered) if k == 0 else max(one.largest for one in offered)
        total += (-log_p - math.log(beta / plan.count)) / temperature_of_range(share, adjacency, largest)
    return total
