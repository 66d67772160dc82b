"""Full scorecards: from a table to a card with points for every answer (theory, sections 19 and 20)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from privsolve.arrays import Floats
from privsolve.checks import check_integer
from privsolve.data import EncodedTable, Schema
from privsolve.data.codes import checked_parts
from privsolve.data.columns.label import STEPS, TargetTable
from privsolve.data.constraints import Constraints
from privsolve.data.patterns import PatternTable
from privsolve.data.weights import UNITS, Weight
from privsolve.domains.trees import yes_no_schema
from privsolve.learn.recipe import Paying, joined_constraints, with_outside
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.card_points import Card, Options
from privsolve.mechanisms.number_objective import NumberPlan, turned
from privsolve.mechanisms.objective import Plan, counts_by_total, perturbed_card
from privsolve.models.full_card import FullCard, NumberCard
from privsolve.models.scales import cut_of_threshold
from privsolve.models.tally import check_scores
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.releases import Diagnostics, Release, Run

DEFAULT_DELTA = 1e-6
MOST_POINTS = 1000


@dataclass(frozen=True)
class _CardRecipe:
    """How points for every answer are found: everything but the data, all of it public."""

    epsilon: float
    delta: float = DEFAULT_DELTA
    adjacency: Adjacency | str = Adjacency.REPLACE
    max_points: int = 10
    max_questions: int | None = None
    sparsity: float = 0.0
    constraints: Constraints | None = None

    _plan: ClassVar[type[Plan]]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta == 0:
            raise ValueError(
                "delta must be above 0 for a full scorecard, for example 1e-6: with delta=0 choose a short card or a tree"
            )
        check_integer("max_points", self.max_points, 1, MOST_POINTS)
        self._plan(self.epsilon, self.delta, Adjacency.of(self.adjacency), 1, 1)
        nothing = np.zeros(1, dtype=np.int64)
        Options(np.zeros(1), nothing, (False,), self.max_points, self.max_questions, sparsity=self.sparsity)

    def encoding(self, schema: Schema) -> Schema:
        """Yes/no features of the columns that are not excluded, without an intercept."""
        stated = joined_constraints(schema, self.constraints)
        kept = [column for column in schema.columns if column.column not in stated.excluded]
        if not kept:
            raise ValueError("excluded: every column is excluded, so that nothing is left to ask for")
        less = Constraints(dict(stated.directions), stated.required)
        names = [column.column for column in kept]
        about, shares = schema.about.only(names), schema.frequencies.only(names)
        asked = replace(schema, columns=tuple(kept), constraints=less, about=about, frequencies=shares)
        return yes_no_schema(asked)

    def plan(self, asked: Schema) -> Plan:
        """The public numbers for the features of a schema, without the weight."""
        longest = sum(int(column.expand(np.arange(column.radix)).sum(axis=1).max()) for column in asked.columns)
        choosing = self.max_questions is not None and self.max_questions < len(asked.columns)
        return self._plan(self.epsilon, self.delta, Adjacency.of(self.adjacency), asked.dim, max(longest, 1), choosing)

    def options(self, asked: Schema) -> Options:
        """What is known beforehand, by feature, for a schema without the weight."""
        equal = np.concatenate([_guess(column) for column in asked.columns])
        stated = asked.feature_frequencies
        guess = np.array([own if known is None else known for own, known in zip(equal, stated, strict=True)])
        questions = np.repeat(np.arange(len(asked.columns)), [len(column.names) for column in asked.columns])
        required = frozenset(k for k, c in enumerate(asked.columns) if c.column in asked.constraints.required)
        signs = np.array(asked.constraints.signs(asked.columns), dtype=np.int64)
        nested = tuple(bool(c.expand(np.arange(c.radix)).sum(axis=1).max() > 1) for c in asked.columns)
        limits = (self.max_points, self.max_questions, required)
        return Options(guess, questions, nested, *limits, signs if signs.any() else None, self.sparsity)

    def _setting(self, plan: Plan) -> dict[str, Any]:
        """What the release says of how it was found."""
        return plan.to_dict() | {"max_points": self.max_points, "sparsity": float(self.sparsity)}


@dataclass(frozen=True)
class FullCardRecipe(_CardRecipe):
    """How a full scorecard is found: everything but the data. All of it is public and fixed before the data is looked at.

    Args:
        epsilon: privacy budget of the card.
        delta: the δ of the card; above 0.
        adjacency: `"replace"` or `"add-remove"`.
        max_points: the most points of one step.
        max_questions: the largest number of questions; they are chosen privately, with a part of epsilon.
        sparsity: how strongly small weights are set to 0; 0 keeps all.
        constraints: directions, required and excluded columns, beside those of the schema.
        false_positive, false_negative: costs of the two mistakes; they move the threshold of the decision.
        sample_rate: the share of the records that is read, by a public rule.
        weight: the column that says how much each record counts, and the largest weight; None counts all alike.
    """

    false_positive: int = 1
    false_negative: int = 1
    sample_rate: float = 1.0
    weight: Weight | None = None

    _plan = Plan

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = ZeroOneLoss(self.false_positive, self.false_negative)
        checked_parts(self.sample_rate)

    def encoding(self, schema: Schema) -> Schema:
        """Yes/no features of the columns that are not excluded, without an intercept; the weight is the last column."""
        found = super().encoding(schema)
        return found if self.weight is None else self.weight.beside(found)

    def run(self, encoded: EncodedTable, **paid: Unpack[Paying]) -> Run:
        """Find the card for a table that the schema of `encoding` has read."""
        encoded.check()
        rng, budget = paid.get("random_state"), paid.get("budget")  # no progress: a fit takes a moment
        asked, table, units = encoded.schema, encoded.table, 1
        if self.weight is not None:
            asked, table, units = self.weight.without(asked), self.weight.applied(table), UNITS
        plan, options = self.plan(asked), self.options(asked)
        schema = replace(asked, intercept=True)
        card, guarantee, values = perturbed_card(
            table, plan, options, units=units, draft=schema.paid, random_state=rng, budget=budget
        )
        model = self.model(schema, card)
        quality = _quality(table, model)
        setting = self._setting(plan)
        if encoded.sample_rate < 1:
            setting["sample_rate"] = encoded.sample_rate
        if self.weight is not None:
            setting["weight"] = self.weight.to_dict()
            quality["mistakes"] = _quality(self.weight.dropped(encoded.table), model)["mistakes"]
        release = Release(model, guarantee, {"objective": setting})
        seconds = float(values.pop("seconds"))
        return with_outside(Run(release, Diagnostics(seconds, quality, values)), encoded)

    def model(self, schema: Schema, card: Card) -> FullCard:
        """The card as a model; the intercept's fraction of a point is the base of its risks."""
        constant = round(card.intercept / card.unit)
        base = card.intercept - constant * card.unit
        cut = cut_of_threshold(card.unit, self.false_positive / (self.false_positive + self.false_negative), base)
        check_scores(schema, [*card.points.tolist(), constant])
        weights = np.append(card.points, constant)
        return FullCard(weights, schema.features, schema.scales, True, schema, log_odds=card.unit, cut=cut, base=base)


