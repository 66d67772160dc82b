"""What a card says, as a list of paragraphs, lists and tables; written as plain text or as Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from privsolve.cards import words
from privsolve.evaluation import Evaluation
from privsolve.evaluation.words import quality
from privsolve.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privsolve.cards.scorecard import Scorecard


@dataclass(frozen=True)
class Heading:
    """The beginning of a section: its name and its first paragraph."""

    name: str
    text: str


@dataclass(frozen=True)
class Items:
    """A list of short lines."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Lines:
    """Lines that stay as they are, such as the drawing of a tree."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table whose column `figures` holds numbers. A line without a first cell belongs to the one before it."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: int


Block = str | Heading | Items | Lines | Table


@dataclass(frozen=True)
class Document:
    """A title, what has to be read before anything else, who publishes it, and the rest."""

    title: str
    warnings: Sequence[str]
    facts: Sequence[str]
    body: Sequence[Block]

    def to_text(self, width: int) -> str:
        """Plain text that fits the width."""
        output = io.StringIO()
        console = Console(file=output, width=width, color_system=None, force_terminal=False, legacy_windows=False)
        for text in (*(f"WARNING: {warning}" for warning in self.warnings), self.title, *self.facts):
            console.print(Text(text))
        for block in self.body:
            if isinstance(block, Items):
                for line in block.lines:
                    console.print(Padding(Text(line), (0, 0, 0, 2)))
            elif isinstance(block, Table):
                console.print(_text_table(block))
            elif isinstance(block, Lines):
                output.write(f"\n{block.text}\n")
            else:
                console.print(Text(block if isinstance(block, str) else f"\n{block.name}: {block.text}"))
        return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"

    def to_markdown(self) -> str:
        """Markdown, for a README or a wiki."""
        parts = [f"## {_escaped(self.title)}", *map(_escaped, self.facts)]
        parts += [f"> **Warning:** {_escaped(warning)}" for warning in self.warnings]
        for block in self.body:
            if isinstance(block, Items):
                parts.append("\n".join(f"- {_escaped(line)}" for line in block.lines))
            elif isinstance(block, Table):
                rule = ["--:" if place == block.figures else "---" for place in range(len(block.heads))]
                rows = (_row(map(_escaped, row)) for row in block.rows)
                parts.append("\n".join([_row(map(_escaped, block.heads)), f"|{'|'.join(rule)}|", *rows]))
            elif isinstance(block, Lines):
                parts.append("\n".join(f"    {line}" for line in block.text.splitlines()))
            elif isinstance(block, Heading):
                parts += [f"### {block.name}", _escaped(block.text)]
            else:
                parts.append(_escaped(block))
        return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, also inside a table."""
    return re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", " ".join(text.split()))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text_table(table: Table) -> RichTable:
    # Text objects, because names in square brackets would be taken for markup
    found = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, head in enumerate(table.heads):
        found.add_column(Text(head), justify="right" if place == table.figures else "left", overflow="fold")
    grouped = any(not row[0] for row in table.rows)
    for number, row in enumerate(table.rows):
        if grouped and row[0] and number:
            found.add_section()
        found.add_row(*map(Text, row))
    return found


def scorecard_document(card: Scorecard, *, full: bool) -> Document:
    """What is said of a scorecard; with `full`, what its privacy promises in all words."""
    body: list[Block] = []
    if card.rows:
        body.append(Table(words.POINTS, list(words.answer_lines(card)), 2))
    if card.totals:
        body.append(Table(*words.total_table(card), 0))
    body += [words.rule(card), *words.notes(card)]
    if words.has_example(card):
        example = card.example
        lines = Items([words.example_line(line) for line in card.lines(example)])
        said = f"{words.verdict(card)} {words.says(card)} {card.decide(example)}."
        body += [f"\n{words.made_up(card)}:", lines, said]
    privacy = words.privacy_words(card.guarantee)
    return Document(
        words.title(card),
        (*words.problems(card), *privacy.warnings),
        words.facts_line(card.about),
        [*body, *quality_blocks(card.evaluation), *privacy_blocks(card.guarantee, full=full)],
    )


def quality_blocks(evaluation: Evaluation | None) -> list[Block]:
    """How good the model is, if that was measured."""
    if evaluation is None:
        return []
    lead, *lines = quality(evaluation)
    return [Heading("How good it is", lead), Items(lines)]


def privacy_blocks(guarantee: Guarantee, what: str = "scorecard", *, full: bool) -> list[Block]:
    """The guarantee, and in all words what it promises of the model, which is called `what`."""
    privacy = words.privacy_words(guarantee, what)
    if not full:
        return [Heading("Privacy", " ".join((privacy.sentence, *words.other_count(guarantee))))]
    first: list[Block] = [Heading("Privacy", privacy.sentence), privacy.short, Items(privacy.promised)]
    return [*first, "What it does not promise:", Items(privacy.not_promised)]
