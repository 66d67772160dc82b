"""What a mistake costs."""

from __future__ import annotations

from dataclasses import dataclass

from privsolve.domains import _check_integer

COST_LIMIT = 2**20


@dataclass(frozen=True)
class ZeroOneLoss:
    """Mistakes, with public integer costs for false positives and false negatives (1 and 1: plain 0/1 loss)."""

    false_positive: int = 1
    false_negative: int = 1

    def __post_init__(self) -> None:
        _check_integer(self.false_positive, "false_positive", 0, COST_LIMIT)
        _check_integer(self.false_negative, "false_negative", 0, COST_LIMIT)
        if self.largest == 0:
            raise ValueError("false_positive and false_negative are both 0: at least one mistake must cost something")

    @property
    def largest(self) -> int:
        """The range of one record's loss; the sensitivity `Δ` is this times 2 (replace) or 1 (add-remove)."""
        return max(self.false_positive, self.false_negative)

    def to_dict(self) -> dict[str, int | str]:
        """Public description, as written into a release."""
        return {"kind": "zero-one", "false_positive": self.false_positive, "false_negative": self.false_negative}
