"""From a release and a table to a private evaluation, for the estimators and the command line alike."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.checks import check_choice
from privsolve.data import EncodedTable, Schema
from privsolve.data.columns import Column
from privsolve.data.patterns import PatternTable
from privsolve.data.questions import Choice
from privsolve.data.weights import BESIDE, Weight, attached
from privsolve.evaluation import Evaluation, MeasuredOn, evaluate
from privsolve.evaluation.measure import exact_cells, promise, summary
from privsolve.evaluation.split import parts_of, split
from privsolve.learn.recipe import Paying, RandomState
from privsolve.models.base import Model
from privsolve.models.linear import decision_words
from privsolve.noise.entropy import as_randomness
from privsolve.privacy.accounting import Account, side_by_side
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.guarantee import Guarantee
from privsolve.releases import Diagnostics, Release, Run
from privsolve.safety.sealed import run_paid

MOST_GROUPS = 50


def evaluate_frame(
    release: Release,
    frame: Any,
    positive: NDArray[np.bool_],
    epsilon: float,
    own_budget: Account | None = None,
    *,
    by: str | Column | None = None,
    tested: MeasuredOn | str = MeasuredOn.SAME,
    sample_weight: ArrayLike | None = None,
    max_weight: float | None = None,
    random_state: RandomState = None,
    budget: Account | None = None,
) -> Evaluation:
    """How good a released model is on the rows of a frame, of which `positive` says which have the positive label.

    Args:
        release: the model, whose columns the frame must have.
        frame: a pandas, Polars or Arrow table.
        positive: one truth value per row.
        epsilon: privacy budget of the evaluation.
        own_budget: pays if no `budget` is given, unless the records are of other people.
        by: a column with public options, by which figures are given as well: the name of one in the schema, or a column
            stated here, such as `Categories("sex", ["female", "male"])`.
        tested: `"held out"` if these records were split off at random before the fit, `"other records"` if they are of
            other people, else `"the same people"`: it decides how `release.with_evaluation(...).total` adds up.
        sample_weight, max_weight: the weight of every record, and the largest one, which is public: figures are weighted.
        random_state: None for releases; a seed makes the noise repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays, or refuses.

    Guarantee:
        `epsilon`-DP for the records of the frame under the release's adjacency (theory, section 11).
    """
    where = check_choice("tested", tested, MeasuredOn)
    frame, weight = weighted(frame, sample_weight, max_weight)
    records = counted(release.model, frame, by, positive, weight)
    payer = budget if budget is not None or where is MeasuredOn.OTHERS else own_budget
    call = (evaluate_tables, release.model, records, epsilon, where, release.guarantee.adjacency)
    found: Evaluation = run_paid(*call, random_state=random_state, budget=payer)
    return found


def weighted(frame: Any, sample_weight: ArrayLike | None, max_weight: float | None) -> tuple[Any, Weight | None]:
    """The table with the weights of its records, if there are any, and what is public about them."""
    if sample_weight is None and max_weight is None:
        return frame, None
    if max_weight is None:
        raise ValueError(
            "max_weight must be stated with sample_weight, for example max_weight=5: larger weights are cut to it, and the "
            "noise is for a record of that weight. Choose it without looking at the records"
        )
    if sample_weight is None:
        raise ValueError("max_weight is for weights of records: pass sample_weight too, or leave max_weight out")
    weight, beside = Weight(BESIDE, max_weight), attached(frame, sample_weight)
    weight.check(beside)
    return beside, weight


@dataclass(frozen=True)
class Counted:
    """The records of each group, by the features that the outcomes of a model need, and the column of the groups."""

    groups: Sequence[PatternTable | None]
    column: Column | None = None
    weight: Weight | None = None

    def summary(self, model: Model) -> dict[str, Any]:
        """The figures without noise: for the curator's diagnostics only."""
        return summary(exact_cells(model.outcomes(), self.groups, self.weight))


def counted(
    model: Model,
    data: Any,
    by: str | Column | None,
    positive: NDArray[np.bool_] | None = None,
    weight: Weight | None = None,
) -> Counted:
    """The records that a model is evaluated on.

    Refused if a column of the features cannot be read at all, before anything is paid for.
    """
    schema = model.outcomes().schema
    column = group_column(getattr(model, "schema", None) or schema, by)
    if weight is not None:
        weight.check(data)
        schema = weight.beside(schema)
    encoded, groups = read_groups(schema, data, column, positive)
    encoded.check()
    return Counted(groups, column, weight)


