"""A scorecard as a page: tick the answers, see the total and the decision; printed, it is a paper scorecard."""

from __future__ import annotations

from fractions import Fraction

from privsolve.cards import words
from privsolve.cards.card import Card, ChoicePoints, QuantityPoints, Row
from privsolve.cards.page import asset, escape, head, json_data, page, privacy_section, warning
from privsolve.cards.quality_html import quality_section


def scorecard_html(card: Card) -> str:
    """The page; equal cards give equal bytes."""
    title = words.title(card)
    privacy = words.privacy_words(card.guarantee)
    body = [
        "<main>",
        *head(title, words.facts(card.about), words.badge(card.guarantee)),
        *(warning(text) for text in privacy.warnings),
        f'<p class="rule">Add up the points of the answers. {escape(words.rule(card))}</p>',
        f'<p class="quiet">{escape(" ".join(words.notes(card)))}</p>',
        '<div class="card">',
        '<form id="answers" autocomplete="off">',
        *(_question(i, row) for i, row in enumerate(card.rows)),
        '<div class="buttons"><button type="reset">Start over</button>',
        '<button type="button" id="print">Print</button></div>',
        "</form>",
        _result(card),
        "</div>",
        *([_risk_table(card)] if card.risks else []),
        *quality_section(card.evaluation),
        '<div class="beside">',
        *([_example(card)] if card.rows else []),
        privacy_section(privacy, card.about.link),
        "</div>",
        "</main>",
        json_data("card", _data(card)),
    ]
    return page(title, "\n".join(body), f"{asset('scorecard.css')}\n{asset('quality.css')}", asset("scorecard.js"))


def _question(i: int, row: Row) -> str:
    blank = '<span class="paper blank" aria-hidden="true">points: ________</span>'
    short = isinstance(row, ChoicePoints) and len(row.options) <= 2
    parts = [f'<fieldset class="panel{" short" if short else ""}">', f"<legend>{escape(row.asked)}{blank}</legend>"]
    if isinstance(row, ChoicePoints):
        parts.append('<div class="options">')
        for k, option in enumerate(row.options):
            parts.append(
                f'<label class="option"><input type="radio" name="q{i}" value="{k}"><span>{escape(option.text)}</span> '
                f'<span class="points">{escape(words.signed(option.points))}</span></label>'
            )
        parts.append("</div>")
    else:
        parts += [
            '<div class="quantity">',
            f'<label for="q{i}">{escape(words.sentence(words.interval(row)))}</label>',
            f'<input type="number" id="q{i}" name="q{i}" step="any" inputmode="decimal" aria-describedby="q{i}-counted">',
            f'<span class="points">{escape(words.multiplier(row))}</span>',
            f'<output class="counted" id="q{i}-counted" for="q{i}"></output>',
            "</div>",
        ]
    return "\n".join([*parts, "</fieldset>"])


def _result(card: Card) -> str:
    return "\n".join(
        [
            '<aside class="panel result" id="result" data-answered="no" aria-label="Result">',
            '<div class="sum"><output id="total" form="answers">0</output> <span id="so-far">points</span></div>',
            *(['<output class="risk" id="risk" form="answers"></output>'] if card.risks else []),
            '<output class="decision" id="decision" form="answers" data-state="open"></output>',
            '<div class="gauge" id="gauge" aria-hidden="true" hidden>'
            '<i class="over"></i><i class="reach"></i><i class="now"></i></div>',
            *_scale(card),
            f'<p class="quiet needed">{escape(words.sentence(card.positive))}: '
            f'<span id="needed">{escape(words.condition(card))}</span></p>',
            '<p class="quiet screen" id="progress"></p>',
            '<p class="paper">Total: ____________ &nbsp; Decision: ____________________</p>',
            '<noscript><p class="warning">Without JavaScript nothing is added up: use this like a paper card.</p></noscript>',
            "</aside>",
        ]
    )


def _scale(card: Card) -> list[str]:
    """The ends of the scale and, for a risk score, a threshold that can be moved."""
    if not card.rows or card.maximum == card.minimum:
        return []
    low, high = (words.total(card, end) for end in (card.minimum, card.maximum))
    ends = (
        f'<p class="ends" aria-hidden="true"><span>{escape(low)}</span><span id="border"></span>'
        f"<span>{escape(high)}</span></p>"
    )
    if not card.risks:
        return [ends]
    first, last, now = int(card.minimum), int(card.maximum) + 1, int(card.threshold)
    return [
        ends,
        '<label class="mover screen" for="threshold">Decide from a total of <output id="from" for="threshold"></output>'
        f'<input type="range" id="threshold" min="{first}" max="{last}" value="{min(max(now, first), last)}" step="1">'
        "</label>",
    ]


def _risk_table(card: Card) -> str:
    rows = [
        f'<tr data-low="{line.low}" data-high="{line.high}"><td class="number">{escape(line.totals)}</td>'
        f"<td>{escape(line.risk)}</td></tr>"
        for line in card.risks
    ]
    return "\n".join(
        [
            '<section class="risks">',
            "<h2>What a total means</h2>",
            '<table id="risks">',
            '<thead><tr><th scope="col" class="number">Total</th>'
            f'<th scope="col">{escape(words.risk_of(card))}</th></tr></thead>',
            "<tbody>",
            *rows,
            "</tbody>",
            "</table>",
            "</section>",
        ]
    )


def _example(card: Card) -> str:
    example = card.example
    lines = [
        f"<tr><td>{escape(line.question)}</td><td>{escape(line.answer)}</td>"
        f'<td class="number">{escape(words.signed(line.points))}</td></tr>'
        for line in example.lines
    ]
    return "\n".join(
        [
            "<section>",
            f"<h2>{escape(words.made_up(card))}</h2>",
            "<table>",
            '<thead><tr><th scope="col">Question</th><th scope="col">Answer</th>'
            '<th scope="col" class="number">Points</th></tr></thead>',
            "<tbody>",
            *lines,
            "</tbody>",
            "</table>",
            f"<p>{escape(words.verdict(card))} The decision is <strong>{escape(example.decision)}</strong>.</p>",
            "</section>",
        ]
    )


def _data(card: Card) -> dict[str, object]:
    """What the script needs: points as integers in units of 1/unit, written as text because they may be long."""
    unit = card.unit
    rows: list[dict[str, object]] = []
    for row in card.rows:
        entry: dict[str, object] = {"lowest": str(int(row.lowest * unit)), "highest": str(int(row.highest * unit))}
        if isinstance(row, QuantityPoints):
            entry |= {"points": str(int(row.points * unit)), "low": row.low, "high": row.high, "step": row.step}
        else:
            entry["points"] = [str(int(option.points * unit)) for option in row.options]
        rows.append(entry)
    threshold = str(int(card.threshold * unit))
    return {
        "unit": str(unit),
        "threshold": threshold,
        "positive": card.positive,
        "negative": card.negative,
        "rows": rows,
        **_risk_data(card),
    }


def _risk_data(card: Card) -> dict[str, object]:
    """The risk in percent of every whole total from the lowest to the highest."""
    if card.scale is None or not card.risks:
        return {}
    totals = range(int(card.minimum), int(card.maximum) + 1)
    return {"risks": {str(total): card.scale.text(Fraction(total)) for total in totals}}
