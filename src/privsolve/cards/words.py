"""What every form of a scorecard says: points and totals in figures, the rule, and what privacy it promises."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import TYPE_CHECKING

from privsolve.cards.rows import UNKNOWN, ChoicePoints, QuantityPoints
from privsolve.data.constraints import About
from privsolve.data.questions import answered
from privsolve.evaluation.words import HELP, useless
from privsolve.models.scales import NumberScale, RiskScale
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import shown_above
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import BoundedRange

if TYPE_CHECKING:
    from privsolve.cards.scorecard import AnsweredLine, Scorecard

LONG = 12
"""Cards with more questions have no worked example, and a box to search for questions."""

POINTS = ("Question", "Answer", "Points")
"""The heads of a table of points."""

MOST_TOTALS = 2_000
MOST_LINES = 20


def number(value: int, plus: str = "") -> str:
    """A whole number in figures."""
    return f"{'−' if value < 0 else plus if value else ''}{abs(value):,}"


def signed(points: int) -> str:
    """The points of an answer, with their sign."""
    return number(points, plus="+")


def multiplier(row: QuantityPoints) -> str:
    """What to multiply a rounded number by to get its points."""
    factor = row.points / row.exact_step
    return f"× {number(factor.numerator)}" + (f" ÷ {factor.denominator:,}" if factor.denominator > 1 else "")


def interval(row: QuantityPoints) -> str:
    """What number is asked for."""
    unknown = f"; {row.unknown:,.15g} if it is not known"
    if row.step == 1:
        return f"a whole number from {row.low:,.15g} to {row.high:,.15g}{unknown}"
    return f"a number from {row.low:,.15g} to {row.high:,.15g}, to the nearest multiple of {row.step:,.15g}{unknown}"


def condition(card: Scorecard) -> str:
    """When a total is positive."""
    return f"at least {number(first_positive(card))}"


def first_positive(card: Scorecard) -> int:
    """The lowest total that is decided positive; of a card with risks not beyond the ends of the scale by more than one."""
    return card.threshold if card.scale is None else min(max(card.threshold, card.minimum), card.maximum + 1)


def title(card: Scorecard) -> str:
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


def problems(card: Scorecard) -> list[str]:
    """What makes the card useless, if anything: to be read before everything else."""
    if card.constant:
        return [f"This card is of no use: it says “{card.said(card.minimum)}” of everybody. {HELP}"]
    return list(filter(None, [useless(card.evaluation)]))


def answer_lines(card: Scorecard) -> Iterator[tuple[str, str, str]]:
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


def has_example(card: Scorecard) -> bool:
    """Whether a worked example is shown: of long cards it would be as long as the card."""
    return 0 < len(card.rows) <= LONG


def made_up(card: Scorecard) -> str:
    """What the worked example is."""
    return f"Example, a made-up {card.about.called}"


def example_line(line: AnsweredLine) -> str:
    """A question of the example with its answer and points."""
    return f"{answered(line.question, line.answer)} ({signed(line.points)})"


def sentence(text: str) -> str:
    """A text with a capital letter."""
    return text[:1].upper() + text[1:]


def risk_of(card: Scorecard) -> str:
    """The heading of a table of risks or numbers."""
    if card.number_scale is not None:
        return f"Predicted {card.number_scale.name}"
    return f"Risk: {card.positive}" if card.about.positive else f"Risk of {card.positive}"


def total_table(card: Scorecard) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and lines of the table that says what a total means."""
    there = [True, card.scale is not None, card.bands is not None]
    names = ("",) if card.bands is None else card.bands.names
    lines = [("Total", risk_of(card), "Band"), *((t.totals, t.risk, names[t.band]) for t in card.totals)]
    heads, *rows = [tuple(compress(line, there)) for line in lines]
    return heads, rows


def bands(card: Scorecard) -> list[tuple[str, str, str]]:
    """The name of every band, its totals and its risks in words."""
    if card.bands is None:
        return []
    starts = card.band_starts
    ends = [None, *starts], [*starts, None]
    named = zip(card.bands.names, *ends, card.bands.conditions(), strict=True)
    return [(name, _span(card, low, high), risk) for name, low, high, risk in named]


def _span(card: Scorecard, low: int | None, high: int | None) -> str:
    """The totals of the card from `low` to below `high`."""
    first = card.minimum if low is None else max(low, card.minimum)
    if first > card.maximum or (high is not None and high <= first):
        return "no total"
    if high is None or high > card.maximum:
        return "every total" if low is None else f"{number(low)} or more"
    if low is None:
        return f"under {number(high)}"
    return number(low) if high == low + 1 else f"{number(low)} to {number(high - 1)}"


