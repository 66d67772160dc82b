"""What was chosen: a member of a domain, one of several candidates, or no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_integer
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

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "weights": self.weights.tolist(), "names": list(self.names)}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> Member:
        check_fields(values, {"weights", "names"})
        return cls(whole_numbers(values["weights"], "weights"), tuple(texts(values["names"], "names")))


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

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "index": self.index, "name": self.name}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> Candidate:
        check_fields(values, {"index", "name"})
        return cls(values["index"], values["name"])


@dataclass(frozen=True)
class NoAnswer(Model):
    """What is released where too many parts of the records have failed; the guarantee covers it (theory, section 15.4)."""

    kind: ClassVar[str] = "no-answer"

    @override
    def describe(self) -> str:
        return "no answer: too many parts have failed, or the noise says so"

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> NoAnswer:
        check_fields(values, set())
        return cls()
