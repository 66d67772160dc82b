"""A scorecard in a notebook: as a small table, as a frame, and as a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privsolve.cards import words
from privsolve.cards.card import Card, ChoicePoints
from privsolve.errors import from_extra
from privsolve.notebooks import panel

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("Question", "Answer", "Points")


def card_panel(card: Card) -> str:
    """The display of a card."""
    privacy = words.privacy_words(card.guarantee)
    notes = [words.rule(card), *words.notes(card), *words.facts_line(card.about), f"Privacy: {privacy.sentence}"]
    warnings = (*words.problems(card), *privacy.warnings)
    return panel(
        words.title(card), HEADS, words.answer_lines(card), [*notes, *words.other_count(card.guarantee)], warnings
    )


def card_frame(card: Card) -> pd.DataFrame:
    """One row per answer: column, question, answer and points; a number has the points of one step."""
    import pandas as pd

    lines: list[tuple[str, str, str, float]] = []
    for row in card.rows:
        if isinstance(row, ChoicePoints):
            lines += [(row.column, row.asked, option.text, _number(option.points)) for option in row.options]
        else:
            lines.append((row.column, row.asked, words.interval(row), _number(row.points)))
    return pd.DataFrame(lines, columns=["column", "question", "answer", "points"])


def card_plot(card: Card, ax: Any = None) -> Any:
    """The points of every answer as bars, on the axes that are given or on new ones, which are returned."""
    with from_extra("experiments"):
        import matplotlib.pyplot as plt

    lines = card_frame(card)
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 1.2 + 0.32 * (len(lines) + len(card.rows))), layout="constrained")
    at, places, names = 0.0, [], []
    for _, mine in lines.groupby("column", sort=False):
        ax.text(0, at, mine["question"].iloc[0], fontweight="bold", va="center", transform=ax.get_yaxis_transform())
        at += 1
        for answer, points in zip(mine["answer"], mine["points"], strict=True):
            ax.barh(at, points, color="#3d4f6b", height=0.7)
            ax.text(points, at, f" {points:+g}" if points else " 0", va="center", fontsize="small")
            places.append(at)
            names.append(answer)
            at += 1
    ax.set_yticks(places, names)
    ax.margins(x=0.12)
    decided = "" if card.number_scale is not None else f"; {card.positive}: {words.condition(card)}"
    ax.set_xlabel(f"points{decided}")
    ax.set_ylim(at - 0.4, -0.8)
    ax.set_title(words.title(card), loc="left")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _number(points: Any) -> float:
    return int(points) if points.denominator == 1 else float(points)
