"""A decision tree as a picture: the root on the left, one row per leaf. Plain SVG, for pages and notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path

from privsolve.models.tree import DecisionTree, Leaf, Node, depth_of

ROW, WIDE, HIGH, GAP = 40, 176, 28, 64
"""Pixels from leaf to leaf; width and height of a box; space between levels."""

LETTERS = 24
"""So many letters fit into a box; the whole text is shown when the pointer rests on it."""

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b2430}rect{fill:#fff;stroke:#566173}rect.leaf{fill:#e6f0fb;stroke:#0b5cad}"
    "path{fill:none;stroke:#8a94a6;stroke-width:1.5}text.way{font-size:11px;fill:#566173}"
)


@dataclass(frozen=True)
class Picture:
    """A picture that notebooks show by themselves."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def tree_picture(tree: DecisionTree, style: str = STYLE) -> Picture:
    """The whole tree; boxes and branches have ids by their path, such as `box-yn` after yes and no."""
    parts: list[str] = []
    rows = count()

    def draw(node: Node, path: str) -> float:
        """Draw what is below a node, and then its box; the middle of that."""
        left = _left(len(path))
        if isinstance(node, Leaf):
            middle, text, kind = (next(rows) + 0.5) * ROW, tree.says(node.value), "leaf"
        else:
            sides = [draw(child, path + way) for child, way in ((node.yes, "y"), (node.no, "n"))]
            middle, text, kind = sum(sides) / 2, tree.questions[node.question], "question"
            for side, word in zip(sides, ("yes", "no"), strict=True):
                parts.extend(_branch(left + WIDE, middle, _left(len(path) + 1), side, path + word[0], word))
        parts.extend(_box(left, middle, text, path, kind))
        return middle

    draw(tree.root, "")
    width, height = _left(depth_of(tree.root)) + WIDE + 8, next(rows) * ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="Decision tree with {tree.size} leaves">'
    )
    return Picture("\n".join([head, f"<style>{style}</style>", *parts, "</svg>"]))


def _left(level: int) -> int:
    return 4 + level * (WIDE + GAP)


def _branch(x: float, y: float, to_x: float, to_y: float, path: str, word: str) -> Iterator[str]:
    half = (x + to_x) / 2
    yield f'<path id="way-{path}" d="M{x:g} {y:g}C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}"/>'
    beside = -5 if to_y < y else 14
    yield f'<text class="way" x="{to_x - 6:g}" y="{to_y + beside:g}" text-anchor="end">{word}</text>'


def _box(left: float, middle: float, text: str, path: str, kind: str) -> Iterator[str]:
    shown = text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
    yield (
        f'<g id="box-{path}"><title>{escape(text)}</title><rect class="{kind}" x="{left:g}" y="{middle - HIGH / 2:g}" '
        f'width="{WIDE}" height="{HIGH}" rx="6"/>'
        f'<text x="{left + WIDE / 2:g}" y="{middle + 4.5:g}" text-anchor="middle">{escape(shown)}</text></g>'
    )
