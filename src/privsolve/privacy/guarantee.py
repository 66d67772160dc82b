"""What a release promises, as a value that can be read, stored and composed."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from privsolve.checks import check_finite
from privsolve.notebooks import panel
from privsolve.privacy import gaussian_curve as _gaussian_curve  # noqa: F401  (so that files that state one can be read)
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.profiles import Profile, group_privacy, profile_from_dict


class Proof(StrEnum):
    """How far the proof of a guarantee reaches."""

    COMPLETE = "complete"
    """Proved for what the program does, rounding and noise in floating point included."""

    REAL_ARITHMETIC = "real arithmetic"
    """Proved for real numbers; what floating point does to the noise is outside the proof."""

    NONE = "none"
    """Not proved: the noise is as published, and the published proof has a gap."""

    @property
    def caveat(self) -> str:
        """What a reader must know about the proof; empty if it is complete."""
        if self is Proof.REAL_ARITHMETIC:
            return "PROVED IN REAL ARITHMETIC ONLY: what floating point does to the noise is outside the proof."
        if self is Proof.NONE:
            return "NOT PROVED: the noise scale is the published one, which has no valid proof."
        return ""


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of one release, and on what it rests.

    `profile` is what is promised, and all that is ever accounted; `mechanism`, `noise`, `theory` (the section that proves
    it) and `oracle` (the solver whose answer the proof relies on) are words for people. `proof` says how far the proof
    reaches. A `seeded` run can be repeated by anybody who knows the seed: for testing only. `negligible` is the
    probability of an event that the proof leaves out, such as noise beyond the exact range: far below any δ, stated but
    not accounted.
    """

    profile: Profile
    adjacency: Adjacency
    mechanism: str
    noise: str
    theory: str
    oracle: str
    proof: Proof = Proof.COMPLETE
    seeded: bool = False
    negligible: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.profile, Profile):
            raise ValueError(f"guarantee's profile must be a Profile, got {reprlib.repr(self.profile)}")
        _check("adjacency", self.adjacency, self.adjacency in tuple(Adjacency), "replace or add-remove")
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        _check("proof", self.proof, self.proof in tuple(Proof), f"one of {', '.join(Proof)}")
        object.__setattr__(self, "proof", Proof(self.proof))
        for name in ("mechanism", "noise", "theory", "oracle"):
            _check(name, getattr(self, name), isinstance(getattr(self, name), str), "a text")
        _check("seeded", self.seeded, isinstance(self.seeded, bool), "true or false")
        negligible = check_finite("guarantee's negligible", self.negligible, "be at least 0 and at most 2^-50")
        _check("negligible", negligible, 0 <= negligible <= 2.0**-50, "at least 0 and at most 2^-50")
        object.__setattr__(self, "negligible", negligible)

    @property
    def epsilon(self) -> float:
        """The ε."""
        return self.profile.epsilon

    @property
    def delta(self) -> float:
        """The δ; 0 for pure privacy."""
        return self.profile.delta

    @property
    def rho(self) -> Fraction:
        """The ρ of zero-concentrated privacy, but for an event of probability `delta`."""
        return self.profile.rho

    @property
    def zcdp(self) -> float | None:
        """The ρ as a float, where it holds without exception."""
        return self.profile.zcdp

    @property
    def proved(self) -> bool:
        """Whether the proof is complete."""
        return self.proof is Proof.COMPLETE

    @property
    def without_exception(self) -> bool:
        """Whether nothing at all is left out of the promise: no δ, no event beside the proof, no seed."""
        return self.proved and not (self.delta or self.negligible or self.seeded)

    def sentence(self) -> str:
        """The guarantee in words."""
        neighbours = self.adjacency.words
        factor = f"a factor of at most e^{self.epsilon:.12g} = {_factor(self.epsilon)}"
        changed = (
            f"the probability of any set of published results by {factor}, plus {self.delta:.3g}"
            if self.delta
            else f"the probability of any published result by {factor}"
        )
        parts = [
            f"{neighbours[0].upper()}{neighbours[1:]} of the data changes {changed} "
            f"({self.mechanism}, {self.noise}, theory section{'s' * (' and ' in self.theory)} {self.theory})."
        ]
        if self.negligible:
            parts.append(f"An event of probability below {power_of_two(self.negligible)} is outside the proof.")
        return " ".join([*parts, *self.caveats()])

    __str__ = sentence

    def _repr_html_(self) -> str:
        facts = [("ε", f"{self.epsilon:.6g}"), ("δ", f"{self.delta:.3g}"), ("neighbours", self.adjacency.words)]
        facts += [
            ("mechanism", f"{self.mechanism}, {self.noise}"),
            ("proof", f"{self.proof}, theory section {self.theory}"),
        ]
        return panel("Differential privacy", ("", ""), facts, [self.sentence()], self.caveats())

    def caveats(self) -> list[str]:
        """What is wrong with the promise, a sentence each."""
        found = [self.proof.caveat]
        if self.seeded:
            found.append("Seeded: for testing only.")
        return [text for text in found if text]

    def under(self, adjacency: Adjacency | str) -> Guarantee:
        """The same release under another adjacency, where that follows.

        A replaced record is one removed and one added, so `"add-remove"` gives `"replace"` at twice epsilon. Nothing
        follows in the other direction.
        """
        wanted = Adjacency.of(adjacency)
        if wanted == self.adjacency:
            return self
        if self.adjacency is Adjacency.REPLACE:
            raise ValueError("a guarantee under replace says nothing under add-remove: run with adjacency='add-remove'")
        _, negligible = group_privacy(self.epsilon, self.negligible, 2)
        return replace(self, profile=self.profile.group(2), adjacency=wanted, negligible=negligible)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"profile": self.profile.to_dict(), "adjacency": str(self.adjacency), "proof": str(self.proof)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        if not isinstance(values, dict):
            raise ValueError(f"guarantee must be a dictionary of its fields, got {type(values).__name__}")
        if wrong := set(values) ^ {f.name for f in fields(cls)}:
            raise ValueError(f"guarantee has missing or unknown fields: {', '.join(sorted(wrong))}")
        return cls(**values | {"profile": profile_from_dict(values["profile"])})


@dataclass(frozen=True)
class Paid:
    """What was paid for the values of a schema: the guarantee of a private draft, and the draft's name in ledgers."""

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


NOISE_BEYOND_RANGE = 2.0**-100
"""The probability that noise is longer than exact arithmetic covers (theory, section 6)."""


def _check(name: str, value: object, holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(f"guarantee's {name} must be {wanted}, got {reprlib.repr(value)}")


def power_of_two(probability: float) -> str:
    """A small probability as the power of two above it."""
    return f"2^{math.ceil(math.log2(probability))}"


def _factor(epsilon: float) -> str:
    """`e^ε` to four digits, rounded up: the sentence says "at most"."""
    if epsilon > 700:
        return "infinity"
    factor = Decimal(math.exp(epsilon)) * Decimal("1.00000000000001")
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(factor)):.4g}"
