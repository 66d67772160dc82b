"""The one road from a table to a run, for the estimators and the command line alike.

A frame, a file or an engine becomes an `EncodedTable` by its schema (`Schema.table`), and a `Recipe` makes a run of that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from privsolve.checks import check_choice, check_count
from privsolve.data import EncodedTable
from privsolve.domains import ConstrainedPoints, Domain, IntegerBall, SparsePoints, TernaryCube
from privsolve.engines.supports.problems import declares_columns
from privsolve.engines.supports.work import check_work, default_max_features
from privsolve.losses import BrierLoss, ZeroOneLoss
from privsolve.mechanisms.exponential import Exponential
from privsolve.mechanisms.registry import all_mechanisms, mechanism_of
from privsolve.mechanisms.solving import resolve_oracle
from privsolve.models.risk import RiskScore
from privsolve.models.score_range import check_scores
from privsolve.noise.entropy import Randomness
from privsolve.oracles.base import Oracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import Prior
from privsolve.problems.problem import Problem
from privsolve.releases import Run

DomainName = Literal["cards", "ball", "ternary"]
"""Domains of linear rules that have a name."""

WIDE = 50
"""Features from which on the exponential mechanism on a ball has taken minutes on usual tables."""

_log = logging.getLogger("privsolve")


class Objective(StrEnum):
    """What a card is chosen by."""

    MISTAKES = "mistakes"
    """Wrong decisions, with public costs: the card says yes or no."""

    RISK = "risk"
    """The squared error of a probability (Brier): the card says how likely it is."""


@dataclass(frozen=True)
class Recipe:
    """How weights are chosen: everything but the data. All of it is public and fixed before the data is looked at.

    Which of `prior`, `oracle`, `noise` and `delta` may be given is the mechanism's to say (`Mechanism.options`), and so is what
    stands for those that are left out (`Mechanism.defaults`).

    Chosen by risk, the costs only move the decision: positive where the risk is above
    `false_positive / (false_positive + false_negative)`.
    """

    epsilon: float
    mechanism: str = "exponential"
    adjacency: Adjacency | str = Adjacency.REPLACE
    prior: Prior | None = None
    oracle: str | Oracle = "tree"
    noise: str | None = None
    delta: float | None = None
    false_positive: int = 1
    false_negative: int = 1
    objective: Objective = Objective.MISTAKES
    log_odds: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", check_choice("objective", self.objective, Objective))
        mechanism = mechanism_of(self.mechanism)
        for option in self._given:
            if option not in mechanism.options:
                takers = " and ".join(other.called for other in all_mechanisms() if option in other.options)
                raise ValueError(f"{option} is for {takers}: leave it out with {mechanism.called}")
        resolve_oracle(self.oracle)
        calibration.check_epsilon(self.epsilon)
        calibration.range_sensitivity(self.adjacency)  # refuses an unknown adjacency
        if self.delta is not None:
            calibration.check_delta(self.delta)
        _ = self.loss, self._costs

    @property
    def _given(self) -> dict[str, Any]:
        """The options that were not left out."""
        options = {"prior": self.prior, "noise": self.noise, "delta": self.delta}
        given = {name: value for name, value in options.items() if value is not None}
        return given if self.oracle == "tree" else given | {"oracle": self.oracle}

    @property
    def _costs(self) -> ZeroOneLoss:
        """What the two kinds of mistake cost."""
        return ZeroOneLoss(self.false_positive, self.false_negative)

    @property
    def loss(self) -> ZeroOneLoss | BrierLoss:
        """What a record loses. Brier's loss has the whole scale of risks, so that it is not flat where outcomes are rare."""
        return self._costs if self.objective is Objective.MISTAKES else BrierLoss(self.log_odds)

    def run(
        self,
        encoded: EncodedTable,
        domain: Domain,
        *,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        progress: Any = None,
        budget: Account | None = None,
    ) -> Run:
        """Choose weights; the release carries the schema, the diagnostics what fell outside of it."""
        encoded.check()
        table, schema, mechanism = encoded.table, encoded.schema, mechanism_of(self.mechanism)
        if isinstance(domain, ConstrainedPoints) and not mechanism.keeps_constraints:
            raise ValueError(
                f"{mechanism.called} does not keep constraints on cards (questions, cuts, directions): use the exponential "
                "mechanism, or leave them out"
            )
        check_scores(schema, [int(abs(domain.values(j)).max()) * (table.unit // s) for j, s in enumerate(table.scales)])
        problem = Problem(table, domain, self.loss, schema)
        if isinstance(domain, SparsePoints) and declares_columns(problem):
            _check_work(domain, problem.n if Adjacency.of(self.adjacency) is Adjacency.REPLACE else 0)
        elif isinstance(domain, IntegerBall | TernaryCube) and mechanism.name == Exponential.name:
            _warn_of_width(domain)
        common: dict[str, Any] = {
            "adjacency": self.adjacency, "random_state": random_state, "progress": progress, "budget": budget,
        }  # fmt: skip
        run = mechanism.run(problem, self.epsilon, **mechanism.defaults(domain) | self._given, **common)
        return with_outside(self._decided(run, problem), encoded)

    def _decided(self, run: Run, problem: Problem) -> Run:
        """The run with the threshold of a risk score where the costs put it."""
        model = run.release.model
        if not isinstance(model, RiskScore) or self.false_positive == self.false_negative:
            return run
        model = model.deciding_at(self.false_positive / (self.false_positive + self.false_negative))
        positive = problem.table.scores(model.weights) > model.cut * problem.table.unit
        mistakes = int(problem.table.negatives[positive].sum() + problem.table.positives[~positive].sum())
        quality = {"training_accuracy": 1.0 - mistakes / max(problem.n, 1), "mistakes": mistakes}
        diagnostics = replace(run.diagnostics, quality=run.diagnostics.quality | quality)
        return replace(run, release=replace(run.release, model=model), diagnostics=diagnostics)


def _warn_of_width(domain: Domain) -> None:
    """The tree over coordinates has no estimate by public numbers: where it is known to take long, that is said."""
    if domain.dim > WIDE:
        _log.warning(
            "privsolve: an exact draw from all weights on %d features may not end in minutes; cards (domain='cards') take "
            "seconds",
            domain.dim,
        )


def _check_work(domain: SparsePoints, records: int) -> None:
    if isinstance(domain, ConstrainedPoints):
        check_work(len(domain.usable), domain.max_features, records, domain.supports)
    else:
        check_work(domain.columns, domain.max_features, records)


def with_outside(run: Run, encoded: EncodedTable) -> Run:
    """The run with the number of records, and what fell outside the schema, among its diagnostics."""
    outside = {column: dict(counts) for column, counts in encoded.outside.items()}
    seen = {"training_records": encoded.table.n, "outside_the_schema": outside}
    return replace(run, diagnostics=replace(run.diagnostics, values=run.diagnostics.values | seen))


def scorecard_domain(
    dim: int, max_features: int | None, max_points: int, intercept: int | tuple[int, int] | None
) -> SparsePoints:
    """Scorecards on `dim` features, the last of which is the intercept if there is one; few features limit the card."""
    columns = dim - (intercept is not None)
    most = default_max_features(columns) if max_features is None else check_count("max_features", max_features)
    return SparsePoints(dim, min(most, columns), max_points, intercept)


def linear_domain(dim: int, domain: DomainName | Domain, intercept: bool) -> Domain:
    """A domain, or one of the names `"cards"` (few features, up to 3 points), `"ball"` (integers, squared length at most 4)
    and `"ternary"` (-1, 0 and 1).
    """
    if isinstance(domain, Domain):
        if domain.dim != dim:
            raise ValueError(f"domain has {domain.dim} coordinates, but the schema has {dim} features: they must match")
        return domain
    if domain == "cards":
        return scorecard_domain(dim, None, 3, (-8, 8) if intercept else None)
    if domain == "ball":
        return IntegerBall(dim, 4)
    if domain == "ternary":
        return TernaryCube(dim)
    raise ValueError(f"domain must be a Domain, 'cards', 'ball' or 'ternary', got {domain!r}")
