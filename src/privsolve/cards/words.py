"""What every form of a scorecard says: points and totals in figures, the rule, and what privacy it promises."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress

from privsolve.cards.card import UNKNOWN, AnsweredLine, Card, ChoicePoints, QuantityPoints
from privsolve.data.about import About
from privsolve.data.questions import answered
from privsolve.evaluation.words import HELP, useless
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import shown_above
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import BoundedRange

DECIMALS = 4
LONG = 12
"""Cards with more questions have no worked example, and a box to search for questions."""


def number(value: Fraction, plus: str = "") -> str:
    """A number in figures: exact where a few decimals are enough, else rounded and marked as such."""
    scaled = abs(value) * 10**DECIMALS
    whole, decimals = divmod(int(scaled + Fraction(1, 2)), 10**DECIMALS)
    figures = f"{whole:,}" + f".{decimals:0{DECIMALS}d}".rstrip("0").rstrip(".")
    sign = "−" if value < 0 else plus if value > 0 else ""
    return ("" if scaled.denominator == 1 else "≈ ") + sign + figures


def total(card: Card, value: Fraction) -> str:
    """A total in figures: as a fraction where rounding would hide on which side of the threshold it is."""
    close = abs(value - card.threshold) <= Fraction(1, 10**DECIMALS)
    return _fraction(value) if close else number(value)


def _fraction(value: Fraction, over: str = "/") -> str:
    """A number as an exact fraction, or as a whole number if it is one."""
    numerator = number(Fraction(value.numerator))
    return numerator + (f"{over}{value.denominator:,}" if value.denominator > 1 else "")


def signed(points: Fraction) -> str:
    """The points of an answer, with their sign."""
    return number(points, plus="+")


def multiplier(row: QuantityPoints) -> str:
    """What to multiply a number by to get its points."""
    return f"× {_fraction(row.points_per_one, ' ÷ ')}"


def interval(row: QuantityPoints) -> str:
    """What number is asked for."""
    unknown = "" if row.unknown is None else f"; {row.unknown:,.15g} if it is not known"
    if row.step == 1:
        return f"a whole number from {row.low:,.15g} to {row.high:,.15g}{unknown}"
    return f"a number from {row.low:,.15g} to {row.high:,.15g}, to the nearest multiple of {row.step:,.15g}{unknown}"


def condition(card: Card) -> str:
    """When a total is positive."""
    return f"at least {_fraction(first_positive(card))}"


def first_positive(card: Card) -> Fraction:
    """The lowest total that is decided positive; of a risk score not beyond the ends of the scale by more than one."""
    return card.threshold if card.scale is None else min(max(card.threshold, card.minimum), card.maximum + 1)


def title(card: Card) -> str:
    """What the card is about."""
    if card.about.question:
        return card.about.question
    if card.about.positive:
        return f"{sentence(card.about.positive)}?"
    if card.scale is not None:
        return risk_of(card)
    return f"Scorecard: {card.positive} or {card.negative}?"


def facts(about: About, made: str | None = None) -> list[tuple[str, str]]:
    """Who publishes it, from which data, and when: the date of the schema, or the day on which it was made."""
    named = (("Published by", about.owner), ("Data", about.data), ("Date", about.date or made))
    return [(name, text) for name, text in named if text is not None]


def facts_line(about: About) -> list[str]:
    """The same as one line, if there is anything to say."""
    return [". ".join(f"{name}: {text}" for name, text in facts(about)) + "."] if facts(about) else []


def problems(card: Card) -> list[str]:
    """What makes the card useless, if anything: to be read before everything else."""
    if card.constant:
        return [f"This card is of no use: it says “{card.said(card.minimum)}” of everybody. {HELP}"]
    return list(filter(None, [useless(card.evaluation)]))


def answer_lines(card: Card) -> Iterator[tuple[str, str, str]]:
    """Question, answer and points, one line for each answer; the question stands on its first line only.

    "Not known" is left out where it counts nothing: a note says so.
    """
    for row in card.rows:
        if isinstance(row, QuantityPoints):
            yield row.asked, interval(row), multiplier(row)
            continue
        shown = [option for option in row.options if option.points or option.text != UNKNOWN]
        for i, option in enumerate(shown):
            yield "" if i else row.asked, option.text, signed(option.points)


def has_example(card: Card) -> bool:
    """Whether a worked example is shown: of long cards it would be as long as the card."""
    return 0 < len(card.rows) <= LONG


def made_up(card: Card) -> str:
    """What the worked example is."""
    return f"Example, a made-up {card.about.called}"


def example_line(line: AnsweredLine) -> str:
    """A question of the example with its answer and points."""
    return f"{answered(line.question, line.answer)} ({signed(line.points)})"


def sentence(text: str) -> str:
    """A text with a capital letter."""
    return text[:1].upper() + text[1:]


def risk_of(card: Card) -> str:
    """The heading of a table of risks or numbers."""
    if card.number_scale is not None:
        return f"Predicted {card.number_scale.name}"
    return f"Risk: {card.positive}" if card.about.positive else f"Risk of {card.positive}"


def total_table(card: Card) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and lines of the table that says what a total means."""
    there = [True, card.scale is not None, card.bands is not None]
    names = ("",) if card.bands is None else card.bands.names
    lines = [("Total", risk_of(card), "Band"), *((t.totals, t.risk, names[t.band]) for t in card.totals)]
    heads, *rows = [tuple(compress(line, there)) for line in lines]
    return heads, rows


