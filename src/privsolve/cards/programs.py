"""A linear rule as a small program in Python or JavaScript that needs no package."""

from __future__ import annotations

import json
from typing import Any

from privsolve._version import __version__
from privsolve.cards.answers import Asked, Cut, Listed, Program, program_of
from privsolve.cards.rendering import rendered
from privsolve.data.columns import Value
from privsolve.data.columns.dates import FORMATS
from privsolve.data.reading import COMMA_PATTERN, NUMBER_PATTERN, PLAIN, Marks
from privsolve.models.linear import LinearRule


def python_program(rule: LinearRule, title: str, promise: str) -> str:
    """A module with a function `score(record)`."""
    return _written("score.py.jinja", program_of(rule), title, promise, repr)


def javascript_program(rule: LinearRule, title: str, promise: str) -> str:
    """A script with a function `score(record)`, for browsers and Node.js."""
    return _written("score.js.jinja", program_of(rule), title, promise, _json)


def _written(template: str, program: Program, title: str, promise: str, literal: Any) -> str:
    values = {
        "title": _line(title),
        "promise": _line(promise),
        "version": __version__,
        "questions": [literal(_question(asked)) for asked in program.asked],
        "positive": literal(program.positive),
        "negative": literal(program.negative),
        "threshold": program.threshold,
        "unit": program.unit,
        "scale": program.scale,
        "bands": [(start, literal(name)) for start, name in program.bands],
        "lowest_band": None if program.lowest_band is None else literal(program.lowest_band),
        "number": literal(NUMBER_PATTERN),
        "comma": literal(COMMA_PATTERN),
        "words": literal({kind: _words(marks) for kind, marks in (("number", PLAIN), ("boolean", Marks(truths=True)))}),
    }
    return rendered(template, **values)


def _question(asked: Asked) -> dict[str, Any]:
    """What the program needs to know of a column."""
    if isinstance(asked, Listed):
        values = [[_plain(value, asked.kind), points] for listed, points in asked.groups for value in listed]
        return _read(asked, asked.kind) | {"values": values, "other": asked.other}
    if isinstance(asked, Cut):
        kind = "number" if asked.date_format is None else "date"
        return _read(asked, kind) | {"cuts": list(asked.cuts), "points": list(asked.points)}
    return _read(asked, "number") | {"low": asked.low, "high": asked.high, "step": asked.step, "points": asked.points}


def _read(asked: Asked, kind: str) -> dict[str, Any]:
    """How its values are read; what is not usual is stated."""
    marks: Marks = asked.marks
    found: dict[str, Any] = {"column": asked.column, "read": kind, "missing": asked.missing}
    if isinstance(asked, Cut) and asked.date_format is not None:
        pattern, order = FORMATS[asked.date_format]
        found |= {"pattern": pattern, "order": list(order)}
    stated = {"not_texts": list(marks.texts), "not_numbers": list(marks.numbers), "comma": marks.comma}
    return found | {name: value for name, value in stated.items() if value}


def _words(marks: Marks) -> dict[str, int]:
    yes, no = marks.words
    return dict.fromkeys(yes, 1) | dict.fromkeys(no, 0)


def _plain(value: Value, kind: str) -> Value:
    return value if kind == "text" else float(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _line(text: str) -> str:
    """A text that stays within the comment."""
    return " ".join(text.split())
