"""Bands: names for ranges of totals, such as low, medium and high. They are public, and may be chosen after the release."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from privsolve.models.scales import RiskScale

NAMES = {
    1: ("low", "high"),
    2: ("low", "medium", "high"),
    3: ("low", "medium", "high", "very high"),
    4: ("very low", "low", "medium", "high", "very high"),
}
"""What bands are called, by the number of cuts, where nothing is said."""

HOW = "write cut risks such as 5%,20% or totals such as 12,20, or names and cuts in turn: low,5%,medium,20%,high"


@dataclass(frozen=True)
class Bands:
    """Names for ranges of totals, the lowest first; between two names there is a cut.

    A cut is a risk between 0 and 1, or a total of the card. A band begins above its risk, as a decision does above its
    threshold, or at its total. Bands look at no data: they are arithmetic on what is public.

    Example:
        >>> Bands.of("5%,20%").names
        ('low', 'medium', 'high')
        >>> Bands.of("watch,12,act").cuts
        (12,)
    """

    names: tuple[str, ...]
    cuts: tuple[float, ...]
    by_risk: bool

    def __post_init__(self) -> None:
        if len(self.names) != len(self.cuts) + 1 or not self.cuts:
            raise ValueError(f"bands must have one cut between two names: {HOW}")
        if len(set(self.names)) < len(self.names) or not all(isinstance(n, str) and n.strip() for n in self.names):
            raise ValueError("bands must have different names, none of them empty")
        kinds = (int, float) if self.by_risk else (int,)
        if not all(type(cut) in kinds for cut in self.cuts) or any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError(f"bands must have ascending cuts: {HOW}")
        if self.by_risk and not (self.cuts[0] > 0 and self.cuts[-1] < 1):
            raise ValueError("bands must have cut risks above 0% and below 100%")

    @classmethod
    def of(cls, stated: str | Bands) -> Bands:
        """Bands as they are written: `5%,20%`, `12,20` or `low,5%,medium,20%,high`.

        Raises:
            ValueError: if it is something else.
        """
        if isinstance(stated, Bands):
            return stated
        parts = [part.strip() for part in stated.split(",")]
        read = [_cut(part) for part in parts]
        named = read[0] is None
        names = tuple(parts[::2]) if named else NAMES.get(len(parts), ())
        cuts = tuple(cut for cut in (read[1::2] if named else read) if cut is not None)
        if len(cuts) != len(parts) - (len(names) if named else 0) or len({type(cut) for cut in cuts}) != 1:
            raise ValueError(f"bands {stated!r}: {HOW}")
        if not names:
            raise ValueError(f"bands {stated!r}: more than four cuts need names, such as low,5%,medium,20%,high")
        return cls(names, cuts, isinstance(cuts[0], float))

    def starts(self, scale: RiskScale | None) -> tuple[int, ...]:
        """The least total of every band but the first."""
        if not self.by_risk:
            return tuple(int(cut) for cut in self.cuts)
        if scale is None:
            raise ValueError("the card has no risks, so bands are cut at totals: --bands 3,5 instead of percentages")
        return tuple(scale.first_above(cut) for cut in self.cuts)

    def conditions(self) -> tuple[str, ...]:
        """What the risks of every band are, in words; nothing where it is cut at totals."""
        if not self.by_risk:
            return ("",) * len(self.names)
        said = [f"{100 * cut:g}%" for cut in self.cuts]
        return (f"up to {said[0]}", *(f"above {a}, up to {b}" for a, b in pairwise(said)), f"above {said[-1]}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"names": list(self.names), "risks" if self.by_risk else "totals": list(self.cuts)}

    @classmethod
    def from_dict(cls, values: object) -> Bands:
        """The inverse of `to_dict`."""
        if not isinstance(values, dict) or set(values) not in ({"names", "risks"}, {"names", "totals"}):
            raise ValueError("the release file's bands must have names, and risks or totals")
        cuts = values.get("risks", values.get("totals"))
        if not isinstance(values["names"], list) or not isinstance(cuts, list):
            raise ValueError("the release file's bands must have lists of names and cuts")
        return cls(tuple(values["names"]), tuple(cuts), "risks" in values)


def _cut(text: str) -> float | None:
    """A cut: a risk as a float, a total as an int; None if the text is a name."""
    if re.fullmatch(r"\d+(\.\d+)?%", text):
        return float(text[:-1]) / 100
    return int(text) if re.fullmatch(r"-?\d+", text) else None
