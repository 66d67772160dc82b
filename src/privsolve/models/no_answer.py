"""That nothing was found, as a result that may be published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privsolve.models.base import Model, check_fields


@dataclass(frozen=True)
class NoAnswer(Model):
    """What is released where too many parts of the records have failed; the guarantee covers it (theory, section 15.4)."""

    kind: ClassVar[str] = "no-answer"

    def describe(self) -> str:
        """In words."""
        return "no answer: too many parts have failed, or the noise says so"

    def to_dict(self) -> dict[str, Any]:
        """Its kind alone."""
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NoAnswer:
        """The inverse of `to_dict`."""
        check_fields(values, set())
        return cls()
