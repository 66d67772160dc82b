"""A scorecard for a terminal."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from privsolve.cards import words
from privsolve.cards.card import Card
from privsolve.evaluation.words import quality_lines


def scorecard_text(card: Card, width: int) -> str:
    """The card as plain text that fits the width."""
    output = io.StringIO()
    console = Console(file=output, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    privacy = words.privacy_words(card.guarantee)
    for warning in (*words.problems(card), *privacy.warnings):
        console.print(Text(f"WARNING: {warning}"))
    for heading in (words.title(card), *words.facts_line(card.about)):
        console.print(Text(heading))
    if card.rows:
        console.print(_points_table(card))
    if card.totals:
        console.print(_total_table(card))
    for sentence in (words.rule(card), *words.notes(card)):
        console.print(Text(sentence))
    if words.has_example(card):
        console.print(Text(f"\n{words.made_up(card)}:"))
        for line in card.example.lines:
            console.print(Padding(Text(words.example_line(line)), (0, 0, 0, 2)))
        console.print(Text(f"{words.verdict(card)} {words.says(card)} {card.example.decision}."))
    for sentence in quality_lines(card.evaluation):
        console.print(Text(sentence))
    console.print(Text(f"\nPrivacy: {' '.join((privacy.sentence, *words.other_count(card.guarantee)))}"))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def _total_table(card: Card) -> Table:
    table, (heads, rows) = Table(box=box.SIMPLE_HEAD, pad_edge=False), words.total_table(card)
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if place else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _points_table(card: Card) -> Table:
    # Text objects, because names in square brackets would be taken for markup
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Question", overflow="fold")
    table.add_column("Answer", overflow="fold")
    table.add_column("Points", justify="right", overflow="fold")
    for number, (question, answer, points) in enumerate(words.answer_lines(card)):
        if question and number:
            table.add_section()
        table.add_row(Text(question), Text(answer), Text(points))
    return table
