"""What was paid for the values of a schema, by a draft with a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privsolve.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Paid:
    """The guarantee of a private draft, and the draft's own name, by which a ledger knows that it was paid for already."""

    guarantee: Guarantee
    draft: str

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee) or not isinstance(self.draft, str) or not self.draft:
            raise ValueError("paid must hold the guarantee of a draft and the draft's name")

    @property
    def note(self) -> str:
        """What a ledger writes beside the payment."""
        return f"schema draft {self.draft}"

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        return {"draft": self.draft, **self.guarantee.to_dict()}

    @classmethod
    def from_dict(cls, values: object) -> Paid:
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping) or not isinstance(values.get("draft"), str):
            raise ValueError("paid must be a table with the name of a draft and its guarantee")
        return cls(Guarantee.from_dict({k: v for k, v in values.items() if k != "draft"}), values["draft"])
