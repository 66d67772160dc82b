"""A linear rule as a program: for each column, which values give which points; in Python and JavaScript without a package.

SQL is written from the same values (`cards/sql.py`), so that one place says what a missing or an unlisted value counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from privsolve._version import __version__
from privsolve.cards.rendering import rendered
from privsolve.data.columns import Bins, Categories, Dates, Number, Value
from privsolve.data.columns.base import MISSING, OTHER, Real, kind_of, marks_of
from privsolve.data.columns.dates import FORMATS
from privsolve.data.reading import COMMA_PATTERN, NUMBER_PATTERN, PLAIN, Marks
from privsolve.models.linear import LinearRule, answers
from privsolve.models.odds import RiskScale
from privsolve.models.points import Slope
from privsolve.models.tally import Entry


@dataclass(frozen=True)
class Cut:
    """A number or a date: `points[k]` from the k-th cut on (`points[0]` below the first). Dates are numbers YYYYMMDD."""

    column: str
    cuts: tuple[Real, ...]
    points: tuple[int, ...]
    missing: int
    marks: Marks = PLAIN
    date_format: str | None = None


@dataclass(frozen=True)
class Listed:
    """A column with listed values: those of each group have its points, all others `other`. `kind` is how to read it."""

    column: str
    kind: str
    groups: tuple[tuple[tuple[Value, ...], int], ...]
    other: int
    missing: int
    marks: Marks = PLAIN


@dataclass(frozen=True)
class Amount:
    """A number that is clipped to `low..high`, rounded to steps and multiplied: `points` for each step."""

    column: str
    low: float
    high: float
    step: float
    points: int
    missing: int
    marks: Marks = PLAIN


Asked = Cut | Listed | Amount


@dataclass(frozen=True)
class Program:
    """A rule as a program: the columns it asks for, the least total that is decided positive, the risk of a total, if it has
    one, and the bands but the first, the highest first, by their least total. Points are in units of `1 / unit`.
    """

    asked: tuple[Asked, ...]
    threshold: int
    unit: int
    positive: Value
    negative: Value
    scale: RiskScale | None
    bands: tuple[tuple[int, str], ...]
    lowest_band: str | None


def program_of(rule: LinearRule) -> Program:
    """The rule as a program, the columns that matter most first."""
    tally = rule.tally
    asked = tuple(_asked(entry) for entry in tally.by_weight)
    lowest = None if rule.bands is None else rule.bands.names[0]
    labels = answers(rule.stated_schema.label)
    return Program(asked, tally.threshold, tally.unit, *labels, rule.scale, rule.band_starts, lowest)


def _asked(entry: Entry) -> Asked:
    column = entry.column
    if isinstance(column, Number):
        assert isinstance(entry.printed, Slope)
        missing = column.steps(column.stands_for_missing) * entry.printed.points
        bounds = float(column.low), float(column.high), float(column.step)
        return Amount(
            column.column, *bounds, entry.printed.points, missing, marks_of(column.missing_values, column.decimal)
        )
    if isinstance(column, Categories):
        return _listed(column, entry.by_code)
    if isinstance(column, Bins):
        return _cut(column, entry.by_code)
    raise ValueError(f"columns.{column.column}: a column of the kind {column.key!r} cannot be written as a program")


def _cut(column: Bins, by_code: list[int]) -> Cut:
    """The cuts at which the points change."""
    *points, missing = by_code
    kept = [i for i in range(len(column.cuts)) if points[i] != points[i + 1]]
    return Cut(
        column.column,
        tuple(column.cuts[i] for i in kept),
        (points[0], *(points[i + 1] for i in kept)),
        missing,
        marks_of(column.missing_values, column.decimal),
        column.format if isinstance(column, Dates) else None,
    )


def _listed(column: Categories, by_code: list[int]) -> Listed:
    """The values by their points; those that count like unlisted ones need not be listed."""
    other, missing = (by_code[column.outside[fate]] for fate in (OTHER, MISSING))
    groups: dict[int, list[Value]] = {}
    for option, points in zip(column.listed, by_code, strict=False):
        if points != other:
            groups.setdefault(points, []).extend(option.values)
    return Listed(
        column.column,
        kind_of(column.options[0].values[0]),
        tuple((tuple(values), points) for points, values in groups.items()),
        other,
        missing,
        marks_of(column.missing_values, truths=column.kind == "boolean"),
    )


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
