"""Short cards and other linear rules with integer weights: from an encoded table to a run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from privsolve.checks import check_choice
from privsolve.data import EncodedTable, Schema
from privsolve.domains import ConstrainedPoints, Domain, IntegerBall, SparsePoints, TernaryCube
from privsolve.engines.supports.problems import declares_columns
from privsolve.engines.supports.work import check_work
from privsolve.learn.card_limits import CardLimits
from privsolve.learn.recipe import RandomState, with_outside
from privsolve.losses import BrierLoss, ZeroOneLoss
from privsolve.mechanisms.exponential import Exponential
from privsolve.mechanisms.registry import all_mechanisms, mechanism_of
from privsolve.mechanisms.solving import resolve_oracle
from privsolve.models.risk import RiskScore
from privsolve.models.tally import check_scores
from privsolve.oracles.base import Oracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import Prior
from privsolve.problems.problem import Problem
from privsolve.releases import Run

DomainName = Literal["ball", "ternary"]
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
class LinearRecipe:
    """How weights are chosen: everything but the data. All of it is public and fixed before the data is looked at.

    Which of `prior`, `oracle`, `noise` and `delta` may be given is the mechanism's to say (`Mechanism.options`), and so is what
    stands for those that are left out (`Mechanism.defaults`).

    Chosen by risk, the costs only move the decision: positive where the risk is above
    `false_positive / (false_positive + false_negative)`.

    Args:
        epsilon: privacy budget of the release.
        domain: the weights to choose from: `CardLimits` for short cards, a `Domain`, or `"ball"` (integers, squared length
            at most 4) or `"ternary"` (-1, 0 and 1).
        mechanism: `"exponential"`, `"opdisc"` or `"rspm"`.
        adjacency: `"replace"` or `"add-remove"`.
        prior, oracle, noise, delta: options of the mechanism.
        false_positive, false_negative: costs of the two kinds of mistake.
        objective: what a card is chosen by, mistakes or risk.
        log_odds: for a risk score, what one point adds to the log-odds.
    """

    epsilon: float
    domain: CardLimits | Domain | DomainName = field(default_factory=CardLimits)
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
        Adjacency.of(self.adjacency)
        if self.delta is not None:
            calibration.check_delta(self.delta)
        if not isinstance(self.domain, CardLimits | Domain) and self.domain not in ("ball", "ternary"):
            raise ValueError(f"domain must be a Domain, 'cards', 'ball' or 'ternary', got {self.domain!r}")
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

    def encoding(self, schema: Schema) -> Schema:
        """The schema itself."""
        self.domain_on(schema)  # refuses what does not suit it
        return schema

    def domain_on(self, schema: Schema) -> Domain:
        """The weights to choose from, for the features of a schema."""
        if isinstance(self.domain, CardLimits):
            return self.domain.domain(schema)
        if isinstance(self.domain, Domain):
            if self.domain.dim != schema.dim:
                raise ValueError(
                    f"domain has {self.domain.dim} coordinates, but the schema has {schema.dim} features: they must match"
                )
            return self.domain
        return IntegerBall(schema.dim, 4) if self.domain == "ball" else TernaryCube(schema.dim)

    def run(
        self,
        encoded: EncodedTable,
        *,
        random_state: RandomState = None,
        progress: Any = None,
        budget: Account | None = None,
    ) -> Run:
        """Choose weights; the release carries the schema, the diagnostics what fell outside of it."""
        encoded.check()
        table, schema, mechanism = encoded.table, encoded.schema, mechanism_of(self.mechanism)
        domain = self.domain_on(schema)
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
        paid: dict[str, Any] = {"random_state": random_state, "progress": progress, "budget": budget}
        options = mechanism.defaults(domain) | self._given | {"adjacency": self.adjacency}
        run = mechanism.run(problem, self.epsilon, **options, **paid)
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
            "privsolve: an exact draw from all weights on %d features may not end in minutes; cards take seconds",
            domain.dim,
        )


def _check_work(domain: SparsePoints, records: int) -> None:
    if isinstance(domain, ConstrainedPoints):
        check_work(len(domain.usable), domain.max_features, records, domain.supports)
    else:
        check_work(domain.columns, domain.max_features, records)
