"""A first schema, drafted from the data with a guarantee (theory, section 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.checks import check_integer
from privsolve.data import toml
from privsolve.data.columns import Bins, Column, Label, Value
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Frequencies
from privsolve.data.private.counts import Answer, Kinds, count_columns, noisy_answer
from privsolve.data.private.deciding import INTERVALS, Cutting, Drafted, Scale, decide
from privsolve.data.private.names import COMMON_TEXTS
from privsolve.data.private.plan import Options, Plan
from privsolve.data.schema import Schema
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.privacy.guarantee import Guarantee, Paid

DRAFT_SHARE = 0.25
"""Of a total epsilon, for the draft of a schema; measured on several tables (docs/experiments/benchmarks.md)."""


@dataclass(frozen=True)
class PrivateDraft:
    """A schema, notes by column, and the columns that were left out with the reason.

    All of it may be published: it is made of noisy answers and public facts. If no column had to be asked, nothing was
    read and nothing was paid; otherwise `schema.paid` says what was.
    """

    schema: Schema
    notes: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]

    @property
    def guarantee(self) -> Guarantee | None:
        """What the draft promises; None if it has read nothing."""
        return None if self.schema.paid is None else self.schema.paid.guarantee

    def sentence(self) -> str:
        """What the draft cost."""
        if self.guarantee is None:
            return "No column had to be asked: the draft is made of public facts, and nothing was spent."
        return self.guarantee.sentence()

    def to_toml(self) -> str:
        """The text of a schema file."""
        head = ("Drafted from the data, with differential privacy. Change what you know better.",)
        paid = (self.sentence(), "Every release with this schema adds this to its own guarantee: keep it here.")
        text = self.schema.to_toml({"": head, "paid": paid, **self.notes})
        reasons = [toml.comment(f"{name}: {reason}") for name, reason in self.left_out.items()]
        return text + "".join(f"{line}\n" for line in ["", toml.comment("Left out:"), *reasons]) if reasons else text


def private_draft(
    data: Any,
    label: Label | Target | None,
    epsilon: float,
    delta: float = 0.0,
    *,
    stated: Sequence[Column] = (),
    bounds: Mapping[str, tuple[float, ...]] | None = None,
    leave_out: Sequence[str] = (),
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    missing: Sequence[Value] = (),
    decimal: str = ".",
    intervals: int = INTERVALS,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
) -> PrivateDraft:
    """Propose a schema for a pandas, Polars, Arrow or Ibis table, with a guarantee for what it gives away.

    Args:
        data: the table. Its column names are public.
        label: the column to predict, a `Label` or a `Target` with its values, which are stated and never read off the
            data. None: all columns are features.
        epsilon: privacy budget of the draft.
        delta: for columns of texts: with 0 only texts of a short public list are found, such as yes and no.
        stated: columns whose values are public; they cost nothing.
        bounds: `(low, high)` or `(low, high, step)` of numbers, for finer cut points than those of the public grid.
        leave_out: columns not to use.
        numbers, texts: columns of which it is public that they hold numbers or texts. They are asked first, also where
            their names would leave them out or say where to cut them.
        missing: values that stand for no value, such as -999, beside `NA`, `NULL`, `?` and the like.
        decimal: the sign between whole numbers and decimals, where numbers are read from texts: `"."` or `","`.
        intervals: cut points divide the records of a column into so many parts at most.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for releases; a seed makes the draft repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays, or refuses.

    Returns:
        The draft. What could not be told is in `left_out`, with the reason.

    Raises:
        ValueError: if nothing can come of it for this number of records and this epsilon; nothing is spent then.

    Guarantee:
        `(epsilon, delta)`-DP for the whole schema under the adjacency (theory, section 12), provided that all arguments
        were chosen without looking at the data.

    Example:
        >>> import privsolve as ps
        >>> adult = ps.datasets.adult()
        >>> draft = ps.private_draft(adult, ps.Label("income", ">50K"), 0.25, 1e-6)  # doctest: +SKIP
    """
    options = Options.of(stated, bounds, leave_out, numbers, texts, missing, decimal)
    check_integer("intervals", intervals, 2, 10)
    the_delta = check_delta(delta) if delta else 0.0
    plan = Plan.of(data, label, check_epsilon(epsilon), the_delta, Adjacency.of(adjacency), options)
    rng = as_randomness(random_state)
    if not plan.grids:
        return _finished(plan, {}, {}, None)
    guarantee = Guarantee(
        plan.costs.profile,
        plan.costs.adjacency,
        "private draft of the schema",
        "exact sample and discrete " + ("Gaussian noise" if the_delta else "Laplace noise"),
        theory="12",
        oracle="none",
        seeded=rng.is_seeded,
    )
    least = plan.costs.least(plan.records) if the_delta else 1
    counts, texts_of = count_columns(data, plan.grids, least, options.marks, COMMON_TEXTS)
    paid = Paid(guarantee, rng.words(1).tobytes().hex())
    with charged(budget, guarantee, paid.note, names=(paid.note,)):
        return _drafted(plan, counts, texts_of, least, intervals, paid, rng)


def default_delta(records: int | None) -> float:
    """The delta of a draft where none is stated: 10^-6 up to 100,000 records, a tenth of it for every ten times as many.

    `records` is the number of records where it is public, and None otherwise; then delta is 10^-9.
    """
    return 1e-9 if records is None else float(f"1e-{max(6, len(str(max(records, 1) - 1)) + 1)}")


def _drafted(
    plan: Plan,
    counts: Mapping[str, Kinds],
    texts: Mapping[str, Mapping[str, int]],
    least: int,
    intervals: int,
    paid: Paid,
    rng: Randomness,
) -> PrivateDraft:
    """Both stages, after the draft is paid for."""
    answers: dict[str, Answer] = {
        name: noisy_answer(counts[name], texts[name], grid, plan.costs, least, rng) for name, grid in plan.grids.items()
    }
    decided = {name: decide(name, answer, plan) for name, answer in answers.items()}
    scales = {name: found for name, found in decided.items() if isinstance(found, Scale)}
    cut = Cutting(plan, intervals, rng).cut(scales, counts)
    found: dict[str, Drafted] = {}
    left_out: dict[str, str] = {}
    for name, one in {**decided, **cut}.items():
        if isinstance(one, Drafted):
            found[name] = one
        elif isinstance(one, str):
            left_out[name] = one
    if not found and not plan.known:  # it is paid for: the least that can be said of a column, which looks at nothing
        name = next(iter(plan.grids))
        left_out.pop(name, None)
        found[name] = Drafted(Bins(name, [1], "thresholds"), "Nothing could be told from noise: a cut of no meaning.")
    return _finished(plan, found, left_out, paid)


def _finished(plan: Plan, found: Mapping[str, Drafted], left_out: Mapping[str, str], paid: Paid | None) -> PrivateDraft:
    """The columns in the order of the table."""
    columns = {**plan.known, **{name: one.column for name, one in found.items()}}
    notes = {**plan.notes, **{name: one.note for name, one in found.items()}}
    shares = {name: one.frequency for name, one in found.items() if one.frequency is not None}
    ordered = [columns[name] for name in plan.order if name in columns]
    kept = {name: shares[name] for name in plan.order if name in shares}
    schema = Schema(ordered, plan.label, paid=paid, frequencies=Frequencies.of(kept))
    every = {**plan.left_out, **left_out}
    reasons = {name: every[name] for name in plan.order if name in every}
    return PrivateDraft(schema, {name: (note,) for name, note in notes.items()}, reasons)
