"""What a draft looks at: a few figures of a column, in Python or in the engine. They depend on the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from privsolve.data.columns import Value, tidy
from privsolve.data.engines import is_ibis_table, run
from privsolve.data.expressions import number_of, text_of, truth_of
from privsolve.data.frames import as_frame
from privsolve.data.series import numbers_of, texts_of

MOST_VALUES = 20
"""Columns with more different values than this are not listed as categories."""

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Profile:
    """A column: how it reads (`"text"`, `"number"`, `"boolean"` or None if it cannot be read), and a few figures.

    `values` are the different values in order, or None if there are more than MOST_VALUES. `cuts` are the quartiles, and
    `upper_cuts` those of the values above the least one, for columns that are mostly one value.
    """

    kind: str | None
    records: int
    missing: int = 0
    values: tuple[Value, ...] | None = None
    distinct: int = 0
    least: float = 0.0
    largest: float = 0.0
    whole: bool = False
    cuts: tuple[float, ...] = ()
    upper_cuts: tuple[float, ...] = ()


def profiles(data: Any) -> dict[str, Profile]:
    """A profile of every column."""
    if is_ibis_table(data):
        return _profiles_in_engine(data)
    frame = as_frame(data)
    check_texts(frame.columns)
    return {name: _profile_of_series(frame[name], name) for name in frame.columns}


def check_texts(names: Sequence[object]) -> None:
    """Raise unless names of columns are texts, as they are in a schema."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"the names of columns must be texts, got {name!r}: rename them, for example by "
                "data.columns = data.columns.map(str)"
            )


def _profile_of_series(series: Any, name: str) -> Profile:
    records = len(series)
    if series.dtype == nw.Boolean:
        return _of_numbers(numbers_of(series, name), "boolean", records)
    if series.dtype.is_numeric():
        return _of_numbers(numbers_of(series, name), "number", records)
    try:
        texts = [text for text in texts_of(series, name) if text is not None]
    except ValueError:
        return _of_objects(series, name, records)
    numbers = numbers_of(series, name)
    if texts and np.count_nonzero(~np.isnan(numbers)) == len(texts):
        words = all(text.lower() in ("true", "false") for text in texts)
        return _of_numbers(numbers, "boolean" if words else "number", records)
    return _listed("text", records, records - len(texts), sorted(set(texts)))


def _of_objects(series: Any, name: str, records: int) -> Profile:
    try:
        return _of_numbers(numbers_of(series, name), "number", records)
    except ValueError:
        return Profile(None, records)


def _of_numbers(numbers: Any, kind: str, records: int) -> Profile:
    known = numbers[~np.isnan(numbers)]
    values = np.unique(known + 0.0)
    listed = [_value(v, kind) for v in values[: MOST_VALUES + 1] if np.isfinite(v)]
    finite = known[np.isfinite(known)]
    if kind == "boolean" or not len(finite):
        return _listed(kind, records, records - len(known), listed)
    upper = finite[finite > finite.min()]
    return Profile(
        kind, records, records - len(known), tuple(listed) if len(values) <= MOST_VALUES else None, len(values),
        float(finite.min()), float(finite.max()), bool((finite % 1 == 0).all()),
        tuple(map(float, np.quantile(finite, QUARTILES))),
        tuple(map(float, np.quantile(upper, QUARTILES))) if len(upper) else (),
    )  # fmt: skip


def _listed(kind: str, records: int, missing: int, values: Sequence[Value]) -> Profile:
    few = tuple(values) if len(values) <= MOST_VALUES else None
    return Profile(kind, records, missing, few, len(values))


