"""What a schema says beside how columns are read: constraints on every card, frequencies of features, and words for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from privsolve.checks import check_finite
from privsolve.data.columns import Bins, Categories, Column, Encoding, Number
from privsolve.data.columns.base import check_keys, without_keys

KEYS = ("direction", "required", "excluded")
"""Keys of a column in a schema file that are constraints; whatever its kind, it may have them."""


class Direction(StrEnum):
    """Which way a column counts."""

    UP = "up"
    """A larger value never lowers the total."""

    DOWN = "down"
    """A larger value never raises the total."""

    @property
    def sign(self) -> int:
        """Of the points."""
        return 1 if self is Direction.UP else -1

    @classmethod
    def of(cls, value: object, where: str) -> Direction:
        """The direction of that name."""
        if value not in tuple(cls):
            raise ValueError(f'{where}: direction must be "up" or "down", got {value!r}')
        return cls(str(value))


@dataclass(frozen=True)
class Constraints:
    """Constraints on scorecards, by the names of columns. All of it is public, and must not be read off the data.

    Args:
        directions: columns whose larger values must never lower (`"up"`) or never raise (`"down"`) the total: numbers cut at
            thresholds, and columns with a single yes/no feature.
        required: columns that the card must ask for.
        excluded: columns that it must not ask for.
    """

    directions: tuple[tuple[str, Direction], ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def __init__(
        self,
        directions: Mapping[str, str] | None = None,
        required: Sequence[str] = (),
        excluded: Sequence[str] = (),
    ) -> None:
        set_field = object.__setattr__
        if directions is not None and not isinstance(directions, Mapping):
            raise ValueError(f"directions must be a mapping from columns, got {directions!r}")
        ways = tuple((name, Direction.of(way, f"columns.{name}")) for name, way in (directions or {}).items())
        set_field(self, "directions", ways)
        set_field(self, "required", _names(required, "required"))
        set_field(self, "excluded", _names(excluded, "excluded"))

    def __bool__(self) -> bool:
        """Whether anything is stated."""
        return self != Constraints()

    @property
    def names(self) -> list[str]:
        """The columns that are named."""
        return [*(name for name, _ in self.directions), *self.required, *self.excluded]

    def on_drafted(self, columns: Sequence[Column]) -> Constraints:
        """Without what is said of columns that a draft has left out; that one is required stays, and will be refused."""
        known = [column.column for column in columns]
        ways = {name: way for name, way in self.directions if name in known}
        return Constraints(ways, self.required, [name for name in self.excluded if name in known])

    def joined(self, more: Constraints) -> Constraints:
        """Both together; what they contradict each other in is refused."""
        mine, theirs = dict(self.directions), dict(more.directions)
        for name in mine.keys() & theirs.keys():
            if mine[name] != theirs[name]:
                raise ValueError(f"columns.{name}: its direction is stated as {mine[name]} and as {theirs[name]}")
        return Constraints(mine | theirs, (*self.required, *more.required), (*self.excluded, *more.excluded))

    def check(self, columns: Sequence[Column]) -> None:
        """Raise if a column is unknown, or has no direction to speak of."""
        known = {column.column: column for column in columns}
        named = {
            "direction": [name for name, _ in self.directions],
            "required": self.required,
            "excluded": self.excluded,
        }
        for what, names in named.items():
            for name in names:
                if name not in known:
                    raise ValueError(f"{what}: the schema has no column {name!r}")
        for name in self.required:
            if name in self.excluded:
                raise ValueError(f"columns.{name}: it is required and excluded: it cannot be both")
        for name, direction in self.directions:
            signs_of(known[name], direction)

    def signs(self, columns: Sequence[Column]) -> list[int]:
        """For every feature 1 or -1 if its points must not be negative or positive, else 0."""
        ways = dict(self.directions)
        return [
            sign
            for column in columns
            for sign in (signs_of(column, ways[column.column]) if column.column in ways else (0,) * len(column.names))
        ]

    def settings(self, column: str) -> dict[str, Any]:
        """The keys of a column in a schema file."""
        ways = dict(self.directions)
        found: dict[str, Any] = {"direction": str(ways[column])} if column in ways else {}
        return found | {key: True for key in ("required", "excluded") if column in getattr(self, key)}

    @property
    def words(self) -> str:
        """What is stated, in a few words."""
        said = [f"direction of {name}" for name, _ in self.directions]
        said += [f"{name} is required" for name in self.required] + [f"{name} is excluded" for name in self.excluded]
        return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")


def signs_of(column: Column, direction: Direction) -> tuple[int, ...]:
    """The sign that the points of every feature must have, 0 where any will do; raise for a column without an order.

    Thresholds add up, so the total never falls in the value exactly if no points of a threshold are negative (theory,
    section 16). What says that the value is missing has no place in the order and is free.
    """
    where = f"columns.{column.column}"
    if isinstance(column, Bins) and column.encoding is not Encoding.THRESHOLDS:
        raise ValueError(f'{where}: a direction needs encoding = "thresholds", as bins have points of their own each')
    missing = isinstance(column, Bins | Categories) and column.missing is not None
    ordered = len(column.names) - missing
    if not isinstance(column, Bins | Number) and ordered > 1:
        raise ValueError(f"{where}: its options have no order, so there is no direction: leave it out")
    return (direction.sign,) * ordered + (0,) * missing


def checked_constraints(given: object) -> Constraints:
    """The constraints, none for None; raises for anything else."""
    if given is not None and not isinstance(given, Constraints):
        raise ValueError(f"constraints must be privsolve Constraints, got {type(given).__name__}")
    return given or Constraints()


def taken_out(columns: Mapping[str, Any]) -> tuple[dict[str, Any], Constraints]:
    """The columns of a schema file without their constraints, and these."""
    left, found = without_keys(columns, (*KEYS, "max_cuts"))
    for name in found["max_cuts"]:
        raise ValueError(
            f"columns.{name}: max_cuts is gone: take it out, and limit the card by max_questions or max_features"
        )
    for key in ("required", "excluded"):
        for name, value in found[key].items():
            if not isinstance(value, bool):
                raise ValueError(f"columns.{name}: {key} must be true or false, got {value!r}")
    required, excluded = ([name for name, said in found[key].items() if said] for key in ("required", "excluded"))
    return left, Constraints(found["direction"], required, excluded)


def _names(names: object, what: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} must be a list of columns, got {names!r}")
    return tuple(dict.fromkeys(names))


KEY = "frequency"
"""Of a column in a schema file: a list with the share of records that have each feature of the column."""


@dataclass(frozen=True)
class Frequencies:
    """Shares between 0 and 1 by column, one for every feature of the column; columns may be left out."""

    shares: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @classmethod
    def of(cls, shares: Mapping[str, Sequence[float]]) -> Frequencies:
        """From lists by column."""
        return cls(tuple((name, tuple(found)) for name, found in shares.items()))

    def __bool__(self) -> bool:
        return bool(self.shares)

    def of_column(self, column: Column) -> tuple[float | None, ...]:
        """One for every feature of a column, None where it is not known."""
        return dict(self.shares).get(column.column) or (None,) * len(column.names)

    def only(self, columns: Sequence[str]) -> Frequencies:
        """Those of some columns."""
        return Frequencies(tuple(found for found in self.shares if found[0] in columns))

    def settings(self, column: str) -> dict[str, list[float]]:
        """The key of a column in a schema file."""
        found = dict(self.shares).get(column)
        return {} if found is None else {KEY: list(found)}

    def check(self, columns: Sequence[Column]) -> None:
        """Raise unless every list belongs to a column of indicators and has a share for each."""
        known = {column.column: column for column in columns}
        for name, found in self.shares:
            where = f"columns.{name}: {KEY}"
            if name not in known or isinstance(known[name], Number):
                raise ValueError(f"{where} is for a column with categories, bins or dates: take it out")
            if len(found) != len(known[name].names):
                raise ValueError(
                    f"{where} must list {len(known[name].names)} shares, one for each feature of the column"
                )
            for share in found:
                if not 0 <= check_finite(where, share) <= 1:
                    raise ValueError(f"{where} must list shares between 0 and 1, got {share!r}")


def frequencies_taken_out(columns: Mapping[str, Any]) -> tuple[dict[str, Any], Frequencies]:
    """The columns of a schema file without their frequencies, and these."""
    left, found = without_keys(columns, (KEY,))
    for name, shares in found[KEY].items():
        if not isinstance(shares, list):
            raise ValueError(f"columns.{name}: {KEY} must be a list of shares")
    return left, Frequencies.of(found[KEY])


ASKED = ("question", "unit")
"""Keys of a column in a schema file that are words; whatever its kind, it may have them."""

LONGEST = 300
"""Letters of one of these texts."""


@dataclass(frozen=True)
class About:
    """What cards and pages say of the table. All of it is public, optional, and must not be read off the data.

    Args:
        subject: what a record is: a person, a sample, a mail.
        question: what is decided, as a question: the title of the card.
        positive, negative: what the two decisions are called.
        owner: who publishes the card and answers for it.
        data: what the records are.
        date: when they were collected, or when the card was made, in any form.
        link: the address of a page that explains the card, such as what its privacy means to the owner.
        questions: how to ask for a column, by its name.
        units: what the numbers of a column are counted in, by its name.
    """

    subject: str | None = None
    question: str | None = None
    positive: str | None = None
    negative: str | None = None
    owner: str | None = None
    data: str | None = None
    date: str | None = None
    link: str | None = None
    questions: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    units: Mapping[str, str] | Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        for key in WORDS:
            if (text := getattr(self, key)) is not None:
                object.__setattr__(self, key, _text(text, f"about: {key}"))
        if self.link is not None and not re.fullmatch(r"https?://[^\s\"'<>]+", self.link):
            raise ValueError(f"about: link must be an address that starts with https://, got {self.link!r}")
        if self.positive is not None and self.positive == self.negative:
            raise ValueError(
                f"about: positive and negative are both {self.positive!r}: name the two decisions differently"
            )
        for key in ASKED:
            found = dict(getattr(self, f"{key}s")).items()
            object.__setattr__(self, f"{key}s", tuple((c, _text(text, f"columns.{c}: {key}")) for c, text in found))

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return self != About()

    @property
    def called(self) -> str:
        """What a record is called."""
        return self.subject or "person"

    def asking(self, column: str) -> str | None:
        """How to ask for a column, if there are words for it."""
        question, unit = dict(self.questions).get(column), dict(self.units).get(column)
        if question is None and unit is None:
            return None
        return (question or column) + (f" ({unit})" if unit else "")

    def settings(self, column: str) -> dict[str, str]:
        """The keys of a column in a schema file."""
        both = {key: dict(getattr(self, f"{key}s")).get(column) for key in ASKED}
        return {key: text for key, text in both.items() if text is not None}

    def check(self, columns: Sequence[str]) -> None:
        """Raise for words about a column that is not there."""
        for name in (*dict(self.questions), *dict(self.units)):
            if name not in columns:
                raise ValueError(f"about: the schema has no column {name!r}: take out its question and its unit")

    def only(self, columns: Sequence[str]) -> About:
        """The same words, without those about other columns."""
        kept = [
            [(c, text) for c, text in dict(pairs).items() if c in columns] for pairs in (self.questions, self.units)
        ]
        return replace(self, questions=kept[0], units=kept[1])

    def to_dict(self) -> dict[str, str]:
        """The table `about` of a schema file; the words of columns stand with these."""
        return {key: getattr(self, key) for key in WORDS if getattr(self, key) is not None}


WORDS = ("subject", "question", "positive", "negative", "owner", "data", "date", "link")
"""The keys of `[about]` in a schema file."""


def words_taken_out(columns: Mapping[str, Any], about: object) -> tuple[dict[str, Any], About]:
    """The columns of a schema file without their words, and these with what `[about]` says."""
    check_keys(about, WORDS, "about")
    assert isinstance(about, Mapping)
    left, found = without_keys(columns, ASKED)
    return left, About(**about, questions=found["question"], units=found["unit"])


def _text(text: object, where: str) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"{where} must be one line of text with at most {LONGEST} letters, got {text!r:.80}")
    return text.strip()
