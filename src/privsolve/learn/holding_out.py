"""A fit whose model is evaluated on records that were held out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privsolve.data import EncodedTable, Schema
from privsolve.data.columns import Column
from privsolve.data.patterns import PatternTable
from privsolve.data.weights import Weight
from privsolve.evaluation import MeasuredOn
from privsolve.evaluation.split import parts_of, split
from privsolve.learn.evaluating import Jointly, curators_figures, evaluate_tables, group_column
from privsolve.noise.entropy import as_randomness
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.releases import Run


@dataclass(frozen=True)
class HoldOut:
    """How records are held out and what the evaluation on them may cost; all of it is public."""

    share: float
    epsilon: float
    column: Column | None
    weight: Weight | None = None

    @classmethod
    def of(
        cls,
        share: float | None,
        epsilon: float,
        by: str | Column | None,
        schema: Schema,
        weight: Weight | None = None,
    ) -> HoldOut | None:
        """Checked, or None if nothing is held out."""
        if share is None:
            return None
        parts_of(share)
        return cls(share, check_epsilon(epsilon), group_column(schema, by), weight)

    def fitted(
        self,
        fit: Callable[..., Run],
        whole: EncodedTable,
        groups: Sequence[PatternTable | None],
        adjacency: str,
        *,
        random_state: Any = None,
        progress: Any = None,
        budget: Account | None = None,
    ) -> Run:
        """Fit on the records that are not held out and evaluate on the others; both are paid for together, once.

        The evaluation is in the release, and its figures without noise are in the curator's diagnostics.
        """
        rng = as_randomness(random_state)
        training, held = split(groups, self.share, rng)
        account = None if budget is None else Jointly(budget, self.epsilon, Adjacency.of(adjacency))
        run = fit(replace(whole, table=training), random_state=rng, progress=progress, budget=account)
        model = run.release.model
        adjacency = run.release.guarantee.adjacency
        evaluation = evaluate_tables(
            model, held, self.epsilon, self.column, MeasuredOn.HELD_OUT, adjacency, rng, None, self.weight
        )
        values = run.diagnostics.values | {"held_out": curators_figures(model, held, self.weight)}
        return Run(run.release.with_evaluation(evaluation), replace(run.diagnostics, values=values))
