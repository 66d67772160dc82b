"""Scorecards and trees as self-contained pages: what their templates are filled with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from privsolve.cards import words
from privsolve.cards.rendering import rendered
from privsolve.cards.rows import UNKNOWN, ChoicePoints, QuantityPoints, Row
from privsolve.cards.tree_picture import tree_picture
from privsolve.data.about import About
from privsolve.evaluation import Evaluation
from privsolve.evaluation.words import figure_cells, main_figures, rare_line, where
from privsolve.models.tree import DecisionTree, Leaf, Node
from privsolve.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privsolve.cards.scorecard import Scorecard

FOLDED_FROM = 25
"""Questions beyond so many are folded away: they matter least."""

TICKS = 8
"""Numbers below a plot."""


def scorecard_html(card: Scorecard, date: str | None = None) -> str:
    """The page of a card; equal cards give equal bytes."""
    rest = card.rows[FOLDED_FROM:]
    return rendered(
        "scorecard.html",
        title=words.title(card),
        style="scorecard.css",
        script="scorecard.js",
        **_common(card.about, card.guarantee, "scorecard", card.evaluation, words.problems(card), date, card.version),
        rule=words.rule(card),
        notes=" ".join(words.notes(card)),
        rows=[_question(i, row) for i, row in enumerate(card.rows)],
        long=len(card.rows) > words.LONG,
        folded_from=FOLDED_FROM,
        rest_points=words.number(max((row.highest - row.lowest for row in rest), default=0)) + " points",
        can_skip=any(isinstance(r, ChoicePoints) and any(o.text == UNKNOWN for o in r.options) for r in card.rows),
        unknown=UNKNOWN,
        risks=card.scale is not None and bool(card.totals),
        totals=_totals(card),
        risk_of=words.risk_of(card),
        bands=card.bands is not None,
        scale=_scale(card),
        positive=words.sentence(card.positive),
        condition=words.condition(card),
        decides=card.number_scale is None,
        example=_example(card),
        data=_data(card),
    )


def tree_html(
    tree: DecisionTree,
    guarantee: Guarantee,
    title: str,
    evaluation: Evaluation | None = None,
    problems: list[str] | None = None,
    date: str | None = None,
    version: str = "",
) -> str:
    """The page of a tree: one question at a time, the path so far, and the whole tree as a picture."""
    about = About() if tree.schema is None else tree.schema.about
    return rendered(
        "tree.html",
        title=title,
        style="tree.css",
        script="tree.js",
        **_common(about, guarantee, "tree", evaluation, problems or [], date, version),
        depth=tree.depth,
        picture=Markup(tree_picture(tree, style="").svg),
        data=_tree_data(tree, tree.root),
    )


def _common(
    about: About,
    guarantee: Guarantee,
    what: str,
    evaluation: Evaluation | None,
    problems: list[str],
    date: str | None,
    version: str,
) -> dict[str, Any]:
    """What every page says: who answers for it, what is wrong with it, how good it is, and its guarantee."""
    privacy = words.privacy_words(guarantee, what)
    return {
        "facts": words.facts(about, date),
        "badge": words.badge(guarantee),
        "warnings": [*problems, *privacy.warnings],
        "privacy": privacy,
        "link": about.link,
        "quality": None if evaluation is None else _quality(evaluation),
        "version": version,
    }


def _question(number: int, row: Row) -> dict[str, Any]:
    if isinstance(row, QuantityPoints):
        texts = {"interval": words.sentence(words.interval(row)), "multiplier": words.multiplier(row)}
        return {"number": number, "asked": row.asked, "options": None, **texts}
    options = [{"text": o.text, "points": words.signed(o.points), "unknown": o.text == UNKNOWN} for o in row.options]
    return {"number": number, "asked": row.asked, "options": options}


def _totals(card: Scorecard) -> dict[str, Any] | None:
    """The table that says what a total means."""
    if not card.totals:
        return None
    (_, *heads), rows = words.total_table(card)
    most = 0 if card.bands is None else len(card.bands.cuts)
    marked = [
        (line, cells[1:], "●" * line.band + "○" * (most - line.band))
        for line, cells in zip(card.totals, rows, strict=True)
    ]
    return {"heads": heads, "lines": marked, "most": most}


def _scale(card: Scorecard) -> dict[str, Any] | None:
    """The ends of the scale and the places of the threshold, if there is anything to add up."""
    if not card.rows or card.maximum == card.minimum:
        return None
    first, last = card.minimum, card.maximum + 1
    low, high = words.number(card.minimum), words.number(card.maximum)
    return {"low": low, "high": high, "first": first, "last": last, "now": min(max(card.threshold, first), last)}


def _example(card: Scorecard) -> dict[str, Any] | None:
    if not words.has_example(card):
        return None
    example = card.example
    lines = [(line.question, line.answer, words.signed(line.points)) for line in card.lines(example)]
    said = {
        "title": words.made_up(card),
        "verdict": words.verdict(card),
        "says": words.says(card),
        "decision": card.decide(example),
    }
    return {"lines": lines, **said}


def _data(card: Scorecard) -> dict[str, object]:
    """What the script needs: points, written as text because they may be long."""
    rows: list[dict[str, object]] = []
    for row in card.rows:
        entry: dict[str, object] = {"asked": row.asked, "lowest": str(row.lowest), "highest": str(row.highest)}
        if isinstance(row, QuantityPoints):
            entry |= {"points": str(row.points), "low": row.low, "high": row.high, "step": row.step}
        else:
            entry["points"] = [str(option.points) for option in row.options]
        rows.append(entry)
    found: dict[str, object] = {"threshold": str(card.threshold), "rows": rows}
    if card.number_scale is None:
        found |= {"positive": card.positive, "negative": card.negative}
    if card.bands is not None:
        found["bands"] = {"names": card.bands.names, "starts": list(map(str, card.band_starts))}
    if card.scale is not None and card.totals:  # the risk of every whole total
        totals = range(card.minimum, card.maximum + 1)
        found["means"] = "Risk" if card.number_scale is None else f"{words.risk_of(card)}:"
        found["risks"] = {str(total): card.scale.text(total) for total in totals}
    return found


def _tree_data(tree: DecisionTree, node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"says": tree.says(node.value)}
    sides = {"y": _tree_data(tree, node.yes), "n": _tree_data(tree, node.no)}
    return {"asks": tree.questions[node.question], **sides}


def _quality(evaluation: Evaluation) -> dict[str, Any]:
    """Figures, the places of two plots, and the tables by outcome and by group."""
    no, yes = evaluation.labels
    cells, count = evaluation.cells, len(evaluation.outcomes)
    shares, risks = cells.calibration(), cells.risks()
    texts = [o.text if evaluation.kind == "total" else str(i + 1) for i, o in enumerate(evaluation.outcomes)]
    every = max(1, -(-count // TICKS))
    points = [
        {
            "at": (i + 0.5) / count,
            "figure": figure,
            "risk": outcome.risk,
            "tick": "" if i % every else text.split(" to ")[0],
        }
        for i, (figure, outcome, text) in enumerate(zip(shares, evaluation.outcomes, texts, strict=True))
    ]
    legend = "Dots are shares, with 95% intervals: thick for the noise alone. The line is the share made never to fall."
    own = cells.false_positives().value, cells.false_negatives().value
    return {
        "lead": rare_line(evaluation),
        "where": where(evaluation),
        "yes": yes,
        "no": no,
        "kind": evaluation.kind,
        "figures": [(name, *figure_cells(figure)) for name, figure in main_figures(cells, evaluation.labels)],
        "legend": legend + (" Bars are what the card states." if cells.states_risks else ""),
        "steps": [(i / count, (i + 1) / count, risk) for i, risk in enumerate(risks)],
        "points": points,
        "roc": [
            (p.false_positives.value, 1 - p.false_negatives.value)
            for p in cells.threshold_points()
            if p.false_positives.value is not None and p.false_negatives.value is not None
        ],
        "own": None if own[0] is None or own[1] is None else (own[0], 1 - own[1]),
        **_outcome_table(evaluation),
        **_group_table(evaluation),
    }


def _outcome_table(evaluation: Evaluation) -> dict[str, Any]:
    cells, (no, yes) = evaluation.cells, evaluation.labels
    stated = ("Stated",) if cells.states_risks else ()
    rows = []
    for o, (outcome, figure, risk) in enumerate(
        zip(evaluation.outcomes, cells.calibration(), cells.risks(), strict=True)
    ):
        value, wide, _ = figure_cells(figure)
        records = f"{max(0, cells.records(o)):,}"
        states = (f"{100 * outcome.risk:.3g}%",) if stated and outcome.risk is not None else ()
        said = yes if outcome.positive else no
        rows.append((outcome.text, said, records, value, wide, *states, f"{100 * risk:.3g}%"))
    name = words.sentence(evaluation.kind)
    heads = (
        name,
        "Decision",
        words.sentence(cells.counted),
        f"Share of “{yes}”",
        "95% interval",
        *stated,
        "Made never to fall",
    )
    return {"heads": heads, "rows": rows}


def _group_table(evaluation: Evaluation) -> dict[str, Any]:
    no, yes = evaluation.labels
    rows = []
    for name in evaluation.groups if evaluation.by is not None else ():
        cells = evaluation.of_group(name)
        figures = (cells.accuracy(), cells.false_positives(), cells.false_negatives(), cells.chosen())
        rows.append((name, f"{max(0, cells.records()):,}", *(figure.percent() for figure in figures)))
    mistaken = (f"“{no}” mistaken for “{yes}”", f"“{yes}” mistaken for “{no}”")
    heads = (evaluation.by, words.sentence(evaluation.cells.counted), "Right", *mistaken, f"Decided “{yes}”")
    return {"by": evaluation.by, "group_heads": heads, "groups": rows}
