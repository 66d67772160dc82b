"""A fit whose model is evaluated on records that were held out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from privsolve.data import EncodedTable, Schema
from privsolve.data.columns import Column
from privsolve.data.patterns import PatternTable
from privsolve.evaluation import MeasuredOn
from privsolve.evaluation.split import parts_of, split
from privsolve.learn.evaluating import Jointly, curators_figures, evaluate_tables, group_column
from privsolve.noise.entropy import Randomness
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

    @classmethod
    def of(cls, share: float | None, epsilon: float, by: str | Column | None, schema: Schema) -> HoldOut | None:
        """Checked, or None if nothing is held out."""
        if share is None:
            return None
        parts_of(share)
        return cls(share, check_epsilon(epsilon), group_column(schema, by))

    def account(self, account: Account, adjacency: str) -> Jointly:
        """Pays for fit and evaluation together, once."""
        return Jointly(account, self.epsilon, Adjacency.of(adjacency))

    def split(
        self, whole: EncodedTable, groups: Sequence[PatternTable | None], rng: Randomness
    ) -> tuple[EncodedTable, tuple[PatternTable | None, ...]]:
        """The table to fit on, and the groups of records held out."""
        rng.ask({"holdout": (self.share, self.epsilon, self.column)})
        training, held = split(groups, self.share, rng)
        rng.ask({"held-out data": held})
        return replace(whole, table=training), held

    def evaluated(self, run: Run, held: Sequence[PatternTable | None], rng: Randomness) -> Run:
        """The run with the evaluation in its release, and the figures without noise in the curator's diagnostics."""
        model = run.release.model
        evaluation = evaluate_tables(
            model, held, self.epsilon, self.column, MeasuredOn.HELD_OUT, run.release.guarantee.adjacency, rng, None
        )
        values = run.diagnostics.values | {"held_out": curators_figures(model, held)}
        return Run(run.release.with_evaluation(evaluation), replace(run.diagnostics, values=values))
