"""One of several candidates, chosen by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privsolve.checks import check_integer
from privsolve.models.base import Model, check_fields

LARGEST_INDEX = 2**53


@dataclass(frozen=True)
class Candidate(Model):
    """The candidate that was chosen: its place in the list of candidates, which is public, and its name."""

    index: int
    name: str
    kind: ClassVar[str] = "candidate"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"candidates", "sensitivity", "monotone", "method", "step"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", check_integer("index", self.index, 0, LARGEST_INDEX))
        if not isinstance(self.name, str) or not self.name:
            raise ValueError("the candidate's name must be a text")

    def describe(self) -> str:
        """The name."""
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "index": self.index, "name": self.name}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Candidate:
        """The inverse of `to_dict`."""
        check_fields(values, {"index", "name"})
        return cls(values["index"], values["name"])
