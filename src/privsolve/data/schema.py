"""The schema: columns, label and intercept, and the pattern tables it makes of data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privsolve.data import toml
from privsolve.data.columns import MISSING, OTHER, Bins, Categories, Category, Column, Label, Number
from privsolve.data.engines import count_codes, is_ibis_table
from privsolve.data.frames import codes_of_frame
from privsolve.data.packing import distinct_codes
from privsolve.data.patterns import Int64Array, PatternTable
from privsolve.data.questions import Choice, Question

INTERCEPT = "intercept"
"""The name of the constant feature, always the last one."""

_COLUMN_KEYS = {
    "categories": ("categories", "other", "missing"),
    "bins": ("bins", "encoding", "whole", "missing"),
    "low": ("low", "high", "step", "scale", "missing"),
}


@dataclass(frozen=True)
class EncodedTable:
    """A pattern table, and how many values of each column fell outside the schema.

    `outside[column]` counts values that are `"other"`, `"missing"`, `"below"` or `"above"`; counts of 0 are left out.
    They depend on the data: for the curator, never published (theory, section 7).
    """

    table: PatternTable
    outside: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Schema:
    """What is public about a table. Nothing in it is read from the data.

    `columns` are `Categories`, `Bins` and `Number`; `label` may be left out where only features are needed; the
    `intercept` is a constant feature of ones, the last one.
    """

    columns: tuple[Column, ...]
    label: Label | None = None
    intercept: bool = True

    def __init__(self, columns: Sequence[Column], label: Label | None = None, intercept: bool = True) -> None:
        found = tuple(columns)
        if not found or not all(isinstance(column, Column) for column in found):
            raise ValueError("columns must list at least one of Categories, Bins and Number")
        if label is not None and not isinstance(label, Label):
            raise ValueError(f"label must be a Label, got {type(label).__name__}")
        if not isinstance(intercept, bool):
            raise ValueError(f"intercept must be true or false, got {intercept!r}")
        object.__setattr__(self, "columns", found)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "intercept", intercept)
        self._check_names()

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for column in self.columns:
            if not isinstance(column.column, str) or not column.column:
                raise ValueError(
                    f"columns: the name of a column must be a text that is not empty, got {column.column!r}"
                )
            if self.label is not None and column.column == self.label.column:
                raise ValueError(f"columns.{column.column}: this is the label, which cannot be a feature: remove one")
        listed = [column.column for column in self.columns]
        for name in listed:
            if listed.count(name) > 1:
                raise ValueError(f"columns.{name}: listed twice: keep one")
        if self.intercept:
            seen[INTERCEPT] = INTERCEPT
        for column in self.columns:
            for name in column.names:
                if name in seen:
                    raise ValueError(
                        f"columns.{column.column}: the feature {name!r} has the same name as one of {seen[name]!r}: "
                        "rename an option or a column"
                    )
                seen[name] = column.column
        # a scorecard is made after the release is paid for, so its texts are checked here
        for question in self.questions():
            texts = [option.text for option in question.options] if isinstance(question, Choice) else []
            if len(set(texts)) < len(texts):
                raise ValueError(f"columns.{question.column}: two options read the same on a scorecard: rename one")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        names = tuple(name for column in self.columns for name in column.names)
        return (*names, INTERCEPT) if self.intercept else names

    names = features
    """The same, as `PatternTable` calls them."""

    @property
    def scales(self) -> tuple[int, ...]:
        """The scale of every feature: 1 for indicators."""
        scales = tuple(scale for column in self.columns for scale in column.scales)
        return (*scales, 1) if self.intercept else scales

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The least and largest integer of every feature: 0 and 1 for indicators."""
        found: list[tuple[int, int]] = []
        for column in self.columns:
            ends = (column.steps(column.low), column.steps(column.high)) if isinstance(column, Number) else (0, 1)
            found += [ends] * len(column.names)
        return (*found, (1, 1)) if self.intercept else tuple(found)

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.features)

    def column(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.column == name:
                return column
        raise ValueError(f"the schema has no column {name!r}: it has {', '.join(c.column for c in self.columns)}")

    def questions(self) -> tuple[Question, ...]:
        """What a scorecard asks: one question per column, in order."""
        return tuple(column.question() for column in self.columns)

    def encode(self, frame: Any) -> Int64Array:
        """The features of every row of a pandas, Polars or Arrow table, as PatternTable holds them."""
        return self._expand(codes_of_frame(frame, self.columns))

    def table(self, data: Any) -> EncodedTable:
        """The pattern table of a pandas, Polars or Arrow table, or of an Ibis table, whose rows stay in its engine.

        Both ways give the same table. Raises if a label is missing or in no list, before any budget is spent.
        """
        if self.label is None:
            raise ValueError("label: the schema has none: add a [label] with column and positive")
        coded = (*self.columns, self.label.coded)
        if is_ibis_table(data):
            codes, counts = count_codes(data, coded)
        else:
            codes, counts = distinct_codes(codes_of_frame(data, coded), coded)
        if not counts.sum():
            raise ValueError("the data has no records: give at least one")
        positive = self._positive(codes[-1], counts)
        table = PatternTable(
            self._expand(codes[:-1]), counts * positive, counts * ~positive, names=self.features, scales=self.scales,
            ranges=self.ranges,
        )  # fmt: skip
        return EncodedTable(table, _outside(coded, codes, counts))

    def _positive(self, codes: Int64Array, counts: Int64Array) -> Any:
        label = self.label
        assert label is not None
        outside = label.coded.outside
        missing = int(counts[codes == outside[MISSING]].sum())
        other = int(counts[codes == outside[OTHER]].sum())
        if missing and label.missing is None:
            raise ValueError(
                f"label {label.column!r}: {missing:,} records have none: correct the data, or add "
                'missing = "negative" to [label] in the schema'
            )
        if other and label.negative is not None:
            raise ValueError(
                f"label {label.column!r}: {other:,} records have a value that is neither in positive nor in negative: "
                "list it, or leave out negative to count every other value as negative"
            )
        return codes == 0

    def _expand(self, codes: Sequence[Int64Array]) -> Int64Array:
        parts = [column.expand(code) for column, code in zip(self.columns, codes, strict=True)]
        if self.intercept:
            parts.append(np.ones((len(codes[0]), 1), dtype=np.int64))
        return np.hstack(parts)

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        result: dict[str, Any] = {"intercept": self.intercept}
        if self.label is not None:
            result["label"] = self.label.to_dict()
        return result | {"columns": {column.column: column.to_dict() for column in self.columns}}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Schema:
        """The schema of `to_dict` or of a file; errors name the column and the key."""
        _check_keys(description, ("intercept", "label", "columns"), "the schema")
        columns = description.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise ValueError("columns: the schema has none: add a [columns.NAME] for every column to use")
        label = description.get("label")
        if label is not None:
            _check_keys(label, ("column", "positive", "negative", "missing"), "label")
            for key in ("column", "positive"):
                if key not in label:
                    raise ValueError(f"label: {key} is missing")
            label = Label(**label)
        found = [_column_from_dict(name, settings) for name, settings in columns.items()]
        return cls(found, label, description.get("intercept", True))

    def to_toml(self, comments: Mapping[str, Sequence[str]] | None = None) -> str:
        """The text of a schema file. `comments` go above the column of that name, `"label"`, or, with `""`, on top."""
        return toml.write(self.to_dict(), comments or {})

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """The schema in a TOML text."""
        return cls.from_dict(toml.read(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a schema file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file; nothing in it is executed."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _outside(columns: Sequence[Column], codes: Sequence[Int64Array], counts: Int64Array) -> dict[str, dict[str, int]]:
    found = {}
    for column, code in zip(columns, codes, strict=True):
        here = {fate: int(counts[code == number].sum()) for fate, number in column.outside.items()}
        found[column.column] = {fate: n for fate, n in here.items() if n}
    return {column: here for column, here in found.items() if here}


def _column_from_dict(name: str, settings: object) -> Column:
    where = f"columns.{name}"
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: must be a table with categories, bins, or low and high")
    kinds = [key for key in _COLUMN_KEYS if key in settings]
    if len(kinds) != 1:
        found = f"it has {' and '.join(kinds)}" if kinds else "it has none of them"
        raise ValueError(f"{where}: needs exactly one of categories, bins, or low and high; {found}")
    kind = kinds[0]
    _check_keys(settings, _COLUMN_KEYS[kind], where)
    rest = {key: value for key, value in settings.items() if key != kind}
    if kind == "categories":
        options = settings["categories"]
        if isinstance(options, list):
            options = [_option(option, where) for option in options]
        return Categories(name, options, **rest)
    if kind == "bins":
        return Bins(name, settings["bins"], **rest)
    if "high" not in settings:
        raise ValueError(f"{where}: high is missing")
    return Number(name, settings["low"], **rest)


def _option(option: Any, where: str) -> Any:
    if not isinstance(option, Mapping):
        return option
    _check_keys(option, ("name", "values"), f"{where}: categories")
    if set(option) != {"name", "values"} or not isinstance(option["values"], list):
        raise ValueError(f"{where}: categories must hold values or tables like {{ name = ..., values = [...] }}")
    return Category(option["name"], tuple(option["values"]))


def _check_keys(settings: object, known: Sequence[str], where: str) -> None:
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: must be a table of {', '.join(known)}")
    for key in settings:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}; known are {', '.join(known)}")
