"""A first schema, drafted from the data with a guarantee (theory, section 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privsolve.checks import check_integer, check_items
from privsolve.data import toml
from privsolve.data.columns import Bins, Categories, Column, Label, Real, Value
from privsolve.data.columns.values import check_decimal, check_missing_values, marks_of
from privsolve.data.private.counts import NA_CODES, Kinds, are_truths, count_kinds, count_texts, readable
from privsolve.data.private.grids import DecimalGrid, Grid, StepGrid
from privsolve.data.private.quantiles import LEAST_EPSILON, draw_cuts
from privsolve.data.private.texts import Threshold, least_records
from privsolve.data.reading import Marks
from privsolve.data.schema import Schema
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.paid import Paid
from privsolve.privacy.profiles import Approximate, Profile, Pure

DRAFT_SHARE = 0.25
"""Of a total epsilon, for the draft of a schema; measured on several tables (docs/schema.md)."""

KINDS_SHARE = Fraction(1, 5)
"""Of epsilon, for how the columns read; the rest is for their values."""

INTERVALS = 7
"""Cut points divide the records of a column into so many parts, or fewer where epsilon is too small for that."""

PER_INTERVAL, AT_LEAST = 15, 8
"""Records times epsilon of a column that one more interval asks for, and that cut points need to mean anything."""

SOME_NEGATIVE = 0.01
"""From this share of negative numbers on cut points may be negative."""

MOST_TEXTS = 20
"""The commonest texts are listed; the others are "other"."""

MANY_ZEROS = 0.3
"""From this share of zeros on they are an answer of their own, and cut points divide the other numbers."""

SOME_MISSING = 0.005
"""From this share of missing values on there is an option for them, if the noise alone would hardly give as much."""

HARDLY_ANY = 0.05
"""Up to so many values for each that is missing, if they may be noise, a column is left out."""

SOME_OTHER, MOST_OTHER = 0.005, 0.1
"""Up to the first share of other values a column has two, and up to the second if it may be noise; the others then count as
the answer that scores nothing."""

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
    label: Label | None,
    epsilon: float,
    delta: float = 0.0,
    *,
    stated: Sequence[Column] = (),
    bounds: Mapping[str, tuple[float, ...]] | None = None,
    leave_out: Sequence[str] = (),
    missing: Sequence[Value] = (),
    decimal: str = ".",
    intervals: int = INTERVALS,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
) -> PrivateDraft:
    """Propose a schema for a pandas, Polars, Arrow or Ibis table, with a guarantee for what it gives away.

    Args:
        data: the table. Its column names and types are public.
        label: the column to predict, with its values, which are stated and never read off the data. None: all
            columns are features.
        epsilon: privacy budget of the draft.
        delta: for columns of texts, whose values are not public: 0 leaves such columns out.
        stated: columns whose values are public; they cost nothing.
        bounds: `(low, high)` or `(low, high, step)` of numbers, for finer cut points than those of the public grid.
        leave_out: columns not to use.
        missing: values that stand for no value, such as -999, beside `NA`, `NULL`, `?` and the like.
        decimal: the sign between whole numbers and decimals, where numbers are read from texts: `"."` or `","`.
        intervals: cut points divide the records of a column into so many parts.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for releases; a seed makes the draft repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays, or refuses.

    Guarantee:
        `(epsilon, delta)`-DP for the whole schema under the adjacency (theory, section 12), provided that all arguments
        were chosen without looking at the data.
    """
    plan = _Plan.of(data, label, stated, bounds or {}, leave_out, missing, decimal, intervals)
    rng = as_randomness(random_state)
    guarantee = draft_promise(epsilon, delta, len(plan.grids), adjacency, seeded=rng.is_seeded)
    plan.check(guarantee)
    counts = count_kinds(data, plan.grids, plan.marks)
    if guarantee.adjacency is Adjacency.REPLACE and counts and not any(kinds.records for kinds in counts.values()):
        raise ValueError("the data has no records: give at least one")  # how many there are is public
    paid = Paid(guarantee, rng.words(1).tobytes().hex())
    with charged(budget, guarantee, paid.note, names=(paid.note,)):
        return _Drafting(data, plan, counts, paid, rng).draft()


def default_delta(records: int | None) -> float:
    """The delta of a draft where none is stated: 10^-6 up to 100,000 records, a tenth of it for every ten times as many.

    `records` is the number of records where it is public, and None otherwise; then delta is 10^-9.
    """
    return 1e-9 if records is None else float(f"1e-{max(6, len(str(max(records, 1) - 1)) + 1)}")


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

    label: Label | None
    stated: Mapping[str, Column]
    grids: Mapping[str, Grid]
    may_be_texts: Mapping[str, bool]
    bounded: frozenset[str]
    order: tuple[str, ...]
    left_out: Mapping[str, str]
    missing: tuple[Value, ...]
    decimal: str
    truths: Mapping[str, bool]
    intervals: int

    @property
    def marks(self) -> Marks:
        """What stands for no value, and how numbers are written."""
        return marks_of((*NA_CODES, *self.missing), self.decimal)

    @classmethod
    def of(
        cls,
        data: Any,
        label: Label | None,
        stated: Sequence[Column],
        bounds: Mapping[str, tuple[float, ...]],
        leave_out: Sequence[str],
        missing: Sequence[Value],
        decimal: str,
        intervals: int,
    ) -> _Plan:
        if label is not None and not isinstance(label, Label):
            raise ValueError(f"label must be a Label, with the values of its column, got {type(label).__name__}")
        found = readable(data)
        names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", ()))]
        known = {column.column: column for column in stated}
        target = () if label is None else (label.column,)
        for name in (*target, *known, *bounds, *leave_out):
            if name not in names:
                raise ValueError(f"the data has no column {name!r}: its columns are {', '.join(names[:20])}")
        check_integer("intervals", intervals, 2, 10)
        skipped = {*target, *known, *leave_out}
        grids = {name: _grid(name, bounds) for name in names if name in found and name not in skipped}
        if not grids and not known:
            raise ValueError("no column is left to draft: leave fewer out")
        reasons = {
            n: "neither texts nor numbers: convert it, or state it if it holds dates"
            for n in names
            if n not in found and n not in skipped
        }
        order = tuple(name for name in names if name not in (*target, *leave_out))
        codes = check_missing_values(check_items("missing", missing, "be a list of texts and numbers"), "missing")
        return cls(
            label, known, grids, found, frozenset(bounds), order, reasons, codes, check_decimal(decimal, "the draft"),
            are_truths(data, grids), intervals,
        )  # fmt: skip

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
    """How a column reads, by its noisy counts; `divided` is how many numbers cut points divide, up to noise."""

    is_text: bool
    whole: bool
    missing: bool
    hardly_any: bool
    many_zeros: bool
    negative: bool
    two_valued: bool
    others: bool
    divided: int
    texts: int
    clear: float
    """Noisy number of texts, and from how many on something is clearly there."""


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

    @property
    def _for_values(self) -> Fraction:
        return (1 - KINDS_SHARE) * exact(self.paid.guarantee.epsilon)

    def draft(self) -> PrivateDraft:
        every = {name: self._reading(name) for name in self.plan.grids}
        readings = {name: reading for name, reading in every.items() if not reading.hardly_any}
        texts = [name for name, reading in readings.items() if reading.is_text]
        left_out = dict(self.plan.left_out)
        left_out |= {name: "hardly any values" for name in every if name not in readings}
        if not self.paid.guarantee.delta:
            left_out |= dict.fromkeys(texts, self._why_no_texts())
            texts = []
        numbers = {
            name: reading for name, reading in readings.items() if not reading.is_text and not reading.two_valued
        }
        divided = self._worth_dividing(numbers, len(texts))
        share = self._for_values / max(1, len(texts) + len(divided))
        listed = self._texts(texts, share) if texts else {}
        columns: list[Column] = []
        notes: dict[str, tuple[str, ...]] = {}
        for name in self.plan.order:
            if name in self.plan.stated:
                columns.append(self.plan.stated[name])
                continue
            if name in listed:
                found = self._categories(name, listed[name], readings[name])
            elif name in readings and readings[name].two_valued:
                found = self._zero_or_one(name, readings[name])
            elif name in numbers:
                found = self._bins(name, readings[name], share if name in divided else None)
            else:
                continue
            if isinstance(found, str):
                left_out[name] = found
            else:
                columns.append(found[0])
                notes[name] = (found[1],)
        if not columns:  # it is paid for: the least that can be said of a number, which looks at nothing
            name = next(iter(self.plan.grids))
            left_out.pop(name, None)
            columns, notes[name] = (
                [Bins(name, [1], "thresholds")],
                ("Too few records for this epsilon: a cut of no meaning.",),
            )
        return PrivateDraft(Schema(columns, self.plan.label, paid=self.paid), notes, left_out)

    def _why_no_texts(self) -> str:
        """What to do about a column of texts in a draft without a delta."""
        reason = "texts, whose list needs a delta: give one, or state the column"
        comma = self.plan.decimal == ","
        return reason if comma else f'{reason}; if they are numbers such as 1,65, say so by decimal="," (--decimal ,)'

    def _worth_dividing(self, readings: Mapping[str, _Reading], others: int) -> set[str]:
        """As many columns, those with most numbers first, as have records enough for their part of epsilon."""
        order = sorted(readings, key=lambda name: -readings[name].divided)
        kept = [
            name
            for count, name in enumerate(order, 1 + others)
            if readings[name].divided * self._for_values / count >= AT_LEAST
        ]
        return set(kept)

    def _reading(self, name: str) -> _Reading:
        """Noisy counts of missing values, texts, negative numbers, zeros, ones, and other positive numbers, whole or not.

        A record is in one of the seven.
        """
        exact_counts = seven_counts(self.counts[name], self.plan.grids[name])
        share = KINDS_SHARE * exact(self.paid.guarantee.epsilon) / len(self.plan.grids)
        law = DiscreteLaplace.on_cells(share, self._adjacency)
        noise = law.draws(self.rng, len(exact_counts))
        missing, texts, negative, zeros, ones, whole, fractions = (
            int(count + xi) for count, xi in zip(exact_counts, noise, strict=True)
        )
        others, clear = negative + whole + fractions, DEVIATIONS * math.sqrt(2) * float(law.scale)
        numbers = others + zeros + ones
        is_text = self.plan.may_be_texts[name] and texts > numbers
        absent = missing if is_text else missing + texts  # a text among numbers is read as missing
        many_zeros = numbers > 0 and zeros >= MANY_ZEROS * numbers
        return _Reading(
            is_text=is_text,
            whole=whole + zeros + ones > fractions,
            hardly_any=missing > clear
            and texts + numbers <= min(math.sqrt(6) * clear, HARDLY_ANY * missing),  # of six noisy counts
            missing=absent > max(clear, SOME_MISSING * (missing + texts + numbers)),
            many_zeros=many_zeros,
            negative=negative > max(clear, SOME_NEGATIVE * numbers),
            two_valued=not is_text and min(zeros, ones) > clear and _hardly_any(others, numbers, clear),
            others=others > SOME_OTHER * numbers,
            divided=max(0, numbers - zeros if many_zeros else numbers),
            texts=texts,
            clear=clear,
        )

    def _zero_or_one(self, name: str, reading: _Reading) -> tuple[Column, str]:
        """One indicator; a column whose type says so is true or false."""
        missing = "missing" if reading.missing else None
        if self.plan.truths[name]:
            return Categories(name, [True], None, missing, no=False), "Drafted: true or false."
        codes = [code for code in self.plan.missing if code not in (0, 1)]
        if (
            reading.others or self._decimal(name) == ","
        ):  # what is neither may be more than one; categories have no decimals
            return Bins(name, [1], "thresholds", True, missing, codes, self._decimal(name)), "Drafted: zero or not."
        return Categories(name, [1], None, missing, no=0, missing_values=codes), "Drafted: one or zero."

    def _decimal(self, name: str) -> str:
        """How the numbers of a column are written; numbers that are no texts are not written."""
        return self.plan.decimal if self.plan.may_be_texts[name] else "."

    def _bins(self, name: str, reading: _Reading, share: Fraction | None) -> tuple[Column, str] | str:
        """Cut points at quantiles; without a share of epsilon only what the counts say: whether zeros stand apart."""
        cuts: list[Real] = [1] if reading.many_zeros and reading.whole else []
        if share is not None:
            cuts += self._quantiles(name, reading, share)
        if not cuts:
            return "too few numbers for this epsilon: use more, or state the column"
        points = tuple(sorted({math.ceil(cut) if reading.whole else cut for cut in cuts}))
        words = "cut points that divide the records evenly" if share is not None else "zero or not"
        words += ", zeros apart" if reading.many_zeros and share is not None else ""
        missing = "missing" if reading.missing else None
        column = Bins(name, points, "thresholds", reading.whole, missing, self.plan.missing, self._decimal(name))
        return column, f"Drafted: {words}."

    def _quantiles(self, name: str, reading: _Reading, share: Fraction) -> list[Real]:
        grid, cells = self.plan.grids[name], self.counts[name].cells.copy()
        first = 0
        if reading.many_zeros and grid.zero is not None:
            cells[grid.zero] = 0
        if not reading.negative and grid.zero is not None:
            first = grid.zero  # the first candidate above zero
            cells = np.append(cells[: first + 1].sum(), cells[first + 1 :])
        asked = 1 + int(reading.divided * share / PER_INTERVAL)
        intervals = min(self.plan.intervals, max(2, asked), len(grid.points) - first + 1)
        places = draw_cuts(cells, grid.weights[first:], intervals, float(share), self._adjacency, self.rng)
        return [grid.points[first + place] for place in places]

    def _texts(self, names: Sequence[str], share: Fraction) -> dict[str, dict[str, int]]:
        """The commonest texts of every column in order, with their noisy counts."""
        everybody = next(iter(self.counts.values()))
        total = everybody.missing + everybody.texts + int(everybody.cells.sum())
        records = total if self._adjacency is Adjacency.REPLACE else None
        delta = self.paid.guarantee.delta
        least = least_records(self._for_values, delta, records, self._adjacency)
        threshold = Threshold.of(share, delta / len(names), least, self._adjacency)
        counted = count_texts(self.data, names, least, self.plan.marks)
        found = {}
        for name in names:
            noisy = threshold.published(counted[name], self.rng)
            commonest = sorted(noisy, key=lambda text: (-noisy[text], text))[:MOST_TEXTS]
            found[name] = {text: noisy[text] for text in sorted(commonest)}
        return found

    def _categories(self, name: str, texts: Mapping[str, int], reading: _Reading) -> tuple[Column, str] | str:
        """A list of texts, or one indicator where there are two and hardly any other."""
        if not texts:
            return "texts, none of which is common enough to be shown"
        taken = {text.lower() for text in texts}
        other = next(word for word in ("other", "any other", "another text", "none of these") if word not in taken)
        missing = next(word for word in ("missing", "no value", "not given") if word not in taken)
        stated: dict[str, Any] = {}
        if reading.missing:
            codes = [code for code in (*NA_CODES, *self.plan.missing) if code not in texts]
            stated = {"missing": missing, "missing_values": codes}
        if len(texts) == 2:
            no, yes = texts
            if _hardly_any(reading.texts - sum(texts.values()), reading.texts, reading.clear):
                return Categories(name, [yes], no=no, **stated), "Drafted: two texts, which nearly all records have."
            return Categories(name, [yes], other, no=no, **stated), "Drafted: two texts that many records have."
        return Categories(name, list(texts), other, **stated), "Drafted: texts that many records have."


def _hardly_any(others: int, of: int, clear: float) -> bool:
    """Whether a noisy number of values is next to nothing, or may be."""
    return others <= max(SOME_OTHER * of, min(clear / DEVIATIONS, MOST_OTHER * of))


def seven_counts(kinds: Kinds, grid: Grid) -> tuple[int, ...]:
    """Missing values, texts, negative numbers, zeros, ones, other whole numbers, other numbers: exactly, so not private."""
    zero = grid.zero if grid.zero is not None else 0
    negative = int(kinds.cells[:zero].sum())
    zeros = int(kinds.cells[zero] - kinds.fractions[zero]) if zero else 0
    ones = int(kinds.cells[grid.one] - kinds.fractions[grid.one]) if zero and grid.one is not None else 0
    fractions = int(kinds.fractions[zero:].sum())
    whole = int(kinds.cells.sum()) - negative - zeros - ones - fractions
    return kinds.missing, kinds.texts, negative, zeros, ones, whole, fractions