def bands(card: Card) -> list[tuple[str, str, str]]:
    """The name of every band, its totals and its risks in words."""
    if card.bands is None:
        return []
    ends = [None, *card.band_starts, None]
    said = []
    for name, low, high, risk in zip(card.bands.names, ends, ends[1:], card.bands.conditions(), strict=False):
        first = card.minimum if low is None else max(low, card.minimum)
        empty = first > card.maximum or (high is not None and high <= first)
        last = high is None or high > card.maximum
        said.append((name, "no total" if empty else _span(low, None if last else high, card.unit), risk))
    return said


def _span(low: Fraction | None, high: Fraction | None, unit: int) -> str:
    """Totals from `low` to below `high`."""
    if low is None:
        return "every total" if high is None else f"under {_fraction(high)}"
    if high is None:
        return f"{_fraction(low)} or more"
    if unit > 1:
        return f"{_fraction(low)} to under {_fraction(high)}"
    return _fraction(low) if high == low + 1 else f"{_fraction(low)} to {_fraction(high - 1)}"


def rule(card: Card) -> str:
    """How the decision follows from the total."""
    if (scale := card.number_scale) is not None:
        low, high = scale.figures(scale.low), scale.figures(scale.high)
        return f"The predicted {scale.name} is {scale.formula}, and never below {low} or above {high}."
    if card.scale is not None:
        named = f"“{card.positive}”" if card.about.positive else card.positive
        return f"The total says how likely {named} is. {moved(card)}"
    return f"The decision is {card.positive} if the total is {condition(card)}, and {card.negative} otherwise."


def moved(card: Card) -> str:
    """Where a risk score decides, and that it need not decide there."""
    if card.risk_scale is not None and _decided(card):
        reach = f"{'No' if card.threshold > card.maximum else 'Every'} total reaches its threshold"
        said = f"{reach}, a risk of {card.risk_scale.text(card.threshold)}: it decides for {card.said(card.minimum)}"
        return f"{said} whatever the answers; any other threshold may be used."
    start = f"It decides for {card.positive} if the total is {condition(card)}"
    if card.unit == 1 and card.risk_scale is not None:
        start += f", a risk of {card.risk_scale.text(first_positive(card))}"
    return f"{start}; any other threshold may be used."


def _decided(card: Card) -> bool:
    """Whether all totals lie on one side of the threshold."""
    return card.minimum >= card.threshold or card.maximum < card.threshold


def notes(card: Card) -> list[str]:
    """What else a person needs to know to use the card."""
    found = []
    if not card.rows:
        found.append("No question has points, so the total is always 0.")
    else:
        found.append(f"Totals run from {total(card, card.minimum)} to {total(card, card.maximum)}.")
    if card.scale is None and _decided(card):
        found.append(f"The decision is {card.said(card.minimum)} whatever the answers.")
    if card.bands is not None:
        said = (f"{name} {totals}" + (f" (risks {risk})" if risk else "") for name, totals, risk in bands(card))
        found.append(f"Bands of totals: {'; '.join(said)}.")
    if any(o.text == UNKNOWN and not o.points for r in card.rows if isinstance(r, ChoicePoints) for o in r.options):
        found.append("An answer that is not known counts 0 unless the card says otherwise.")
    if any(isinstance(row, QuantityPoints) for row in card.rows):
        found.append("Round a number as asked (up from halfway); one beyond the bounds counts as the nearest bound.")
    return found


def says(card: Card) -> str:
    """The words before what the card says of a record."""
    return "The decision is" if card.number_scale is None else f"The predicted {card.number_scale.name} is"


