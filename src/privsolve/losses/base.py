"""What every loss states in public: its range, which sets the noise, and how it is written into a release."""

from __future__ import annotations

from abc import ABC
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privsolve import registry
from privsolve.privacy.adjacency import Adjacency

COST_LIMIT = 2**20

_KINDS: dict[str, type[Loss]] = {}


class Loss(ABC):
    """The loss of one record, in integers of a public unit. Fixed without looking at any record.

    A subclass is a frozen dataclass with a `kind` of its own; stating it registers the class, so that its losses are
    written into releases and read back. `largest` is the range of one record's loss: the sensitivity `Δ` is this times
    `range_factor`.
    """

    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def largest(self) -> int: ...  # noqa: D102

    def within(self, distance_sq: int) -> float:
        """How much one record's loss can differ between two members at this squared distance: `largest` unless more is known.

        It may grow with the distance, but not faster than its square (theory, section 15).
        """
        return self.largest

    def range_factor(self, adjacency: Adjacency) -> int:
        """`Δ` over `largest`: 2 if a record is replaced, 1 if one is added or removed (theory, section 0)."""
        return adjacency.range_factor

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            registry.enter(_KINDS, cls, "loss")

    def to_dict(self) -> dict[str, Any]:
        """Public description, as written into a release: the kind and the fields."""
        values = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """The inverse of `to_dict`."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if not isinstance(description, dict) or set(description) != {"kind", *names}:
            raise ValueError(f"loss must have the fields kind, {' and '.join(names)}")
        return cls(**{name: description[name] for name in names})


def loss_from_dict(description: Any) -> Loss:
    """The inverse of a loss's `to_dict`, whatever its kind."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if kind is None:
        raise ValueError("loss must have the fields kind and those of its kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"loss kind {kind!r} is unknown: expected one of {', '.join(sorted(_KINDS))}")
    return _KINDS[kind].from_dict(description)