@dataclass(frozen=True)
class NumberCardRecipe(_CardRecipe):
    """How a full scorecard for a number is found: everything but the data, all of it public.

    Args:
        epsilon, delta, adjacency, max_points, max_questions, sparsity, constraints: as in `FullCardRecipe`.
        low, high: public bounds of the target, to which it is cut.
    """

    low: float = field(kw_only=True)
    high: float = field(kw_only=True)

    _plan = NumberPlan

    def __post_init__(self) -> None:
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        super().__post_init__()

    def run(self, encoded: EncodedTable, **paid: Unpack[Paying]) -> Run:
        """Find the card for a table that the schema of `encoding` has read."""
        encoded.check()
        assert encoded.targets is not None
        return with_outside(self.run_records(encoded.targets, encoded.schema, **paid), encoded)

    def run_records(self, records: TargetTable, asked: Schema, **paid: Unpack[Paying]) -> Run:
        """Find the card for records with targets in steps."""
        rng, budget = paid.get("random_state"), paid.get("budget")  # no progress: a fit takes a moment
        plan, options = self.plan(asked), self.options(asked)
        card, guarantee, values = perturbed_card(
            records, plan, options, draft=asked.paid, random_state=rng, budget=budget
        )
        model = self._model(asked, card)
        seconds = float(values.pop("seconds"))
        quality = _number_quality(records, card, (self.high - self.low) / 2)
        values |= {"training_records": records.n}
        return Run(Release(model, guarantee, {"objective": self._setting(plan)}), Diagnostics(seconds, quality, values))

    def in_steps(self, rows: NDArray[Any], targets: Floats) -> TargetTable:
        """Records in memory: features by the schema of `encoding`, and the number of each record, cut and rounded."""
        share = (np.clip(targets, self.low, self.high) - self.low) / (self.high - self.low)
        steps, counts = np.floor(share * STEPS + 0.5).astype(np.int64), np.ones(len(rows), dtype=np.int64)
        return TargetTable(np.asarray(rows, dtype=np.int8), steps, counts)

    def _model(self, schema: Schema, card: Card) -> NumberCard:
        """The card in units of the outcome; that of the mechanism is for targets scaled to -1..1."""
        check_scores(schema, card.points.tolist())
        half = (self.high - self.low) / 2
        scaled = (card.unit * half, self.low + half + card.intercept * half, self.low, self.high)
        return NumberCard(card.points, schema.features, schema.scales, False, schema, None, *scaled)


def _guess(column: Any) -> Any:
    """The share of records with each feature if all answers are equally likely; answers that say nothing are left out."""
    codes = [code for code in range(column.radix) if code not in column.saying_nothing] or list(range(column.radix))
    return column.expand(np.array(codes)).mean(axis=0, dtype=np.float64)


def _quality(table: PatternTable, model: FullCard) -> dict[str, Any]:
    """The curator's figures on the training records, weighted if they are."""
    totals, yes, no = counts_by_total(table, model.weights[:-1].astype(np.int64))
    scores = totals + int(model.weights[-1])
    decided = scores > model.cut
    mistakes = int(no[decided].sum() + yes[~decided].sum())
    found: dict[str, Any] = {"training_accuracy": 1.0 - mistakes / max(table.n, 1), "mistakes": mistakes}
    positives, negatives = int(yes.sum()), int(no.sum())
    if positives and negatives:
        labels = np.repeat([1, 0], len(scores))
        weights = np.concatenate([yes, no])
        found["training_auc"] = float(roc_auc_score(labels, np.tile(scores, 2), sample_weight=weights))
    return found | {"larger_class": max(positives, negatives) / max(table.n, 1)}


def _number_quality(records: TargetTable, card: Card, half: float) -> dict[str, Any]:
    """The curator's figures on the training records, for targets that are cut and rounded."""
    targets = turned(records) / STEPS
    predicted = np.clip((records.rows @ card.points) * card.unit + card.intercept, -1.0, 1.0)
    mean = np.average(targets, weights=records.counts)
    error, spread = (float(records.counts @ (targets - said) ** 2) / records.n for said in (predicted, mean))
    return {"training_error": half * error**0.5, "training_r2": 1 - error / spread if spread else 0.0}