def _profiles_in_engine(table: Any) -> dict[str, Profile]:
    """The same figures by aggregations over all columns at once, and a list of values where these are few.

    Quartiles and large numbers of values are the engine's approximations.
    """
    readings = {name: _readings(table, name) for name in table.columns}
    counts = {f"{name}\n{kind}": value.count() for name, found in readings.items() for kind, value in found.items()}
    known = _first(table.aggregate(records=table.count(), **counts))
    records = int(known.pop("records"))
    kinds = {name: _kind(name, found, known) for name, found in readings.items()}
    chosen = {name: readings[name][kind] for name, kind in kinds.items() if kind is not None}
    numbers = {name: value for name, value in chosen.items() if kinds[name] == "number"}
    figures = _figures(table, numbers) if numbers else {}
    sizes = (
        _first(table.aggregate(**{name: value.approx_nunique() for name, value in chosen.items()})) if chosen else {}
    )
    result = {}
    for name, kind in kinds.items():
        if kind is None:
            result[name] = Profile(None, records)
            continue
        values = _distinct(table, chosen[name]) if sizes[name] <= 2 * MOST_VALUES else None
        few = None
        if values is not None and len(values) <= MOST_VALUES:
            few = tuple(_value(v, kind) for v in values if kind == "text" or np.isfinite(v))
        distinct = len(values) if values is not None and few is not None else max(int(sizes[name]), MOST_VALUES + 1)
        missing = records - int(known[f"{name}\n{kind}"])
        result[name] = Profile(kind, records, missing, few, distinct, **figures.get(name, {}))
    return result


def _readings(table: Any, name: str) -> dict[str, Any]:
    """The ways to read a column."""
    kind = table[name].type()
    if kind.is_string():
        text = text_of(table[name], name)
        return {"text": text, "number": number_of(table[name], name), "boolean": truth_of(text)}
    try:
        return {"boolean" if kind.is_boolean() else "number": number_of(table[name], name)}
    except ValueError:
        return {}


def _kind(name: str, readings: dict[str, Any], known: dict[str, Any]) -> str | None:
    if "text" not in readings:
        return next(iter(readings), None)
    texts = known[f"{name}\ntext"]
    ways = [way for way in ("boolean", "number") if 0 < texts == known[f"{name}\n{way}"]]
    return ways[0] if ways else "text"


def _figures(table: Any, numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Extremes, whether all are whole, and quartiles of the finite numbers."""
    finite = table.select(**{name: value.nullif(np.inf).nullif(-np.inf) for name, value in numbers.items()})
    wanted: dict[str, Any] = {}
    for name in numbers:
        wanted |= {f"{name}\nleast": finite[name].min(), f"{name}\nlargest": finite[name].max()}
        wanted |= {f"{name}\nwhole": (finite[name] % 1 == 0).all(), **_quartiles(name, finite[name])}
    found = _first(finite.aggregate(**wanted))
    known = [name for name in numbers if found[f"{name}\nleast"] is not None]
    wanted = {}
    for name in known:
        wanted |= _quartiles(name, finite[name], finite[name] > found[f"{name}\nleast"])
    upper = _first(finite.aggregate(**wanted)) if known else {}
    return {
        name: {
            "least": float(found[f"{name}\nleast"]),
            "largest": float(found[f"{name}\nlargest"]),
            "whole": bool(found[f"{name}\nwhole"]),
            "cuts": _in_order(name, found),
            "upper_cuts": _in_order(name, upper),
        }
        for name in known
    }


def _quartiles(name: str, number: Any, where: Any = None) -> dict[str, Any]:
    return {f"{name}\nq{i}": number.approx_quantile(q, where=where) for i, q in enumerate(QUARTILES)}


def _in_order(name: str, found: dict[str, Any]) -> tuple[float, ...]:
    values = [found.get(f"{name}\nq{i}") for i in range(len(QUARTILES))]
    return tuple(float(value) for value in values if value is not None)


def _value(value: Any, kind: str) -> Value:
    return bool(value) if kind == "boolean" else tidy(value) if kind == "number" else str(value)


def _distinct(table: Any, value: Any) -> list[Any]:
    """The different values in order, if they are few; otherwise one more than MOST_VALUES of them."""
    found = table.select(value=value).distinct().filter(lambda t: t["value"].notnull()).limit(MOST_VALUES + 1)
    return sorted(run(found)["value"].to_pylist())


def _first(table: Any) -> dict[str, Any]:
    row: dict[str, Any] = run(table).to_pylist()[0]
    return row
