"""A first schema, guessed from the data. Every guess is marked, because a schema should be public knowledge."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privsolve.data import toml
from privsolve.data.columns import Bins, Categories, Column, Label, Real, Value, tidy, value_text
from privsolve.data.profile import MOST_VALUES, Profile, profiles
from privsolve.data.schema import Schema
from privsolve.errors import PrivacyLeakWarning

LEAK = (
    "the schema was drafted from the data, so the guarantee does not cover what it gives away: check every column in "
    "its list `guessed`, and replace what you would not know without looking at the records"
)
FEW_NUMBERS = 5
"""Whole numbers with so few values are options rather than a scale."""


@dataclass(frozen=True)
class Draft:
    """A schema guessed from the data, and what was guessed: `notes` by column, `left_out` with the reason."""

    schema: Schema
    notes: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]

    def to_toml(self) -> str:
        """The text of a schema file with every guess marked."""
        head = ("Drafted from the data.", "")
        list_of_guesses = (
            "The values of these columns were read off private records, and no guarantee covers what they give away.",
            "Check each column, replace what is not public knowledge, then take its name off this list.",
        )
        text = self.schema.to_toml({"": head, "guessed": list_of_guesses, **self.notes})
        reasons = [toml.comment(f"{name}: {reason}") for name, reason in self.left_out.items()]
        return text + "".join(f"{line}\n" for line in ["", toml.comment("Left out:"), *reasons]) if reasons else text


def draft(data: Any, label: str | None = None, positive: Value | None = None) -> Draft:
    """Propose a schema for a pandas, Polars, Arrow or Ibis table. Warns, because it looks at the data.

    Categories are the values of columns with few of them; numbers are cut near their quartiles, at round numbers. Where
    `positive` is left out, the last of the two label values in order is positive. Without a `label` all columns are
    features.
    """
    found = profiles(data)
    target: Label | None = None
    notes: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    if label is not None:
        if label not in found:
            raise ValueError(f"label must be a column of the data, got {label!r}: its columns are {', '.join(found)}")
        target, note = _label(label, found.pop(label), positive)
        notes["label"] = (note,)
    columns: list[Column] = []
    for name, profile in found.items():
        drafted = _column(name, profile)
        if isinstance(drafted, str):
            left_out[name] = drafted
        else:
            columns.append(drafted[0])
            notes[name] = (f"Guessed: {drafted[1]}",)
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"no column of the data can be drafted: write the schema by hand ({reasons})")
    warnings.warn(LEAK, PrivacyLeakWarning, stacklevel=2)
    return Draft(Schema(columns, target).all_guessed(), notes, left_out)


def _label(name: str, profile: Profile, positive: Value | None) -> tuple[Label, str]:
    values = profile.values
    if values is None or profile.kind is None or len(values) < 1:
        raise ValueError(
            f"label {name!r} must have between 1 and {MOST_VALUES} different values: choose another column"
        )
    if positive is None:
        if len(values) != 2:
            raise ValueError(f"positive must be given: the label {name!r} has {len(values)} different values")
        chosen, note = values[-1], "Guessed: the values, and that the last one is positive."
    else:
        wanted = positive.strip() if isinstance(positive, str) else value_text(positive, "positive")
        matches = [value for value in values if value_text(value, name) == wanted]
        if not matches:
            listed = ", ".join(value_text(value, name) for value in values)
            raise ValueError(f"positive={wanted!r} is not a value of the label {name!r}: it has {listed}")
        chosen, note = matches[0], "Guessed: the other values."
    rest = tuple(value for value in values if value != chosen)
    return Label(name, (chosen,), rest or None), note


def _column(name: str, profile: Profile) -> tuple[Column, str] | str:
    """A column and what was guessed, or why it is left out."""
    taken = {value_text(value, name).lower() for value in profile.values or ()}
    missing = None if not profile.missing else "missing" if "missing" not in taken else "no value"
    also = ", and that values can be missing" if missing else ""
    if profile.kind is None:
        return "neither texts nor numbers: convert it"
    if profile.distinct == 0:
        return "no values"
    if profile.distinct == 1:
        return "a single value"
    few = profile.values is not None
    listed = profile.kind != "number" or (profile.whole and profile.distinct <= FEW_NUMBERS) or profile.distinct == 2
    if listed and few:
        assert profile.values is not None
        return Categories(name, profile.values, None, missing), f"the list of values{also}."
    if profile.kind == "text":
        return f"more than {MOST_VALUES} different texts, so an identifier or free text; group them by hand to use it"
    if profile.whole and profile.distinct >= 0.95 * (profile.records - profile.missing):
        return "almost every record has its own whole number, so an identifier"
    cuts = _nice_cuts(profile.cuts, profile) or _nice_cuts(profile.upper_cuts, profile)
    if not cuts:
        return "its values do not spread: write bins by hand to use it"
    whole = profile.whole and all(isinstance(cut, int) for cut in cuts)
    return Bins(name, cuts, "thresholds", whole, missing), f"cut points near the quartiles{also}."


def _nice_cuts(quartiles: tuple[float, ...], profile: Profile) -> tuple[Real, ...]:
    """Quartiles at round numbers: 1, 2 or 5 times a power of ten apart at least, a tenth of their spread or less."""
    if not quartiles:
        return ()
    spread = (quartiles[-1] - quartiles[0]) or (profile.largest - profile.least)
    if not spread > 0:
        return ()
    power = 10.0 ** math.floor(math.log10(spread / 5))
    unit = max(m * power for m in (1, 2, 5) if m * power <= spread / 5)
    if profile.whole:
        unit = max(unit, 1.0)
    digits = max(0, -math.floor(math.log10(unit)))
    cuts = sorted({round(round(q / unit) * unit, digits) for q in quartiles})
    return tuple(tidy(cut) for cut in cuts if profile.least < cut <= profile.largest)
