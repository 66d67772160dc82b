"""The templates of pages and programs, which stand in the folder `templates`."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

LEFT, TOP, WIDE, HIGH = 52, 12, 312, 236
"""Where the square of data of a plot begins, and how large it is."""


@cache
def _environment() -> Environment:
    # everything but the programs is HTML, and escaped
    found = Environment(
        loader=PackageLoader("privsolve.cards", "templates"),
        autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"raised": raised, "in_script": in_script}
    found.globals |= {
        "asset": asset,
        "x": lambda share: round(LEFT + WIDE * share, 1),
        "y": lambda share: round(TOP + HIGH * (1 - share), 1),
    }
    return found


def rendered(name: str, /, **values: Any) -> str:
    """A template with its values filled in; equal values give equal bytes."""
    return _environment().get_template(name).render(**values)


def asset(name: str) -> Markup:
    """A style sheet or script that stands beside the templates."""
    return Markup((files("privsolve.cards") / "templates" / name).read_text(encoding="utf-8").rstrip("\n"))


def raised(text: str) -> Markup:
    """Text as HTML with its exponents raised: e^1, e^(kε) and 2^-100."""
    shown = re.sub(r"\^(?:\(([^()]+)\)|([-−]?[\w.]*\w))", lambda m: f"<sup>{m[1] or m[2]}</sup>", str(escape(text)))
    return Markup(shown)


def in_script(value: object) -> Markup:
    """A value for the page's script to read; no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
