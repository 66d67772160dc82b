"""Small HTML for notebooks: a heading, a table, a few sentences. Colours are the notebook's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:.15em .9em .15em 0"
_WARNING = "border:2px solid #b45309;border-radius:.4em;padding:.4em .7em;max-width:60em"


def panel(
    title: str,
    heads: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> str:
    """The display of a value: warnings first, then the table, then sentences. All texts are escaped."""
    parts = [f'<p style="{_WARNING}"><strong>Warning.</strong> {escape(text)}</p>' for text in warnings]
    parts += [f"<p><strong>{escape(title)}</strong></p>", *_table(heads, list(rows))]
    parts += [f'<p style="max-width:60em">{escape(note)}</p>' for note in notes]
    return f"<div>{''.join(parts)}</div>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    if not rows:
        return []
    head = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    return [f'<div style="overflow-x:auto"><table>{top}<tbody>{body}</tbody></table></div>']
