"""What a mistake costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privsolve.checks import check_integer

COST_LIMIT = 2**20


@dataclass(frozen=True)
class ZeroOneLoss:
    """Mistakes, with public integer costs for false positives and false negatives (1 and 1: plain 0/1 loss)."""

    false_positive: int = 1
    false_negative: int = 1
    kind: ClassVar[str] = "zero-one"

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 0, COST_LIMIT))
        if self.largest == 0:
            raise ValueError("false_positive and false_negative are both 0: at least one mistake must cost something")

    @property
    def largest(self) -> int:
        """The range of one record's loss; the sensitivity `Δ` is this times 2 (replace) or 1 (add-remove)."""
        return max(self.false_positive, self.false_negative)

    def to_dict(self) -> dict[str, int | str]:
        """Public description, as written into a release."""
        return {"kind": self.kind, "false_positive": self.false_positive, "false_negative": self.false_negative}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> ZeroOneLoss:
        """The inverse of `to_dict`."""
        if not isinstance(description, dict) or set(description) != {"kind", "false_positive", "false_negative"}:
            raise ValueError("loss must have the fields kind, false_positive and false_negative")
        if description["kind"] != cls.kind:
            raise ValueError(f"loss kind {description['kind']!r} is unknown: expected {cls.kind!r}")
        return cls(description["false_positive"], description["false_negative"])


@dataclass(frozen=True)
class LinearLoss:
    """Linear costs; over the domain no record's loss varies by more than the public number `largest`."""

    largest: int
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", check_integer("largest", self.largest, 1, COST_LIMIT))

    def to_dict(self) -> dict[str, int | str]:
        """Public description, as written into a release."""
        return {"kind": self.kind, "largest": self.largest}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> LinearLoss:
        """The inverse of `to_dict`."""
        if set(description) != {"kind", "largest"}:
            raise ValueError("a linear loss must have the fields kind and largest")
        return cls(description["largest"])


Loss = ZeroOneLoss | LinearLoss


def loss_from_dict(description: dict[str, Any]) -> Loss:
    """The inverse of a loss's `to_dict`."""
    if isinstance(description, dict) and description.get("kind") == LinearLoss.kind:
        return LinearLoss.from_dict(description)
    return ZeroOneLoss.from_dict(description)
