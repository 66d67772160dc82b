"""Options that several commands share, declared once: the fields of a frozen dataclass become options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

TABLE, MODEL, PRIVACY, OUTPUT = "Table", "Model", "Privacy", "Output"
EXPERT = "For experts"
"""The panel of options that newcomers need not read."""

PANELS = (TABLE, MODEL, PRIVACY, OUTPUT, EXPERT)


def with_options(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command whose parameters of these names are groups of options.

    Args:
        groups: by the name of a parameter, a dataclass whose annotated fields are the options.

    Returns:
        A decorator. The command it makes has the fields as options, and passes one object for each group.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: dict[str, inspect.Parameter] = {}
        for name, own in inspect.signature(command, eval_str=True).parameters.items():
            parameters |= _fields(groups[name]) if name in groups else {name: own}

        @wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{field: given.pop(field) for field in _fields(group)})
            command(**given)

        in_order = sorted(parameters.values(), key=_panel)  # panels are shown in the order of their first options
        by_keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in in_order]
        run.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in by_keyword}
        return run

    return decorate


def _panel(parameter: inspect.Parameter) -> int:
    """The place of the panel that an option is shown in; those without one come first."""
    for note in getattr(parameter.annotation, "__metadata__", ()):
        panel = getattr(note, "rich_help_panel", None)
        if panel in PANELS:
            return PANELS.index(panel)
    return -1


def _fields(group: type) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as parameters, with what their annotations say about the options."""
    hints = get_type_hints(group, include_extras=True)
    found = inspect.signature(group).parameters
    return {name: one.replace(annotation=hints[name]) for name, one in found.items()}
