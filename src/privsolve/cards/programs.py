"""A card as a program: an SQL query, and Python and JavaScript functions that need no package.

All three are written from the same values: for each column, which of its values give which points.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privsolve._version import __version__
from privsolve.cards.rendering import rendered
from privsolve.data.columns import Bins, Categories, Dates, Number, Value
from privsolve.data.columns.base import MISSING, OTHER, Column, Real, marks_of
from privsolve.data.columns.numbers import FORMATS, ISO
from privsolve.data.questions import date_text
from privsolve.data.reading import COMMA_PATTERN, NUMBER_PATTERN, PLAIN, Marks
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
    try:
        Dialect.get_or_raise(dialect)
        return transpile(_query(rule, DuckDB()), read="duckdb", write=dialect, pretty=True)[0] + "\n"
    except (SqlglotError, ValueError) as error:
        raise ValueError(
            f"dialect {dialect!r} is not known: use duckdb, sqlite, postgres, tsql, ... ({error})"
        ) from None


class DuckDB:
    """How a value is read in DuckDB; sqlglot writes it for other engines."""

    def text(self, name: str) -> str:
        """The text without surrounding spaces."""
        return f"TRIM(CAST({name} AS VARCHAR))"

    def number(self, name: str, marks: Marks) -> str:
        """The value as a number."""
        return f"TRY_CAST({self._written(name, marks)} AS DOUBLE)"

    def no_number(self, name: str, marks: Marks) -> str:
        """Whether it is none; NaN and infinity are none."""
        number = self.number(name, marks)
        return f"{number} IS NULL OR {number} NOT BETWEEN -1e300 AND 1e300"

    def day(self, name: str, form: str) -> str:
        """The value as a date."""
        day = f"TRY_CAST({name} AS DATE)"
        if form == ISO:
            return day
        pattern = form.replace("DD", "%d").replace("MM", "%m").replace("YYYY", "%Y")
        first = f"SPLIT_PART(REPLACE({self.text(name)}, 'T', ' '), ' ', 1)"
        return f"COALESCE({day}, CAST(TRY_STRPTIME({first}, '{pattern}') AS DATE))"

    def no_day(self, name: str, form: str) -> str:
        """Whether it is none."""
        return f"{self.day(name, form)} IS NULL"

    def date(self, day: int) -> str:
        """A cut."""
        return f"DATE '{date_text(day)}'"

    def _written(self, name: str, marks: Marks) -> str:
        return f"REPLACE(CAST({name} AS VARCHAR), ',', '.')" if marks.comma else name


class SQLite(DuckDB):
    """The same in SQLite, whose casts never fail: a text is a number if it equals its own cast."""

    def text(self, name: str) -> str:
        """The text without surrounding spaces."""
        return f"TRIM({name})"

    def number(self, name: str, marks: Marks) -> str:
        """The value as a number."""
        return f"CAST({self._written(name, marks)} AS REAL)"

    def no_number(self, name: str, marks: Marks) -> str:
        """Whether it is none."""
        text = self.text(self._written(name, marks))
        return f"{name} IS NULL OR {text} <> CAST({text} AS REAL)"

    def day(self, name: str, form: str) -> str:
        """The value as a text YYYY-MM-DD."""
        text = self.text(name)
        iso = _three_numbers(text, "-", (0, 1, 2))
        if form == ISO:
            return iso
        sign = form[2]
        order = {"D": 0, "M": 1, "Y": 2} if form[0] == "D" else {"M": 0, "D": 1, "Y": 2}
        other = _three_numbers(text, sign, (order["Y"], order["M"], order["D"]))
        return f"CASE WHEN INSTR({text}, '{sign}') > 0 THEN {other} ELSE {iso} END"

    def no_day(self, name: str, form: str) -> str:
        """Whether it is none: a day that does not exist becomes another one."""
        day = self.day(name, form)
        return f"{name} IS NULL OR COALESCE(DATE({day}, '+0 days'), '') <> {day}"

    def date(self, day: int) -> str:
        """A cut."""
        return f"'{date_text(day)}'"


def _three_numbers(text: str, sign: str, order: tuple[int, int, int]) -> str:
    """Year, month and day of a text in SQLite, by the places that they have in it."""
    rest = f"SUBSTR({text}, INSTR({text}, '{sign}') + 1)"
    parts = (text, rest, f"SUBSTR({rest}, INSTR({rest}, '{sign}') + 1)")
    numbers = ", ".join(f"CAST({parts[place]} AS INTEGER)" for place in order)
    return f"PRINTF('%04d-%02d-%02d', {numbers})"


def _query(rule: LinearRule, engine: DuckDB) -> str:
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


def _case(entry: Entry, engine: DuckDB) -> str:
    column = entry.column
    if isinstance(column, Bins):
        cases, rest = _cut_cases(column, entry, engine)
    elif isinstance(column, Categories):
        cases, rest = _listed_cases(column, entry, engine)
    else:
        cases, rest = _amount_cases(column, entry, engine)
    lines = "".join(f"\n      WHEN {condition} THEN {points}" for condition, points in cases)
    return f"CASE{lines}\n      ELSE {rest}\n    END"


def _cut_cases(column: Bins, entry: Entry, engine: DuckDB) -> tuple[list[Case], str]:
    name, marks, missing = _quoted(column.column), _marks(column), _missing(entry)
    cuts, points = _cuts(column, entry.by_code)
    if isinstance(column, Dates):
        value, none = engine.day(name, column.format), engine.no_day(name, column.format)
        below = [f"{value} < {engine.date(int(cut))}" for cut in cuts]
    else:
        value, none = engine.number(name, marks), engine.no_number(name, marks)
        below = [f"{value} < {cut}" for cut in cuts]
    marked = _marked(column, marks, missing, engine, value)
    return [*marked, (none, missing), *zip(below, points, strict=False)], str(points[-1])


def _listed_cases(column: Categories, entry: Entry, engine: DuckDB) -> tuple[list[Case], str]:
    name, marks, missing = _quoted(column.column), _marks(column), _missing(entry)
    groups, other = _groups(column, entry.by_code)
    text = engine.text(name)
    if column.kind == "text":
        none = _one_of(f"COALESCE({text}, '')", ("", *marks.texts))
        first = [(none, missing)] if missing != other else []
        return [*first, *((_one_of(text, values), points) for points, values in groups.items())], str(other)
    value = engine.number(name, marks)
    words = dict(zip((1.0, 0.0), marks.words, strict=True))
    said = [
        (_one_of(f"LOWER({text})", found), points)
        for points, values in groups.items()
        if (found := [word for v in values for word in words.get(float(v), ())])
    ]
    listed = {float(v) for values in groups.values() for v in values}
    unlisted = [word for number, found in words.items() for word in found if number not in listed]
    said += [(_one_of(f"LOWER({text})", unlisted), other)] if unlisted else []
    first = [*_marked(column, marks, missing, engine, value), *said, (engine.no_number(name, marks), missing)]
    return [*first, *((_one_of(value, map(float, values)), points) for points, values in groups.items())], str(other)


def _amount_cases(column: Column, entry: Entry, engine: DuckDB) -> tuple[list[Case], str]:
    assert isinstance(column, Number)
    assert isinstance(entry.printed, Slope)
    name, marks, missing, points = _quoted(column.column), _marks(column), _missing(entry), entry.printed.points
    value = engine.number(name, marks)
    low, high, step = float(column.low), float(column.high), float(column.step)
    cases = [
        *_marked(column, marks, missing, engine, value),
        (engine.no_number(name, marks), missing),
        (f"{value} < {low!r}", column.steps(low) * points),
        (f"{value} > {high!r}", column.steps(high) * points),
    ]
    return cases, f"CAST(FLOOR({value} / {step!r} + 0.5) AS INTEGER) * {points}"


def _marked(column: Column, marks: Marks, missing: int, engine: DuckDB, value: str) -> list[Case]:
    """Values that stand for missing ones but would be read as something."""
    dates = isinstance(column, Dates)
    texts = [text for text in marks.texts if dates or (_is_number(text) and float(text) not in marks.numbers)]
    found = [(_one_of(engine.text(_quoted(column.column)), texts), missing)] if texts else []
    return found + ([(_one_of(value, marks.numbers), missing)] if marks.numbers else [])


def _is_number(text: str) -> bool:
    return re.match(NUMBER_PATTERN, text) is not None


def _one_of(value: str, listed: Iterable[Value]) -> str:
    literals = [_literal(item) for item in listed]
    return f"{value} = {literals[0]}" if len(literals) == 1 else f"{value} IN ({', '.join(literals)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)
