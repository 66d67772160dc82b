"""A member of a domain: an assignment, a subset, a spanning tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privsolve.arrays import Int64Array
from privsolve.data.patterns import checked_names
from privsolve.models.base import Model, check_fields, texts, whole_numbers


@dataclass(frozen=True, eq=False)
class Member(Model):
    """Whole numbers, one per named coordinate."""

    weights: Int64Array
    names: tuple[str, ...]
    kind: ClassVar[str] = "member"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", whole_numbers(self.weights, "weights"))
        object.__setattr__(self, "names", checked_names(self.names, len(self.weights)))

    def describe(self) -> str:
        """The coordinates that are not zero."""
        chosen = [f"{name} = {w}" for name, w in zip(self.names, self.weights.tolist(), strict=True) if w]
        return ", ".join(chosen) or "all zero"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "weights": self.weights.tolist(), "names": list(self.names)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Member:
        """The inverse of `to_dict`."""
        check_fields(values, {"weights", "names"})
        return cls(whole_numbers(values["weights"], "weights"), tuple(texts(values["names"], "names")))
