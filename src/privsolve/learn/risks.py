"""Risk scores: from a table to a card with a probability for every total, drawn in stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

from privsolve.checks import check_choice
from privsolve.data import EncodedTable, Schema
from privsolve.domains.trees import tree_schema
from privsolve.engines.rejection import SamplingCallback
from privsolve.learn.fitting import with_outside
from privsolve.learn.limits import NO_LIMITS, CardLimits
from privsolve.losses import NARROW_SPAN, BrierLoss, ZeroOneLoss
from privsolve.mechanisms.counted import CountedStages, staged_by_count
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.mechanisms.stages import Stages, number_of_stages, staged
from privsolve.mechanisms.units import Units, one_or_several
from privsolve.models.risk import RiskScore
from privsolve.models.score_range import check_scores
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.problem import Problem
from privsolve.releases import Run


class Objective(StrEnum):
    """What a card is chosen by."""

    MISTAKES = "mistakes"
    """Wrong decisions, with public costs: the card says yes or no."""

    RISK = "risk"
    """The squared error of a probability: the card says how likely it is."""


def risk_loss(log_odds: float) -> BrierLoss:
    """What risk scores are chosen by, with this unit."""
    return BrierLoss(log_odds, NARROW_SPAN)


@dataclass(frozen=True)
class StagedRecipe:
    """How a card is drawn in stages: everything but the data. All of it is public and fixed before the data is looked at.

    `stages` and `max_features` (of one stage) are chosen by public rules where they are None. The sum of all stages keeps to
    the `limits`. Chosen by risk, the costs only move the decision: positive where the risk is above
    `false_positive / (false_positive + false_negative)`.
    """

    epsilon: float
    schema: Schema
    objective: Objective = Objective.RISK
    stages: int | None = None
    max_features: int | None = None
    max_points: int = 3
    intercept: int | tuple[int, int] = (-8, 8)
    log_odds: float | tuple[float, ...] = 0.5
    adjacency: Adjacency | str = Adjacency.REPLACE
    false_positive: int = 1
    false_negative: int = 1
    limits: CardLimits = NO_LIMITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", check_choice("objective", self.objective, Objective))
        Adjacency.of(self.adjacency)
        _ = ZeroOneLoss(self.false_positive, self.false_negative)
        object.__setattr__(self, "log_odds", one_or_several(self.log_odds))
        if len(self.offered) != 1:
            _ = Units(self.offered)
        inverse_temperature(self.epsilon, self.adjacency, self.loss)
        _ = self.plan(1)

    @property
    def asked(self) -> Schema:
        """The schema with yes/no features: numbers between bounds are cut at equally distant public points."""
        return tree_schema(self.schema, intercept=True)

    @property
    def loss(self) -> BrierLoss | ZeroOneLoss:
        """What a record loses; of several units that are offered, with the first."""
        if self.objective is Objective.RISK:
            return risk_loss(self.offered[0])
        return ZeroOneLoss(self.false_positive, self.false_negative)

    @property
    def offered(self) -> tuple[float, ...]:
        """The units of a risk score."""
        return one_or_several(self.log_odds)

    @property
    def units(self) -> Units | None:
        """The units to choose from, if there are several."""
        return Units(self.offered) if len(self.offered) > 1 and self.objective is Objective.RISK else None

    def plan(self, records: int) -> Stages | CountedStages:
        """The stages; under `replace` the number of records is public and decides how many, else a noisy count does."""
        asked, ends = self.asked, self.intercept
        options: dict[str, Any] = {
            "max_features": self.max_features, "max_points": self.max_points,
            "intercept": ((-ends, ends) if isinstance(ends, int) else ends) if asked.intercept else None,
            "restrict": partial(self.limits.on, asked) if self.limits.states(asked) else None, "units": self.units,
        }  # fmt: skip
        if self.stages is None and Adjacency.of(self.adjacency) is Adjacency.ADD_REMOVE:
            return CountedStages.of(asked.dim, **options)
        count = number_of_stages(self.epsilon, records) if self.stages is None else self.stages
        return Stages.of(asked.dim, count, **options)

    def run(
        self,
        encoded: EncodedTable,
        *,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        progress: SamplingCallback | None = None,
        budget: Account | None = None,
    ) -> Run:
        """Choose for a table that `asked` has encoded; the diagnostics hold what fell outside the schema."""
        encoded.check(self.asked)
        plan = self.plan(encoded.table.n)
        domain = plan.domain
        check_scores(encoded.schema, [int(abs(domain.values(j)).max()) for j in range(domain.dim)])
        problem = Problem(encoded.table, domain, self.loss, encoded.schema)
        how: dict[str, Any] = {"random_state": random_state, "progress": progress, "budget": budget}
        if isinstance(plan, CountedStages):
            run = staged_by_count(problem, self.epsilon, plan, **how)
        else:
            run = staged(problem, self.epsilon, plan, adjacency=self.adjacency, **how)
        model = run.release.model
        if isinstance(model, RiskScore) and self.false_positive != self.false_negative:
            decided = model.deciding_at(self.false_positive / (self.false_positive + self.false_negative))
            diagnostics = replace(run.diagnostics, quality=run.diagnostics.quality | _mistakes(problem, decided))
            run = replace(run, release=replace(run.release, model=decided), diagnostics=diagnostics)
        return with_outside(run, encoded)


def _mistakes(problem: Problem, model: RiskScore) -> dict[str, float]:
    """The curator's figures at the cut of the model."""
    positive = problem.table.scores(model.weights) > model.cut * problem.table.unit
    mistakes = int(problem.table.negatives[positive].sum() + problem.table.positives[~positive].sum())
    return {"training_accuracy": 1.0 - mistakes / problem.n, "mistakes": mistakes}