def read_groups(
    schema: Schema, data: Any, column: Column | None, positive: NDArray[np.bool_] | None = None, rate: float = 1.0
) -> tuple[EncodedTable, tuple[PatternTable | None, ...]]:
    """A table by a schema, and its groups by a column: one if there is none."""
    if column is not None:
        return schema.tables(data, column, positive, sample_rate=rate)
    encoded = schema.table(data, positive, sample_rate=rate)
    return encoded, (encoded.table,)


def group_column(schema: Schema, by: str | Column | None) -> Column | None:
    """The column of that name in the schema, or the one given; it must have options."""
    column = schema.column(by) if isinstance(by, str) else by
    if column is None:
        return None
    if not isinstance(column, Column):
        raise ValueError(
            f"by must be the name of a column of the schema, or a column such as Categories, got {reprlib.repr(by)}"
        )
    if not isinstance(column.question(), Choice):
        raise ValueError(f"by: the column {column.column!r} has no options to group by: use categories or bins")
    if column.radix > MOST_GROUPS:
        raise ValueError(f"by: the column {column.column!r} has more than {MOST_GROUPS} options: group them")
    return column


def evaluate_tables(
    model: Model,
    records: Counted,
    epsilon: float,
    tested: MeasuredOn,
    adjacency: Adjacency | str,
    *,
    random_state: RandomState = None,
    budget: Account | None = None,
) -> Evaluation:
    """The noisy histogram of tables that were counted, with its words."""
    yes, no = decision_words(getattr(model, "schema", None))
    return evaluate(
        model,
        records.groups,
        epsilon,
        labels=(no, yes),
        names=("all",) if records.column is None else records.column.answers(),
        by=None if records.column is None else records.column.column,
        adjacency=adjacency,
        tested=tested,
        weight=records.weight,
        random_state=random_state,
        budget=budget,
    )


def evaluated(
    release: Release,
    records: Counted,
    epsilon: float,
    tested: MeasuredOn,
    *,
    random_state: RandomState = None,
    budget: Account | None = None,
) -> Run:
    """The release with an evaluation on tables that were counted; the figures without noise are in the diagnostics."""
    start, exact = perf_counter(), records.summary(release.model)
    where = tested, release.guarantee.adjacency
    found = evaluate_tables(release.model, records, epsilon, *where, random_state=random_state, budget=budget)
    return Run(release.with_evaluation(found), Diagnostics(perf_counter() - start, exact, {}))


class Jointly:
    """An account that pays once for a fit and for an evaluation on records held out of it (theory, 11.5)."""

    def __init__(self, account: Account, epsilon: float, adjacency: str) -> None:
        self._account, self._evaluation = account, promise(epsilon, adjacency)

    def spending(self, guarantee: Guarantee, note: str = "", **how: Any) -> AbstractContextManager[object]:
        """Pay for both: every record is in one of the two parts."""
        return self._account.spending(side_by_side(guarantee, self._evaluation), note, **how)


@dataclass(frozen=True)
class HoldOut:
    """How records are held out and what the evaluation on them may cost; all of it is public."""

    share: float
    epsilon: float
    column: Column | None
    weight: Weight | None = None

    @classmethod
    def of(
        cls, share: float | None, epsilon: float, by: str | Column | None, schema: Schema, weight: Weight | None = None
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
        **paid: Unpack[Paying],
    ) -> Run:
        """Fit on the records that are not held out and evaluate on the others; both are paid for together, once.

        The evaluation is in the release, and its figures without noise are in the curator's diagnostics.
        """
        rng, budget = as_randomness(paid.get("random_state")), paid.get("budget")
        training, held = split(groups, self.share, rng)
        account = None if budget is None else Jointly(budget, self.epsilon, Adjacency.of(adjacency))
        run = fit(replace(whole, table=training), random_state=rng, progress=paid.get("progress"), budget=account)
        model, records = run.release.model, Counted(held, self.column, self.weight)
        found = evaluate_tables(
            model, records, self.epsilon, MeasuredOn.HELD_OUT, run.release.guarantee.adjacency, random_state=rng
        )
        values = run.diagnostics.values | {"held_out": records.summary(model)}
        return Run(run.release.with_evaluation(found), replace(run.diagnostics, values=values))
