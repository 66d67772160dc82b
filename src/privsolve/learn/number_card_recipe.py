"""Full scorecards for a number: from records to a card with points for every answer (theory, section 20)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.data import EncodedTable, Schema
from privsolve.data.columns.label import STEPS, TargetTable
from privsolve.data.constraints import Constraints
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.recipe import RandomState, with_outside
from privsolve.mechanisms.card_points import Card
from privsolve.mechanisms.number_objective import NumberPlan, turned
from privsolve.mechanisms.objective import perturbed_card
from privsolve.models.number_card import NumberCard
from privsolve.models.tally import check_scores
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.releases import Release, Run
from privsolve.releases.run import Diagnostics


@dataclass(frozen=True)
class NumberCardRecipe:
    """How a full scorecard for a number is found: everything but the data, all of it public.

    Args:
        epsilon: privacy budget of the card.
        low, high: public bounds of the target, to which it is cut.
        delta: the δ of the card; above 0.
        adjacency: `"replace"` or `"add-remove"`.
        max_points, max_questions, sparsity, constraints: as in `FullCardRecipe`.
    """

    epsilon: float
    low: float
    high: float
    delta: float = DEFAULT_DELTA
    adjacency: Adjacency | str = Adjacency.REPLACE
    max_points: int = 10
    max_questions: int | None = None
    sparsity: float = 0.0
    constraints: Constraints | None = None

    def __post_init__(self) -> None:
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        _ = self._card
        NumberPlan(self.epsilon, self.delta, Adjacency.of(self.adjacency), 1, 1)

    @cached_property
    def _card(self) -> FullCardRecipe:
        """What a card of labels has in common with it: the features, and what is known of them."""
        stated = (self.epsilon, self.delta, self.adjacency, self.max_points, self.max_questions)
        return FullCardRecipe(*stated, self.sparsity, self.constraints)

    def encoding(self, schema: Schema) -> Schema:
        """Yes/no features of the columns that are not excluded, without an intercept."""
        return self._card.encoding(schema)

    def plan(self, asked: Schema) -> NumberPlan:
        """The public numbers for the schema of `encoding`."""
        plain = self._card.plan(asked)
        return NumberPlan(plain.epsilon, plain.delta, plain.adjacency, plain.dim, plain.longest, plain.choosing)

    def run(
        self,
        encoded: EncodedTable,
        *,
        random_state: RandomState = None,
        progress: Any = None,
        budget: Account | None = None,
    ) -> Run:
        """Find the card for a table that the schema of `encoding` has read."""
        encoded.check()
        assert encoded.targets is not None
        paid = {"random_state": random_state, "budget": budget}
        return with_outside(self.run_records(encoded.targets, encoded.schema, **paid), encoded)

    def run_records(self, records: TargetTable, asked: Schema, *, progress: Any = None, **paid: Any) -> Run:
        """Find the card for records with targets in steps."""
        plan, options = self.plan(asked), self._card.options(asked)
        card, guarantee, values = perturbed_card(records, plan, options, draft=asked.paid, **paid)
        model = self._model(asked, card)
        setting = plan.to_dict() | {"max_points": self.max_points, "sparsity": float(self.sparsity)}
        seconds = float(values.pop("seconds"))
        quality = _quality(records, card, (self.high - self.low) / 2)
        values |= {"training_records": records.n}
        return Run(Release(model, guarantee, {"objective": setting}), Diagnostics(seconds, quality, values))

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


def _quality(records: TargetTable, card: Card, half: float) -> dict[str, Any]:
    """The curator's figures on the training records, for targets that are cut and rounded."""
    targets = turned(records) / STEPS
    predicted = np.clip((records.rows @ card.points) * card.unit + card.intercept, -1.0, 1.0)
    mean = np.average(targets, weights=records.counts)
    error, spread = (float(records.counts @ (targets - said) ** 2) / records.n for said in (predicted, mean))
    return {"training_error": half * error**0.5, "training_r2": 1 - error / spread if spread else 0.0}
