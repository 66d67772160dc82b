"""What the options of a private draft ask for, checked before anything is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privsolve.data import About, Label, Schema
from privsolve.data.columns import Column, Value, tidy
from privsolve.data.private import DRAFT_SHARE, PrivateDraft, private_draft
from privsolve.data.reading import PLAIN, YES, check_columns
from privsolve.data.series import number_parser
from privsolve.data.tables import open_table
from privsolve.privacy.accounting import Account
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.ledger import Ledger


@dataclass(frozen=True)
class Use:
    """Which columns are drafted, each option a name or several with commas, and what stands for no value in them."""

    columns: tuple[str, ...]
    drop: tuple[str, ...]
    missing: tuple[Value, ...]

    @classmethod
    def of(cls, columns: Sequence[str], drop: Sequence[str], missing: Sequence[str]) -> Use:
        """Values are numbers where they read as such."""
        return cls(tuple(columns), tuple(drop), tuple(map(_number_or_text, missing)))

    def named(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns of a table to use, all if none is named, and those to drop."""
        return _names(self.columns, names), _names(self.drop, names)

    def dropped(self, names: Sequence[str], label: str) -> tuple[str, ...]:
        """The columns of a table that are not used; raises for a name that it does not have."""
        used, dropped = self.named(names)
        for name in (*used, *dropped):
            if name not in names:
                raise ValueError(f"the data has no column {name!r} to use or to drop: see its first line")
        others = [name for name in names if name not in used and name != label] if used else []
        return tuple(dict.fromkeys([*others, *dropped]))


@dataclass(frozen=True)
class PrivateOptions:
    """The options of `privsolve schema draft`."""

    epsilon: float
    delta: float
    positive: str
    negative: str | None
    stated: tuple[Column, ...]
    bounds: dict[str, tuple[float, ...]]
    use: Use
    decimal: str
    adjacency: str
    ledger: Ledger | None
    seed: int | None

    @classmethod
    def of(
        cls,
        epsilon: float | None,
        total: float | None,
        delta: float,
        positive: str | None,
        negative: str | None,
        stated: Path | None,
        bounds: Sequence[str],
        use: Use,
        decimal: str,
        adjacency: str,
        ledger: Path | None,
        seed: int | None,
    ) -> PrivateOptions:
        """Check what can be checked without the table."""
        if epsilon is None and total is None:
            raise ValueError(
                "a draft reads private records, so it needs a privacy budget: give --epsilon, for example 0.25, or "
                "--total-epsilon for draft and fit; if the values of the columns are public, write the schema by hand "
                "(docs/schema.md)"
            )
        if epsilon is not None and total is not None:
            raise ValueError("give either --epsilon, of the draft, or --total-epsilon, of draft and fit")
        if positive is None:
            raise ValueError("--positive is needed: the values of the label are stated, not read off the data")
        spent = epsilon if epsilon is not None else at_most(exact(DRAFT_SHARE) * exact(total or 0.0))
        return cls(
            spent, delta, positive, negative, Schema.load(stated).columns if stated else (),
            dict(map(_bounds, bounds)), use, decimal, adjacency, Ledger.open(ledger) if ledger else None, seed,
        )  # fmt: skip

    def label(self, table: Any, name: str) -> Label:
        """The label with its values as the table has them: texts, numbers or booleans, by its type."""
        check_columns([name], table.columns)
        kind = table[name].type()
        return Label(name, _value(self.positive, kind), None if self.negative is None else _value(self.negative, kind))

    def draft(
        self,
        data: str,
        header: str | None,
        content: str,
        label: str,
        about: About,
        *,
        random_state: Any = None,
        budget: Account | None = None,
    ) -> PrivateDraft:
        """Draft from data files with that `content_digest`, paid for by the budget, with words for people."""
        table = open_table(data, header=header)
        target = self.label(table, label)
        found = private_draft(
            table, target, self.epsilon, self.delta, stated=self.stated, bounds=self.bounds,
            leave_out=self.use.dropped(table.columns, label), missing=self.use.missing, decimal=self.decimal,
            adjacency=self.adjacency, random_state=random_state, budget=budget,
        )  # fmt: skip
        return replace(found, schema=replace(found.schema, about=about))


def _names(options: Sequence[str], known: Sequence[str]) -> list[str]:
    """An option is the name of a column, which may have commas, or several names with commas between them."""
    found = []
    for option in options:
        found += [option] if option in known else [name.strip() for name in option.split(",") if name.strip()]
    return found


def _number_or_text(text: str) -> Value:
    number = number_parser(PLAIN)(text.strip())
    return text.strip() if math.isnan(number) else tidy(number)


def _value(text: str, kind: Any) -> Value:
    if kind.is_string():
        return text.strip()
    if kind.is_boolean():
        return text.strip().lower() in (*YES, "1")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"the label holds numbers, got {text!r}: give one of its values") from None
    return int(number) if number.is_integer() else number


def _bounds(option: str) -> tuple[str, tuple[float, ...]]:
    name, _, ends = option.rpartition("=")
    try:
        numbers = tuple(float(end) for end in ends.split(":"))
    except ValueError:
        numbers = ()
    if not name or len(numbers) not in (2, 3):
        raise ValueError(f"--bounds {option}: must be COLUMN=LOW:HIGH or COLUMN=LOW:HIGH:STEP")
    return name, numbers
