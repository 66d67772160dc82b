"""A scorecard as Markdown, for a README or a wiki."""

from __future__ import annotations

import re

from privsolve.cards import words
from privsolve.cards.card import Card
from privsolve.evaluation.words import quality_markdown


def escape(text: str) -> str:
    """Text that Markdown shows as it is, also inside a table."""
    return re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", " ".join(text.split()))


def scorecard_markdown(card: Card) -> str:
    """The card as tables and sentences."""
    privacy = words.privacy_words(card.guarantee)
    lines = [f"## {escape(words.title(card))}", ""]
    lines += [part for line in words.facts_line(card.about) for part in (escape(line), "")]
    for warning in (*words.problems(card), *privacy.warnings):
        lines += [f"> **Warning:** {escape(warning)}", ""]
    if card.rows:
        lines += ["| Question | Answer | Points |", "|---|---|--:|"]
        lines += [_table_line(*line) for line in words.answer_lines(card)]
        lines.append("")
    if card.totals:
        heads, rows = words.total_table(card)
        lines += [_table_line(*heads), "|--:" + "|---" * (len(heads) - 1) + "|", *(_table_line(*r) for r in rows), ""]
    lines += [f"**{escape(words.rule(card))}** {escape(' '.join(words.notes(card)))}", ""]
    if words.has_example(card):
        lines += [f"{escape(words.made_up(card))}:", "", "| Question | Answer | Points |", "|---|---|--:|"]
        lines += [_table_line(line.question, line.answer, words.signed(line.points)) for line in card.example.lines]
        lines += ["", f"{escape(f'{words.verdict(card)} {words.says(card)}')} **{escape(card.example.decision)}**.", ""]
    lines += quality_markdown(card.evaluation, escape)
    return "\n".join([*lines, *privacy_markdown(privacy)]) + "\n"


def privacy_markdown(privacy: words.PrivacyWords) -> list[str]:
    """What is promised, and what is not."""
    lines = ["### Privacy", "", escape(privacy.sentence), "", escape(privacy.short), ""]
    lines += [f"- {escape(item)}" for item in privacy.promised]
    return [*lines, "", "What it does not promise:", "", *(f"- {escape(item)}" for item in privacy.not_promised)]


def _table_line(*cells: str) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"
