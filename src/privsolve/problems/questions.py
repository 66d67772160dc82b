"""What a problem asks, by named parts: by these a sealed run knows its question again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

PUBLIC = ("domain", "loss", "schema", "trees", "labels")
"""Fields of problems that are settings; all others come from the records."""


def question_of(problem: Any, **settings: Any) -> dict[str, Any]:
    """The public fields of a problem, its data as one part, and the settings of the mechanism."""
    names = [field.name for field in fields(problem)] if is_dataclass(problem) else sorted(vars(problem))
    values = {name: getattr(problem, name) for name in names}
    data = {name: value for name, value in values.items() if name not in PUBLIC}
    return {name: value for name, value in values.items() if name in PUBLIC} | {"data": data} | settings
