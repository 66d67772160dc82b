"""The templates of pages and programs, which stand in the folder `templates`."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    # everything but the programs is HTML, and escaped
    return Environment(
        loader=PackageLoader("privsolve.cards", "templates"),
        autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def rendered(name: str, /, **values: Any) -> str:
    """A template with its values filled in; equal values give equal bytes."""
    return _environment().get_template(name).render(**values)
