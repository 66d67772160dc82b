"""The column to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privsolve.data.columns.base import check_keys
from privsolve.data.columns.categories import Categories, Category
from privsolve.data.columns.values import Value, check_values, declared, values_of


@dataclass(frozen=True)
class Label:
    """The column to predict. Values in `positive` are positive, those in `negative` negative.

    Any other value is an error, unless `negative` is left out: then everything that is not positive is negative. A
    missing label is an error unless `missing = "negative"`. Errors come before any budget is spent, and no record is ever
    dropped, because the number of records is public.
    """

    column: str
    positive: tuple[Value, ...]
    negative: tuple[Value, ...] | None = None
    missing: str | None = None

    def __init__(
        self,
        column: str,
        positive: Value | Sequence[Value],
        negative: Value | Sequence[Value] | None = None,
        missing: str | None = None,
    ) -> None:
        if not isinstance(column, str) or not column:
            raise ValueError(f"label: column must be the name of a column, got {column!r}")
        yes = values_of(positive, "label: positive")
        no = None if negative is None else values_of(negative, "label: negative")
        check_values([*yes, *(no or ())], "label: positive and negative")
        if missing not in (None, "negative"):
            raise ValueError(
                f'label: missing can only be "negative"; leave it out to refuse such data, got {missing!r}'
            )
        set_field = object.__setattr__
        set_field(self, "column", column)
        set_field(self, "positive", yes)
        set_field(self, "negative", no)
        set_field(self, "missing", missing)

    @property
    def coded(self) -> Categories:
        """The label as a column of two options: code 0 is positive, 1 is negative, then other and missing."""
        nowhere = Category("negative", self.negative) if self.negative is not None else None
        return Categories(self.column, [Category("positive", self.positive), *([nowhere] if nowhere else [])])

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"column": self.column, "positive": list(self.positive)}
        if self.negative is not None:
            settings["negative"] = list(self.negative)
        return settings | declared(missing=self.missing)

    @classmethod
    def from_dict(cls, settings: object) -> Label:
        """As in a schema file."""
        check_keys(settings, ("column", "positive", "negative", "missing"), "label")
        assert isinstance(settings, Mapping)
        for key in ("column", "positive"):
            if key not in settings:
                raise ValueError(f"label: {key} is missing")
        return cls(**settings)
