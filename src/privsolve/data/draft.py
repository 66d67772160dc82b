"""A first schema, guessed from the data. Every guess is marked, because a schema should be public knowledge."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from privsolve.data import toml
from privsolve.data.columns import Bins, Categories, Column, Dates, Label, Real, Value, tidy, value_text
from privsolve.data.profile import MOST_VALUES, Kind, Profile, profiles
from privsolve.data.schema import Schema
from privsolve.errors import PrivacyLeakWarning

LEAK = (
    "the schema was drafted from the data, so the guarantee does not cover what it gives away: check every column in "
    "its list `guessed`, and replace what you would not know without looking at the records"
)
NO_NAME = "has no name of its own: give it one in the data, or ask for it by this one"
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


def draft(
    data: Any,
    label: str | None = None,
    positive: Value | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Sequence[Value] = (),
) -> Draft:
    """Propose a schema for a pandas, Polars, Arrow or Ibis table. Warns, because it looks at the data.

    Categories are the values of columns with few of them, with one indicator where there are two; numbers and dates are cut
    near their quartiles, at round ones. Where `positive` is left out, the last of the two label values in order is
    positive. Without a `label` all columns are features.

    Args:
        data: the table; the same records give the same draft, whatever holds them.
        label: the column to predict.
        positive: its positive value.
        columns: the columns to use; all if left out.
        drop: columns not to use.
        missing: values that stand for no value, such as -999, beside `NA`, `NULL`, `?` and the like.
    """
    wanted = None if columns is None else [*columns, *([] if label is None else [label])]
    found = profiles(data, missing, wanted)
    target: Label | None = None
    notes: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    if label is not None:
        if label not in found:
            raise ValueError(f"label must be a column of the data, got {label!r}: its columns are {_some(found)}")
        target, note = _label(label, found.pop(label), positive)
        notes["label"] = (note,)
    for name in (*(columns or ()), *drop):
        if name not in found and name != label:
            raise ValueError(f"the data has no column {name!r} to use or to drop: its columns are {_some(found)}")
    drafted_columns: list[Column] = []
    for name, profile in found.items():
        if name in drop:
            continue
        shared = re.fullmatch(r"(.* )?\(column \d+\)", name) and name not in (columns or ())
        drafted = NO_NAME if shared else _column(name, profile, missing)
        if isinstance(drafted, str):
            left_out[name] = drafted
        else:
            drafted_columns.append(drafted[0])
            notes[name] = (f"Guessed: {drafted[1]}",)
    if not drafted_columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"no column of the data can be drafted: write the schema by hand ({reasons})")
    warnings.warn(LEAK, PrivacyLeakWarning, stacklevel=2)
    return Draft(Schema(drafted_columns, target).all_guessed(), notes, left_out)


def _some(names: Mapping[str, object]) -> str:
    listed = list(names)
    return ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "")


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


def _column(name: str, profile: Profile, codes: Sequence[Value]) -> tuple[Column, str] | str:
    """A column and what was guessed, or why it is left out."""
    taken = {value_text(value, name).lower() for value in profile.values or ()}
    missing = None if not profile.missing else "missing" if "missing" not in taken else "no value"
    also = ", and that values can be missing" if missing else ""
    if profile.kind is None:
        return "neither texts, numbers nor dates: convert it"
    if profile.distinct == 0:
        return "no values"
    if profile.distinct == 1:
        return "a single value"
    numeric = tuple(code for code in codes if not isinstance(code, str))
    if profile.kind is Kind.DATE:
        days = _nice_days(profile)
        if not days:
            return "its dates do not spread: write dates by hand to use it"
        return Dates(name, days, missing=missing, format=profile.format), f"days near the quartiles{also}."
    if profile.values is not None and _is_listed(profile):
        of_kind = {Kind.TEXT: profile.codes, Kind.NUMBER: numeric}
        stated = {"missing": missing, "missing_values": of_kind.get(profile.kind, ())}
        if len(profile.values) == 2:
            no, yes = profile.values
            return Categories(name, [yes], no=no, **stated), f"the two values{also}."  # type: ignore[arg-type]
        return Categories(name, profile.values, **stated), f"the list of values{also}."  # type: ignore[arg-type]
    if profile.kind is Kind.TEXT:
        return (
            f"more than {MOST_VALUES} different texts, so an identifier or free text, or numbers with signs (separators "
            "of thousands, units); correct or group them to use it"
        )
    if profile.whole and profile.distinct >= 0.95 * (profile.records - profile.missing):
        return "almost every record has its own whole number, so an identifier"
    cuts = _nice_cuts(profile.cuts, profile) or _nice_cuts(profile.upper_cuts, profile)
    if not cuts:
        return "its values do not spread: write bins by hand to use it"
    whole = profile.whole and all(isinstance(cut, int) for cut in cuts)
    decimal = "," if profile.kind is Kind.COMMA else "."
    return Bins(name, cuts, "thresholds", whole, missing, numeric, decimal), f"cut points near the quartiles{also}."


def _is_listed(profile: Profile) -> bool:
    """Whether the values are options rather than a scale."""
    if profile.kind is not Kind.NUMBER:
        return profile.kind is not Kind.COMMA
    return profile.distinct == 2 or (profile.whole and profile.distinct <= FEW_NUMBERS)


def _nice_days(profile: Profile) -> list[date]:
    """Quartiles at the first day of a year, of a month, or as they are, as far as they spread."""
    least, largest, *quartiles = (
        _day(number) for number in (profile.least, profile.largest, *(profile.cuts or profile.upper_cuts))
    )
    spread = (quartiles[-1] - quartiles[0]).days or (largest - least).days
    if spread >= 4 * 366:
        quartiles = [date(day.year + (day.month > 6 and day.year < 9999), 1, 1) for day in quartiles]
    elif spread >= 4 * 31:
        quartiles = [day.replace(day=1) for day in quartiles]
    return sorted({day for day in quartiles if least < day <= largest})


def _day(number: float) -> date:
    """The day of a number `yyyymmdd`; one between two days, as a quartile may be, is the first day of its month."""
    year, month, day = int(number) // 10_000, int(number) // 100 % 100, int(number) % 100
    try:
        return date(year, month, day)
    except ValueError:
        return date(year, min(max(month, 1), 12), 1)


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
