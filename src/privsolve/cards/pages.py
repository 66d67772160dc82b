"""Scorecards and trees as self-contained pages: what their templates are filled with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from privsolve.cards import words
from privsolve.cards.rendering import rendered
from privsolve.cards.rows import UNKNOWN, QuantityPoints
from privsolve.cards.tree_picture import tree_picture
from privsolve.evaluation import words as quality
from privsolve.models.tree import DecisionTree, Leaf, Node

if TYPE_CHECKING:
    from privsolve.cards.scorecard import Scorecard
    from privsolve.cards.tree_card import TreeCard

FOLDED_FROM = 25
"""Questions beyond so many are folded away: they matter least."""

TICKS = 8
"""Numbers below a plot."""


def scorecard_html(card: Scorecard, date: str | None = None) -> str:
    """The page of a card; equal cards give equal bytes."""
    beside = {"folded_from": FOLDED_FROM, "unknown": UNKNOWN, "data": _data(card)}
    return _page("scorecard", card, words.title(card), words.problems(card), date, **beside)


def tree_html(card: TreeCard, problems: list[str], date: str | None = None) -> str:
    """The page of a tree: one question at a time, the path so far, and the whole tree as a picture."""
    picture = Markup(tree_picture(card.tree, style="").svg)
    return _page("tree", card, card.title, problems, date, picture=picture, data=_tree_data(card.tree, card.tree.root))


def _page(
    what: str, card: Scorecard | TreeCard, title: str, problems: list[str], date: str | None, **values: Any
) -> str:
    """A page with what every one says: who answers for it, what is wrong with it, how good it is, and its guarantee."""
    privacy = words.privacy_words(card.guarantee, what)
    return rendered(
        f"{what}.html",
        title=title,
        style=f"{what}.css",
        script=f"{what}.js",
        card=card,
        words=words,
        quality=quality,
        facts=words.facts(card.about, date),
        warnings=[*problems, *privacy.warnings],
        privacy=privacy,
        ticks=TICKS,
        **values,
    )


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
    if card.scale is not None:  # the risk of every whole total
        totals = range(card.minimum, card.maximum + 1)
        found["means"] = "Risk" if card.number_scale is None else f"{words.risk_of(card)}:"
        found["risks"] = {str(total): card.scale.text(total) for total in totals}
    return found


def _tree_data(tree: DecisionTree, node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"says": tree.says(node.value)}
    sides = {"y": _tree_data(tree, node.yes), "n": _tree_data(tree, node.no)}
    return {"asks": tree.questions[node.question], **sides}
