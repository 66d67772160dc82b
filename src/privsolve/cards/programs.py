"""A card as a program: an SQL query, and Python and JavaScript functions that need no package.

All three are written from the same values: for each column, which of its values give which points.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from privsolve._version import __version__
from privsolve.cards.rendering import rendered
from privsolve.data.columns import Bins, Categories, Dates, Number, Value
from privsolve.data.columns.base import MISSING, OTHER, Column, Real, marks_of
from privsolve.data.columns.numbers import FORMATS, ISO
from privsolve.data.questions import date_text
from privsolve.data.reading import COMMA_PATTERN, NO, NUMBER_PATTERN, PLAIN, YES, Marks
from privsolve.models.linear import LinearRule, answers
from privsolve.models.points import Slope
from privsolve.models.tally import Entry


def _marks(column: Column) -> Marks:
    """What stands for no value in a column, and how its numbers are written."""
    if isinstance(column, Categories):
        return marks_of(column.missing_values, truths=column.kind == "boolean")
    if isinstance(column, Number | Bins):
        return marks_of(column.missing_values, column.decimal)
    raise ValueError(f"columns.{column.column}: a column of the kind {column.key!r} cannot be written as a program")


def _missing(entry: Entry) -> int:
    """The points of a value that is missing."""
    (points,) = entry.of_features(entry.column.expand(np.array([entry.column.outside[MISSING]])))
    return int(points)


def _cuts(column: Bins, by_code: list[int]) -> tuple[list[Real], list[int]]:
    """The cuts at which the points change, and the points below the first and from each of them on."""
    kept = [i for i in range(len(column.cuts)) if by_code[i] != by_code[i + 1]]
    return [column.cuts[i] for i in kept], [by_code[0], *(by_code[i + 1] for i in kept)]


def _groups(column: Categories, by_code: list[int]) -> tuple[dict[int, list[Value]], int]:
    """The values by their points but those that count like unlisted ones; and the points of these."""
    other = by_code[column.outside[OTHER]]
    groups: dict[int, list[Value]] = {}
    for option, points in zip(column.listed, by_code, strict=False):
        if points != other:
            groups.setdefault(points, []).extend(option.values)
    return groups, other


def python_program(rule: LinearRule, title: str, promise: str) -> str:
    """A module with a function `score(record)`."""
    return _written("score.py.jinja", rule, title, promise, repr)


def javascript_program(rule: LinearRule, title: str, promise: str) -> str:
    """A script with a function `score(record)`, for browsers and Node.js."""
    return _written("score.js.jinja", rule, title, promise, lambda value: json.dumps(value, ensure_ascii=False))


def _written(template: str, rule: LinearRule, title: str, promise: str, literal: Callable[[Any], str]) -> str:
    yes, no = answers(rule.stated_schema.label)
    return rendered(
        template,
        title=" ".join(title.split()),  # a line that stays within the comment
        promise=" ".join(promise.split()),
        version=__version__,
        questions=[literal(_question(entry)) for entry in rule.tally.by_weight],
        positive=literal(yes),
        negative=literal(no),
        threshold=rule.tally.threshold,
        scale=rule.scale,
        bands=[(start, literal(name)) for start, name in rule.band_starts],
        lowest_band=None if rule.bands is None else literal(rule.bands.names[0]),
        number=literal(NUMBER_PATTERN),
        comma=literal(COMMA_PATTERN),
        words=literal({kind: _words(marks) for kind, marks in (("number", PLAIN), ("boolean", Marks(truths=True)))}),
    )


def _question(entry: Entry) -> dict[str, Any]:
    """What the program needs to know of a column; what is not usual is stated."""
    column, marks = entry.column, _marks(entry.column)
    found: dict[str, Any] = {"column": column.column, "read": "number", "missing": _missing(entry)}
    stated = {"not_texts": list(marks.texts), "not_numbers": list(marks.numbers), "comma": marks.comma}
    found |= {name: value for name, value in stated.items() if value}
    if isinstance(column, Categories):
        groups, other = _groups(column, entry.by_code)
        plain = (lambda value: value) if column.kind == "text" else float
        values = [[plain(value), points] for points, listed in groups.items() for value in listed]
        return found | {"read": column.kind, "values": values, "other": other}
    if isinstance(column, Bins):
        cuts, points = _cuts(column, entry.by_code)
        if isinstance(column, Dates):
            pattern, order = FORMATS[column.format]
            found |= {"read": "date", "pattern": pattern, "order": list(order)}
        return found | {"cuts": cuts, "points": points}
    assert isinstance(column, Number)
    bounds = {name: float(getattr(column, name)) for name in ("low", "high", "step")}
    return found | bounds | {"points": entry.printed.points}


def _words(marks: Marks) -> dict[str, int]:
    yes, no = marks.words
    return dict.fromkeys(yes, 1) | dict.fromkeys(no, 0)


Case = tuple[str, int]
"""A condition and the points where it is the first that holds."""


def scorecard_sql(rule: LinearRule, dialect: str = "duckdb") -> str:
    """All columns of a table called `data`, with score, risk (of a full scorecard), prediction and band."""
    from sqlglot import Dialect, transpile
    from sqlglot.errors import SqlglotError

    if not rule.tally.entries:
        raise ValueError("the card asks for no column, so there is nothing to compute: its decision is always the same")
    if dialect in ("duckdb", "sqlite"):
        return _query(rule, SQLite() if dialect == "sqlite" else DuckDB())
    dates = [entry.column for entry in rule.tally.entries if isinstance(entry.column, Dates)]
    if odd := [date.column for date in dates if date.format != ISO]:
        raise ValueError(
            f"dialect {dialect!r} cannot read days in the format of the column {odd[0]!r}: use duckdb or sqlite, or a schema "
            "with days as YYYY-MM-DD"
        )
    try:
        Dialect.get_or_raise(dialect)
        return transpile(_query(rule, Standard()), read="duckdb", write=dialect, pretty=True)[0] + "\n"
    except (SqlglotError, ValueError) as error:
        raise ValueError(
            f"dialect {dialect!r} is not known: use duckdb, sqlite, postgres, tsql, ... ({error})"
        ) from None


class Standard:
    """How a value is read, as sqlglot writes it for other engines."""

    def text(self, name: str) -> str:
        """The text without surrounding spaces."""
        return f"TRIM(CAST({name} AS VARCHAR))"

    def is_one_of(self, name: str, texts: Sequence[str]) -> str:
        """Whether the text is in a list."""
        return _one_of(self.text(name), texts)

    def number(self, name: str, comma: bool) -> tuple[str, str]:
        """The value as a number, and whether it is none; NaN and infinity are none."""
        written = f"REPLACE(CAST({name} AS VARCHAR), ',', '.')" if comma else name
        number = f"TRY_CAST({written} AS DOUBLE)"
        return number, f"{number} IS NULL OR {number} NOT BETWEEN -1e300 AND 1e300"

    def day(self, name: str, form: str) -> tuple[str, str]:
        """The value as a date, and whether it is none."""
        day = f"TRY_CAST({name} AS DATE)"
        if form != ISO:
            pattern = form.replace("DD", "%d").replace("MM", "%m").replace("YYYY", "%Y")
            first = f"SPLIT_PART(REPLACE({self.text(name)}, 'T', ' '), ' ', 1)"
            day = f"COALESCE({day}, CAST(TRY_STRPTIME({first}, '{pattern}') AS DATE))"
        return day, f"{day} IS NULL"

    def date(self, day: int) -> str:
        """A cut."""
        return f"DATE '{date_text(day)}'"


class DuckDB(Standard):
    """DuckDB, which takes a column of yes and no in a CSV file for booleans."""

    def is_one_of(self, name: str, texts: Sequence[str]) -> str:
        """Whether the text is in a list, or is a boolean that a word of the list stands for."""
        found, said = super().is_one_of(name, texts), {text.lower() for text in texts}
        for truth, words in (("true", YES), ("false", NO)):
            if said & set(words):
                found += f" OR (TYPEOF({name}) = 'BOOLEAN' AND {self.text(name)} = '{truth}')"
        return found


class SQLite(Standard):
    """The same in SQLite, whose casts never fail: a text is a number if it equals its own cast."""

    def text(self, name: str) -> str:
        """The text without surrounding spaces."""
        return f"TRIM({name})"

    def number(self, name: str, comma: bool) -> tuple[str, str]:
        """The value as a number, and whether it is none."""
        written = f"REPLACE(CAST({name} AS VARCHAR), ',', '.')" if comma else name
        return f"CAST({written} AS REAL)", f"{name} IS NULL OR TRIM({written}) <> CAST(TRIM({written}) AS REAL)"

    def day(self, name: str, form: str) -> tuple[str, str]:
        """The value as a text YYYY-MM-DD, and whether it is none: a day that does not exist becomes another one."""
        text = self.text(name)
        day = _three_numbers(text, "-", "YMD")
        if form != ISO:
            other = _three_numbers(text, form[2], "DMY" if form[0] == "D" else "MDY")
            day = f"CASE WHEN INSTR({text}, '{form[2]}') > 0 THEN {other} ELSE {day} END"
        return day, f"{name} IS NULL OR COALESCE(DATE({day}, '+0 days'), '') <> {day}"

    def date(self, day: int) -> str:
        """A cut."""
        return f"'{date_text(day)}'"


def _three_numbers(text: str, sign: str, order: str) -> str:
    """Year, month and day of a text in SQLite, which has them in this order."""
    rest = f"SUBSTR({text}, INSTR({text}, '{sign}') + 1)"
    parts = (text, rest, f"SUBSTR({rest}, INSTR({rest}, '{sign}') + 1)")
    numbers = ", ".join(f"CAST({parts[order.index(part)]} AS INTEGER)" for part in "YMD")
    return f"PRINTF('%04d-%02d-%02d', {numbers})"


def _query(rule: LinearRule, engine: Standard) -> str:
    score = "\n    + ".join(_case(entry, engine) for entry in rule.tally.by_weight)
    yes, no = map(_literal, answers(rule.stated_schema.label))
    added = [f"CASE WHEN score >= {rule.tally.threshold} THEN {yes} ELSE {no} END AS prediction"]
    if rule.scale is not None:
        added.insert(0, f"1.0 / (1.0 + EXP({-rule.scale.log_odds!r} * (score - {rule.scale.half!r}))) AS risk")
    if rule.bands is not None:
        whens = [f"WHEN score >= {start} THEN {_literal(name)}" for start, name in rule.band_starts]
        added.append(f"CASE {' '.join(whens)} ELSE {_literal(rule.bands.names[0])} END AS band")
    lines = ",\n".join(f"  {line}" for line in added)
    return f"SELECT\n  *,\n{lines}\nFROM (\n  SELECT\n    *,\n    {score} AS score\n  FROM data\n) AS scored\n"


def _case(entry: Entry, engine: Standard) -> str:
    """The points of a question: those of a value that is missing, then of the others."""
    column, marks, missing = entry.column, _marks(entry.column), _missing(entry)
    name = _quoted(column.column)
    text, dates = engine.text(name), isinstance(column, Dates)
    if isinstance(column, Categories) and column.kind == "text":
        groups, other = _groups(column, entry.by_code)
        none = _one_of(f"COALESCE({text}, '')", ("", *marks.texts))
        cases = [(none, missing)] if missing != other else []
        return _written_case(
            [*cases, *((engine.is_one_of(name, [str(v) for v in values]), p) for p, values in groups.items())],
            str(other),
        )
    value, none = engine.day(name, column.format) if isinstance(column, Dates) else engine.number(name, marks.comma)
    # values that stand for missing ones but would be read as something
    unread = [t for t in marks.texts if dates or (re.match(NUMBER_PATTERN, t) and float(t) not in marks.numbers)]
    cases = [(_one_of(of, listed), missing) for of, listed in ((text, unread), (value, marks.numbers)) if listed]
    if isinstance(column, Categories):
        groups, other = _groups(column, entry.by_code)
        numbers = [([float(v) for v in values], points) for points, values in groups.items()]
        known = [number for listed, _ in numbers for number in listed]
        said = dict(zip((1.0, 0.0), marks.words, strict=True))  # numbers that are written as words
        listed_or_not = [*numbers, ([number for number in said if number not in known], other)]
        spoken = [([word for n in listed for word in said.get(n, ())], points) for listed, points in listed_or_not]
        cases += [(_one_of(f"LOWER({text})", found), points) for found, points in spoken if found]
        cases += [(none, missing), *((_one_of(value, listed), points) for listed, points in numbers)]
        return _written_case(cases, str(other))
    cases.append((none, missing))
    if isinstance(column, Bins):
        cuts, levels = _cuts(column, entry.by_code)
        ends = [engine.date(int(cut)) if dates else str(cut) for cut in cuts]
        below = [(f"{value} < {end}", points) for end, points in zip(ends, levels, strict=False)]
        return _written_case([*cases, *below], str(levels[-1]))
    assert isinstance(column, Number)
    assert isinstance(entry.printed, Slope)
    points, low, high, step = entry.printed.points, float(column.low), float(column.high), float(column.step)
    cases += [(f"{value} < {low!r}", column.first * points), (f"{value} > {high!r}", column.steps(high) * points)]
    return _written_case(cases, f"CAST(FLOOR({value} / {step!r} + 0.5) AS INTEGER) * {points}")


def _written_case(cases: Iterable[Case], rest: str) -> str:
    lines = "".join(f"\n      WHEN {condition} THEN {points}" for condition, points in cases)
    return f"CASE{lines}\n      ELSE {rest}\n    END"


def _one_of(value: str, listed: Iterable[Value]) -> str:
    literals = [_literal(item) for item in listed]
    return f"{value} = {literals[0]}" if len(literals) == 1 else f"{value} IN ({', '.join(literals)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)
