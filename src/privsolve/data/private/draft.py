"""A first schema, drafted from the data with a guarantee (theory, section 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
from privsolve.data import toml
from privsolve.data.columns import Bins, Categories, Column, Label, Real, Value
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Frequencies
from privsolve.data.private.counts import BY_CHANCE, COMMON_TEXTS, NA_CODES, Answer, Kinds, count_columns, noisy_answer
from privsolve.data.private.cuts import LEAST_EPSILON, draw_cuts
from privsolve.data.private.plan import Options, Plan
from privsolve.data.schema import Schema
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.privacy.guarantee import Guarantee, Paid

SOME = 0.005
"""A value that fewer records have is not listed."""

MANY_ZEROS = 0.3
"""From this share of zeros on they are an answer of their own, and cut points divide the other numbers."""

SOME_OTHERS = 0.05
"""Up to this share of numbers beyond 0 to 20 a column is cut between small numbers."""

NEARLY_ALL = 0.98
"""A column is of no use if so many records have the same value."""

MOST_TEXTS = 20
"""The commonest texts are listed; the others are "other"."""

MOST_CUTS = 7

NOT_TOLD = "no value of it could be told from noise (identifiers, free text, dates, or too many values): state it"
SAME = "nearly all records have the same value"


@dataclass(frozen=True)
class Drafted:
    """A column, a note for its reader, and the share of records that have each feature, up to noise."""

    column: Column
    note: str
    frequency: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Scale:
    """Numbers with many values, to be cut at quantiles: how many there are, up to noise, and what is clear about them."""

    numbers: int
    zeros: int
    whole: bool
    negative: bool
    missing: bool
    records: float


def decide(name: str, answer: Answer, plan: Plan) -> Drafted | Scale | str:
    """A column, a scale that is still to be cut, or why it is left out."""
    return _Deciding(name, answer, plan).decide()


class _Deciding:
    def __init__(self, name: str, answer: Answer, plan: Plan) -> None:
        self.name, self.answer, self.plan = name, answer, plan
        self.clear = plan.costs.clear
        known = [answer.missing, answer.negative, answer.whole, answer.fractions]
        seen = sum(count for count in (*known, *answer.small.values(), *answer.texts.values()) if count >= self.clear)
        self.records = float(plan.records if plan.records is not None else max(1, seen))
        self.missing = self._there(answer.missing)

    def _there(self, count: float) -> bool:
        return count >= max(self.clear, SOME * self.records)

    def decide(self) -> Drafted | Scale | str:
        texts = {text: count for text, count in self.answer.texts.items() if self._there(count)}
        numbers = self._numbers()
        if self.name in self.plan.options.numbers:
            left = self.records - (self.answer.missing if self.missing else 0)
            return self._number(numbers or int(max(1.0, left)))
        if texts and (sum(texts.values()) > numbers or self.name in self.plan.options.texts):
            return self._texts(texts)
        if numbers and self.name not in self.plan.options.texts:
            return self._number(numbers)
        return NOT_TOLD

    def _numbers(self) -> int:
        """How many numbers there are, 0 if that is not told from noise: first by few counts, which add up less noise."""
        answer = self.answer
        large = answer.negative + answer.whole + answer.fractions
        few = large + sum(count for count in answer.small.values() if self._there(count))
        if few >= 1.5 * self.clear:
            return few
        every = large + sum(answer.small.values())
        return every if every >= 5 * self.clear else 0

    def _number(self, numbers: int) -> Drafted | Scale | str:
        answer = self.answer
        others = answer.negative + answer.whole + answer.fractions
        there = {value: count for value, count in answer.small.items() if self._there(count)}
        if there and others < max(self.clear, SOME_OTHERS * numbers):
            return self._small(there, numbers)
        return self._scale(numbers, there)

    def _scale(self, numbers: int, there: Mapping[int, int]) -> Scale:
        answer = self.answer
        zeros = max(0, answer.small[0]) if answer.small[0] >= max(self.clear, MANY_ZEROS * numbers) else 0
        return Scale(
            numbers=max(1, numbers - zeros),
            zeros=zeros,
            whole=answer.whole + sum(there.values()) >= answer.fractions,
            negative=answer.negative >= max(self.clear, 0.01 * numbers),
            missing=self.missing,
            records=self.records,
        )

    def _small(self, there: Mapping[int, int], numbers: int) -> Drafted | Scale | str:
        """Small whole numbers: one indicator of two values, or cuts between the values that are there."""
        values = sorted(there)
        every = numbers if self.plan.records is None else self.records - (self.answer.missing if self.missing else 0)
        rest = every - sum(there.values())
        if max(there.values()) >= NEARLY_ALL * every:
            return SAME
        if len(values) == 1 and values[0] != 0 and rest > there[values[0]]:
            return self._scale(numbers, {})
        missing, codes = "missing" if self.missing else None, self.plan.options.missing
        two = len(values) == 2 and rest < (self.clear if values == [0, 1] else SOME_OTHERS * every)
        if two and self.plan.options.decimal == ".":
            no, yes = values
            kept = [code for code in codes if code not in values]
            column: Column = Categories(self.name, [yes], None, missing, no=no, missing_values=kept)
            return Drafted(column, "Drafted: two values.", self._shares([there[yes]], missing))
        cuts = values[1:] if len(values) > 1 else [values[0] + 1] if values[0] == 0 else [values[0], values[0] + 1]
        cuts = _some_of(cuts, there)
        above = [sum(max(0, c) for v, c in self.answer.small.items() if v >= cut) for cut in cuts]
        column = Bins(self.name, cuts, "thresholds", True, missing, codes, self.plan.options.decimal)
        return Drafted(column, "Drafted: small whole numbers.", self._shares(above, missing))

    def _shares(self, counts: Sequence[float], missing: str | None) -> tuple[float, ...]:
        every = [*counts, *([self.answer.missing] if missing is not None else [])]
        return tuple(share(count, self.records) for count in every)

    def _texts(self, there: Mapping[str, int]) -> Drafted | str:
        """A list of texts, or one indicator where there are two and hardly any other."""
        commonest = sorted(there, key=lambda text: (-there[text], text))[:MOST_TEXTS]
        texts = {text: there[text] for text in sorted(commonest)}
        values = self.records - (self.answer.missing if self.missing else 0)
        rest = max(0.0, values - sum(texts.values()))
        if max(texts.values()) >= NEARLY_ALL * values:
            return SAME
        taken = {text.lower() for text in texts}
        other: str | None = next(w for w in ("other", "any other", "another text", "none of these") if w not in taken)
        missing = next(w for w in ("missing", "no value", "not given") if w not in taken) if self.missing else None
        stated: dict[str, Any] = {}
        if missing is not None:
            codes = [code for code in (*NA_CODES, *self.plan.options.missing) if code not in texts]
            stated = {"missing": missing, "missing_values": codes}
        few = rest < max(self.clear, SOME * values)
        if len(texts) == 2:
            no, yes = texts
            counts: list[float] = [texts[yes]] if few else [texts[yes], rest]
            column = Categories(self.name, [yes], None if few else other, no=no, **stated)
            return Drafted(column, "Drafted: two texts that many records have.", self._shares(counts, missing))
        column = Categories(self.name, list(texts), other, **stated)
        return Drafted(column, "Drafted: texts that many records have.", self._shares([*texts.values(), rest], missing))


def share(count: float, records: float) -> float:
    """A noisy count as a share of the records, within 0 and 1, to three digits."""
    return round(min(1.0, max(0.0, count / records)), 3)


def _some_of(cuts: Sequence[int], there: Mapping[int, int]) -> list[int]:
    """At most seven cuts, which divide the noisy counts about evenly."""
    if len(cuts) <= MOST_CUTS:
        return list(cuts)
    total, below, kept = sum(there.values()), 0, list[int]()
    for value in sorted(there):
        if value in cuts and below * (MOST_CUTS + 1) >= total * (len(kept) + 1) and len(kept) < MOST_CUTS:
            kept.append(value)
        below += there[value]
    return kept or list(cuts[:MOST_CUTS])


INTERVALS = 7
"""Cut points divide the records of a column into so many parts, or fewer where epsilon is too small for that."""

ENOUGH = 1e6
"""Of records times epsilon: more would not change a cut point, and would ask for more digits than floats have."""

PER_INTERVAL, AT_LEAST = 25, 40
"""Records times epsilon of a column that one interval asks for, and that cut points need to mean anything."""

POPULATED = 0.02
"""Of the numbers of a column, which must lie between two cut points for both to stay, if noise would hardly give as many."""

TOO_FEW = (
    "numbers that could not be cut with this epsilon: too few records, or nearly all have the same value; state it"
)


@dataclass(frozen=True)
class Cutting:
    """What the second stage spends."""

    plan: Plan
    intervals: int
    rng: Randomness

    def cut(self, scales: Mapping[str, Scale], counts: Mapping[str, Kinds]) -> dict[str, Drafted | str]:
        """The columns with their cut points, or why they are left out."""
        order = sorted(scales, key=lambda name: -scales[name].numbers)
        chosen = next((order[:many] for many in range(len(order), 0, -1) if self._enough(order[:many], scales)), [])
        found: dict[str, Drafted | str] = {}
        for name, scale in scales.items():
            parts: list[tuple[Real, float]] = []
            if name in chosen:
                parts = self._parts(name, scale, counts[name], len(chosen))
            found[name] = self._column(name, scale, parts)
        return found

    def _enough(self, names: list[str], scales: Mapping[str, Scale]) -> bool:
        epsilon = self.plan.costs.for_cuts(len(names))
        return epsilon >= LEAST_EPSILON and all(scales[name].numbers * epsilon >= AT_LEAST for name in names)

    def _column(self, name: str, scale: Scale, parts: list[tuple[Real, float]]) -> Drafted | str:
        """Cut points with how many numbers are at or above each; without any, what the answer says: whether zeros are apart."""
        above: dict[Real, float] = {1: float(scale.numbers)} if scale.zeros and scale.whole else {}
        for cut, numbers in parts:
            above.setdefault(math.ceil(cut) if scale.whole else cut, numbers)
        if not above:
            return TOO_FEW
        cuts, missing, options = sorted(above), "missing" if scale.missing else None, self.plan.options
        column = Bins(name, cuts, "thresholds", scale.whole, missing, options.missing, options.decimal)
        words = "cut points that divide the records evenly" if parts else "zero or not"
        words += ", zeros apart" if scale.zeros and parts else ""
        shares = [share(above[cut], scale.records) for cut in cuts]
        if scale.missing:
            shares.append(share(scale.records - scale.numbers - scale.zeros, scale.records))
        return Drafted(column, f"Drafted: {words}.", tuple(shares))

    def _parts(self, name: str, scale: Scale, kinds: Kinds, columns: int) -> list[tuple[Real, float]]:
        """The cut points that have clearly some numbers on both sides, with the noisy count of those at or above each."""
        grid, cells, first = self.plan.grids[name], *self._divided(name, scale, kinds)
        if first == len(grid.points):  # nothing can be cut above the last point
            return []
        epsilon = min(self.plan.costs.for_cuts(columns), ENOUGH / scale.numbers)
        asked = int(scale.numbers * epsilon / PER_INTERVAL)
        intervals = min(self.intervals, max(2, asked), len(grid.points) - first + 1)
        places = draw_cuts(cells, grid.weights[first:], intervals, epsilon, self.plan.costs.adjacency, self.rng)
        noise = self.plan.costs.between_cuts(columns)
        sums = np.add.reduceat(cells, [0, *(place + 1 for place in places)])
        noisy = [int(count) + int(xi) for count, xi in zip(sums, noise.draws(self.rng, len(sums)), strict=True)]
        clear = max(noise.margin(BY_CHANCE), POPULATED * scale.numbers)
        kept = _populated([grid.points[first + place] for place in places], noisy, clear)
        return [(cut, float(max(0, above))) for cut, above in kept]

    def _divided(self, name: str, scale: Scale, kinds: Kinds) -> tuple[Int64Array, int]:
        """The numbers by cell from the first candidate on, which is given too."""
        grid, cells = self.plan.grids[name], kinds.cells.copy()
        if scale.zeros and grid.zero is not None:
            cells[grid.zero] = 0
        if scale.negative or grid.zero is None:
            return cells, 0
        return np.append(cells[: grid.zero + 1].sum(), cells[grid.zero + 1 :]), grid.zero


def _populated(cuts: Sequence[Real], counts: Sequence[int], clear: float) -> list[tuple[Real, int]]:
    """Cut points with the count of all that is at or above each; a part with hardly any numbers joins the one beside it."""
    left, parts = list(cuts), list(counts)
    while left and min(parts) < clear:
        part = parts.index(min(parts))
        gone = part if part == 0 or (part < len(left) and parts[part - 1] > parts[part + 1]) else part - 1
        parts[gone : gone + 2] = [parts[gone] + parts[gone + 1]]
        del left[gone]
    return [(cut, sum(parts[place + 1 :])) for place, cut in enumerate(left)]


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
    options = Options(stated, bounds or {}, leave_out, numbers, texts, missing, decimal)
    check_integer("intervals", intervals, 2, 10)
    the_delta = check_delta(delta) if delta else 0.0
    plan = Plan.of(data, label, check_epsilon(epsilon), the_delta, Adjacency.of(adjacency), options)
    rng = as_randomness(random_state)
    return _asked(plan, data, intervals, rng, budget) if plan.grids else _finished(plan, {}, {}, None)


def _asked(plan: Plan, data: Any, intervals: int, rng: Randomness, budget: Account | None) -> PrivateDraft:
    """Count, pay, and then draw noise."""
    by_delta = plan.costs.delta > 0
    guarantee = Guarantee(
        plan.costs.profile,
        plan.costs.adjacency,
        "private draft of the schema",
        f"exact sample and discrete {'Gaussian' if by_delta else 'Laplace'} noise",
        theory="12",
        oracle="none",
        seeded=rng.is_seeded,
    )
    least = plan.costs.least(plan.records) if by_delta else 1
    counts, texts_of = count_columns(data, plan.grids, least, plan.options.marks, COMMON_TEXTS)
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
    answers = {
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
