"""What the options of a private draft ask for, checked before anything is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privsolve.data import About, Label, Schema
from privsolve.data.columns import Column, Value, tidy
from privsolve.data.columns.label import Comparison, Target
from privsolve.data.private import DRAFT_SHARE, PrivateDraft, default_delta, private_draft
from privsolve.data.private.counts import count_records
from privsolve.data.private.plan import Options, Plan
from privsolve.data.reading import NUMBER_PATTERN, YES, check_columns
from privsolve.data.tables import open_table
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.ledger import Ledger


@dataclass(frozen=True)
class Use:
    """Which columns are drafted, each option a name or several with commas, and what stands for no value in them."""

    columns: tuple[str, ...]
    drop: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    missing: tuple[Value, ...]

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        drop: Sequence[str] | None,
        numbers: Sequence[str] | None,
        texts: Sequence[str] | None,
        missing: Sequence[str] | None,
    ) -> Use:
        """Values are numbers where they read as such."""
        codes = tuple(map(_number_or_text, missing or ()))
        return cls(tuple(columns or ()), tuple(drop or ()), tuple(numbers or ()), tuple(texts or ()), codes)

    def dropped(self, names: Sequence[str], label: str) -> tuple[str, ...]:
        """The columns of a table that are not used; raises for a name that it does not have."""
        used, dropped = _names(self.columns, names), _names(self.drop, names)
        check_columns([*used, *dropped], names)
        others = [name for name in names if name not in used and name != label] if used else []
        return tuple(dict.fromkeys([*others, *dropped]))


@dataclass(frozen=True)
class Wanted:
    """What the values of the label mean, as the command line states it: one of positive, classes and target."""

    positive: str | None = None
    negative: str | None = None
    classes: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if [self.positive, self.classes, self.target].count(None) != 2:
            raise ValueError(
                "--positive is needed, or --classes or --target, and one of them only: what the label says is stated, not "
                "read off the data"
            )
        if self.positive is None and self.negative is not None:
            raise ValueError("--negative goes with --positive: leave it out")

    def stated(self, name: str, missing: Sequence[Value] = (), decimal: str = ".") -> Target | None:
        """Classes or bounds of numbers, with classes as texts; None for a yes/no label."""
        marks: dict[str, Any] = {"missing_values": tuple(missing), "decimal": decimal}
        if self.classes is not None:
            return Target(name, tuple(one.strip() for one in self.classes.split(",")), **marks)
        if self.target is None:
            return None
        try:
            low, high = map(float, self.target.split(":"))
        except ValueError:
            raise ValueError(f"--target {self.target}: write the public bounds as LOW:HIGH, such as 0:100") from None
        return Target(name, low=low, high=high, **marks)

    def label(self, table: Any, name: str, missing: Sequence[Value], decimal: str) -> Label | Target:
        """The label with its values as the table has them: texts, numbers or booleans, by its type."""
        check_columns([name], table.columns)
        kind = table[name].type()
        if (target := self.stated(name, missing, decimal)) is not None:
            return replace(target, classes=tuple(_value(str(one), kind) for one in target.classes))
        assert self.positive is not None
        if self.negative is None and Comparison.of(self.positive) is not None:
            return Label(name, self.positive, missing_values=missing, decimal=decimal)
        text = self.positive.removeprefix("=")  # "=<30" is the text "<30"
        positive = text if Comparison.of(text) is not None else self.positive
        negative = None if self.negative is None else [_value(self.negative, kind)]
        return Label(name, [_value(positive, kind)], negative)


@dataclass(frozen=True)
class PrivateOptions:
    """The options of `privsolve schema draft`."""

    epsilon: float
    delta: float | None
    wanted: Wanted
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
        delta: float | None,
        wanted: Wanted,
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
                "(docs/guides/schema.md)"
            )
        if epsilon is not None and total is not None:
            raise ValueError("give either --epsilon, of the draft, or --total-epsilon, of draft and fit")
        spent = epsilon if epsilon is not None else at_most(exact(DRAFT_SHARE) * exact(total or 0.0))
        return cls(
            spent,
            delta,
            wanted,
            Schema.load(stated).columns if stated else (),
            dict(map(_bounds, bounds)),
            use,
            decimal,
            adjacency,
            Ledger.open(ledger) if ledger else None,
            seed,
        )

    def label(self, table: Any, name: str) -> Label | Target:
        """The label with its values as the table has them."""
        return self.wanted.label(table, name, self.use.missing, self.decimal)

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
        found = private_draft(
            table,
            self.label(table, label),
            self.epsilon,
            self._delta(table),
            **self._stated(table, label),
            adjacency=self.adjacency,
            random_state=random_state,
            budget=budget,
        )
        return replace(found, schema=replace(found.schema, about=about))

    def asks_nothing(self, data: str, header: str | None, label: str) -> bool:
        """Whether public facts say it all, so that nothing is read and nothing has to be paid or sealed."""
        table = open_table(data, header=header)
        options = Options.of(**self._stated(table, label))
        adjacency = Adjacency.of(self.adjacency)
        target = self.label(table, label)
        return not Plan.of(table, target, check_epsilon(self.epsilon), self._delta(table), adjacency, options).grids

    def _stated(self, table: Any, label: str) -> dict[str, Any]:
        """What is stated about the columns of a table."""
        return {
            "stated": self.stated,
            "bounds": self.bounds,
            "leave_out": self.use.dropped(table.columns, label),
            "numbers": _names(self.use.numbers, table.columns),
            "texts": _names(self.use.texts, table.columns),
            "missing": self.use.missing,
            "decimal": self.decimal,
        }

    def _delta(self, table: Any) -> float:
        """As stated; or none if the ledger has none; or by the number of records, where that is public."""
        if self.delta is not None:
            return check_delta(self.delta) if self.delta else 0.0
        if self.ledger is not None and not self.ledger.budget.release_delta:
            return 0.0
        return default_delta(count_records(table) if Adjacency.of(self.adjacency) is Adjacency.REPLACE else None)


def _names(options: Sequence[str], known: Sequence[str]) -> list[str]:
    """An option is the name of a column, which may have commas, or several names with commas between them."""
    found = []
    for option in options:
        found += [option] if option in known else [name.strip() for name in option.split(",") if name.strip()]
    return found


def _number_or_text(text: str) -> Value:
    text = text.strip()
    return tidy(float(text)) if re.search(NUMBER_PATTERN, text) else text


def _value(text: str, kind: Any) -> Value:
    if kind.is_string():
        return text.strip()
    if kind.is_boolean():
        return text.strip().lower() in (*YES, "1")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(
            f"the label holds numbers, got {text!r}: give one of its values, or a comparison such as '>=150' alone"
        ) from None
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