def verdict(card: Card) -> str:
    """How the worked example ends."""
    value = card.example.total
    if card.number_scale is not None:
        return f"Total {total(card, value)}."
    risk = "" if card.risk_scale is None else f", a risk of {card.risk_scale.text(value)}"
    band = "" if card.bands is None else f" (band “{card.bands.names[bisect_right(card.band_starts, value)]}”)"
    return f"Total {total(card, value)}{risk}{band}, which is {'' if value >= card.threshold else 'not '}{condition(card)}."


@dataclass(frozen=True)
class PrivacyWords:
    """A guarantee for people who have never seen one: first of all what is wrong with it, if anything."""

    warnings: tuple[str, ...]
    short: str
    """What it means, in one sentence."""

    sentence: str
    """The guarantee itself."""

    promised: tuple[str, ...]
    not_promised: tuple[str, ...]


def privacy_words(guarantee: Guarantee, what: str = "scorecard") -> PrivacyWords:
    """The guarantee with an explanation in plain language; `what` is what was chosen with it."""
    if guarantee.adjacency is Adjacency.REPLACE:
        fact = "whether a record says one thing or another"
        size: tuple[str, ...] = ("Secrecy about the number of records. It is treated as public.",)
    else:
        fact = "whether a record is in the data at all"
        size = ()
    promised = (
        f"The {what} was chosen from the data with randomness.",
        f"The guarantee stays true whatever is done with the {what} afterwards. Using it takes nothing more from the data.",
        *(["There is no exception (δ = 0)."] if guarantee.without_exception else []),
        *other_count(guarantee),
    )
    not_promised = (
        "Secrecy about people in general. A pattern that holds for many records can be learnt, and may let somebody guess "
        "something about a person whose record was never used.",
        "The same strength for several records. The factor e^ε is for one; for k records of the same person it is e^(kε).",
        "Other publications from the same data. Their privacy losses add up.",
        *size,
        "That the decision is right or fair for a person.",
    )
    return PrivacyWords(
        privacy_warnings(guarantee), _short_promise(guarantee, fact, what), guarantee.sentence(), promised, not_promised
    )


def _short_promise(guarantee: Guarantee, fact: str, what: str) -> str:
    """The guarantee in one sentence for people who do not read further."""
    if guarantee.seeded or guarantee.proof is Proof.NONE:
        return "Nothing is promised: see the warnings above."
    aside = f", except with probability δ = {shown_above(guarantee.delta, 3)}" if guarantee.delta else ""
    return (
        f"Somebody who knows every other record of the data and thinks it a toss-up {fact} can be at most "
        f"{_sure(guarantee.epsilon)} sure after seeing this {what}{aside}."
    )


def other_count(guarantee: Guarantee) -> tuple[str, ...]:
    """The same draw counted for a record added or left out, where that is proved (theory, section 17.5)."""
    if guarantee.adjacency is not Adjacency.REPLACE or not isinstance(guarantee.profile, BoundedRange):
        return ()
    return (
        f"ε = {shown_above(guarantee.epsilon)} is for one record changed. Where it is counted for one record added or left "
        f"out, as in many libraries, the same draw is stated as ε = {shown_above(guarantee.epsilon / 2)}.",
    )


def badge(guarantee: Guarantee) -> str:
    """The privacy in two words."""
    slack = f", δ\u00a0=\u00a0{shown_above(guarantee.delta, 3)}" if guarantee.delta else ""
    return f"differential privacy, ε\u00a0=\u00a0{shown_above(guarantee.epsilon)}{slack}"


def privacy_warnings(guarantee: Guarantee) -> tuple[str, ...]:
    """What is wrong with a guarantee, to be read before anything else."""
    found = []
    if guarantee.seeded:
        found.append(
            "Seeded: for testing only. Whoever knows the seed can repeat the random choices, and then nothing is protected. "
            "Do not publish this."
        )
    if guarantee.proof is Proof.NONE:
        found.append(
            "Not proved. The noise is as published, but the published proof has a gap. Do not rely on the statement below."
        )
    if guarantee.proof is Proof.REAL_ARITHMETIC:
        found.append("Proved in real arithmetic only. What floating point does to the noise is outside the proof.")
    return tuple(found)


def _sure(epsilon: float) -> str:
    """How sure one can be of what was a toss-up before: `e^ε / (1 + e^ε)`, rounded up to tenths of a percent."""
    return f"{min(math.ceil(1000 / (1 + math.exp(-epsilon)) + 1e-9), 1000) / 10:g}%"
