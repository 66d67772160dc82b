"""A linear rule as one query: a `CASE` for each question, as long as the card. It reads typed columns and texts alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from privsolve.cards.programs import Amount, Asked, Cut, Listed, Program, program_of
from privsolve.data.columns import Value
from privsolve.data.columns.dates import ISO
from privsolve.data.questions import date_text
from privsolve.data.reading import NUMBER_PATTERN, Marks
from privsolve.models.linear import LinearRule

Case = tuple[str, int]
"""A condition and the points where it is the first that holds."""


def scorecard_sql(rule: LinearRule, dialect: str = "duckdb") -> str:
    """All columns of a table called `data`, with score, risk (of a risk score) and prediction."""
    from sqlglot import Dialect, transpile
    from sqlglot.errors import SqlglotError

    program = program_of(rule)
    if not program.asked:
        raise ValueError("the card asks for no column, so there is nothing to compute: its decision is always the same")
    if dialect in ("duckdb", "sqlite"):
        return _query(program, SQLite() if dialect == "sqlite" else DuckDB())
    try:
        Dialect.get_or_raise(dialect)
        return transpile(_query(program, DuckDB()), read="duckdb", write=dialect, pretty=True)[0] + "\n"
    except (SqlglotError, ValueError) as error:
        raise ValueError(
            f"dialect {dialect!r} is not known: use duckdb, sqlite, postgres, tsql, ... ({error})"
        ) from None


class DuckDB:
    """How a value is read in DuckDB; sqlglot writes it for other engines."""

    double = "DOUBLE"

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

    double = "REAL"

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


def _query(program: Program, engine: DuckDB) -> str:
    cases = "\n    + ".join(_case(asked, engine) for asked in program.asked)
    score = f"CAST({cases} AS {engine.double}) / {program.unit}" if program.unit > 1 else cases
    yes, no = _literal(program.positive), _literal(program.negative)
    added = [f"CASE WHEN score >= {_total(program.threshold, program, engine)} THEN {yes} ELSE {no} END AS prediction"]
    if program.scale is not None:
        log_odds, half = program.scale.log_odds, _number(program.scale.half)
        added.insert(0, f"1.0 / (1.0 + EXP({-log_odds!r} * (score - {half}))) AS risk")
    if program.lowest_band is not None:
        whens = [f"WHEN score >= {_total(start, program, engine)} THEN {_literal(n)}" for start, n in program.bands]
        added.append(f"CASE {' '.join(whens)} ELSE {_literal(program.lowest_band)} END AS band")
    lines = ",\n".join(f"  {line}" for line in added)
    return f"SELECT\n  *,\n{lines}\nFROM (\n  SELECT\n    *,\n    {score} AS score\n  FROM data\n) AS scored\n"


def _total(units: int, program: Program, engine: DuckDB) -> str:
    return f"CAST({units} AS {engine.double}) / {program.unit}" if program.unit > 1 else str(units)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _case(asked: Asked, engine: DuckDB) -> str:
    if isinstance(asked, Cut):
        cases, rest = _cut(asked, engine)
    elif isinstance(asked, Listed):
        cases, rest = _listed(asked, engine)
    else:
        cases, rest = _amount(asked, engine)
    lines = "".join(f"\n      WHEN {condition} THEN {points}" for condition, points in cases)
    return f"CASE{lines}\n      ELSE {rest}\n    END"


def _cut(asked: Cut, engine: DuckDB) -> tuple[list[Case], str]:
    name = _quoted(asked.column)
    if asked.date_format is None:
        value, none = engine.number(name, asked.marks), engine.no_number(name, asked.marks)
        below = [f"{value} < {cut}" for cut in asked.cuts]
    else:
        value, none = engine.day(name, asked.date_format), engine.no_day(name, asked.date_format)
        below = [f"{value} < {engine.date(int(cut))}" for cut in asked.cuts]
    missing = [*_marked(asked, engine, value), (none, asked.missing)]
    return [*missing, *zip(below, asked.points, strict=False)], str(asked.points[-1])


def _listed(asked: Listed, engine: DuckDB) -> tuple[list[Case], str]:
    name = _quoted(asked.column)
    text = engine.text(name)
    if asked.kind == "text":
        none = _one_of(f"COALESCE({text}, '')", ("", *asked.marks.texts))
        missing = [(none, asked.missing)] if asked.missing != asked.other else []
        return [*missing, *((_one_of(text, values), points) for values, points in asked.groups)], str(asked.other)
    value = engine.number(name, asked.marks)
    words = dict(zip((1.0, 0.0), asked.marks.words, strict=True))
    said = [
        (_one_of(f"LOWER({text})", found), points)
        for values, points in asked.groups
        if (found := [word for v in values for word in words.get(float(v), ())])
    ]
    unlisted = [word for number, found in words.items() for word in found if not _has(asked, number)]
    said += [(_one_of(f"LOWER({text})", unlisted), asked.other)] if unlisted else []
    missing = [*_marked(asked, engine, value), *said, (engine.no_number(name, asked.marks), asked.missing)]
    listed = [(_one_of(value, tuple(float(v) for v in values)), points) for values, points in asked.groups]
    return [*missing, *listed], str(asked.other)


def _has(asked: Listed, number: float) -> bool:
    return any(float(value) == number for values, _ in asked.groups for value in values)


def _amount(asked: Amount, engine: DuckDB) -> tuple[list[Case], str]:
    name = _quoted(asked.column)
    value = engine.number(name, asked.marks)
    low, high, step, points = asked.low, asked.high, asked.step, asked.points
    first, last = (int(end // 1) for end in (low / step + 0.5, high / step + 0.5))
    cases = [
        *_marked(asked, engine, value),
        (engine.no_number(name, asked.marks), asked.missing),
        (f"{value} < {low!r}", first * points),
        (f"{value} > {high!r}", last * points),
    ]
    return cases, f"CAST(FLOOR({value} / {step!r} + 0.5) AS INTEGER) * {points}"


def _marked(asked: Asked, engine: DuckDB, value: str) -> list[Case]:
    """Values that stand for missing ones but would be read as something."""
    marks = asked.marks
    dates = isinstance(asked, Cut) and asked.date_format is not None
    texts = [text for text in marks.texts if dates or (_is_number(text) and float(text) not in marks.numbers)]
    found = [(_one_of(engine.text(_quoted(asked.column)), texts), asked.missing)] if texts else []
    return found + ([(_one_of(value, marks.numbers), asked.missing)] if marks.numbers else [])


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
