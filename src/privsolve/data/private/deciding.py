"""What is decided from the noisy answer about a column: post-processing, so it costs nothing (theory, 12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privsolve.data.columns import Bins, Categories, Column
from privsolve.data.private.answers import Answer
from privsolve.data.private.counts import NA_CODES
from privsolve.data.private.plan import Plan

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
