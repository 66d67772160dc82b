"""How many records have each feature, up to noise: what a private draft has paid for, or what is public anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privsolve.checks import check_finite
from privsolve.data.columns import Column, Number

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
    left: dict[str, Any] = {}
    shares: dict[str, Sequence[float]] = {}
    for name, settings in columns.items():
        if isinstance(settings, Mapping) and KEY in settings:
            if not isinstance(settings[KEY], list):
                raise ValueError(f"columns.{name}: {KEY} must be a list of shares")
            shares[name] = settings[KEY]
            settings = {key: value for key, value in settings.items() if key != KEY}
        left[name] = settings
    return left, Frequencies.of(shares)
