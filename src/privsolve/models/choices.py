"""What was chosen: a member of a domain, a point of a box, or no answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import floor
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from privsolve.arrays import Floats, Int64Array, plain
from privsolve.checks import LARGEST, check_finite, check_positive
from privsolve.data.patterns import checked_names
from privsolve.models.base import Model, check_fields, texts, whole_numbers


@dataclass(frozen=True)
class _Plain(Model):
    """A model that goes to and from JSON field by field; its `__post_init__` checks them."""

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind} | {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> Self:
        check_fields(values, {f.name for f in fields(cls)})
        return cls(**{name: value for name, value in values.items() if name != "kind"})


@dataclass(frozen=True, eq=False)
class Member(_Plain):
    """Whole numbers, one per named coordinate."""

    weights: Int64Array
    names: tuple[str, ...]
    kind: ClassVar[str] = "member"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", whole_numbers(self.weights, "weights"))
        object.__setattr__(self, "names", checked_names(texts(plain(self.names), "names"), len(self.weights)))

    def describe(self) -> str:
        """The coordinates that are not zero."""
        chosen = [f"{name} = {w}" for name, w in zip(self.names, self.weights.tolist(), strict=True) if w]
        return ", ".join(chosen) or "all zero"


@dataclass(frozen=True)
class NoAnswer(_Plain):
    """What is released where too many parts of the records have failed; the guarantee covers it (theory, section 15.4)."""

    kind: ClassVar[str] = "no-answer"

    @override
    def describe(self) -> str:
        return "no answer: too many parts have failed, or the noise says so"


_BOUNDS = "have finite bounds with low < high in every coordinate"

SETTING = ("n", "lipschitz", "draws", "sigma", "sensitivity", "oracle_error", "centred")
"""The public numbers that the noise was computed from."""


@dataclass(frozen=True)
class Box:
    """A product of intervals, public: `low[i] <= x[i] <= high[i]`."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not self.low:
            raise ValueError("box must have as many lower as upper bounds, and at least one of each")
        for low, high in zip(self.low, self.high, strict=True):
            if not -LARGEST <= check_finite("box", low, _BOUNDS) < check_finite("box", high, _BOUNDS) <= LARGEST:
                raise ValueError(f"box must {_BOUNDS} and up to {LARGEST:g}, got ({low}, {high})")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def widths(self) -> tuple[float, ...]:
        """Side lengths."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def corner(self) -> Floats:
        """The lower corner as an array; perturbations are measured from it."""
        return np.array(self.low)

    def contains(self, points: Floats) -> bool:
        """Whether all points (rows) lie in the box."""
        return bool(np.all((points >= self.low) & (points <= self.high)))


@dataclass(frozen=True)
class BoxPoint(Model):
    """The point `low + grid·steps` of a box."""

    steps: tuple[int, ...]
    box: Box
    grid: float
    kind: ClassVar[str] = "box-point"
    setting_fields: ClassVar[frozenset[str]] = frozenset(SETTING)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_positive("grid", self.grid))
        top = top_steps(self.box, self.grid)
        if len(self.steps) != self.box.dim or not all(0 <= k <= t for k, t in zip(self.steps, top, strict=True)):
            raise ValueError("the release's steps are not a point of its grid")

    @property
    def point(self) -> Floats:
        """The point itself."""
        return np.minimum(self.box.corner + self.grid * np.array(self.steps, dtype=np.float64), self.box.high)

    def describe(self) -> str:
        """The coordinates."""
        return f"the point ({', '.join(f'{x:.6g}' for x in self.point)})"

    @override
    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "point": self.point.tolist(),
            "steps": list(self.steps),
            "low": list(self.box.low),
            "high": list(self.box.high),
            "grid": self.grid,
        }

    @classmethod
    @override
    def from_dict(cls, values: dict[str, Any]) -> BoxPoint:
        check_fields(values, {"point", "steps", "low", "high", "grid"})
        if not isinstance(values["steps"], list) or not all(type(k) is int for k in values["steps"]):
            raise ValueError("the release file's steps must be a list of whole numbers")
        for name in ("low", "high"):
            if not isinstance(values[name], list) or not all(type(x) in (int, float) for x in values[name]):
                raise ValueError(f"the release file's {name} must be a list of numbers")
        box = Box(tuple(values["low"]), tuple(values["high"]))
        model = cls(tuple(values["steps"]), box, check_positive("grid", values["grid"]))
        if model.point.tolist() != values["point"]:
            raise ValueError("the release file's point is not the one that its steps give")
        return model


def top_steps(box: Box, grid: float) -> list[int]:
    """The last step of the grid in each coordinate."""
    return [floor(width / grid) for width in box.widths]
