"""The schema: columns, label and intercept, and the pattern tables it makes of data."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array, IntArray
from privsolve.checks import check_items
from privsolve.data import toml
from privsolve.data.codes import CountedCodes, as_given, check_order, checked_parts, codes_of_frame, count_codes
from privsolve.data.columns import Column, Label
from privsolve.data.columns.base import check_keys, column_from_dict
from privsolve.data.columns.label import Target, TargetTable, decided, no_label
from privsolve.data.constraints import (
    About,
    Constraints,
    Frequencies,
    frequencies_taken_out,
    taken_out,
    words_taken_out,
)
from privsolve.data.patterns import BitRows, PatternTable
from privsolve.data.questions import Choice, Question
from privsolve.data.tables import read_text
from privsolve.privacy.guarantee import Paid

if TYPE_CHECKING:
    import pandas as pd

NO_CONSTRAINTS = Constraints()
INTERCEPT = "intercept"
"""The name of the constant feature, always the last one."""

DECIDED = Label("label", True, False).coded
"""Stands in for the label where it has been decided already which records are positive."""

NO_WORDS = About()
NO_FREQUENCIES = Frequencies()

MARK = "# GUESSED"
"""How a draft of version 0.1.0 marked values that it had read off the records."""

MOST_FEATURES = 100_000
"""Of a schema; checked before anything is made of it."""


@dataclass(frozen=True)
class EncodedTable:
    """A pattern table, the schema that made it, and how many values of each column fell outside the schema.

    `outside[column]` counts values that are `"other"`, `"missing"`, `"below"` or `"above"`; counts of 0 are left out.
    `unreadable` names the columns none of whose values says anything. Where the schema has a target, `targets` has it, and the
    pattern table all records as negative ones. They depend on the data: for the curator, never
    published (theory, section 7). `sample_rate` is the public share of the records that were kept.
    """

    table: PatternTable
    schema: Schema
    outside: Mapping[str, Mapping[str, int]]
    unreadable: tuple[str, ...] = ()
    targets: TargetTable | None = None
    sample_rate: float = 1.0

    def check(self) -> None:
        """Raise if a column has no readable value at all, before anything is paid for: it would be paid for nothing.

        Like every failure this depends on the data and is the curator's to know (theory, section 7).
        """
        if self.schema.label is not None and self.schema.label.column in self.unreadable:
            raise no_label(self.schema.label)
        if self.unreadable and self.schema.paid is None:  # a draft that was paid for is not refused
            raise no_value(self.unreadable)


@dataclass(frozen=True)
class Schema:
    """What is public about a table. Nothing in it is read from the data.

    `columns` are `Categories`, `Bins` and `Number`; `label` may be left out where only features are needed, and with several
    classes or numbers a `Target` stands in its place, which is then `target`; the
    `intercept` is a constant feature of ones, the last one. Values that were drafted privately are
    `paid` for, and that guarantee is part of every release's total. `constraints` are what every card made with the schema
    keeps to. `about` holds words for people, which change nothing but what cards and pages say.
    `frequencies` are the shares of records that have each feature, up to noise, where a draft or somebody states them.
    """

    columns: tuple[Column, ...]
    label: Label | None = None
    intercept: bool = True
    paid: Paid | None = None
    constraints: Constraints = NO_CONSTRAINTS
    about: About = NO_WORDS
    frequencies: Frequencies = NO_FREQUENCIES
    target: Target | None = None

    def __init__(
        self,
        columns: Sequence[Column],
        label: Label | Target | None = None,
        intercept: bool = True,
        paid: Paid | None = None,
        constraints: Constraints = NO_CONSTRAINTS,
        about: About = NO_WORDS,
        frequencies: Frequencies = NO_FREQUENCIES,
        target: Target | None = None,
    ) -> None:
        label, target = (None, label) if isinstance(label, Target) else (label, target)
        found = check_items("columns", columns, "list at least one of Categories, Bins and Number")
        if not found or not all(isinstance(column, Column) for column in found):
            raise ValueError("columns must list at least one of Categories, Bins and Number")
        if label is not None and not isinstance(label, Label):
            raise ValueError(f"label must be a Label, got {type(label).__name__}")
        if not isinstance(intercept, bool):
            raise ValueError(f"intercept must be true or false, got {intercept!r}")
        if paid is not None and not isinstance(paid, Paid):
            raise ValueError(f"paid must be what a private draft states, got {type(paid).__name__}")
        stated = {"about": about, "constraints": constraints, "frequencies": frequencies}
        for (name, value), kind in zip(stated.items(), (About, Constraints, Frequencies), strict=True):
            if not isinstance(value, kind):
                raise ValueError(f"{name} must be {kind.__name__}, got {type(value).__name__}")
        fields = {"columns": found, "label": label, "target": target, "intercept": intercept, "paid": paid} | stated
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        about.check([column.column for column in found])
        self._check_names()
        constraints.check(found)
        frequencies.check(found)

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for column in self.columns:
            if not isinstance(column.column, str) or not column.column:
                raise ValueError(
                    f"columns: the name of a column must be a text that is not empty, got {column.column!r}"
                )
            if column.column == self.predicted:
                raise ValueError(f"columns.{column.column}: this is the label, which cannot be a feature: remove one")
        for name, times in Counter(column.column for column in self.columns).items():
            if times > 1:
                raise ValueError(f"columns.{name}: listed twice: keep one")
        if (features := sum(len(column.names) for column in self.columns)) > MOST_FEATURES:
            raise ValueError(f"columns: the schema has {features:,} features, more than {MOST_FEATURES:,}: list fewer")
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
    def feature_frequencies(self) -> tuple[float | None, ...]:
        """The share of records that have each feature, up to noise; None where it is not stated, 1 for the intercept."""
        found = tuple(share for column in self.columns for share in self.frequencies.of_column(column))
        return (*found, 1.0) if self.intercept else found

    @property
    def scales(self) -> tuple[int, ...]:
        """The scale of every feature: 1 for indicators."""
        scales = tuple(scale for column in self.columns for scale in column.scales)
        return (*scales, 1) if self.intercept else scales

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The least and largest integer of every feature: 0 and 1 for indicators."""
        found = tuple(ends for column in self.columns for ends in [column.range] * len(column.names))
        return (*found, (1, 1)) if self.intercept else found

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def predicted(self) -> str | None:
        """The column of the label or the target."""
        stated = self.label or self.target
        return None if stated is None else stated.column

    def column(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.column == name:
                return column
        raise ValueError(f"the schema has no column {name!r}: it has {', '.join(c.column for c in self.columns)}")

    def requiring(self, columns: Sequence[str]) -> Schema:
        """The schema, with these columns required of every card as well."""
        more = Constraints(required=[name for name in columns if name not in self.constraints.required])
        return replace(self, constraints=self.constraints.joined(more)) if more.required else self

    def questions(self) -> tuple[Question, ...]:
        """What a scorecard asks: one question per column, in order."""
        return tuple(replace(column.question(), text=self.about.asking(column.column)) for column in self.columns)

    def encode(self, frame: Any, *, readable: bool = False) -> Int64Array:
        """The features of every row of a pandas, Polars or Arrow table, as PatternTable holds them.

        With `readable` a column without any readable value is an error, as in `EncodedTable.check`.
        """
        check_order(frame)
        codes = codes_of_frame(frame, self.columns)
        pairs = zip(self.columns, codes, strict=True)
        if readable and (unreadable := [column.column for column, code in pairs if _says_nothing(column, code)]):
            raise no_value(unreadable)
        return self._expand(codes).astype(np.int64)

    def unread(self, data: Any) -> tuple[int, dict[str, dict[str, int]]]:
        """The number of records, and by column how many values fell outside the schema, as in `EncodedTable.outside`."""
        found = count_codes(data, self.columns)
        return int(found.counts.sum()), _outside_and_silent(found, range(len(self.columns)))[0]

    def table(self, data: Any, positive: NDArray[np.bool_] | None = None, *, sample_rate: float = 1.0) -> EncodedTable:
        """The pattern table of a pandas, Polars or Arrow table, or of an Ibis table, whose rows stay in its engine.

        Both ways give the same table. Raises if a label is missing or in no list, before any budget is spent.

        Args:
            data: the records.
            positive: which rows are positive, where the labels of a frame lie beside it.
            sample_rate: the share of the records that is kept, by a public rule (theory, section 19.12). Below 1 the number
                of records that are kept is not public, and only full scorecards may be made of them under `replace`.
        """
        if self.target is not None and positive is None:
            return self._with_targets(data, self.target)
        return self._encoded(self._counted(data, positive, (), sample_rate), sample_rate)

    def tables(
        self, data: Any, beside: Column, positive: NDArray[np.bool_] | None = None, *, sample_rate: float = 1.0
    ) -> tuple[EncodedTable, tuple[PatternTable | None, ...]]:
        """The table, and one for every code of a column that lies beside the features, None where there is no record."""
        found = self._counted(data, positive, (beside,), sample_rate)
        group = found.of_column(len(self.columns))
        parts = (found.only(group == code) for code in range(beside.radix))
        tables = (self._encoded(part, sample_rate).table if len(part.counts) else None for part in parts)
        return self._encoded(found, sample_rate), tuple(tables)

    def _counted(
        self, data: Any, positive: NDArray[np.bool_] | None, beside: tuple[Column, ...], sample_rate: float
    ) -> CountedCodes:
        """The distinct codes of the columns, of those beside them, and of the label, or of what is decided."""
        checked_parts(sample_rate)
        if positive is None:
            return count_codes(data, (*self.columns, *beside, self._stated_label.coded), sample_rate=sample_rate)
        check_order(data)
        last = np.where(positive, 0, 1)
        return count_codes(data, (*self.columns, *beside, DECIDED), last=last, sample_rate=sample_rate)

    def positive(self, labels: ArrayLike, *, readable: bool = False) -> NDArray[np.bool_]:
        """Which labels are positive; raises if one is missing or in no list.

        With `readable` labels none of which the schema lists are an error, as in `EncodedTable.check`.
        """
        import pandas as pd

        label = self._stated_label
        column = pd.Series(as_given(labels), name=label.column)
        (codes,) = codes_of_frame(column.to_frame(), [label.coded])
        if readable and _none_listed(label.coded, codes):
            raise no_label(label)
        return decided(label, codes, np.ones(len(codes), dtype=np.int64))

    def _with_targets(self, data: Any, target: Target) -> EncodedTable:
        """The same where the schema has a target: raises if a record has none, before any budget is spent."""
        found = count_codes(data, (*self.columns, target.coded))
        codes = found.of_column(len(self.columns))
        target.check(codes)
        whole = self._encoded(found, 1.0)
        rows = np.concatenate([self._expand(codes[:-1]) for codes, _ in found.blocks()])
        return replace(whole, targets=TargetTable.of(rows, codes, found.counts))

    @property
    def _stated_label(self) -> Label:
        if self.target is not None:
            raise ValueError(
                f"label: {self.target.column} has several classes or numbers, and this needs a yes/no label"
            )
        if self.label is None:
            raise ValueError("label: the schema has none: add a [label] with column and positive")
        return self.label

    def _encoded(self, found: CountedCodes, sample_rate: float) -> EncodedTable:
        """The pattern table of distinct rows of codes, the label's last."""
        counts, label = found.counts, found.columns[-1]
        if not counts.sum():
            raise ValueError("the data has no records: give at least one")
        last = len(found.columns) - 1
        decisions = found.of_column(last)
        looked_at = [*range(len(self.columns)), last]
        if self.target is not None and label is not DECIDED:
            positive = np.zeros(len(counts), dtype=np.bool_)
            looked_at.pop()
        else:
            positive = decisions == 0 if label is DECIDED else decided(self._stated_label, decisions, counts)
        table = PatternTable(
            self._features(found),
            counts * positive,
            counts * ~positive,
            names=self.features,
            scales=self.scales,
            ranges=self.ranges,
        )
        outside, silent = _outside_and_silent(found, looked_at)
        unreadable = tuple(column.column for column in self.columns if column.column in silent)
        if last in looked_at and _none_listed(label, decisions):
            unreadable = (*unreadable, label.column)
        return EncodedTable(table, self, outside, unreadable, sample_rate=sample_rate)

    def _features(self, found: CountedCodes) -> BitRows | IntArray:
        """The features of distinct rows of codes: bits if all of them are declared to be 0 or 1."""
        blocks = (self._expand(codes[: len(self.columns)]) for codes, _ in found.blocks())
        if all(low >= 0 and high <= 1 for low, high in self.ranges):
            return BitRows.of(blocks, len(found.counts), self.dim)
        return np.concatenate(list(blocks))

    def _expand(self, codes: Sequence[Int64Array]) -> IntArray:
        parts = [column.expand(code) for column, code in zip(self.columns, codes, strict=True)]
        if self.intercept:
            parts.append(np.ones((len(codes[0]), 1), dtype=np.int8))
        return np.hstack(parts)

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        result: dict[str, Any] = {"intercept": self.intercept}
        if self.paid is not None:
            result["paid"] = self.paid.to_dict()
        if self.label is not None:
            result["label"] = self.label.to_dict()
        if self.target is not None:
            result["label"] = self.target.to_dict()
        if words := self.about.to_dict():
            result["about"] = words
        beside = (self.constraints.settings, self.about.settings, self.frequencies.settings)
        columns = {c.column: c.to_dict() for c in self.columns}
        for settings in beside:
            columns = {name: found | settings(name) for name, found in columns.items()}
        return result | {"columns": columns}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Schema:
        """The schema of `to_dict` or of a file; errors name the column and the key."""
        if isinstance(description, Mapping) and "alternatives" in description:
            raise ValueError("alternatives are gone: take them out, and exclude all columns of a list but one")
        check_keys(description, ("intercept", "paid", "about", "label", "columns"), "the schema")
        columns = description.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise ValueError("columns: the schema has none: add a [columns.NAME] for every column to use")
        label = description.get("label")
        plain, constraints = taken_out(columns)
        plain, about = words_taken_out(plain, description.get("about", {}))
        plain, frequencies = frequencies_taken_out(plain)
        found = [column_from_dict(name, settings) for name, settings in plain.items()]
        others = isinstance(label, Mapping) and {"classes", "low", "high"} & set(label)
        target = None if label is None else (Target if others else Label).from_dict(label)
        paid = Paid.from_dict(description["paid"]) if "paid" in description else None
        return cls(found, target, description.get("intercept", True), paid, constraints, about, frequencies)

    def of_columns(self, columns: Sequence[Column], *, intercept: bool) -> Schema:
        """The same schema with other columns, for a model that has been released: what was paid is said there."""
        return Schema(columns, self.label, intercept, target=self.target)

    def to_frame(self) -> pd.DataFrame:
        """One row per column: its kind, how it is asked for, and its answers."""
        import pandas as pd

        found = []
        for column, question in zip(self.columns, self.questions(), strict=True):
            if isinstance(question, Choice):
                said = ", ".join(option.text for option in question.options)
            else:
                said = f"{question.low:g} to {question.high:g}"
            found.append((column.column, type(column).__name__, question.text or column.column, said))
        return pd.DataFrame(found, columns=["column", "kind", "question", "answers"])

    def to_toml(self, comments: Mapping[str, Sequence[str]] | None = None) -> str:
        """The text of a schema file. `comments` go above the column of that name, `"label"`, or, with `""`, on top."""
        return toml.write(self.to_dict(), comments or {})

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """The schema in a TOML text. Refuses a draft of version 0.1.0, whose values were read off the records."""
        if any(line.startswith(MARK) for line in text.splitlines()):
            raise ValueError(
                f"the lines {MARK} mark values that version 0.1.0 read off the records without privacy: replace the values by "
                "what is public and delete these lines, or draft the schema anew with `privsolve schema draft`"
            )
        return cls.from_dict(toml.read(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a schema file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file; nothing in it is executed."""
        try:
            return cls.from_toml(read_text(path))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def check_label(label: Label | Target, data: Any) -> int:
    """The number of records. Raise as a fit would if none of them has a listed value of the label, or one has none."""
    found = count_codes(data, [label.coded])
    codes, counts = found.of_column(0), found.counts
    if isinstance(label, Target):
        label.check(codes)
        return int(counts.sum())
    if len(counts) and _none_listed(label.coded, codes):
        raise no_label(label)
    decided(label, codes, counts)
    return int(counts.sum())


def no_value(columns: Sequence[str]) -> ValueError:
    """The error where columns hold nothing that can be read; it shows no value."""
    one = len(columns) == 1
    names = ", ".join(map(repr, columns[:5])) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
    return ValueError(
        f"column{'' if one else 's'} {names}: no value can be read as the schema says, all are missing or in no list; correct "
        f"{'it' if one else 'them'} in the schema or leave {'it' if one else 'them'} out (nothing was spent)"
    )


def _none_listed(column: Column, codes: Int64Array) -> bool:
    """Whether no record of a label has a listed value, also where the list has one value only."""
    return bool(np.isin(codes, list(column.outside.values())).all())


def _says_nothing(column: Column, codes: Int64Array) -> bool:
    """Whether every record has a code that says nothing."""
    return bool(len(codes) and np.isin(codes, list(column.saying_nothing)).all())


def _outside_and_silent(found: CountedCodes, places: Sequence[int]) -> tuple[dict[str, dict[str, int]], set[str]]:
    """Of some columns how many values fell outside, by what they are instead, and which columns say nothing at all."""
    outside: dict[str, Counter[str]] = {found.columns[place].column: Counter() for place in places}
    silent = set(outside)
    for codes, counts in found.blocks():
        for place in places:
            column, code = found.columns[place], codes[place]
            name = column.column
            outside[name].update({fate: int(counts @ (code == number)) for fate, number in column.outside.items()})
            if name in silent and not _says_nothing(column, code):
                silent.remove(name)
    return {name: dict(+fates) for name, fates in outside.items() if fates.total()}, silent
