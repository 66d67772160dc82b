"""What the options of a private draft ask for, checked before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsolve.data import Label, Schema
from privsolve.data.columns import Column, Value
from privsolve.data.private import PrivateDraft, private_draft
from privsolve.privacy.accounting import Account
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.ledger import Ledger

DRAFT_SHARE = 0.25
"""Of a total epsilon, for the draft of a schema; measured on several tables (docs/schema.md)."""


@dataclass(frozen=True)
class PrivateOptions:
    """The options of `privsolve schema draft --epsilon`."""

    epsilon: float
    delta: float
    positive: str
    negative: str | None
    stated: tuple[Column, ...]
    bounds: dict[str, tuple[float, ...]]
    leave_out: tuple[str, ...]
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
        leave_out: Sequence[str],
        adjacency: str,
        ledger: Path | None,
        seed: int | None,
    ) -> PrivateOptions | None:
        """None if the draft is to leak, for which the other options are not."""
        if epsilon is None and total is None:
            if delta or stated or bounds or leave_out or ledger or negative or seed is not None:
                raise ValueError("these options are for a private draft: add --epsilon or --total-epsilon")
            return None
        if epsilon is not None and total is not None:
            raise ValueError("give either --epsilon, of the draft, or --total-epsilon, of draft and fit")
        if positive is None:
            raise ValueError("--positive is needed: the values of the label are stated, not read off the data")
        spent = epsilon if epsilon is not None else at_most(exact(DRAFT_SHARE) * exact(total or 0.0))
        return cls(
            spent, delta, positive, negative, Schema.load(stated).columns if stated else (),
            dict(map(_bounds, bounds)), tuple(leave_out), adjacency, Ledger.open(ledger) if ledger else None, seed,
        )  # fmt: skip

    def label(self, table: Any, name: str) -> Label:
        """The label with its values as the table has them: texts, numbers or booleans, by its type."""
        if name not in table.columns:
            raise ValueError(f"the data has no column {name!r}: its columns are {', '.join(table.columns)}")
        kind = table[name].type()
        return Label(name, _value(self.positive, kind), None if self.negative is None else _value(self.negative, kind))

    def draft(self, table: Any, label: Label, budget: Account) -> PrivateDraft:
        """Draft, paid for by the budget."""
        return private_draft(
            table, label, self.epsilon, self.delta, stated=self.stated, bounds=self.bounds, leave_out=self.leave_out,
            adjacency=self.adjacency, random_state=self.seed, budget=budget,
        )  # fmt: skip


def _value(text: str, kind: Any) -> Value:
    if kind.is_string():
        return text.strip()
    if kind.is_boolean():
        return text.strip().lower() == "true"
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
