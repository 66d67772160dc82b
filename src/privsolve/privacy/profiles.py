"""Privacy profiles: what kind of guarantee a mechanism has, as a value that can be composed.

A mechanism states its profile. Everything that is accounted (sums, zero-concentrated bounds) is computed from it and from
nothing else. Proofs are in theory section 9.
"""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, cast

from privsolve.checks import check_finite
from privsolve.privacy.decimals import at_least, exact
from privsolve.registry import enter, look_up


class Profile(ABC):
    """What one release loses at most. Subclasses register themselves under their `kind`, the word in files."""

    epsilon: float
    delta: float

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Profile]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        enter(cls.kinds, cls, "profile")

    def __post_init__(self) -> None:
        set_positive(self, "epsilon")

    @property
    @abstractmethod
    def rho(self) -> Fraction:
        """The ρ of zero-concentrated privacy, but for an event of probability `delta`."""

    @property
    def zcdp(self) -> float | None:
        """The ρ as a float, where it holds without exception."""
        return at_least(self.rho)

    @abstractmethod
    def group(self, size: int) -> Profile:
        """What holds when `size` records change at once."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, **{field.name: getattr(self, field.name) for field in fields(cast(Any, self))}}


@dataclass(frozen=True)
class Pure(Profile):
    """`epsilon`-DP. `concentrated` is a ρ below `ε²/2` where one is known."""

    epsilon: float
    delta: float = field(default=0.0, init=False)
    concentrated: float | None = None
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.concentrated is not None:
            set_positive(self, "concentrated")

    @property
    def rho(self) -> Fraction:
        """`ε²/2`, or the better one."""
        return exact(self.epsilon) ** 2 / 2 if self.concentrated is None else exact(self.concentrated)

    def group(self, size: int) -> Pure:
        """`kε` and `k²ρ`."""
        concentrated = None if self.concentrated is None else at_least(size**2 * self.rho)
        return Pure(at_least(size * exact(self.epsilon)), concentrated)


@dataclass(frozen=True)
class BoundedRange(Profile):
    """`epsilon`-DP whose log-ratios span at most `epsilon` from the smallest to the largest output: `ε²/8`-zCDP."""

    epsilon: float
    delta: float = field(default=0.0, init=False)
    kind: ClassVar[str] = "bounded-range"

    @property
    def rho(self) -> Fraction:
        """`ε²/8` (theory, section 4)."""
        return exact(self.epsilon) ** 2 / 8

    def group(self, size: int) -> BoundedRange:
        """A range of `kε`: ranges add up along a path of neighbours."""
        return BoundedRange(at_least(size * exact(self.epsilon)))


@dataclass(frozen=True)
class Approximate(Profile):
    """`(epsilon, delta)`-DP."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_positive(self, "delta", below=1)

    @property
    def rho(self) -> Fraction:
        """`ε²/2`: what is left beside the event is only known to be ε-DP."""
        return exact(self.epsilon) ** 2 / 2

    @property
    def zcdp(self) -> None:
        """None: with a δ there is no such bound."""

    def group(self, size: int) -> Approximate:
        """`kε` and `δ(1 + e^ε + ... + e^((k-1)ε))`."""
        return Approximate(*group_privacy(self.epsilon, self.delta, size))


def profile_of(epsilon: float, delta: float = 0.0) -> Profile:
    """The profile of `(epsilon, delta)`-DP where nothing more is known."""
    return Approximate(epsilon, delta) if delta else Pure(epsilon)


def profile_from_dict(values: Any) -> Profile:
    """The inverse of a profile's `to_dict`."""
    cls: type[Profile] = look_up(Profile.kinds, values, "guarantee's profile")
    stated = fields(cast(Any, cls))
    if wrong := {f.name for f in stated} ^ (set(values) - {"kind"}):
        raise ValueError(f"guarantee's profile has missing or unknown fields: {', '.join(sorted(wrong))}")
    profile = cls(**{f.name: values[f.name] for f in stated if f.init})
    if profile.delta != values["delta"]:
        raise ValueError(
            f"guarantee's delta must be {profile.delta:g} in a {cls.kind} profile, got {values['delta']!r}"
        )
    return profile


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """The epsilon and delta that hold for `size` records at once: `kε` and `δ(1 + e^ε + ... + e^((k-1)ε))`, rounded up."""
    total = at_least(size * exact(epsilon))
    if delta == 0 or size == 0:
        return total, 0.0
    try:
        share = math.expm1(total) / math.expm1(epsilon) * (1 + 1e-12)
    except OverflowError:
        share = math.inf
    return total, min(1.0, delta * max(share, float(size)))


def set_positive(profile: Profile, name: str, below: float = math.inf) -> None:
    """Store a field as a plain float; raise unless it is a positive number."""
    said = "zcdp" if name == "concentrated" else name
    wanted = "finite and positive" if below == math.inf else f"above 0 and below {below:g}"
    value = check_finite(f"guarantee's {said}", getattr(profile, name), f"be {wanted}")
    if not 0 < value < below:
        raise ValueError(f"guarantee's {said} must be {wanted}, got {reprlib.repr(value)}")
    object.__setattr__(profile, name, value)
