"""A first schema, drafted from the data with a guarantee (theory, section 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privsolve.data import toml
from privsolve.data.columns import Bins, Categories, Column, Label, Real
from privsolve.data.paid import Paid
from privsolve.data.private.counts import Kinds, count_kinds, count_texts, readable
from privsolve.data.private.grids import DecimalGrid, Grid, StepGrid
from privsolve.data.private.quantiles import LEAST_EPSILON, draw_cuts
from privsolve.data.private.texts import Threshold, least_records
from privsolve.data.schema import Schema
from privsolve.noise.draws import discrete_laplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import Approximate, Profile, Pure

KINDS_SHARE = Fraction(1, 5)
"""Of epsilon, for how the columns read; the rest is for their values."""

INTERVALS = 5
"""Cut points divide the records of a column into so many parts."""

MOST_TEXTS = 20
"""The commonest texts are listed; the others are "other"."""

MANY_ZEROS = 0.3
"""From this share of zeros on they are an answer of their own, and cut points divide the other numbers."""

SOME_MISSING = 0.005
"""From this share of missing values on there is an option for them, if the noise alone would hardly give as much."""

DEVIATIONS = 3.0


@dataclass(frozen=True)
class PrivateDraft:
    """A schema with what was paid for it, notes by column, and the columns that were left out with the reason.

    All of it may be published: it is made of noisy answers and public facts.
    """

    schema: Schema
    notes: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]

    @property
    def guarantee(self) -> Guarantee:
        """What the draft promises."""
        assert self.schema.paid is not None
        return self.schema.paid.guarantee

    def to_toml(self) -> str:
        """The text of a schema file."""
        head = ("Drafted from the data, with differential privacy. Change what you know better.",)
        paid = (
            self.guarantee.sentence(),
            "Every release with this schema adds this to its own guarantee: keep it here.",
        )
        text = self.schema.to_toml({"": head, "paid": paid, **self.notes})
        reasons = [toml.comment(f"{name}: {reason}") for name, reason in self.left_out.items()]
        return text + "".join(f"{line}\n" for line in ["", toml.comment("Left out:"), *reasons]) if reasons else text


def private_draft(
    data: Any,
    label: Label,
    epsilon: float,
    delta: float = 0.0,
    *,
    stated: Sequence[Column] = (),
    bounds: Mapping[str, tuple[float, ...]] | None = None,
    leave_out: Sequence[str] = (),
    intervals: int = INTERVALS,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
) -> PrivateDraft:
    """Propose a schema for a pandas, Polars, Arrow or Ibis table, with a guarantee for what it gives away.

    Args:
        data: the table. Its column names and types are public.
        label: the column to predict, with its values, which are stated and never read off the data.
        epsilon: privacy budget of the draft.
        delta: for columns of texts, whose values are not public: 0 leaves such columns out.
        stated: columns whose values are public; they cost nothing.
        bounds: `(low, high)` or `(low, high, step)` of numbers, for finer cut points than those of the public grid.
        leave_out: columns not to use.
        intervals: cut points divide the records of a column into so many parts.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for releases; a seed makes the draft repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays, or refuses.

    Guarantee:
        `(epsilon, delta)`-DP for the whole schema under the adjacency (theory, section 12), provided that all arguments
        were chosen without looking at the data.
    """
    plan = _Plan.of(data, label, stated, bounds or {}, leave_out, intervals)
    rng = as_randomness(random_state)
    guarantee = draft_promise(epsilon, delta, len(plan.grids), adjacency, seeded=rng.is_seeded)
    plan.check(guarantee)
    counts = count_kinds(data, plan.grids)
    paid = Paid(guarantee, rng.words(1).tobytes().hex())
    with charged(budget, guarantee, paid.note):
        return _Drafting(data, plan, counts, paid, rng).draft()


def draft_promise(
    epsilon: float, delta: float, columns: int, adjacency: Adjacency | str, *, seeded: bool = False
) -> Guarantee:
    """What a draft of so many columns promises (theory, 12.1 and 12.5)."""
    share = exact(check_epsilon(epsilon))
    kinds, values = KINDS_SHARE * share, (1 - KINDS_SHARE) * share
    profile: Profile = (
        Approximate(epsilon, check_delta(delta))
        if delta
        else Pure(float(epsilon), at_least(kinds**2 / (2 * max(columns, 1)) + values**2 / 8))
    )
    return Guarantee(
        profile, Adjacency.of(adjacency), "private draft of the schema", "exact sample and discrete Laplace noise",
        theory="12", oracle="none", seeded=seeded,
    )  # fmt: skip


@dataclass(frozen=True)
class _Plan:
    """What is drafted and on which grids: public."""

    label: Label
    stated: Mapping[str, Column]
    grids: Mapping[str, Grid]
    may_be_texts: Mapping[str, bool]
    bounded: frozenset[str]
    order: tuple[str, ...]
    left_out: Mapping[str, str]
    intervals: int

    @classmethod
    def of(
        cls,
        data: Any,
        label: Label,
        stated: Sequence[Column],
        bounds: Mapping[str, tuple[float, ...]],
        leave_out: Sequence[str],
        intervals: int,
    ) -> _Plan:
        found = readable(data)
        names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", ()))]
        known = {column.column: column for column in stated}
        for name in (label.column, *known, *bounds, *leave_out):
            if name not in names:
                raise ValueError(f"the data has no column {name!r}: its columns are {', '.join(names[:20])}")
        if not isinstance(intervals, int) or not 2 <= intervals <= 10:
            raise ValueError(f"intervals must be a whole number from 2 to 10, got {intervals!r}")
        skipped = {label.column, *known, *leave_out}
        grids = {name: _grid(name, bounds) for name in names if name in found and name not in skipped}
        if not grids and not known:
            raise ValueError("no column is left to draft: leave fewer out")
        reasons = {n: "neither texts nor numbers: convert it" for n in names if n not in found and n not in skipped}
        order = tuple(name for name in names if name != label.column and name not in leave_out)
        return cls(label, known, grids, found, frozenset(bounds), order, reasons, intervals)

    def check(self, guarantee: Guarantee) -> None:
        """Raise if the epsilon of a column would be too small for exact draws."""
        share = (1 - KINDS_SHARE) * exact(guarantee.epsilon) / max(1, len(self.grids))
        if self.grids and share < LEAST_EPSILON:
            raise ValueError(
                f"epsilon={guarantee.epsilon:g} leaves less than {LEAST_EPSILON:g} for each of {len(self.grids)} columns: use "
                "more, state some columns, or leave some out"
            )


def _grid(name: str, bounds: Mapping[str, tuple[float, ...]]) -> Grid:
    if name not in bounds:
        return DecimalGrid()
    if len(bounds[name]) not in (2, 3):
        raise ValueError(f"bounds of {name!r} must be low and high, and a step if you like")
    return StepGrid.between(*bounds[name])


@dataclass(frozen=True)
class _Reading:
    """How a column reads, by its noisy counts."""

    is_text: bool
    whole: bool
    missing: bool
    many_zeros: bool


@dataclass(frozen=True)
class _Drafting:
    """One draft: first how the columns read, then their values, with what is left of epsilon for each."""

    data: Any
    plan: _Plan
    counts: Mapping[str, Kinds]
    paid: Paid
    rng: Randomness

    @property
    def _adjacency(self) -> Adjacency:
        return self.paid.guarantee.adjacency

    def draft(self) -> PrivateDraft:
        readings = {name: self._reading(name) for name in self.plan.grids}
        texts = [name for name, reading in readings.items() if reading.is_text]
        numbers = [name for name in readings if name not in texts]
        delta = self.paid.guarantee.delta
        left_out = dict(self.plan.left_out)
        if not delta:
            left_out |= dict.fromkeys(texts, "texts, whose list needs a delta: give one, or state the column")
            texts = []
        share = (1 - KINDS_SHARE) * exact(self.paid.guarantee.epsilon) / max(1, len(texts) + len(numbers))
        listed = self._texts(texts, share, delta / max(1, len(texts))) if texts else {}
        columns: list[Column] = []
        notes: dict[str, tuple[str, ...]] = {}
        for name in self.plan.order:
            if name in self.plan.stated:
                columns.append(self.plan.stated[name])
            elif name in listed:
                self._add(columns, notes, left_out, name, _categories(name, listed[name], readings[name]))
            elif name in numbers:
                self._add(columns, notes, left_out, name, self._bins(name, readings[name], share))
        if not columns:
            raise ValueError(
                "nothing could be drafted with this epsilon and delta: use more, or write the schema by hand"
            )
        return PrivateDraft(Schema(columns, self.plan.label, paid=self.paid), notes, left_out)

    def _add(
        self,
        columns: list[Column],
        notes: dict[str, tuple[str, ...]],
        left_out: dict[str, str],
        name: str,
        found: tuple[Column, str] | str,
    ) -> None:
        if isinstance(found, str):
            left_out[name] = found
        else:
            columns.append(found[0])
            notes[name] = (found[1],)

    def _reading(self, name: str) -> _Reading:
        """Noisy counts of missing values, texts, zeros, other whole numbers and fractions; a record is in one of them."""
        kinds, grid = self.counts[name], self.plan.grids[name]
        zeros = int(kinds.cells[grid.zero] - kinds.fractions[grid.zero]) if grid.zero is not None else 0
        fractions = int(kinds.fractions.sum())
        whole = int(kinds.cells.sum()) - fractions - zeros
        moved = 2 if self._adjacency is Adjacency.REPLACE else 1
        scale = moved * len(self.plan.grids) / (KINDS_SHARE * exact(self.paid.guarantee.epsilon))
        noise = discrete_laplace(self.rng, scale, 5)
        missing, texts, zeros, whole, fractions = (
            int(c + xi) for c, xi in zip((kinds.missing, kinds.texts, zeros, whole, fractions), noise, strict=True)
        )
        numbers, deviation = zeros + whole + fractions, math.sqrt(2) * float(scale)
        return _Reading(
            self.plan.may_be_texts[name] and texts > numbers,
            whole + zeros > fractions,
            missing > max(DEVIATIONS * deviation, SOME_MISSING * (missing + texts + numbers)),
            numbers > 0 and zeros >= MANY_ZEROS * numbers,
        )

    def _bins(self, name: str, reading: _Reading, share: Fraction) -> tuple[Column, str] | str:
        kinds, grid = self.counts[name], self.plan.grids[name]
        cells = kinds.cells.copy()
        if reading.many_zeros and grid.zero is not None:
            cells[grid.zero] = 0
        places = draw_cuts(cells, grid.weights, self.plan.intervals, float(share), self._adjacency, self.rng)
        cuts = [grid.points[place] for place in places]
        if reading.whole:
            cuts = [math.ceil(cut) for cut in cuts]
        if reading.many_zeros and reading.whole:
            cuts.append(1)
        points: tuple[Real, ...] = tuple(sorted(set(cuts)))
        missing = "missing" if reading.missing else None
        words = "cut points that divide the records evenly" + (", zeros apart" if reading.many_zeros else "")
        return Bins(name, points, "thresholds", reading.whole, missing), f"Drafted: {words}."

    def _texts(self, names: Sequence[str], share: Fraction, delta: float) -> dict[str, list[str]]:
        """The commonest texts of every column, by their noisy counts."""
        everybody = next(iter(self.counts.values()))
        total = everybody.missing + everybody.texts + int(everybody.cells.sum())
        records = total if self._adjacency is Adjacency.REPLACE else None
        values = (1 - KINDS_SHARE) * exact(self.paid.guarantee.epsilon)
        least = least_records(values, self.paid.guarantee.delta, records, self._adjacency)
        threshold = Threshold.of(share, delta, least, self._adjacency)
        counted = count_texts(self.data, names, least)
        found = {}
        for name in names:
            noisy = threshold.published(counted[name], self.rng)
            commonest = sorted(noisy, key=lambda text: (-noisy[text], text))[:MOST_TEXTS]
            found[name] = sorted(commonest)
        return found


def _categories(name: str, texts: Sequence[str], reading: _Reading) -> tuple[Column, str] | str:
    if not texts:
        return "texts, none of which is common enough to be shown"
    taken = {text.lower() for text in texts}
    other = next(word for word in ("other", "any other", "another text", "none of these") if word not in taken)
    missing = next(word for word in ("missing", "no value", "not given") if word not in taken)
    column = Categories(name, list(texts), other, missing if reading.missing else None)
    return column, "Drafted: texts that many records have."