def rule(card: Scorecard) -> str:
    """How the decision follows from the total."""
    if (scale := card.number_scale) is not None:
        low, high = scale.figures(scale.low), scale.figures(scale.high)
        return f"The predicted {scale.name} is {scale.formula}, and never below {low} or above {high}."
    if card.scale is not None:
        named = f"“{card.positive}”" if card.about.positive else card.positive
        return f"The total says how likely {named} is. {moved(card)}"
    return f"The decision is {card.positive} if the total is {condition(card)}, and {card.negative} otherwise."


def moved(card: Scorecard) -> str:
    """Where a risk score decides, and that it need not decide there."""
    if card.risk_scale is not None and _decided(card):
        reach = f"{'No' if card.threshold > card.maximum else 'Every'} total reaches its threshold"
        said = f"{reach}, a risk of {card.risk_scale.text(card.threshold)}: it decides for {card.said(card.minimum)}"
        return f"{said} whatever the answers; any other threshold may be used."
    start = f"It decides for {card.positive} if the total is {condition(card)}"
    if card.risk_scale is not None:
        start += f", a risk of {card.risk_scale.text(first_positive(card))}"
    return f"{start}; any other threshold may be used."


def _decided(card: Scorecard) -> bool:
    """Whether all totals lie on one side of the threshold."""
    return card.minimum >= card.threshold or card.maximum < card.threshold


def notes(card: Scorecard) -> list[str]:
    """What else a person needs to know to use the card."""
    found = []
    if not card.rows:
        found.append("No question has points, so the total is always 0.")
    else:
        found.append(f"Totals run from {number(card.minimum)} to {number(card.maximum)}.")
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


def says(card: Scorecard) -> str:
    """The words before what the card says of a record."""
    return "The decision is" if card.number_scale is None else f"The predicted {card.number_scale.name} is"


def verdict(card: Scorecard) -> str:
    """How the worked example ends."""
    value = card.score(card.example)
    if card.number_scale is not None:
        return f"Total {number(value)}."
    risk = "" if card.risk_scale is None else f", a risk of {card.risk_scale.text(value)}"
    band = "" if card.bands is None else f" (band “{card.bands.names[bisect_right(card.band_starts, value)]}”)"
    return f"Total {number(value)}{risk}{band}, which is {'' if value >= card.threshold else 'not '}{condition(card)}."


Read = tuple[int, str, int]
"""A total, its risk or number in words, and the number of its band."""


@dataclass(frozen=True)
class TotalLine:
    """A run of totals of about the same risk and of one band, by its number."""

    low: int
    high: int
    risk: str
    band: int = 0

    @property
    def totals(self) -> str:
        """The totals in words."""
        low, high = (str(value).replace("-", "−") for value in (self.low, self.high))
        return _range(low, high)


def total_lines(
    rows: Iterable[Iterable[int]], scale: RiskScale | NumberScale | None = None, starts: Sequence[int] = ()
) -> tuple[TotalLine, ...]:
    """A line for each total that the answers can add up to; neighbours of one band whose risks read the same are one.

    `rows` are the points of the answers to each question, `starts` the least totals of all bands but the first. Where there
    would be too many lines, each is for a round number of totals, such as 40 to 44.
    """
    totals = {0}
    for points in rows:
        totals = {total + p for total in totals for p in set(points)}
        if len(totals) > MOST_TOTALS:
            totals = set(range(min(totals), max(totals) + 1))
    found = [
        (total, "" if scale is None else scale.text(total), bisect_right(starts, total)) for total in sorted(totals)
    ]
    lines = _runs(found, lambda line: line[1])
    if len(lines) <= MOST_LINES:
        return lines
    for step in (k * 10**e for e in range(9) for k in (2, 5, 10)):
        # many totals that read like the first or the last are one line
        ends = {text for _, text, _ in (found[0], found[-1]) if sum(text == other for _, other, _ in found) > step}
        lines = _runs(found, lambda line: line[1] if line[1] in ends else line[0] // step)  # noqa: B023
        if len(lines) <= MOST_LINES + len(starts):
            break
    return lines


def _runs(found: Sequence[Read], key: Callable[[Read], object]) -> tuple[TotalLine, ...]:
    runs = [list(run) for _, run in groupby(found, key=lambda line: (line[2], key(line)))]
    return tuple(TotalLine(run[0][0], run[-1][0], _range(run[0][1], run[-1][1]), run[0][2]) for run in runs)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


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
